//! Writes JSON as YAML that every reader reads as the same JSON.
//!
//! A string is plain only where no version of YAML sees another type or syntax in it. Characters that
//! are not printable are escaped: a terminal may show the text.

use injectd_gocompat::text::is_print;
use serde_json::{Number, Value};

/// The longest key in one line with its colon. YAML allows 1,024 characters; the quotes and escapes
/// of a key count too.
const MAX_SIMPLE_KEY_BYTES: usize = 900;

/// The layout of block style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Columns between a mapping and the mappings in it.
    pub(crate) step: usize,
    /// Columns between a mapping and the dashes of a list in it.
    pub(crate) list_step: usize,
    /// Whether strings of several lines are literals; else each string stands on one line.
    pub(crate) has_literals: bool,
}

/// Kubernetes' own layout: two columns, and dashes below the key.
pub(crate) const KUBERNETES: Layout = Layout { step: 2, list_step: 0, has_literals: true };

/// Writes a document in the layout of `kubectl`: two spaces, lists as deep as their key.
#[must_use]
pub fn write(value: &Value) -> String {
    write_document(value, KUBERNETES)
}

/// The same with each string on one line, for reports: no line begins with text of a string.
#[must_use]
pub fn write_report(value: &Value) -> String {
    write_document(value, Layout { has_literals: false, ..KUBERNETES })
}

fn write_document(value: &Value, layout: Layout) -> String {
    let mut out = String::new();
    let mut writer = Writer { out: &mut out, layout };
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                writer.entry(key, value, 0);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                writer.item(item, 0);
            }
        }
        value => {
            writer.inline(value);
            out.push('\n');
        }
    }
    out
}

/// Writes block style into a text.
pub(crate) struct Writer<'o> {
    pub(crate) out: &'o mut String,
    pub(crate) layout: Layout,
}

impl Writer<'_> {
    /// Whole lines: an entry of a mapping at this column.
    pub(crate) fn entry(&mut self, key: &str, value: &Value, column: usize) {
        self.indent(column);
        self.entry_here(key, value, column);
    }

    /// Whole lines: an item of a list with dashes at this column.
    pub(crate) fn item(&mut self, value: &Value, column: usize) {
        self.indent(column);
        self.out.push('-');
        let inside = column + 2;
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (index, (key, value)) in map.iter().enumerate() {
                    match index {
                        0 => self.out.push(' '),
                        _ => self.indent(inside),
                    }
                    self.entry_here(key, value, inside);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                self.out.push('\n');
                for item in items {
                    self.item(item, inside);
                }
            }
            value => self.scalar(value, inside),
        }
    }

    /// Whole lines: the entries or items of a collection inside of an entry at this column.
    pub(crate) fn nested(&mut self, value: &Value, column: usize) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    self.entry(key, value, column + self.layout.step);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.item(item, column + self.layout.list_step);
                }
            }
            _ => {}
        }
    }

    /// A scalar or an empty collection, in the line that has begun.
    pub(crate) fn inline(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(flag) => self.out.push_str(if *flag { "true" } else { "false" }),
            Value::Number(value) => number(self.out, value),
            Value::String(text) => string(self.out, text),
            Value::Array(_) => self.out.push_str("[]"),
            Value::Object(_) => self.out.push_str("{}"),
        }
    }

    fn entry_here(&mut self, key: &str, value: &Value, column: usize) {
        let start = self.out.len();
        string(self.out, key);
        if self.out.len() - start > MAX_SIMPLE_KEY_BYTES {
            self.out.insert_str(start, "? ");
            self.out.push('\n');
            self.indent(column);
        }
        self.out.push(':');
        if is_nested(value) {
            self.out.push('\n');
            return self.nested(value, column);
        }
        self.scalar(value, column + self.layout.step);
    }

    /// The rest of a line behind a colon or a dash; lines of text at this column.
    fn scalar(&mut self, value: &Value, column: usize) {
        self.out.push(' ');
        match value {
            Value::String(text) if self.layout.has_literals && fits_literal(text) => {
                self.out.push_str(if text.ends_with('\n') { "|" } else { "|-" });
                self.out.push('\n');
                for line in text.lines() {
                    if !line.is_empty() {
                        self.indent(column);
                    }
                    self.out.push_str(line);
                    self.out.push('\n');
                }
            }
            value => {
                self.inline(value);
                self.out.push('\n');
            }
        }
    }

    fn indent(&mut self, column: usize) {
        self.out.extend(std::iter::repeat_n(' ', column));
    }
}

/// Whether the value is a collection with entries.
pub(crate) fn is_nested(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => false,
    }
}

/// Lines that a literal block scalar holds as they are. Not so: leading blanks or breaks, which need
/// an indentation indicator, tabs at the beginning of a line, trailing blanks, more than one break
/// at the end.
fn fits_literal(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with(['\n', ' '])
        && !text.ends_with("\n\n")
        && text.chars().all(|letter| letter == '\n' || letter == '\t' || is_print(letter))
        && text.split('\n').all(|line| !line.starts_with('\t') && !line.ends_with([' ', '\t']))
}

/// A string: plain, or in quotes.
pub(crate) fn string(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        quoted(out, text);
    }
}

