//! `core/v1` `EnvVar` lists, as the values and the proxy-additional-env annotation hold them.
//!
//! A variable is kept as the JSON it is rendered to; merging needs only its name. Typed as Go's
//! decoder types it: unknown fields are dropped, a wrong type spoils the whole list.

#![expect(clippy::disallowed_types, reason = "free-form lists, rare among pods")]

use serde_json::{Map, Value};

use super::{
    release::{Delta, Release},
    values::tree::scalar,
};
use crate::{go::quantity, json, pod::Text};

/// A variable of a container's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvVar {
    /// Its name; may be empty.
    pub name: String,
    /// The whole variable as JSON.
    pub json: Vec<u8>,
}

/// How a scalar that is no string is read where a string is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalars {
    /// Written out as a string: YAML values.
    Coerced,
    /// Refused: JSON in an annotation.
    Refused,
}

/// How a field of a variable's source is written.
#[derive(Debug, Clone, Copy)]
enum Field {
    Text,
    TextUnlessEmpty,
    Flag,
    Divisor,
}

const KEY_REF: &[(&str, Field)] =
    &[("name", Field::TextUnlessEmpty), ("key", Field::Text), ("optional", Field::Flag)];

/// The sources of a value, in no particular order (`k8s.io/api/core/v1`).
const SOURCES: [(&str, &[(&str, Field)]); 5] = [
    ("fieldRef", &[("apiVersion", Field::TextUnlessEmpty), ("fieldPath", Field::Text)]),
    (
        "resourceFieldRef",
        &[
            ("containerName", Field::TextUnlessEmpty),
            ("resource", Field::Text),
            ("divisor", Field::Divisor),
        ],
    ),
    ("configMapKeyRef", KEY_REF),
    ("secretKeyRef", KEY_REF),
    (
        "fileKeyRef",
        &[
            ("volumeName", Field::Text),
            ("path", Field::Text),
            ("key", Field::Text),
            ("optional", Field::Flag),
        ],
    ),
];

struct Reader {
    scalars: Scalars,
    release: Release,
}

/// A wrong type, and where: the path inside of the list.
type Result<T> = std::result::Result<T, String>;

/// Reads a list of variables.
///
/// # Errors
/// The place of the first wrong type.
pub fn read_list(list: &[Value], scalars: Scalars, release: Release) -> Result<Vec<EnvVar>> {
    let reader = Reader { scalars, release };
    list.iter()
        .enumerate()
        .map(|(index, item)| reader.env_var(item).map_err(|at| format!("[{index}]{at}")))
        .collect()
}

/// Reads the list that an annotation holds as JSON.
///
/// # Errors
/// Why it cannot be read.
pub fn read_json(text: &str, release: Release) -> Result<Vec<EnvVar>> {
    match serde_json::from_str(text) {
        Ok(Value::Array(list)) => read_list(&list, Scalars::Refused, release),
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(_) => Err("is not a list".to_owned()),
        Err(error) => Err(format!("is not JSON: {error}")),
    }
}

/// Replaces variables of the same name in place and appends the others (`inject.go`).
pub fn merge(into: &mut Vec<EnvVar>, layer: Vec<EnvVar>) {
    for var in layer {
        match into.iter_mut().find(|known| known.name == var.name) {
            Some(known) => *known = var,
            None => into.push(var),
        }
    }
}

