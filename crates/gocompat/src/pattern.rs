//! Turns a regular expression of Go into one of the crate `regex` with the same meaning.
//!
//! Both are of the family of RE2. In Go the classes `\d`, `\s`, `\w` and `\b` are ASCII, there is
//! `\Q…\E`, there are octal escapes, and a set has no operators and no sets in it.

#![expect(clippy::format_push_string, reason = "short texts")]

use std::{iter::Peekable, str::Chars};

/// The greatest count of a repetition.
const MAX_REPEAT: u32 = 1000;

/// Characters in which the end of a named class is searched. The names have at most six letters.
const MAX_CLASS_NAME: usize = 64;

/// The translated expression. The error is Go's text where it is one of these checks.
///
/// # Errors
/// It is not a regular expression of Go.
pub fn translate(pattern: &str) -> Result<String, &'static str> {
    let mut translator =
        Translator { chars: pattern.chars().peekable(), out: String::with_capacity(pattern.len()) };
    translator.whole()?;
    Ok(translator.out)
}

/// Whether the last part has a repetition.
#[derive(Clone, Copy)]
enum Repeated {
    No,
    Greedy,
    Lazy,
}

struct Translator<'p> {
    chars: Peekable<Chars<'p>>,
    out: String,
}

impl Translator<'_> {
    fn whole(&mut self) -> Result<(), &'static str> {
        let mut repeated = Repeated::No;
        while let Some(char) = self.chars.next() {
            let before = self.out.len();
            self.part(char)?;
            let added = &self.out[before..];
            let repeats = matches!(char, '*' | '+' | '?') || char == '{' && added == "{";
            repeated = match (repeated, char) {
                _ if !repeats => Repeated::No,
                (Repeated::No, _) => Repeated::Greedy,
                (Repeated::Greedy, '?') => Repeated::Lazy,
                _ => return Err("invalid nested repetition operator"),
            };
            if char == '{' && repeats {
                self.out.extend(self.chars.by_ref().take_while(|char| *char != '}'));
                self.out.push('}');
            }
        }
        Ok(())
    }

    fn part(&mut self, char: char) -> Result<(), &'static str> {
        match char {
            '\\' => self.escape(false)?,
            '[' => self.set()?,
            '{' => self.repetition()?,
            '(' => {
                self.out.push('(');
                if self.chars.peek() == Some(&'?') {
                    self.group()?;
                }
            }
            char => self.out.push(char),
        }
        Ok(())
    }

    /// Flags after `(?`. Those that only the other crate knows are an error.
    fn group(&mut self) -> Result<(), &'static str> {
        self.out.extend(self.chars.next());
        while let Some(char) = self.chars.peek().copied() {
            match char {
                'i' | 'm' | 's' | 'U' | '-' => {
                    self.out.push(char);
                    self.chars.next();
                }
                ':' | ')' | 'P' | '<' => return Ok(()),
                _ => return Err("invalid or unsupported Perl syntax"),
            }
        }
        Ok(())
    }

    /// A counted repetition; braces that are none are literal.
    fn repetition(&mut self) -> Result<(), &'static str> {
        let is_count = |char: &char| char.is_ascii_digit() || *char == ',';
        let text: String = self.chars.clone().take_while(is_count).collect();
        let closed = self.chars.clone().nth(text.chars().count()) == Some('}');
        let mut bounds = text.splitn(2, ',');
        let least = bounds.next().unwrap_or_default();
        let most = bounds.next();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let counted = closed
            && is_number(least)
            && most.is_none_or(|text| text.is_empty() || is_number(text));
        if !counted {
            self.out.push_str("\\{");
            return Ok(());
        }
        let too_large =
            |text: &str| !text.is_empty() && !text.parse().is_ok_and(|n: u32| n <= MAX_REPEAT);
        if too_large(least) || most.is_some_and(too_large) {
            return Err("invalid repeat count");
        }
        self.out.push('{');
        Ok(())
    }

    fn escape(&mut self, in_set: bool) -> Result<(), &'static str> {
        let Some(char) = self.chars.next() else {
            return Err("trailing backslash at end of expression");
        };
        match char {
            'd' if in_set => self.out.push_str("0-9"),
            'w' if in_set => self.out.push_str("0-9A-Za-z_"),
            's' if in_set => self.out.push_str("\\t\\n\\f\\r "),
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            's' => self.out.push_str("[\\t\\n\\f\\r ]"),
            'S' => self.out.push_str("[^\\t\\n\\f\\r ]"),
            'b' | 'B' if !in_set => self.out.push_str(&format!("(?-u:\\{char})")),
            'Q' if !in_set => self.literal(),
            'C' if !in_set => self.out.push_str("(?s-u:.)"),
            'A' | 'z' if !in_set => self.out.extend(['\\', char]),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => self.out.extend(['\\', char]),
            'p' | 'P' => self.property(char),
            'x' => self.out.push_str("\\x"),
            '0'..='7' => self.octal(char)?,
            char if char.is_ascii_punctuation() => self.out.extend(['\\', char]),
            _ => return Err("invalid escape sequence"),
        }
        Ok(())
    }

    /// A class of Unicode, whose name the other crate knows.
    fn property(&mut self, kind: char) {
        self.out.extend(['\\', kind]);
        if self.chars.peek() == Some(&'{') {
            for char in self.chars.by_ref() {
                self.out.push(char);
                if char == '}' {
                    return;
                }
            }
            return;
        }
        // The name may be a letter that is something else outside of the class.
        self.out.extend(self.chars.next());
    }

    /// Up to three octal digits; one digit but 0 is a reference back, which Go does not have.
    fn octal(&mut self, first: char) -> Result<(), &'static str> {
        let mut code = first.to_digit(8).unwrap_or(0);
        let mut digits = 1;
        while digits < 3
            && let Some(digit) = self.chars.peek().and_then(|char| char.to_digit(8))
        {
            code = code * 8 + digit;
            digits += 1;
            self.chars.next();
        }
        if first != '0' && digits == 1 {
            return Err("invalid escape sequence");
        }
        self.out.push_str(&format!("\\x{{{code:x}}}"));
        Ok(())
    }

    /// The text between `\Q` and `\E`, or up to the end.
    fn literal(&mut self) {
        while let Some(char) = self.chars.next() {
            if char == '\\' && self.chars.peek() == Some(&'E') {
                self.chars.next();
                return;
            }
            if char.is_ascii_punctuation() {
                self.out.push('\\');
            }
            self.out.push(char);
        }
    }

    /// A set in brackets, after the first one.
    fn set(&mut self) -> Result<(), &'static str> {
        self.out.push('[');
        if self.chars.peek() == Some(&'^') {
            self.out.extend(self.chars.next());
        }
        let mut is_first = true;
        while let Some(char) = self.chars.next() {
            match char {
                ']' if !is_first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if self.chars.peek() == Some(&':') => self.named_class()?,
                '\\' => match self.chars.peek() {
                    Some(class @ ('D' | 'W' | 'S')) => {
                        let class = *class;
                        self.chars.next();
                        self.negated(class);
                    }
                    _ => self.escape(true)?,
                },
                '[' | ']' | '&' | '~' => self.out.extend(['\\', char]),
                '-' => self.range_sign(is_first),
                char => self.out.push(char),
            }
            is_first = false;
        }
        Err("missing closing ]")
    }

    /// A dash: of a range, or at an end of the set.
    fn range_sign(&mut self, is_first: bool) {
        let at_end = matches!(self.chars.peek(), None | Some(']'));
        self.out.push_str(if is_first || at_end { "\\-" } else { "-" });
    }

    fn negated(&mut self, class: char) {
        self.out.push_str(match class {
            'D' => "[^0-9]",
            'W' => "[^0-9A-Za-z_]",
            _ => "[^\\t\\n\\f\\r ]",
        });
    }

    /// A class such as `[:alpha:]`.
    fn named_class(&mut self) -> Result<(), &'static str> {
        let rest: String = self.chars.clone().take(MAX_CLASS_NAME).collect();
        let Some(end) = rest.find(":]") else {
            self.out.push_str("\\[");
            return Ok(());
        };
        let name = &rest[1..end];
        if !name.trim_start_matches('^').bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err("invalid character class range");
        }
        self.out.push_str(&format!("[:{name}:]"));
        for _ in 0..rest[..end + 2].chars().count() {
            self.chars.next();
        }
        Ok(())
    }
}
