//! Compares values with a schema.

use std::{collections::HashSet, fmt::Write as _, io};

use injectd_cel::{Datum, Variables};
use injectd_core::spelling::most_like;
use serde_json::{Map, Value};

use super::keywords::{Rule, Schema};
use crate::{Problem, limits::MAX_BYTES_OF_SPEC};

/// Characters of a value in a problem.
const SHOWN: usize = 60;

/// What is wrong, and the field that is looked at.
#[derive(Default)]
pub(super) struct Checker {
    path: String,
    pub(super) problems: Vec<Problem>,
}

/// The variable of a rule.
struct Own<'v>(&'v Value);

impl Variables for Own<'_> {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        (name == "self").then(|| self.0.into())
    }
}

impl Checker {
    /// A problem of the field.
    pub(super) fn problem(&mut self, text: impl Into<String>) {
        self.problems.push(Problem::new(&*self.path, text));
    }

    /// The field has another value than expected.
    pub(super) fn mismatch(&mut self, found: &Value, expected: &str) {
        self.problem(format!("found {}, expected {expected}", shown(found)));
    }

    /// Looks at a field of the field.
    pub(super) fn below(&mut self, name: &str, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_$".contains(&byte);
        if !name.is_empty() && name.bytes().all(is_plain) {
            self.path.push_str(if length == 0 { "" } else { "." });
            self.path.push_str(name);
        } else {
            // Writing to a string never fails.
            let _ = write!(self.path, "[{}]", Value::from(name));
        }
        check(self);
        self.path.truncate(length);
    }

    fn item(&mut self, index: usize, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        let _ = write!(self.path, "[{index}]");
        check(self);
        self.path.truncate(length);
    }

    /// The field of an object must be one of these texts.
    pub(super) fn one_of(&mut self, object: &Value, name: &str, expected: &[&str]) {
        self.below(name, |checker| match &object[name] {
            Value::Null => checker.problem(format!("missing; expected {}", choice(expected))),
            Value::String(found) if expected.contains(&&**found) => {}
            found => checker.not_one_of(found, expected),
        });
    }

    fn not_one_of(&mut self, found: &Value, expected: &[&str]) {
        let like = found.as_str().and_then(|text| most_like(expected.iter().copied(), text));
        let hint = like.map(|like| format!("; did you mean {like}?")).unwrap_or_default();
        self.mismatch(found, &format!("{}{hint}", choice(expected)));
    }

    /// The name of a field must be one of these.
    pub(super) fn known(&mut self, name: &str, known: &[&str]) {
        if known.contains(&name) {
            return;
        }
        self.below(name, |checker| {
            let hint = match most_like(known.iter().copied(), name) {
                Some(like) => format!("did you mean {like}?"),
                None if known.is_empty() => "expected no fields".to_owned(),
                None => format!("expected {}", choice(known)),
            };
            checker.problem(format!("unknown field; {hint}"));
        });
    }

    /// A `spec` must not be too large.
    pub(super) fn size(&mut self, spec: &Value) {
        let mut counted = Counted(0);
        let is_written = serde_json::to_writer(&mut counted, spec).is_ok();
        if !is_written || counted.0 > MAX_BYTES_OF_SPEC {
            let found = counted.0;
            self.problem(format!(
                "found {found} bytes as JSON, expected at most {MAX_BYTES_OF_SPEC}"
            ));
        }
    }

