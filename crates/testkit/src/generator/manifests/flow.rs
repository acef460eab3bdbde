//! Flow style, and JSON.

use crate::generator::random::Random;
use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

/// JSON: in one line with or without blanks, or in many lines.
pub(super) fn json(random: &mut Random, value: &Value) -> String {
    let end = random.pick(&["\n", "", "\n\n"]);
    let text = match random.below(5) {
        0 => value.to_string(),
        1 => spaced(value),
        _ => pretty(value, random.pick(&["  ", "\t", "    ", " "])),
    };
    text + end
}

fn pretty(value: &Value, indent: &str) -> String {
    let mut out = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    value.serialize(&mut serializer).expect("memory must take it");
    String::from_utf8(out).expect("JSON must be UTF-8")
}

/// As Python writes it.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let entry =
                |(key, value)| format!("{}: {}", Value::from(String::clone(key)), spaced(value));
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// A collection in flow style, as a part of a document in block style with a comment in each line.
pub(super) fn collection(
    random: &mut Random,
    value: &Value,
    indent: usize,
    comment: &mut dyn FnMut(&mut Random) -> String,
) -> String {
    let (open, close, parts): (_, _, Vec<String>) = match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| collection(random, item, indent + 2, comment));
            ("[", "]", items.collect())
        }
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| {
                let key = scalar(random, &Value::from(key.clone()));
                let value = collection(random, value, indent + 2, comment);
                let colon = if key.starts_with('"') && random.percent(20) { ":" } else { ": " };
                [&key, colon, &value].concat()
            };
            ("{", "}", map.iter().map(entry).collect())
        }
        value => return scalar(random, value),
    };
    let last = if random.percent(10) && !parts.is_empty() { "," } else { "" };
    if parts.is_empty() || random.percent(75) {
        let pad = random.pick(&["", "", " "]);
        let comma = random.pick(&[", ", ", ", ","]);
        return [open, pad, &parts.join(comma), last, pad, close].concat();
    }
    let mut text = open.to_owned();
    let pad = " ".repeat(indent + 2);
    for (at, part) in parts.iter().enumerate() {
        let comma = if at + 1 < parts.len() { "," } else { last };
        if random.percent(20) {
            text += &["\n", &pad, &comment(random)].concat();
        }
        text += &["\n", &pad, part, comma].concat();
        if random.percent(25) {
            text += &[" ", &comment(random)].concat();
        }
    }
    let deeper = random.pick(&[0, 0, 1]);
    text + "\n" + &" ".repeat(indent + deeper) + close
}

/// A scalar in one line.
pub(super) fn scalar(random: &mut Random, value: &Value) -> String {
    let Value::String(text) = value else {
        return match value {
            Value::Null => random.pick(&["null", "~", "Null"]).to_owned(),
            Value::Bool(true) => random.pick(&["true", "yes", "on", "True"]).to_owned(),
            value => value.to_string(),
        };
    };
    let plain = injectd_yaml::write(value);
    let plain = plain.trim_end_matches('\n');
    match random.below(6) {
        0 => Value::from(text.as_str()).to_string(),
        1 if !text.contains('\n') => format!("'{}'", text.replace('\'', "''")),
        _ => plain.to_owned(),
    }
}
