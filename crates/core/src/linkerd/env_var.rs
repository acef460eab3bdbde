//! `core/v1` `EnvVar` lists, from the values and the proxy-additional-env annotation.
//!
//! A variable is stored as its JSON; merging needs only its name. Lists are read as Go's decoder
//! reads them: unknown fields are ignored, and a wrong type makes the whole list invalid. Values
//! may be secrets, so error texts name the place in the list and never quote the text.

#![expect(clippy::disallowed_types, reason = "the values contain their list as a tree")]

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
};

use serde::de::DeserializeSeed as _;
use serde_json::{Value, error::Category};

use super::release::Release;

mod reader;
mod shapes;

use shapes::Reader;

/// A variable of a container's environment, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvVar {
    json: Cow<'static, [u8]>,
    /// End of the name in the JSON.
    name_end: usize,
}

/// How to read other scalars where a string is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalars {
    /// Converted to a string: YAML values.
    Coerced,
    /// Rejected: JSON in an annotation.
    Refused,
}

/// The error is a path in the list and the problem there: `[0].name is not a string`.
type Result<T> = std::result::Result<T, String>;

/// Reads a list of variables.
///
/// # Errors
/// The first wrong type and its place.
pub fn read_list(list: &[Value], scalars: Scalars, release: Release) -> Result<Vec<EnvVar>> {
    let reader = Reader { scalars, release };
    let items = list.iter().enumerate().map(|(index, item)| {
        let read = reader.variable().deserialize(item);
        let variable = read.unwrap_or_else(|error| Err(syntax(&error)));
        variable.map(Option::unwrap_or_default).map_err(|at| format!("[{index}]{at}"))
    });
    items.collect()
}

/// Reads the JSON list of an annotation. Of adjacent variables with the same name it keeps the
/// last, as [`merged`] does.
///
/// # Errors
/// The first problem and its place.
pub fn read_json(text: &str, release: Release) -> Result<Vec<EnvVar>> {
    let reader = Reader { scalars: Scalars::Refused, release };
    let mut json = serde_json::Deserializer::from_str(text);
    let list = reader.list().deserialize(&mut json).and_then(|list| json.end().map(|()| list));
    let list = list.unwrap_or_else(|error| Err(syntax(&error))).map(Option::unwrap_or_default);
    list.map_err(|problem| problem.trim_start().to_owned())
}

/// The text of a JSON error. Only syntax errors are known not to quote the input.
fn syntax(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Syntax | Category::Eof => format!(" is not JSON: {error}"),
        Category::Data | Category::Io => {
            format!(" is not JSON: line {} column {}", error.line(), error.column())
        }
    }
}

/// Merges the variables of `layers` into `list`: a variable replaces the first of the same name, or
/// is appended (`inject.go`).
#[must_use]
pub fn merged<'v>(list: &'v [EnvVar], layers: impl Iterator<Item = &'v EnvVar>) -> Vec<&'v EnvVar> {
    let mut merged: Vec<_> = list.iter().collect();
    // Pod authors choose the names: the hash function must resist collision attacks.
    let mut places = HashMap::new();
    for (place, var) in list.iter().enumerate() {
        places.entry(var.name()).or_insert(place);
    }
    for var in layers {
        match places.entry(var.name()) {
            Entry::Occupied(place) => merged[*place.get()] = var,
            Entry::Vacant(place) => {
                place.insert(merged.len());
                merged.push(var);
            }
        }
    }
    merged
}

/// The beginning of a variable's JSON.
const BEGIN: &[u8] = br#"{"name":"#;

impl EnvVar {
    /// The whole variable as JSON.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// The name as a JSON string. Equal names have equal JSON strings.
    fn name(&self) -> &[u8] {
        &self.json[BEGIN.len()..self.name_end]
    }
}

