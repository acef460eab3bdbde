//! Texts with `${…}` in them.
//!
//! `${` begins an expression of CEL, and the brace that closes it ends it: braces in CEL's strings,
//! literals and comments count as CEL's. `$${` is the text `${`. A `$` before anything else is a `$`, so
//! that `$(NAME)` stays what Kubernetes reads.

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'t> {
    /// Text as it stands.
    Constant(&'t str),
    /// An expression, without `${` and `}`.
    Expression {
        /// The text of the expression.
        text: &'t str,
        /// The bytes of the whole text before it.
        offset: usize,
    },
}

/// Why a text with `${…}` cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// No brace closes the expression.
    #[error("no brace closes the ${{ here: write ${{ EXPRESSION }}, or $${{ for the text ${{")]
    Open,
    /// There is no expression between the braces.
    #[error("expected an expression of CEL between ${{ and }}, found none")]
    Empty,
}

/// The parts of a text, in their order; none for an empty text.
///
/// # Errors
/// The first problem, and the bytes before it.
pub fn parts(text: &str) -> Result<Vec<Part<'_>>, (usize, FillError)> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(found) = text[at..].find("${").map(|found| found + at) {
        if text[start..found].ends_with('$') {
            // `$${`: the text up to the first `$`, then `${`.
            push_constant(&mut parts, &text[start..found - 1]);
            (start, at) = (found, found + 2);
            continue;
        }
        let offset = found + 2;
        let length = end_of(&text[offset..]).ok_or((found, FillError::Open))?;
        let expression = &text[offset..offset + length];
        if expression.trim().is_empty() {
            return Err((found, FillError::Empty));
        }
        push_constant(&mut parts, &text[start..found]);
        parts.push(Part::Expression { text: expression, offset });
        (start, at) = (offset + length + 1, offset + length + 1);
    }
    push_constant(&mut parts, &text[start..]);
    Ok(parts)
}

fn push_constant<'t>(parts: &mut Vec<Part<'t>>, text: &'t str) {
    if !text.is_empty() {
        parts.push(Part::Constant(text));
    }
}

/// The bytes before the brace that closes an expression.
fn end_of(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_u32);
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b'{' => {
                depth += 1;
                at + 1
            }
            b'}' if depth == 0 => return Some(at),
            b'}' => {
                depth -= 1;
                at + 1
            }
            b'"' | b'\'' => end_of_string(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let line = &bytes[at..];
                at + line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len())
            }
            _ => at + 1,
        };
    }
    None
}

/// The place behind a string of CEL that begins with a quote: raw or not, of one line or of several.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let is_long = bytes[start..].starts_with(&[quote; 3]);
    let closing = &[quote; 3][..if is_long { 3 } else { 1 }];
    let is_raw = is_raw(&bytes[..start]);
    let mut at = start + closing.len();
    while at < bytes.len() {
        if bytes[at] == b'\\' && !is_raw {
            at += 2;
        } else if bytes[at..].starts_with(closing) {
            return at + closing.len();
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// Whether what stands before a quote makes the string raw: `r`, `br` or `rb`, in any case, that is no end
/// of a name.
fn is_raw(before: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = before.iter().rev().take(3).take_while(|byte| is_name(byte)).count();
    let prefix = before[before.len() - length..].to_ascii_lowercase();
    matches!(&*prefix, b"r" | b"br" | b"rb")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        match parts(text) {
            Err((at, problem)) => format!("{at}: {problem:?}"),
            Ok(parts) => parts.iter().fold(String::new(), |shown, part| match part {
                Part::Constant(text) => format!("{shown}[{text}]"),
                Part::Expression { text, offset } => format!("{shown}<{offset}:{text}>"),
            }),
        }
    }

    #[test]
    fn expressions_end_at_the_brace_that_closes_them() {
        for (text, expected) in [
            ("", ""),
            ("a", "[a]"),
            ("${a}", "<2:a>"),
            ("x${ a }y${b}", "[x]<3: a >[y]<10:b>"),
            ("$(X) $ $$ {}", "[$(X) $ $$ {}]"),
            ("$${a}", "[${a}]"),
            ("x$${a}${b}", "[x][${a}]<8:b>"),
            ("$$${a}", "[$][${a}]"),
            ("${{'a': {'b': 1}}}", "<2:{'a': {'b': 1}}>"),
            ("${'}'}", "<2:'}'>"),
            (r#"${"\"}" + r'\'}"#, r#"<2:"\"}" + r'\'>"#),
            ("${'''it's }''' + \"\"\"\"}\"\"\"}", "<2:'''it's }''' + \"\"\"\"}\"\"\">"),
            ("${a // }\n}", "<2:a // }\n>"),
            ("${bar'}'}", "<2:bar'}'>"),
            ("${Br'\\'}", "<2:Br'\\'>"),
            ("${", "0: Open"),
            ("a${'}", "1: Open"),
            ("é${{}", "2: Open"),
            ("${ }", "0: Empty"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    proptest! {
        /// What is read stands in the text, and nothing is lost.
        #[test]
        fn parts_are_parts_of_the_text(text in "[$'\"\\\\{}rbé/a\n]{0,24}") {
            let Ok(parts) = parts(&text) else { return Ok(()) };
            let length: usize = parts.iter().map(|part| match part {
                Part::Constant(text) => text.len(),
                Part::Expression { text, .. } => text.len() + "${}".len(),
            }).sum();
            let escapes = text.matches("$${").count();
            prop_assert!(text.len() - length <= escapes);
        }
    }
}
