//! Free parameters of the proxy: `proxy.inbound` and `proxy.outbound` as environment variables
//! (`docs/spec/linkerd/template.md` §2.2.2).

#![expect(clippy::disallowed_types, reason = "configuration is read once per change")]

use injectd_gocompat::number::plain_decimal;
use serde_json::Value;

use super::{ValuesError, read::Field as _, tree::Section};

/// Name and value of each parameter; `None` is written as `null`.
type Parameters = Vec<(String, Option<String>)>;

/// Reads both maps, inbound first, with the keys of each level sorted by their original spelling.
pub(super) fn read(proxy: &Section<'_>) -> Result<Parameters, ValuesError> {
    let mut parameters = Vec::new();
    for direction in ["inbound", "outbound"] {
        let scopes = proxy.section(direction)?;
        for scope in sorted_keys(&scopes) {
            let protocols = scopes.section(scope)?;
            for protocol in sorted_keys(&protocols) {
                let leaves = protocols.section(protocol)?;
                for leaf in sorted_keys(&leaves) {
                    let path = [direction, scope, protocol, leaf].map(variable_part).join("_");
                    parameters.push((format!("LINKERD2_PROXY_{path}"), value(&leaves, leaf)?));
                }
            }
        }
    }
    Ok(parameters)
}

fn sorted_keys<'v>(section: &Section<'v>) -> Vec<&'v str> {
    let mut keys: Vec<_> = section.entries().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys
}

fn value(leaves: &Section<'_>, key: &str) -> Result<Option<String>, ValuesError> {
    match leaves.entries().find(|(found, _)| *found == key).map(|(_, value)| value) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) if number.is_f64() => {
            Ok(Some(plain_decimal(number.as_f64().unwrap_or_default())))
        }
        Some(Value::Number(integer)) => Ok(Some(integer.to_string())),
        Some(_) => String::read(leaves, key).map(Some),
    }
}

/// Splits a key into words as the chart's `snakecase | upper` does.
fn variable_part(key: &str) -> String {
    let chars: Vec<char> = key.chars().collect();
    let run = |from: usize, of: fn(char) -> bool| {
        chars[from..].iter().position(|&c| !of(c)).map_or(chars.len(), |length| from + length)
    };
    let mut out = String::new();
    let mut after_word = false;
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let (separate, end) = if is_digit(c) {
            let digits = run(at, is_digit);
            let tail = run(digits, is_lower);
            (tail > digits, tail)
        } else if c.is_uppercase() {
            (true, capitalised_word(&chars, at, run(at, char::is_uppercase), &run))
        } else if is_lower(c) {
            (true, run(at, is_lower))
        } else {
            out.push(if c == '-' || c.is_whitespace() { '_' } else { c });
            after_word = false;
            at += 1;
            continue;
        };
        if separate && after_word {
            out.push('_');
        }
        out.extend(chars[at..end].iter().flat_map(|c| c.to_uppercase()));
        after_word = true;
        at = end;
    }
    out
}

/// The end of a word that starts with a capital. Of several capitals before a lower-case letter,
/// the last one starts the next word.
fn capitalised_word(
    chars: &[char],
    start: usize,
    capitals: usize,
    run: &impl Fn(usize, fn(char) -> bool) -> usize,
) -> usize {
    let lower_follows = chars.get(capitals).is_some_and(|&c| is_lower(c));
    match capitals - start {
        1 if lower_follows => run(capitals, is_lower),
        2.. if lower_follows => capitals - 1,
        _ => capitals,
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn is_lower(c: char) -> bool {
    c.is_alphabetic() && !c.is_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_split_into_words() {
        for (key, part) in [
            ("keepAliveInterval", "KEEP_ALIVE_INTERVAL"),
            ("http2", "HTTP2"),
            ("HTTP2", "HTTP2"),
            ("a1b2", "A_1B2"),
            ("a2B", "A2_B"),
            ("fooHTTPBar", "FOO_HTTP_BAR"),
            ("IPv6", "I_PV6"),
            ("foo-bar", "FOO_BAR"),
            ("foo_bar baz", "FOO_BAR_BAZ"),
            ("a.b", "A.B"),
            ("2x", "2X"),
            ("", ""),
        ] {
            assert_eq!(variable_part(key), part, "{key}");
        }
    }
}
