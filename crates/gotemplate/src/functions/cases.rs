//! `camelcase`, `snakecase` and `kebabcase`. Go: `github.com/huandu/xstrings` 1.5.

use super::words::chars;
use crate::{
    function::{Function, Param::Text},
    runes::{REPLACEMENT, is_letter, is_space, lower, upper},
};

pub(super) const TABLE: &[Function] = &[
    Function::new("camelcase", &[Text], |call| Ok(pascal(&chars(call.text(0))).into())),
    Function::new("kebabcase", &[Text], |call| Ok(separated(&chars(call.text(0)), '-').into())),
    Function::new("snakecase", &[Text], |call| Ok(separated(&chars(call.text(0)), '_').into())),
];

fn is_connector(char: char) -> bool {
    matches!(char, '-' | '_') || is_space(char)
}

/// Words with an upper-case letter first and no connectors. Xstrings: `ToPascalCase`.
fn pascal(text: &[char]) -> String {
    let leading = text.iter().take_while(|char| is_connector(**char)).count();
    let mut out: String = text[..leading].iter().collect();
    let Some((first, rest)) = text[leading..].split_first() else {
        // The last connector is written twice.
        out.extend(text.last());
        return out;
    };
    let mut in_upper = first.is_uppercase();
    let mut last = upper(*first);
    for char in rest {
        let mut char = *char;
        if is_connector(char) && is_connector(last) {
            out.push(last);
            last = char;
            continue;
        }
        if is_connector(last) {
            in_upper = char.is_uppercase();
            char = upper(char);
        } else {
            if in_upper {
                in_upper = char.is_uppercase();
                if in_upper {
                    char = lower(char);
                }
            }
            out.push(last);
        }
        last = char;
    }
    out.push(last);
    out
}

/// Kinds of words. Xstrings: `wordType`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Invalid,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

/// Letters but for those of Chinese, which are words of their own kind.
fn is_alphabet(char: char) -> bool {
    is_letter(char)
        && !matches!(char, '\u{3400}'..='\u{4d85}' | '\u{4e00}'..='\u{9fcc}' | '\u{20000}'..='\u{2b81d}')
}

fn is_punctuation(char: char) -> bool {
    match char {
        '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~' => false,
        char if char.is_ascii() => char.is_ascii_punctuation(),
        '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}' => true,
        char => {
            matches!(char, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}')
        }
    }
}

fn run(text: &[char], is_part: impl Fn(char) -> bool) -> usize {
    1 + text[1..].iter().take_while(|char| is_part(**char)).count()
}

/// The kind of the first word and its length.
fn next_word(text: &[char]) -> (Word, usize) {
    let Some(first) = text.first().copied() else { return (Word::Invalid, 0) };
    let is_lower_alphabet = |char: char| is_alphabet(char) && !char.is_uppercase();
    if first == REPLACEMENT {
        (Word::Invalid, 1)
    } else if is_connector(first) {
        (Word::Connector, run(text, is_connector))
    } else if is_punctuation(first) {
        (Word::Punctuation, run(text, is_punctuation))
    } else if first.is_uppercase() {
        let upper = run(text, char::is_uppercase);
        match text.get(upper).copied() {
            // The last of several begins the next word: HTTP, Status.
            Some(next) if upper > 1 && is_alphabet(next) => (Word::Upper, upper - 1),
            Some(next) if upper == 1 && is_alphabet(next) => {
                (Word::Upper, run(text, is_lower_alphabet))
            }
            _ => (Word::Upper, upper),
        }
    } else if is_alphabet(first) {
        (Word::Alphabet, run(text, is_lower_alphabet))
    } else if first.is_numeric() {
        (Word::Number, run(text, char::is_numeric))
    } else {
        let is_other = |char: char| {
            !(is_connector(char) || is_alphabet(char) || char.is_numeric() || is_punctuation(char))
        };
        (Word::Other, run(text, is_other))
    }
}

/// The state of the words of a text.
struct Words<'t> {
    rest: &'t [char],
    kind: Word,
    word: &'t [char],
    connector: char,
    out: String,
}

impl Words<'_> {
    fn advance(&mut self) {
        let (kind, length) = next_word(self.rest);
        (self.word, self.rest) = self.rest.split_at(length);
        self.kind = kind;
    }

    fn write(&mut self, kind: Word, word: &[char]) {
        for char in word.iter().copied() {
            self.out.push(match kind {
                Word::Upper | Word::Connector if is_connector(char) => self.connector,
                Word::Upper | Word::Connector if char.is_uppercase() => lower(char),
                _ => char,
            });
        }
    }

    /// Writes the words that follow a number without a connector.
    fn write_attached(&mut self) {
        while matches!(self.kind, Word::Alphabet | Word::Number) {
            self.write(self.kind, self.word);
            self.advance();
        }
    }

    fn connect_unless(&mut self, kinds: &[Word]) {
        if !kinds.contains(&self.kind) {
            self.out.push(self.connector);
        }
    }
}

/// Lower-case words with connectors between them. Xstrings: `camelCaseToLowerCase`.
fn separated(text: &[char], connector: char) -> String {
    const ENDS: &[Word] = &[Word::Invalid, Word::Punctuation, Word::Connector];
    let mut words =
        Words { rest: text, kind: Word::Invalid, word: &[], connector, out: String::new() };
    words.advance();
    while !words.rest.is_empty() {
        let (before, last) = (words.kind, words.word);
        if before != Word::Connector {
            words.write(before, last);
        }
        words.advance();
        match before {
            Word::Number => {
                words.write_attached();
                words.connect_unless(ENDS);
            }
            Word::Connector => words.write(before, last),
            Word::Punctuation => {}
            _ if words.kind != Word::Number => words.connect_unless(&ENDS[1..]),
            _ if words.rest.is_empty() => {}
            _ => {
                let number = words.word;
                words.advance();
                if words.kind == Word::Alphabet {
                    words.out.push(connector);
                    words.write(Word::Number, number);
                    words.write_attached();
                    words.connect_unless(ENDS);
                } else {
                    words.write(Word::Number, number);
                    words.connect_unless(&ENDS[1..]);
                }
            }
        }
    }
    words.write(words.kind, words.word);
    words.out
}
