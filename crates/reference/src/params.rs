//! T§2.2.2: variables made of the maps `proxy.inbound` and `proxy.outbound`.

use serde_json::{Map, Value};

use super::Context;
use super::values::decimal;

/// Names and values, inbound before outbound, sorted by the original keys.
pub(super) fn env(context: &Context<'_>) -> Vec<(String, Value)> {
    let mut env = Vec::new();
    for direction in ["inbound", "outbound"] {
        let scopes = context.values.tree(&format!("proxy.{direction}"));
        for (scope, protocols) in sorted(scopes) {
            for (protocol, parameters) in sorted(Some(protocols)) {
                for (parameter, value) in sorted(Some(parameters)) {
                    let parts = [direction, scope, protocol, parameter];
                    let name = parts.map(snake_case).join("_").to_uppercase();
                    env.push((format!("LINKERD2_PROXY_{name}"), text(value)));
                }
            }
        }
    }
    env
}

fn sorted(map: Option<&Value>) -> Vec<(&str, &Value)> {
    let entries = map.and_then(Value::as_object).into_iter();
    let mut entries: Vec<_> =
        entries.flat_map(Map::iter).map(|(key, value)| (key.as_str(), value)).collect();
    entries.sort_by_key(|(key, _)| key.as_bytes());
    entries
}

fn text(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => flag.to_string().into(),
        Value::Number(number) => decimal(number).into(),
        other => other.clone(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Separator,
    Other,
}

fn class(letter: char) -> Class {
    match letter {
        '-' | '_' => Class::Separator,
        _ if letter.is_whitespace() => Class::Separator,
        _ if letter.is_uppercase() => Class::Upper,
        _ if letter.is_lowercase() => Class::Lower,
        _ if letter.is_numeric() => Class::Digit,
        _ => Class::Other,
    }
}

/// Splits a key into words and joins them with `_`.
fn snake_case(key: &str) -> String {
    let mut out = String::new();
    let mut before = Class::Separator;
    for (class, word) in words(key) {
        let glued =
            [before, class].iter().any(|class| matches!(class, Class::Separator | Class::Other));
        // A run of digits belongs to the previous word; `words` has joined the other case.
        if !glued && class != Class::Digit {
            out.push('_');
        }
        match class {
            Class::Separator => out.push('_'),
            _ => out.push_str(&word),
        }
        before = class;
    }
    out
}

/// Words: a lower-case run, a capital with the lower-case run after it, capitals, digits, digits
/// with the lower-case run after them, single separators and other characters.
fn words(key: &str) -> Vec<(Class, String)> {
    let mut words: Vec<(Class, String)> = Vec::new();
    for letter in key.chars() {
        let class = class(letter);
        let grows = matches!(class, Class::Lower | Class::Upper | Class::Digit);
        match words.last_mut() {
            Some((last, word)) if grows && *last == class => word.push(letter),
            Some((Class::Upper, capitals)) if class == Class::Lower => {
                let capital = capitals.pop().unwrap_or_default();
                if capitals.is_empty() {
                    words.pop();
                }
                words.push((Class::Lower, format!("{capital}{letter}")));
            }
            Some((last @ Class::Digit, digits)) if class == Class::Lower => {
                *last = Class::Lower;
                digits.push(letter);
            }
            _ => words.push((class, letter.to_string())),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn keys_are_split_into_words() {
        for (key, words) in [
            ("keepAliveInterval", "KEEP_ALIVE_INTERVAL"),
            ("http2", "HTTP2"),
            ("HTTP2", "HTTP2"),
            ("a1b2", "A_1B2"),
            ("a2B", "A2_B"),
            ("fooHTTPBar", "FOO_HTTP_BAR"),
            ("IPv6", "I_PV6"),
            ("foo-bar", "FOO_BAR"),
            ("foo.bar", "FOO.BAR"),
        ] {
            assert_eq!(snake_case(key).to_uppercase(), words, "{key}");
        }
    }
}
