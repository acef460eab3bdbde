//! Quoted scalars that YAML 1.1 allows and the parser rejects, or the reverse. The former are written in a
//! way that both read alike.

use crate::places::line_start;

/// Why the parser rejects a quoted scalar.
pub(crate) enum Flaw {
    /// It has escapes `\'`; it begins at this byte.
    Escape(usize),
    /// A line is not indented; it is after the first byte and around the second one.
    Indent(usize, usize),
}

/// A text that would have more bytes than may be read again.
pub(crate) struct TooLong;

/// A quoted scalar of several lines.
struct QuotedLines {
    /// Where its quotes are.
    open: usize,
    close: usize,
    /// Where its second line begins.
    second: usize,
    /// Blanks that each line needs to be indented.
    indent: usize,
}

impl Flaw {
    /// The byte where the scalar begins, and the text with the scalar written in another way; `None`
    /// if that is not possible.
    ///
    /// # Errors
    /// The text would have more bytes than `most`.
    pub(crate) fn mended(
        &self,
        text: &str,
        most: usize,
    ) -> Result<Option<(usize, String)>, TooLong> {
        match *self {
            Self::Escape(_) if text.len() > most => Err(TooLong),
            Self::Escape(place) => {
                Ok(without_escaped_quotes(text, place).map(|mended| (place, mended)))
            }
            Self::Indent(after, place) => match QuotedLines::around(text, after, place) {
                Some(quoted) if quoted.indented_bytes(text) > most => Err(TooLong),
                Some(quoted) => Ok(quoted.indented(text).map(|mended| (quoted.open, mended))),
                None => Ok(None),
            },
        }
    }

    /// A number for each kind of flaw.
    pub(crate) fn kind(&self) -> usize {
        match self {
            Self::Escape(_) => 0,
            Self::Indent(..) => 1,
        }
    }
}

impl QuotedLines {
    /// The scalar around a place, after another one.
    fn around(text: &str, after: usize, place: usize) -> Option<Self> {
        let mut at = after;
        let (open, close) = loop {
            let open = opening_quote(text, at).filter(|&open| open < place)?;
            let close = closing_quote(text, open)?;
            if close >= place {
                break (open, close);
            }
            at = close + 1;
        };
        let second = open + text.get(open..close)?.find('\n')? + 1;
        Some(Self { open, close, second, indent: open - line_start(text, open) + 1 })
    }

    /// At most as many bytes has the text with its lines indented.
    fn indented_bytes(&self, text: &str) -> usize {
        let lines = 1 + text[self.second..self.close].matches('\n').count();
        text.len().saturating_add(lines.saturating_mul(self.indent))
    }

    /// The text with more blanks before each line of the scalar. They are not part of its value.
    fn indented(&self, text: &str) -> Option<String> {
        let mut out = String::with_capacity(self.indented_bytes(text));
        out.push_str(&text[..self.second]);
        let lines = &text[self.second..self.close];
        let indent = std::iter::repeat_n(' ', self.indent);
        for line in lines.split_inclusive('\n') {
            // These end a document, also inside of quotes.
            if let Some(rest) = line.strip_prefix("---").or_else(|| line.strip_prefix("..."))
                && (rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
            {
                return None;
            }
            if !line.trim_end().is_empty() || !line.ends_with('\n') {
                out.extend(indent.clone());
            }
            out.push_str(line);
        }
        if lines.is_empty() || lines.ends_with('\n') {
            out.extend(indent);
        }
        out.push_str(&text[self.close..]);
        Some(out)
    }
}

/// The next quote that is not in a comment; `None` if it does not begin a scalar.
fn opening_quote(text: &str, after: usize) -> Option<usize> {
    let mut at = after;
    for line in text.get(after..)?.split_inclusive('\n') {
        let comment = line.match_indices('#').map(|(at, _)| at);
        let mut comment = comment.filter(|&at| line[..at].ends_with([' ', '\t']) || at == 0);
        let code = comment.next().map_or(line, |comment| &line[..comment]);
        if let Some(quote) = code.find(['"', '\'']) {
            let begins = quote == 0 || code[..quote].ends_with([' ', '\t']);
            return begins.then_some(at + quote);
        }
        at += line.len();
    }
    None
}

/// The quote that ends the scalar at a place.
fn closing_quote(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = *bytes.get(open)?;
    let mut at = open + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if quote == b'"' => at += 1,
            byte if byte == quote => {
                if quote == b'"' || bytes.get(at + 1) != Some(&quote) {
                    return Some(at);
                }
                at += 1;
            }
            _ => {}
        }
        at += 1;
    }
}

/// The text without the escapes `\'` of the double-quoted scalar at a place; `None` if it has none.
/// YAML 1.1 knows them, but not the parser.
fn without_escaped_quotes(text: &str, place: usize) -> Option<String> {
    let (before, scalar) = text.split_at_checked(place)?;
    let mut out = String::with_capacity(text.len());
    out.push_str(before);
    let mut rest = scalar.strip_prefix('"')?;
    out.push('"');
    while let Some(at) = rest.find(['"', '\\']) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        if special.starts_with('"') {
            rest = special;
            break;
        }
        let escape = special.chars().nth(1)?;
        let (escaped, after) = special.split_at(1 + escape.len_utf8());
        out.push_str(if escape == '\'' { "'" } else { escaped });
        rest = after;
    }
    out.push_str(rest);
    (out.len() < text.len()).then_some(out)
}

/// `\/`, and halves of surrogate pairs, which YAML 1.2 has for JSON.
pub(crate) fn has_foreign_escape(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found + 1;
        match bytes.get(at..) {
            Some([b'/', ..] | [b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..]) => {
                return true;
            }
            _ => at += 1,
        }
        if at >= bytes.len() {
            break;
        }
    }
    false
}
