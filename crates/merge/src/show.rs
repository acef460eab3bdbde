//! Values in Go's notation (`%v`): `map[a:1 b:[x <nil>]]`.

use injectd_gocompat::number::format_float;
use serde_json::{Number, Value};

/// Texts longer than this are cut, in bytes.
// The text goes into the answer of a review and into a line of the log, and a value may be a whole
// pod.
const MAX_TEXT: usize = 4096;

/// Lists and objects deeper than this are not shown.
const MAX_SHOWN_DEPTH: usize = 64;

/// A value as Go prints it, cut if it is long.
pub(crate) fn shown(value: &Value) -> String {
    let mut text = String::new();
    write(value, MAX_SHOWN_DEPTH, &mut text);
    cut(text)
}

/// Lists as Go prints a list of them.
pub(crate) fn shown_lists(lists: &[&[Value]]) -> String {
    let mut text = "[".to_owned();
    for (at, list) in lists.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { " " });
        write_list(list, MAX_SHOWN_DEPTH, &mut text);
    }
    text.push(']');
    cut(text)
}

/// A value as Go prints it with `%s`, which is for strings.
pub(crate) fn shown_as_text(value: &Value) -> String {
    match value {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("%!s({}={})", go_type(value), shown(value)),
        _ => shown(value),
    }
}

/// Go's name of the type that its JSON decoder gives a value.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => GO_LIST,
        Value::Object(_) => GO_MAP,
    }
}

/// Go's type of an object.
pub(crate) const GO_MAP: &str = "map[string]interface {}";

/// Go's type of a list.
pub(crate) const GO_LIST: &str = "[]interface {}";

fn write(value: &Value, depth: usize, text: &mut String) {
    match value {
        _ if text.len() > MAX_TEXT => {}
        Value::Null => text.push_str("<nil>"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => text.push_str(string),
        Value::Array(_) | Value::Object(_) if depth == 0 => text.push('…'),
        Value::Array(list) => write_list(list, depth - 1, text),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push_str("map[");
            for (at, (key, value)) in entries.into_iter().enumerate() {
                text.push_str(if at == 0 { "" } else { " " });
                text.push_str(key);
                text.push(':');
                write(value, depth - 1, text);
            }
            text.push(']');
        }
    }
}

fn write_list(list: &[Value], depth: usize, text: &mut String) {
    text.push('[');
    for (at, value) in list.iter().enumerate() {
        if text.len() > MAX_TEXT {
            break;
        }
        text.push_str(if at == 0 { "" } else { " " });
        write(value, depth, text);
    }
    text.push(']');
}

fn number_text(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer.to_string(),
        (None, Some(float)) => format_float(float),
        (None, None) => number.to_string(),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push('…');
    }
    text
}

/// A number as Go writes it in JSON, where floats that hold an integer have no point.
///
/// Go: `floatEncoder` in `encoding/json`.
pub(crate) fn json_number(number: &Number) -> String {
    let (None, Some(float)) = (number.as_i64(), number.as_f64()) else {
        return number.to_string();
    };
    if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) {
        let text = format!("{float:e}");
        return if text.contains("e-") { text } else { text.replace('e', "e+") };
    }
    float.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_as_go_prints_them() {
        let value = json!({"b": [1, 1.5, null, "x y", {}], "a": {"c": true, "": 1e21}});
        assert_eq!(shown(&value), "map[a:map[:1e+21 c:true] b:[1 1.5 <nil> x y map[]]]");
        assert_eq!(shown_as_text(&json!(5)), "%!s(int64=5)");
        assert_eq!(shown_as_text(&json!("x")), "x");
    }

    #[test]
    fn long_values_are_cut() {
        let long = json!(vec!["é".repeat(100); 1000]);
        assert!(shown(&long).len() < MAX_TEXT + 10);
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert!(shown(&deep).contains('…'));
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let text = |value: Value| match value {
            Value::Number(number) => json_number(&number),
            _ => String::new(),
        };
        assert_eq!(text(json!(1.0)), "1");
        assert_eq!(text(json!(1e20)), "100000000000000000000");
        assert_eq!(text(json!(1e21)), "1e+21");
        assert_eq!(text(json!(-1.5e-7)), "-1.5e-7");
        assert_eq!(text(json!(0.25)), "0.25");
    }
}