/// A string in double quotes, for YAML of both versions.
pub(crate) fn quoted(out: &mut String, text: &str) {
    use std::fmt::Write as _;
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            letter if is_print(letter) => out.push(letter),
            // YAML 1.1 has no surrogate pairs.
            letter if letter > '\u{ffff}' => {
                write!(out, "\\U{:08x}", u32::from(letter)).expect("a String must grow");
            }
            letter => write!(out, "\\u{:04x}", u32::from(letter)).expect("a String must grow"),
        }
    }
    out.push('"');
}

/// Whether no reader sees anything but this string in the text without quotes, in block and in flow
/// style.
fn is_plain(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@%+-= ()".contains(&byte);
    let begins = |byte: u8| byte.is_ascii_alphanumeric() || b"_./+-(".contains(&byte);
    let bytes = text.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return false };
    if !(begins(first) && bytes.iter().all(|&byte| allowed(byte))) {
        return false;
    }
    let syntax = last == b' '
        || last == b':'
        || text.contains(": ")
        || text.starts_with("- ")
        || text.starts_with("---")
        || text.starts_with("... ")
        || matches!(text, "-" | "...");
    !syntax && !is_word(text) && !may_be_number(text)
}

/// The words of YAML 1.1, in any case.
fn is_word(text: &str) -> bool {
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Whether the text may be a number or a time in some version of YAML: it begins like one, and has
/// only characters of integers in all bases, floats, infinities, and times.
fn may_be_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || b"xXoOtTzZiInN_.:+- ".contains(&byte))
}

/// A number. A float has a point and a signed exponent: without them YAML 1.1 reads it as text.
pub(crate) fn number(out: &mut String, value: &Number) {
    let text = value.to_string();
    match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => {
            out.push_str(digits);
            if !digits.contains('.') {
                out.push_str(".0");
            }
            out.push('e');
            if !exponent.starts_with(['+', '-']) {
                out.push('+');
            }
            out.push_str(exponent);
        }
        None => out.push_str(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_layout_is_that_of_kubectl() {
        let value = json!({"a": {"b": [{"c": 1, "d": [[2], {}]}, "e"], "f": {}}, "g": null});
        let expected =
            "a:\n  b:\n  - c: 1\n    d:\n    -\n      - 2\n    - {}\n  - e\n  f: {}\ng: null\n";
        assert_eq!(write(&value), expected);
    }

    #[test]
    fn strings_that_a_reader_may_take_for_something_else_are_quoted() {
        for text in [
            "",
            "no",
            "Y",
            "oN",
            "~",
            "null",
            "1",
            "1_000",
            "0x1F",
            "0o17",
            "1e3",
            ".5",
            "-.inf",
            ".NaN",
            "1:30",
            "2001-01-01",
            "2001-01-01T00:00:00Z",
            "=",
            "<<",
            "a: b",
            "a #b",
            "a:",
            "- a",
            "-",
            "---",
            "---a",
            "...",
            "... u",
            "#a",
            "*a",
            "&a",
            "!a",
            "a\tb",
            " a",
            "a ",
            "[a]",
            "a,b",
            "a?b",
            "é",
            "@a",
            "`a",
            "%a",
        ] {
            let written = write(&json!(text));
            assert!(written.starts_with('"'), "{written}");
        }
        for text in ["nginx:1.25", "64Mi", "100m", "a b", "/var/run", "linkerd.io/inject", "-v"] {
            assert_eq!(write(&json!(text)), format!("{text}\n"));
        }
    }

    #[test]
    fn lines_are_a_literal_unless_a_reader_may_fold_or_trim_them() {
        assert_eq!(write(&json!({"a": "b\n\n c\n"})), "a: |\n  b\n\n   c\n");
        assert_eq!(write(&json!(["b\nc"])), "- |-\n  b\n  c\n");
        for text in ["\tgo build\nend", " a\nb", "\na", "a \nb", "a\n\n", "a\r\nb", "\u{85}\n"] {
            assert!(write(&json!({"a": text})).starts_with("a: \""), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_printable_is_escaped() {
        let text = "\u{1b}\u{9b}\u{200b}\u{202e}\u{2028}\u{e0001}é\nb";
        let written = write(&json!([text]));
        assert_eq!(written, "- \"\\u001b\\u009b\\u200b\\u202e\\u2028\\U000e0001é\\nb\"\n");
        assert_eq!(crate::parse(&written, crate::Options::default()), Ok(json!([text])));
    }

    #[test]
    fn strings_of_a_report_stay_on_one_line() {
        assert_eq!(write_report(&json!({"a": "b\n::error::c\n"})), "a: \"b\\n::error::c\\n\"\n");
    }

    #[test]
    fn floats_have_a_point_and_a_signed_exponent() {
        for (value, text) in [(json!(1e300), "1.0e+300\n"), (json!(2.5e-9), "2.5e-9\n")] {
            assert_eq!(write(&value), text);
        }
    }

    #[test]
    fn a_key_that_is_too_long_for_its_line_stands_alone() {
        let key = "k".repeat(2000);
        let text = write(&json!({ &key: [1] }));
        assert_eq!(text, format!("? {key}\n:\n- 1\n"));
        assert_eq!(crate::parse(&text, crate::Options::default()), Ok(json!({ &key: [1] })));
    }
}
