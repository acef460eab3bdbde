//! YAML with the types of YAML 1.1, as `sigs.k8s.io/yaml` reads it into JSON.

use injectd_gocompat::number;
use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// The first document of a text as a tree.
pub fn tree(text: &str) -> Result<Value, String> {
    let mut reader = Reader { events: Vec::new(), at: 0, anchors: HashMap::new() };
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| error.to_string())?;
        let end = matches!(event, Event::DocumentEnd);
        match event {
            Event::StreamStart | Event::DocumentStart(..) | Event::Comment(..) => {}
            event => reader.events.push(event),
        }
        if end {
            break;
        }
    }
    reader.node()
}

struct Reader<'a> {
    events: Vec<Event<'a>>,
    at: usize,
    anchors: HashMap<usize, Value>,
}

impl Reader<'_> {
    fn node(&mut self) -> Result<Value, String> {
        let Some(event) = self.events.get(self.at).cloned() else {
            return Ok(Value::Null);
        };
        self.at += 1;
        let (anchor, value) = match event {
            Event::Alias(id) => {
                let value = self.anchors.get(&id).cloned();
                return value.ok_or_else(|| "an alias has no anchor".to_owned());
            }
            Event::Scalar(text, ScalarStyle::Plain, anchor, None) => (anchor, plain(&text)?),
            Event::Scalar(text, _, anchor, _) => (anchor, Value::String(text.into_owned())),
            Event::SequenceStart(_, anchor, _) => {
                let mut items = Vec::new();
                while !matches!(self.events.get(self.at), Some(Event::SequenceEnd)) {
                    items.push(self.node()?);
                }
                self.at += 1;
                (anchor, Value::Array(items))
            }
            Event::MappingStart(_, anchor, _) => {
                let mut map = Map::new();
                while !matches!(self.events.get(self.at), Some(Event::MappingEnd)) {
                    let key = key(self.node()?)?;
                    let value = self.node()?;
                    map.insert(key, value);
                }
                self.at += 1;
                (anchor, Value::Object(map))
            }
            _ => return Ok(Value::Null),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }
}

fn key(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err("a key must be a scalar".to_owned()),
    }
}

/// The type of a plain scalar.
fn plain(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            Value::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => return Err(format!("JSON has no {text}")),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    })
}

/// An integer of any base with underscores, or a decimal float.
fn number(text: &str) -> Option<Number> {
    let first = text.chars().next()?;
    if !(first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    let text: String = text.chars().filter(|&letter| letter != '_').collect();
    if let Some(whole) = integer(&text) {
        let narrow = i64::try_from(whole).map(Number::from);
        return narrow.or_else(|_| u64::try_from(whole).map(Number::from)).ok();
    }
    Number::from_f64(number::parse_yaml_float(&text)?)
}

fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_str() {
        "0" => (10, "0"),
        other => [("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)]
            .iter()
            .find_map(|(prefix, radix)| Some((*radix, other.strip_prefix(prefix)?)))
            .unwrap_or((10, other)),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let whole = i128::from_str_radix(digits, radix).ok()?;
    let whole = if negative { -whole } else { whole };
    let fits = i64::try_from(whole).is_ok() || u64::try_from(whole).is_ok();
    fits.then_some(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::tree;

    #[test]
    fn plain_scalars_have_the_types_of_yaml_1_1() {
        let text = "{a: off, b: 0777, c: 1_000, d: 0x10, e: 1.10, f: 'off', g: ~, h: 1:30, i: 1e3}";
        let wanted = json!({
            "a": false, "b": 511, "c": 1000, "d": 16, "e": 1.1, "f": "off", "g": null,
            "h": "1:30", "i": 1000.0,
        });
        assert_eq!(tree(text), Ok(wanted));
    }

    #[test]
    fn the_last_of_two_equal_keys_wins() {
        assert_eq!(tree("a: 1\na: 2\n"), Ok(json!({"a": 2})));
    }
}
