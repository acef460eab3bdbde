//! Cuts a template into items, as Go's `text/template/parse` does.

mod item;

pub(crate) use item::{Item, Kind};

use injectd_gocompat::text::is_print;

use crate::{
    quote::quote,
    runes::{is_digit, is_letter},
};

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
const OPEN_COMMENT: &str = "/*";
const CLOSE_COMMENT: &str = "*/";
/// White space that a dash beside a delimiter removes.
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];
/// A dash and the white space beside it.
const TRIM_BYTES: usize = 2;

/// The state of the scan.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    input: &'a str,
    at: usize,
    start: usize,
    line: usize,
    start_line: usize,
    parens: usize,
    in_action: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(input: &'a str) -> Self {
        Self { input, at: 0, start: 0, line: 1, start_line: 1, parens: 0, in_action: false }
    }

    /// The next item. After an error and at the end: the end of the input, again and again.
    pub(crate) fn next(&mut self) -> Item {
        if self.in_action { self.action() } else { self.text() }
    }

    fn rest(&self) -> &'a str {
        &self.input[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        self.line += usize::from(char == '\n');
        Some(char)
    }

    /// Goes over bytes.
    fn skip(&mut self, bytes: usize) {
        self.line += self.input[self.at..self.at + bytes].matches('\n').count();
        self.at += bytes;
    }

    /// Begins the next item here.
    fn ignore(&mut self) {
        self.start = self.at;
        self.start_line = self.line;
    }

    fn emit(&mut self, kind: Kind) -> Item {
        let text = self.input[self.start..self.at].to_owned();
        let item = Item { kind, text, at: self.start, line: self.start_line };
        self.ignore();
        item
    }

    fn error(&mut self, message: impl Into<String>) -> Item {
        let item =
            Item { kind: Kind::Error, text: message.into(), at: self.start, line: self.start_line };
        // As in Go, the input ends here, at its beginning.
        (self.input, self.at, self.start, self.in_action) = ("", 0, 0, false);
        item
    }

    fn text(&mut self) -> Item {
        loop {
            let Some(length) = self.rest().find(OPEN) else {
                self.skip(self.rest().len());
                let kind = if self.at > self.start { Kind::Text } else { Kind::EOF };
                return match kind {
                    Kind::EOF => Item { text: "EOF".to_owned(), ..self.emit(kind) },
                    kind => self.emit(kind),
                };
            };
            let (text, action) = self.rest().split_at(length);
            let trims = trims_left(&action[OPEN.len()..]);
            let kept = if trims { text.trim_end_matches(SPACES).len() } else { length };
            self.skip(kept);
            let item = self.emit(Kind::Text);
            self.skip(length - kept);
            self.ignore();
            if !item.text.is_empty() {
                return item;
            }
            if let Some(item) = self.left_delimiter() {
                return item;
            }
        }
    }

    /// The delimiter, or nothing after a comment.
    fn left_delimiter(&mut self) -> Option<Item> {
        self.skip(OPEN.len());
        let marker = if trims_left(self.rest()) { TRIM_BYTES } else { 0 };
        if self.rest()[marker..].starts_with(OPEN_COMMENT) {
            self.skip(marker);
            self.ignore();
            return self.comment().err();
        }
        let item = self.emit(Kind::LeftDelimiter);
        self.in_action = true;
        self.skip(marker);
        self.ignore();
        self.parens = 0;
        Some(item)
    }

    fn comment(&mut self) -> Result<(), Item> {
        let Some(length) = self.rest()[OPEN_COMMENT.len()..].find(CLOSE_COMMENT) else {
            return Err(self.error("unclosed comment"));
        };
        self.skip(OPEN_COMMENT.len() + length + CLOSE_COMMENT.len());
        let Some(trims) = self.at_right_delimiter() else {
            return Err(self.error("comment ends before closing delimiter"));
        };
        self.skip(if trims { TRIM_BYTES } else { 0 } + CLOSE.len());
        if trims {
            self.skip_spaces();
        }
        self.ignore();
        Ok(())
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.skip(rest.len() - rest.trim_start_matches(SPACES).len());
    }

    /// At a right delimiter: whether it trims the text after it.
    fn at_right_delimiter(&self) -> Option<bool> {
        let rest = self.rest();
        if trims_right(rest) && rest[TRIM_BYTES..].starts_with(CLOSE) {
            return Some(true);
        }
        rest.starts_with(CLOSE).then_some(false)
    }

    fn right_delimiter(&mut self, trims: bool) -> Item {
        if trims {
            self.skip(TRIM_BYTES);
            self.ignore();
        }
        self.skip(CLOSE.len());
        let item = self.emit(Kind::RightDelimiter);
        if trims {
            self.skip_spaces();
            self.ignore();
        }
        self.in_action = false;
        item
    }

    fn action(&mut self) -> Item {
        if let Some(trims) = self.at_right_delimiter() {
            return match self.parens {
                0 => self.right_delimiter(trims),
                _ => self.error("unclosed left paren"),
            };
        }
        let Some(first) = self.peek() else { return self.error("unclosed action") };
        if SPACES.contains(&first) {
            return self.space();
        }
        let after_dot = self.rest().as_bytes().get(1);
        let begins_number = first.is_ascii_digit()
            || matches!(first, '+' | '-')
            || first == '.' && after_dot.is_none_or(u8::is_ascii_digit);
        if begins_number {
            return self.number();
        }
        if is_word(first) {
            return self.identifier();
        }
        self.bump();
        match first {
            '=' => self.emit(Kind::Assign),
            ':' if self.bump() == Some('=') => self.emit(Kind::Declare),
            ':' => self.error("expected :="),
            '|' => self.emit(Kind::Pipe),
            '"' => self.quoted('"', Kind::String, "unterminated quoted string"),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '`' => self.raw_string(),
            '$' => self.field_or_variable(Kind::Variable),
            '.' => self.field_or_variable(Kind::Field),
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen)
            }
            ')' if self.parens == 0 => self.error("unexpected right paren"),
            ')' => {
                self.parens -= 1;
                self.emit(Kind::RightParen)
            }
            first if first.is_ascii_graphic() => self.emit(Kind::Char),
            first => {
                let message = format!("unrecognized character in action: {}", code_point(first));
                self.error(message)
            }
        }
    }

    fn space(&mut self) -> Item {
        let spaces = self.rest().len() - self.rest().trim_start_matches(SPACES).len();
        // The last one may belong to a delimiter that trims.
        let last = &self.rest()[spaces - 1..];
        let trims = trims_right(last) && last[TRIM_BYTES..].starts_with(CLOSE);
        if trims && spaces == 1 {
            return self.right_delimiter(true);
        }
        self.skip(spaces - usize::from(trims));
        self.emit(Kind::Space)
    }

    fn skip_word(&mut self) {
        while self.peek().is_some_and(is_word) {
            self.bump();
        }
    }

    fn bad_character(&mut self) -> Item {
        let found = self.peek().map_or_else(|| "U+FFFFFFFFFFFFFFFF".to_owned(), code_point);
        self.error(format!("bad character {found}"))
    }

    fn identifier(&mut self) -> Item {
        self.skip_word();
        if !self.at_terminator() {
            return self.bad_character();
        }
        let kind = match &self.input[self.start..self.at] {
            "block" => Kind::Block,
            "break" => Kind::Break,
            "continue" => Kind::Continue,
            "define" => Kind::Define,
            "else" => Kind::Else,
            "end" => Kind::End,
            "if" => Kind::If,
            "nil" => Kind::Nil,
            "range" => Kind::Range,
            "template" => Kind::Template,
            "with" => Kind::With,
            "true" | "false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.emit(kind)
    }

    fn field_or_variable(&mut self, kind: Kind) -> Item {
        if self.at_terminator() {
            return self.emit(if kind == Kind::Field { Kind::Dot } else { kind });
        }
        self.skip_word();
        if !self.at_terminator() {
            return self.bad_character();
        }
        self.emit(kind)
    }

    /// Whether a word may end here.
    fn at_terminator(&self) -> bool {
        let ends = |char| SPACES.contains(&char) || ".,|:()".contains(char);
        self.peek().is_none_or(ends) || self.rest().starts_with(CLOSE)
    }

    fn quoted(&mut self, close: char, kind: Kind, unclosed: &str) -> Item {
        loop {
            match self.bump() {
                Some('\\') => {
                    if matches!(self.bump(), None | Some('\n')) {
                        return self.error(unclosed);
                    }
                }
                None | Some('\n') => return self.error(unclosed),
                Some(char) if char == close => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_string(&mut self) -> Item {
        loop {
            match self.bump() {
                None => return self.error("unterminated raw quoted string"),
                Some('`') => return self.emit(Kind::RawString),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Item {
        let mut good = self.scan_number();
        let mut kind = Kind::Number;
        // A complex number such as `1+2i` is one item.
        if good && matches!(self.peek(), Some('+' | '-')) {
            good = self.scan_number() && self.input[..self.at].ends_with('i');
            kind = Kind::Complex;
        }
        if good {
            return self.emit(kind);
        }
        let found = quote(&self.input.as_bytes()[self.start..self.at], false);
        self.error(format!("bad number syntax: {found}"))
    }

    fn accept(&mut self, valid: &str) -> bool {
        let found = self.peek().is_some_and(|char| valid.contains(char));
        if found {
            self.bump();
        }
        found
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    /// Goes over a number, or over what looks like one.
    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        const HEXADECIMAL: &str = "0123456789abcdefABCDEF_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            if self.accept("xX") {
                digits = HEXADECIMAL;
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits {
            DECIMAL => self.accept("eE"),
            HEXADECIMAL => self.accept("pP"),
            _ => false,
        };
        if exponent {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        let ends = !self.peek().is_some_and(is_word);
        if !ends {
            self.bump();
        }
        ends
    }
}

fn trims_left(after_open: &str) -> bool {
    let mut chars = after_open.chars();
    chars.next() == Some('-') && chars.next().is_some_and(|char| SPACES.contains(&char))
}

fn trims_right(before_close: &str) -> bool {
    let mut chars = before_close.chars();
    chars.next().is_some_and(|char| SPACES.contains(&char)) && chars.next() == Some('-')
}

fn is_word(char: char) -> bool {
    char == '_' || is_letter(char) || is_digit(char)
}

/// `U+0078 'x'`. Go: `fmt.Sprintf("%#U", char)`.
fn code_point(char: char) -> String {
    let shown = if is_print(char) { format!(" '{char}'") } else { String::new() };
    format!("U+{:04X}{shown}", u32::from(char))
}