    /// The field must be as the schema says.
    pub(super) fn value(&mut self, schema: &Schema, value: &Value) {
        if schema.r#type.is_some_and(|of| !of.is_of(value)) {
            return self.mismatch(value, schema.type_text());
        }
        let before = self.problems.len();
        match value {
            Value::Object(fields) => self.keys(schema, fields),
            Value::Array(items) => self.list(schema, items),
            Value::String(text) => self.text(schema, text),
            Value::Number(_) => self.number(schema, value),
            Value::Bool(_) | Value::Null => {}
        }
        let is_itself_valid = self.problems.len() == before;
        match value {
            Value::Object(fields) => self.fields(schema, fields),
            Value::Array(items) => self.items(schema, items),
            _ => {}
        }
        if is_itself_valid {
            let is_valid = self.problems.len() == before;
            if let Value::Object(fields) = value {
                self.alternatives(schema, fields);
            }
            schema.rules.iter().for_each(|rule| self.rule(rule, value, is_valid));
        }
    }

    fn keys(&mut self, schema: &Schema, fields: &Map<String, Value>) {
        if schema.additional_properties.is_none() && !schema.keeps_unknown_fields {
            let known: Vec<_> = schema.properties.keys().map(String::as_str).collect();
            for name in fields.keys() {
                self.known(name, &known);
            }
        }
        for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
            let of = schema.properties[name].type_text();
            self.below(name, |checker| checker.problem(format!("missing; expected {of}")));
        }
        self.at_most(fields.len(), schema.max_properties, "fields");
    }

    fn alternatives(&mut self, schema: &Schema, fields: &Map<String, Value>) {
        let names: Vec<_> = schema.alternatives().collect();
        let set = names.iter().filter(|name| fields.contains_key(**name)).count();
        if !names.is_empty() && set != 1 {
            self.problem(format!("expected exactly one of {}", names.join(" and ")));
        }
    }

    fn fields(&mut self, schema: &Schema, fields: &Map<String, Value>) {
        for (name, value) in fields {
            let of = schema.properties.get(name).or(schema.additional_properties.as_deref());
            if let Some(of) = of {
                self.below(name, |checker| checker.value(of, value));
            }
        }
    }

    fn list(&mut self, schema: &Schema, items: &[Value]) {
        self.at_least(items.len(), schema.min_items, "items");
        self.at_most(items.len(), schema.max_items, "items");
    }

    fn items(&mut self, schema: &Schema, items: &[Value]) {
        let Some(of) = &schema.items else { return };
        let mut names = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            self.item(index, |checker| {
                checker.value(of, item);
                if let Some([key]) = &schema.list_map_keys {
                    checker.once(&mut names, key, &item[key]);
                }
            });
        }
    }

    /// No two items share this field.
    fn once<'v>(&mut self, names: &mut HashSet<&'v str>, key: &str, value: &'v Value) {
        if value.as_str().is_some_and(|name| !names.insert(name)) {
            self.below(key, |checker| {
                let found = shown(value);
                checker.problem(format!("found {found} again, expected each {key} once"));
            });
        }
    }

    fn text(&mut self, schema: &Schema, text: &str) {
        let length = text.chars().count();
        self.at_least(length, schema.min_length, "characters");
        self.at_most(length, schema.max_length, "characters");
        let found = || Value::from(text);
        if let Some(expected) = &schema.r#enum
            && !expected.iter().any(|known| known == text)
        {
            let expected: Vec<_> = expected.iter().map(String::as_str).collect();
            self.not_one_of(&found(), &expected);
        }
        if let Some(pattern) = &schema.pattern
            && !pattern.is_match(text)
        {
            self.mismatch(&found(), &format!("a string that matches {pattern}"));
        }
    }

    fn number(&mut self, schema: &Schema, value: &Value) {
        let number = value.as_f64().unwrap_or_default();
        if let Some(least) = schema.minimum.filter(|least| number < wide(*least)) {
            self.mismatch(value, &format!("at least {least}"));
        }
        if let Some(most) = schema.maximum.filter(|most| number > wide(*most)) {
            self.mismatch(value, &format!("at most {most}"));
        }
    }

    fn at_least(&mut self, found: usize, least: Option<usize>, of: &str) {
        if let Some(least) = least.filter(|least| found < *least) {
            self.problem(format!("found {found} {of}, expected at least {least}"));
        }
    }

    fn at_most(&mut self, found: usize, most: Option<usize>, of: &str) {
        if let Some(most) = most.filter(|most| found > *most) {
            self.problem(format!("found {found} {of}, expected at most {most}"));
        }
    }

    /// A rule that fails because of another problem is none.
    fn rule(&mut self, rule: &Rule, value: &Value, is_valid: bool) {
        match rule.rule.value(&Own(value)).value {
            Ok(Some(Value::Bool(true))) => {}
            Ok(_) => self.problem(&*rule.message),
            Err(_) if !is_valid => {}
            Err(why) => self.problem(format!("{}: {why}", rule.message)),
        }
    }
}

/// The bounds of the schemas have few digits.
fn wide(bound: i64) -> f64 {
    i32::try_from(bound).map_or(f64::MAX, f64::from)
}

/// A value for a problem.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{:?}…", &text[..end]),
            None => format!("{text:?}"),
        },
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Such as `a, b or c`.
fn choice(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// The number of bytes that are written.
struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
