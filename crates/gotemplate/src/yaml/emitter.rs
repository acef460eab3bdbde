//! Writes scalars and the structure around them. Go: `emitterc.go` of `yaml.v2`.

use super::plain;

/// Columns after which a text is folded at its next blank.
// Width and indent are what `yaml_emitter_emit_stream_start` of go-yaml sets.
const BEST_WIDTH: usize = 80;

const INDENT: usize = 2;

/// The style of a scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// The output and where it is.
pub(super) struct Emitter {
    out: String,
    limit: usize,
    column: usize,
    indents: Vec<Option<usize>>,
    indent: Option<usize>,
    /// The last character was white space.
    whitespace: bool,
    /// Only indentation and indicators are in the line.
    pub(super) indention: bool,
}

pub(super) fn is_break(char: char) -> bool {
    matches!(char, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(char: char) -> bool {
    matches!(char, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && char != '\u{feff}'
}

/// What the characters of a string allow.
struct Allowed {
    plain: bool,
    single: bool,
    block: bool,
}

fn analyze(value: &[char]) -> Allowed {
    let (Some(first), Some(last)) = (value.first(), value.last()) else {
        return Allowed { plain: true, single: true, block: false };
    };
    let is_blank =
        |at: usize| value.get(at).is_none_or(|char| matches!(char, ' ' | '\t') || is_break(*char));
    let follows_blank = |at: usize| value.get(at + 1).is_none_or(|char| matches!(char, ' ' | '\t'));
    let mut indicators = value.starts_with(&['-', '-', '-']) || value.starts_with(&['.', '.', '.']);
    let (mut break_space, mut space_break, mut special, mut breaks) = (false, false, false, false);
    for (at, char) in value.iter().enumerate() {
        indicators |= match char {
            '#' if at > 0 => is_blank(at - 1),
            ':' => follows_blank(at),
            '?' | '-' if at == 0 => follows_blank(at),
            char => at == 0 && "#,[]{}&*!|>'\"%@`".contains(*char),
        };
        special |= !is_printable(*char);
        breaks |= is_break(*char);
        let before = at.checked_sub(1).map(|before| value[before]);
        break_space |= *char == ' ' && before.is_some_and(is_break);
        space_break |= is_break(*char) && before == Some(' ');
    }
    let is_edge = |char: &char| *char == ' ' || is_break(*char);
    let edges = is_edge(first) || is_edge(last);
    let unwritable = space_break || special;
    Allowed {
        plain: !(indicators || edges || breaks || break_space || unwritable),
        single: !(break_space || unwritable),
        block: !(*last == ' ' || unwritable),
    }
}

impl Emitter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            out: String::new(),
            limit,
            column: 0,
            indents: Vec::new(),
            indent: None,
            whitespace: true,
            indention: true,
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.out.len() > self.limit {
            return Err(format!("the YAML is longer than {} bytes", self.limit));
        }
        Ok(())
    }

    /// The document with its last line break.
    pub(super) fn done(mut self) -> Vec<u8> {
        if self.column > 0 {
            self.out.push('\n');
        }
        self.out.into_bytes()
    }

    fn put(&mut self, char: char) {
        self.out.push(char);
        self.column += 1;
    }

    fn line_break(&mut self, char: char) {
        self.out.push(char);
        self.column = 0;
    }

    /// Goes one level deeper; lists in maps are not indented.
    pub(super) fn open(&mut self, indentless: bool) {
        self.indents.push(self.indent);
        self.indent = match self.indent {
            None => Some(0),
            Some(indent) if !indentless => Some(indent + INDENT),
            indent => indent,
        };
    }

    pub(super) fn close(&mut self) {
        self.indent = self.indents.pop().flatten();
    }

    /// Begins a line at the indentation, unless one begins here.
    pub(super) fn indent(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || self.column == indent && !self.whitespace {
            self.line_break('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    pub(super) fn indicator(
        &mut self,
        text: &str,
        needs_space: bool,
        is_space: bool,
        is_indention: bool,
    ) {
        if needs_space && !self.whitespace {
            self.put(' ');
        }
        text.chars().for_each(|char| self.put(char));
        self.whitespace = is_space;
        self.indention &= is_indention;
    }

    /// An empty list or map.
    pub(super) fn empty(&mut self, brackets: &str) {
        self.indicator(brackets, true, false, false);
    }

    /// A string in the style that reads as the same string.
    pub(super) fn string(&mut self, value: &[char], is_key: bool) {
        // Further lines of a scalar are indented, also at the top.
        self.indents.push(self.indent);
        self.indent = Some(self.indent.map_or(INDENT, |indent| indent + INDENT));
        self.styled(value, is_key);
        self.close();
    }

    fn styled(&mut self, value: &[char], is_key: bool) {
        let text: String = value.iter().collect();
        let allowed = analyze(value);
        let mut style = if value.contains(&'\n') {
            Style::Literal
        } else if plain::is_string(&text) {
            Style::Plain
        } else {
            Style::Double
        };
        if style == Style::Plain && !allowed.plain {
            style = Style::Single;
        }
        if style == Style::Single && !allowed.single {
            style = Style::Double;
        }
        if style == Style::Literal && (!allowed.block || is_key) {
            style = Style::Double;
        }
        match style {
            Style::Plain => self.plain(&text, is_key),
            Style::Single => self.single_quoted(value, !is_key),
            Style::Double => self.double_quoted(value, !is_key),
            Style::Literal => self.literal(value),
        }
    }

    /// A scalar as it is; numbers and keys are never folded.
    pub(super) fn plain(&mut self, text: &str, in_one_line: bool) {
        if !self.whitespace {
            self.put(' ');
        }
        self.folded(&text.chars().collect::<Vec<_>>(), !in_one_line, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// The characters of a plain or single-quoted scalar.
    fn folded(&mut self, value: &[char], folds: bool, quoted: bool) {
        let (mut spaces, mut breaks) = (false, false);
        for (at, char) in value.iter().copied().enumerate() {
            if char == ' ' {
                let inside = !quoted || at > 0 && at + 1 < value.len();
                let single = !spaces && value.get(at + 1) != Some(&' ');
                if folds && single && inside && self.column > BEST_WIDTH {
                    self.indent();
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else if is_break(char) {
                if !breaks && char == '\n' {
                    self.line_break('\n');
                }
                self.line_break(char);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.indent();
                }
                if quoted && char == '\'' {
                    self.put('\'');
                }
                self.put(char);
                self.indention = false;
                (spaces, breaks) = (false, false);
            }
        }
    }

    fn single_quoted(&mut self, value: &[char], folds: bool) {
        self.indicator("'", true, false, false);
        self.folded(value, folds, true);
        self.indicator("'", false, false, false);
    }

    fn double_quoted(&mut self, value: &[char], folds: bool) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        for (at, char) in value.iter().copied().enumerate() {
            if !is_printable(char) || is_break(char) || matches!(char, '"' | '\\') {
                escape(char).chars().for_each(|char| self.put(char));
                spaces = false;
            } else if char == ' ' {
                let inside = at > 0 && at + 1 < value.len();
                if folds && !spaces && inside && self.column > BEST_WIDTH {
                    self.indent();
                    if value.get(at + 1) == Some(&' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else {
                self.put(char);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
    }

    fn literal(&mut self, value: &[char]) {
        self.indicator("|", true, false, false);
        if value.first().is_some_and(|char| *char == ' ' || is_break(*char)) {
            self.indicator("2", false, false, false);
        }
        let ends: Vec<_> = value.iter().rev().take(2).map(|char| is_break(*char)).collect();
        match ends.as_slice() {
            [false, ..] | [] => self.indicator("-", false, false, false),
            [true] | [true, true] => self.indicator("+", false, false, false),
            _ => {}
        }
        self.line_break('\n');
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for char in value.iter().copied() {
            if is_break(char) {
                self.line_break(char);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.indent();
                }
                self.put(char);
                self.indention = false;
                breaks = false;
            }
        }
    }
}

fn escape(char: char) -> String {
    let letter = match char {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' | '\\' => char,
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        char => {
            let code = u32::from(char);
            return match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{letter}")
}