impl Reader {
    fn env_var(&self, item: &Value) -> Result<EnvVar> {
        let empty = Map::new();
        let map = self.map(item)?.unwrap_or(&empty);
        let name = self.text(map, "name")?;
        let value = self.text(map, "value")?;
        let mut json = br#"{"name":"#.to_vec();
        json::write_string(&mut json, &name);
        if !value.is_empty() {
            json.extend_from_slice(br#","value":"#);
            json::write_string(&mut json, &value);
        }
        if let Some(source) = self.object(map, "valueFrom")? {
            json.extend_from_slice(br#","valueFrom":"#);
            self.source(&mut json, source).map_err(|at| format!(".valueFrom{at}"))?;
        }
        json.push(b'}');
        Ok(EnvVar { name: name.0.into_owned(), json })
    }

    fn source(&self, json: &mut Vec<u8>, source: &Map<String, Value>) -> Result<()> {
        json.push(b'{');
        for (key, fields) in SOURCES {
            if key == "fileKeyRef" && !self.release.has(Delta::FileKeyRef) {
                continue;
            }
            if let Some(reference) = self.object(source, key)? {
                begin_member(json, key);
                json.push(b'{');
                for &(name, field) in fields {
                    self.field(json, reference, name, field).map_err(|at| format!(".{key}{at}"))?;
                }
                json.push(b'}');
            }
        }
        json.push(b'}');
        Ok(())
    }

    fn field(
        &self,
        json: &mut Vec<u8>,
        map: &Map<String, Value>,
        key: &str,
        field: Field,
    ) -> Result<()> {
        match field {
            Field::Text | Field::TextUnlessEmpty => {
                let text = self.text(map, key)?;
                if !text.is_empty() || matches!(field, Field::Text) {
                    begin_member(json, key);
                    json::write_string(json, &text);
                }
            }
            Field::Flag => match get(map, key) {
                None => {}
                Some(Value::Bool(flag)) => {
                    begin_member(json, key);
                    json.extend_from_slice(if *flag { b"true" } else { b"false" });
                }
                Some(_) => return Err(format!(".{key} is not a boolean")),
            },
            Field::Divisor => {
                begin_member(json, key);
                json::write_string(json, &divisor(map, key)?);
            }
        }
        Ok(())
    }

    fn text<'v>(&self, map: &'v Map<String, Value>, key: &str) -> Result<Text<'v>> {
        match get(map, key) {
            None => Ok(Text::default()),
            Some(Value::String(text)) => Ok(Text(text.as_str().into())),
            Some(value) if self.scalars == Scalars::Coerced => scalar(value)
                .map(|text| Text(text.into()))
                .ok_or_else(|| format!(".{key} is not a string")),
            Some(_) => Err(format!(".{key} is not a string")),
        }
    }

    fn object<'v>(
        &self,
        map: &'v Map<String, Value>,
        key: &str,
    ) -> Result<Option<&'v Map<String, Value>>> {
        get(map, key).map_or(Ok(None), |value| self.map(value).map_err(|at| format!(".{key}{at}")))
    }

    #[expect(clippy::unused_self, reason = "reads like its neighbours")]
    fn map<'v>(&self, value: &'v Value) -> Result<Option<&'v Map<String, Value>>> {
        match value {
            Value::Null => Ok(None),
            Value::Object(map) => Ok(Some(map)),
            _ => Err(" is not an object".to_owned()),
        }
    }
}

/// A divisor is always written, in its canonical form.
fn divisor(map: &Map<String, Value>, key: &str) -> Result<String> {
    let text = match get(map, key) {
        None => return Ok("0".to_owned()),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        Some(_) => return Err(format!(".{key} is not a quantity")),
    };
    quantity::parse(&text)
        .map(|quantity| quantity.canonical())
        .ok_or_else(|| format!(".{key} is not a quantity"))
}

/// The value of a key unless it is `null`; as Go does, the exact spelling first, then any case.
fn get<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    map.get(key)
        .or_else(|| map.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, v)| v))
        .filter(|value| !value.is_null())
}

fn begin_member(json: &mut Vec<u8>, key: &str) {
    if json.last() != Some(&b'{') {
        json.push(b',');
    }
    json::write_string(json, key);
    json.push(b':');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Result<Vec<String>> {
        let list = read_json(text, Release::NEWEST)?;
        Ok(list.into_iter().map(|var| String::from_utf8(var.json).expect("utf-8")).collect())
    }

    #[test]
    fn a_variable_is_written_as_kubernetes_types_it() {
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
    fn a_wrong_type_spoils_the_list() {
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
        let mut into = list(r#"[{"name":"A","value":"1"},{"name":"B","value":"1"}]"#);
        merge(&mut into, list(r#"[{"name":"C","value":"2"},{"name":"A","value":"2"}]"#));
        let names: Vec<_> = into.iter().map(|var| var.name.as_str()).collect();
        assert_eq!(names, ["A", "B", "C"]);
        assert_eq!(into[0].json, br#"{"name":"A","value":"2"}"#);
    }
}
