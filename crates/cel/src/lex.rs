//! The words of expressions (`parser/gen/CEL.g4` of cel-go).

mod text;

/// A word and where it begins, as an offset in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) offset: usize,
}

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// A name or keyword.
    Word(Box<str>),
    /// Digits, or `0x` and hexadecimal digits.
    Int(Box<str>),
    /// The same, without the `u` at its end.
    Uint(Box<str>),
    Float(Box<str>),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// Operators and brackets; those with two characters come first.
const SIGNS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!",
    "?", ":", "+", "*", "/", "%", "=",
];

/// Splits an expression into words; the last one is [`Kind::End`].
///
/// # Errors
/// The offset of what is not a word, and why.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, (usize, String)> {
    let mut found = Vec::new();
    let mut offset = 0;
    loop {
        offset = skip(text, offset);
        if offset == text.len() {
            found.push(Token { kind: Kind::End, offset });
            return Ok(found);
        }
        let (kind, length) = token(&text[offset..]).map_err(|problem| (offset, problem))?;
        found.push(Token { kind, offset });
        offset += length;
    }
}

/// The offset after blanks and comments.
fn skip(text: &str, mut offset: usize) -> usize {
    loop {
        let rest = &text[offset..];
        let rest = rest.trim_start_matches(['\t', ' ', '\r', '\n', '\u{c}']);
        offset = text.len() - rest.len();
        if !rest.starts_with("//") {
            return offset;
        }
        offset += rest.find('\n').unwrap_or(rest.len());
    }
}

fn token(rest: &str) -> Result<(Kind, usize), String> {
    if let Some(found) = text::read(rest) {
        return found;
    }
    let word = rest.len() - rest.trim_start_matches(is_of_word).len();
    let first = rest.chars().next().unwrap_or_default();
    if word > 0 && !first.is_ascii_digit() {
        return Ok((Kind::Word(rest[..word].into()), word));
    }
    if let Some(found) = number(rest) {
        return Ok(found);
    }
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        Some(&"=") | None => Err(format!("unexpected character {first:?}")),
        Some(sign) => Ok((Kind::Sign(sign), sign.len())),
    }
}

fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// The longest number; `None` if there is none.
fn number(rest: &str) -> Option<(Kind, usize)> {
    let digits = |from: usize| {
        let rest = &rest[from..];
        rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len()
    };
    let whole = digits(0);
    let fraction = if rest[whole..].starts_with('.') { digits(whole + 1) } else { 0 };
    let mut end = if fraction > 0 { whole + 1 + fraction } else { whole };
    if end == 0 {
        return None;
    }
    let exponent = exponent(&rest[end..], |from| digits(end + from));
    if fraction > 0 || exponent > 0 {
        end += exponent;
        return Some((Kind::Float(rest[..end].into()), end));
    }
    if let Some(hexadecimal) = rest.strip_prefix("0x") {
        let length = hexadecimal.trim_start_matches(|digit: char| digit.is_ascii_hexdigit()).len();
        let length = hexadecimal.len() - length;
        end = if length > 0 { 2 + length } else { end };
    }
    let digits = rest[..end].into();
    let is_unsigned = rest[end..].starts_with(['u', 'U']);
    Some(if is_unsigned { (Kind::Uint(digits), end + 1) } else { (Kind::Int(digits), end) })
}

/// The length of an exponent; 0 without one.
fn exponent(rest: &str, digits: impl Fn(usize) -> usize) -> usize {
    if !rest.starts_with(['e', 'E']) {
        return 0;
    }
    let sign = usize::from(rest[1..].starts_with(['+', '-']));
    match digits(1 + sign) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}
