//! Functions of sprig for letters and words: case, initials, abbreviations, lines.

use crate::{
    function::{
        Call, Function, Outcome,
        Param::{Int, Text as Str},
    },
    runes::{REPLACEMENT, is_digit, is_letter, is_space, lower, map, runes, title, upper},
};

pub(super) const TABLE: &[Function] = &[
    Function::new("abbrev", &[Int, Str], |call| abbreviated(call, 0, call.int(0), 1)),
    Function::new("abbrevboth", &[Int, Int, Str], |call| {
        let (left, right) = (call.int(0), call.int(1));
        if left > 0 && right < 7 {
            return Ok(call.value(2).clone().into());
        }
        abbreviated(call, left, right, 2)
    }),
    Function::new("initials", &[Str], |call| Ok(initials(call.text(0)).into())),
    Function::new("lower", &[Str], |call| Ok(map(call.text(0), lower).into())),
    Function::new("swapcase", &[Str], |call| Ok(swap_case(call.text(0)).into())),
    Function::new("title", &[Str], |call| Ok(title_words(call.text(0)).into())),
    Function::new("untitle", &[Str], |call| Ok(untitle(call.text(0)).into())),
    Function::new("upper", &[Str], |call| Ok(map(call.text(0), upper).into())),
    Function::new("wrap", &[Int, Str], |call| wrap(call, call.text(1), b"", false)),
    Function::new("wrapWith", &[Int, Str, Str], |call| {
        wrap(call, call.text(2), call.text(1), true)
    }),
];

/// Go: `strings.Title`.
fn title_words(text: &[u8]) -> Vec<u8> {
    let mut before = ' ';
    map(text, |char| {
        let begins = is_separator(before);
        before = char;
        if begins { title(char) } else { char }
    })
}

fn is_separator(char: char) -> bool {
    if char.is_ascii() {
        return !(char.is_ascii_alphanumeric() || char == '_');
    }
    !is_letter(char) && !is_digit(char) && is_space(char)
}

/// Goutils: `Uncapitalize`.
fn untitle(text: &[u8]) -> Vec<u8> {
    let mut begins = true;
    map(text, |char| {
        if is_space(char) {
            begins = true;
            return char;
        }
        if std::mem::take(&mut begins) { lower(char) } else { char }
    })
}

/// Goutils: `SwapCase`.
fn swap_case(text: &[u8]) -> Vec<u8> {
    let mut after_space = true;
    map(text, |char| {
        let is_title = matches!(char, '\u{1c5}' | '\u{1c8}' | '\u{1cb}' | '\u{1f2}');
        if char.is_uppercase() || is_title {
            after_space = false;
            lower(char)
        } else if char.is_lowercase() {
            if std::mem::take(&mut after_space) { title(char) } else { upper(char) }
        } else {
            after_space = is_space(char);
            char
        }
    })
}

/// Goutils: `Initials`, which takes each byte for a character.
fn initials(text: &[u8]) -> String {
    let mut after_gap = true;
    let mut out = String::new();
    for char in text.iter().copied().map(char::from) {
        if is_space(char) {
            after_gap = true;
        } else if std::mem::take(&mut after_gap) {
            out.push(char);
        }
    }
    out
}

/// Goutils: `AbbreviateFull`, in bytes.
fn abbreviated(call: &Call<'_, '_>, offset: i64, width: i64, argument: usize) -> Outcome {
    const MARK: &[u8] = b"...";
    let text = call.text(argument);
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    // sprig asks before goutils would fail.
    if width < 4 || length <= width {
        return Ok(text.into());
    }
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    let at = |place: i64| usize::try_from(place).unwrap_or(0).min(text.len());
    if offset <= 4 {
        return Ok([&text[..at(width - 3)], MARK].concat().into());
    }
    // goutils fails here, and sprig drops the error.
    if width < 7 {
        return Ok("".into());
    }
    if offset + width - 3 < length {
        let rest = &text[at(offset)..];
        // The rest is abbreviated to the width less the first mark.
        let kept = at(width - 3 - 3).min(rest.len());
        return Ok([MARK, &rest[..kept], MARK].concat().into());
    }
    Ok([MARK, &text[at(length - (width - 3))..]].concat().into())
}

/// Goutils: `WrapCustom`, in bytes.
fn wrap(call: &Call<'_, '_>, text: &[u8], line_end: &[u8], cut_words: bool) -> Outcome {
    let line_end = if line_end.is_empty() { b"\n" } else { line_end };
    // goutils takes any width below one for one.
    let width = usize::try_from(call.int(0)).unwrap_or(0).max(1);
    let lines = text.len() / if cut_words { width } else { 1 } + 1;
    call.check_bytes(text.len().saturating_add(lines.saturating_mul(line_end.len())))?;
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while rest.len() > width {
        if rest[0] == b' ' {
            rest = &rest[1..];
            continue;
        }
        let last_blank = rest[..=width].iter().rposition(|byte| *byte == b' ');
        let next_blank =
            || rest[width..].iter().position(|byte| *byte == b' ').map(|at| at + width);
        let (end, skip) = match last_blank {
            Some(blank) => (blank, 1),
            None if cut_words => (width, 0),
            None => match next_blank() {
                Some(blank) => (blank, 1),
                None => break,
            },
        };
        out.extend_from_slice(&rest[..end]);
        out.extend_from_slice(line_end);
        rest = &rest[end + skip..];
    }
    out.extend_from_slice(rest);
    call.give(out)
}

/// The characters of a text; those that are not UTF-8 are U+FFFD.
pub(super) fn chars(text: &[u8]) -> Vec<char> {
    runes(text).map(|(_, char, _)| char.unwrap_or(REPLACEMENT)).collect()
}
