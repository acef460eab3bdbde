//! JSON as text, in several styles for the same tree.

use std::fmt::Write;

use serde_json::Value;

/// The style of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As API servers write it: without white space.
    Compact,
    /// With white space wherever it is allowed.
    Spaced,
    /// With many members repeated, first with another value.
    Repeated,
    /// With non-ASCII and special characters as `\u…`, and slashes as `\/`.
    Escaped,
}

impl Style {
    /// All styles.
    pub const ALL: [Self; 4] = [Self::Compact, Self::Spaced, Self::Repeated, Self::Escaped];

    /// The text of a tree.
    pub fn write(self, value: &Value) -> Vec<u8> {
        let mut out = String::new();
        match self {
            Self::Compact => return serde_json::to_vec(value).expect("a tree must serialise"),
            Self::Spaced => self.value(&mut out, value, " \r\n\t"),
            Self::Repeated | Self::Escaped => self.value(&mut out, value, ""),
        }
        out.into_bytes()
    }

    fn value(self, out: &mut String, value: &Value, blank: &str) {
        out.push_str(blank);
        match value {
            Value::String(text) => self.string(out, text),
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    self.value(out, item, blank);
                }
                out.push_str(blank);
                out.push(']');
            }
            Value::Object(fields) => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(blank);
                    if self == Self::Repeated {
                        self.earlier(out, name, value);
                    }
                    self.string(out, name);
                    out.push_str(blank);
                    out.push(':');
                    self.value(out, value, blank);
                }
                out.push_str(blank);
                out.push('}');
            }
            scalar => out.push_str(&scalar.to_string()),
        }
        out.push_str(blank);
    }

    /// The same member with a value that must have no effect.
    fn earlier(self, out: &mut String, name: &str, value: &Value) {
        let other = match (name.len() % 3, value) {
            (0, _) => "null",
            (1, Value::String(_)) => "\"other\"",
            (1, Value::Array(_)) => "[]",
            (1, Value::Object(_)) => "{}",
            _ => return,
        };
        self.string(out, name);
        out.push(':');
        out.push_str(other);
        out.push(',');
    }

    fn string(self, out: &mut String, text: &str) {
        if self != Self::Escaped {
            out.push_str(&Value::from(text).to_string());
            return;
        }
        out.push('"');
        for letter in text.chars() {
            match letter {
                '/' => out.push_str("\\/"),
                'a'..='s' | 'A'..='Z' | '0'..='9' | '.' | '-' => out.push(letter),
                letter => {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        write!(out, "\\u{unit:04x}").expect("writing to a string must succeed");
                    }
                }
            }
        }
        out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Style;

    #[test]
    fn every_style_reads_as_the_tree() {
        let tree = json!({"a/b": ["😀\n\u{0}", {}, [], null, 1.5, -7, true], "": {"é": "\""}});
        for style in Style::ALL {
            let read: Value = serde_json::from_slice(&style.write(&tree)).expect("must be JSON");
            assert_eq!(read, tree, "{style:?}");
        }
    }
}