impl Default for EnvVar {
    /// The variable for `null` in a list.
    fn default() -> Self {
        const WITHOUT_NAME: &[u8] = br#"{"name":""}"#;
        Self { json: Cow::Borrowed(WITHOUT_NAME), name_end: WITHOUT_NAME.len() - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Result<Vec<String>> {
        let list = read_json(text, Release::NEWEST)?;
        Ok(list
            .into_iter()
            .map(|var| String::from_utf8(var.json.into_owned()).expect("utf-8"))
            .collect())
    }

    #[test]
    fn a_variable_is_written_as_kubernetes_writes_it() {
        for (json, expected) in [
            (r#"{"name":"A","value":"b","x":1}"#, r#"{"name":"A","value":"b"}"#),
            (r#"{"NAME":"A","value":""}"#, r#"{"name":"A"}"#),
            ("null", r#"{"name":""}"#),
            (
                r#"{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"p"}}}"#,
                r#"{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"p"}}}"#,
            ),
            (
                r#"{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1000m"}}}"#,
                r#"{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1"}}}"#,
            ),
            (
                r#"{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k","optional":false}}}"#,
                r#"{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k","optional":false}}}"#,
            ),
            (r#"{"name":"A","valueFrom":{}}"#, r#"{"name":"A","valueFrom":{}}"#),
        ] {
            assert_eq!(rendered(&format!("[{json}]")), Ok(vec![expected.to_owned()]));
        }
    }

    #[test]
    fn a_wrong_type_makes_the_list_invalid() {
        for json in [
            "{}",
            "[1]",
            r#"[{"name":1}]"#,
            r#"[{"name":"A"},{"value":true}]"#,
            r#"[{"valueFrom":{"fieldRef":[]}}]"#,
            r#"[{"valueFrom":{"resourceFieldRef":{"divisor":"many"}}}]"#,
            r#"[{"valueFrom":{"secretKeyRef":{"optional":"no"}}}]"#,
            "[] x",
        ] {
            assert!(rendered(json).is_err(), "{json}");
        }
        assert_eq!(rendered("null"), Ok(Vec::new()));
    }

    #[test]
    fn merging_replaces_in_place_and_appends() {
        let list = |text| read_json(text, Release::NEWEST).expect("list");
        let values = list(r#"[{"name":"A","value":"1"},{"name":"B"},{"name":"A","value":"1b"}]"#);
        let namespace = list(r#"[{"name":"C","value":"2"},{"name":"A","value":"2"}]"#);
        let pod = list(r#"[{"name":"C","value":"3"},{"name":"D"},{"name":"D","value":"3"}]"#);
        let merged = merged(&values, namespace.iter().chain(&pod));
        let json: Vec<_> = merged.iter().map(|var| str::from_utf8(&var.json)).collect();
        let expected = [
            r#"{"name":"A","value":"2"}"#,
            r#"{"name":"B"}"#,
            r#"{"name":"A","value":"1b"}"#,
            r#"{"name":"C","value":"3"}"#,
            r#"{"name":"D","value":"3"}"#,
        ];
        assert_eq!(json, expected.map(Ok));
    }

    #[test]
    fn the_exact_key_wins_then_the_first_in_another_case() {
        for (json, expected) in [
            (r#"{"NAME":"B","name":"A"}"#, r#"{"name":"A"}"#),
            (r#"{"name":"A","NAME":"B"}"#, r#"{"name":"A"}"#),
            (r#"{"Name":"A","NAME":"B"}"#, r#"{"name":"A"}"#),
            (r#"{"Name":"A","NAME":"B","Name":"C"}"#, r#"{"name":"C"}"#),
            (r#"{"name":"A","name":"B"}"#, r#"{"name":"B"}"#),
            (r#"{"NAME":"B","name":null}"#, r#"{"name":""}"#),
            (r#"{"name":1,"name":"A","NAME":2}"#, r#"{"name":"A"}"#),
            (r#"{"valueFrom":{"fieldRef":{"fieldPath":"a"}},"valueFrom":null}"#, r#"{"name":""}"#),
        ] {
            assert_eq!(rendered(&format!("[{json}]")), Ok(vec![expected.to_owned()]), "{json}");
        }
    }

    #[test]
    fn an_unknown_field_may_contain_anything() {
        let text = r#"[{"x":[{"y":[1e9,null,true]}],"name":"A","z":"\u0041"}]"#;
        assert_eq!(rendered(text), Ok(vec![r#"{"name":"A"}"#.to_owned()]));
    }

    #[test]
    fn a_problem_names_the_place_and_never_a_value() {
        const SECRET: &str = "S3CRET";
        for (text, place) in [
            (r#"{"S3CRET":1}"#, "is not a list"),
            (r#""S3CRET""#, "is not a list"),
            (r#"["S3CRET"]"#, "[0] is not an object"),
            (r#"[{"name":"S3CRET"},{"name":["S3CRET"]}]"#, "[1].name is not a string"),
            (r#"[{"value":"S3CRET","valueFrom":"S3CRET"}]"#, "[0].valueFrom is not an object"),
            (
                r#"[null,{"valueFrom":{"secretKeyRef":{"key":"S3CRET","optional":"S3CRET"}}}]"#,
                "[1].valueFrom.secretKeyRef.optional is not a boolean",
            ),
            (
                r#"[{"valueFrom":{"resourceFieldRef":{"divisor":"S3CRET"}}}]"#,
                "[0].valueFrom.resourceFieldRef.divisor is not a quantity",
            ),
            (r#"[{"name":"A","value":"S3CRET"},"#, "is not JSON: EOF while parsing a value at"),
            (r#"[{"name":"A","value":"S3CRET"#, "is not JSON: EOF while parsing a string at"),
            (r#"[{"value":S3CRET}]"#, "is not JSON: expected value at line 1 column 11"),
            (r#"[{"S3CRET"}]"#, "is not JSON: expected `:` at line 1 column 11"),
            (r#"[{"value":"S3CRET\q"}]"#, "is not JSON: invalid escape at line 1 column 19"),
            (r#"[] "S3CRET""#, "is not JSON: trailing characters at line 1 column 4"),
        ] {
            let problem = rendered(text).expect_err(text);
            assert!(problem.starts_with(place), "{text}: {problem}");
            assert!(!problem.contains(SECRET), "{text}: {problem}");
        }
    }
}
