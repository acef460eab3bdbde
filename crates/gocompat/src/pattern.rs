//! Turns a regular expression of Go into one of the crate `regex` with the same meaning.
//!
//! Both are of the family of RE2. In Go the classes `\d`, `\s`, `\w` and `\b` are ASCII, there is
//! `\Q…\E`, there are octal escapes, and a set has no operators and no sets in it.

#![expect(clippy::format_push_string, reason = "short texts")]

use std::{iter::Peekable, str::Chars};

/// The greatest count of a repetition.
// Go refuses more (`ErrInvalidRepeatSize`); the other crate would take it.
const MAX_REPEAT: u32 = 1000;

/// Characters in which the end of a named class is searched. The names have at most six letters.
const MAX_CLASS_NAME: usize = 64;

/// The named classes, which are the same in both.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

const INVALID_ESCAPE: &str = "invalid escape sequence";
const INVALID_RANGE: &str = "invalid character class range";

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
            '\\' => self.escape()?,
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
        // Go takes such a brace as itself; the other crate would call it an error.
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

    fn escape(&mut self) -> Result<(), &'static str> {
        let is_special = |char: &char| "dDwWsSbBQAzpP".contains(*char);
        let Some(special) = self.chars.next_if(is_special) else {
            let char = self.escaped()?;
            self.character(char);
            return Ok(());
        };
        match special {
            'b' | 'B' => self.out.push_str(&format!("(?-u:\\{special})")),
            'Q' => self.literal(),
            'A' | 'z' => self.out.extend(['\\', special]),
            'p' | 'P' => self.property(special),
            class => self.class(class),
        }
        Ok(())
    }

    /// The character that an escape stands for, after the backslash (`parseEscape` of Go's
    /// `regexp/syntax`).
    fn escaped(&mut self) -> Result<char, &'static str> {
        let Some(char) = self.chars.next() else {
            return Err("trailing backslash at end of expression");
        };
        match char {
            'a' => Ok('\u{7}'),
            'f' => Ok('\u{c}'),
            't' => Ok('\t'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            'v' => Ok('\u{b}'),
            'x' => self.hexadecimal(),
            '0'..='7' => self.octal(char),
            char if char.is_ascii() && !char.is_ascii_alphanumeric() => Ok(char),
            _ => Err(INVALID_ESCAPE),
        }
    }

    /// A character as itself, whatever it means to the other crate.
    fn character(&mut self, char: char) {
        if char.is_ascii() && !char.is_ascii_alphanumeric() {
            self.out.push_str(&format!("\\x{{{:x}}}", u32::from(char)));
        } else {
            self.out.push(char);
        }
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

    /// Two hexadecimal digits, or any number of them in braces. Surrogates, which no text has, are
    /// an error.
    fn hexadecimal(&mut self) -> Result<char, &'static str> {
        let is_braced = self.chars.next_if_eq(&'{').is_some();
        let (mut code, mut digits) = (0_u32, 0_u8);
        while is_braced || digits < 2 {
            let char = self.chars.next().ok_or(INVALID_ESCAPE)?;
            if is_braced && char == '}' && digits > 0 {
                break;
            }
            let digit = char.to_digit(16).ok_or(INVALID_ESCAPE)?;
            code = code
                .checked_mul(16)
                .and_then(|code| code.checked_add(digit))
                .ok_or(INVALID_ESCAPE)?;
            digits = digits.saturating_add(1);
        }
        char::from_u32(code).ok_or(INVALID_ESCAPE)
    }

    /// Up to three octal digits; one digit but 0 is a reference back, which Go does not have.
    fn octal(&mut self, first: char) -> Result<char, &'static str> {
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
            return Err(INVALID_ESCAPE);
        }
        char::from_u32(code).ok_or(INVALID_ESCAPE)
    }

    /// The text between `\Q` and `\E`, or up to the end.
    fn literal(&mut self) {
        while let Some(char) = self.chars.next() {
            if char == '\\' && self.chars.next_if_eq(&'E').is_some() {
                return;
            }
            self.character(char);
        }
    }

    /// A set in brackets, after the first one (`parseClass` of Go's `regexp/syntax`).
    fn set(&mut self) -> Result<(), &'static str> {
        self.out.push('[');
        self.out.extend(self.chars.next_if_eq(&'^'));
        let mut is_first = true;
        while let Some(char) = self.chars.next() {
            match (char, self.chars.peek().copied()) {
                (']', _) if !is_first => {
                    self.out.push(']');
                    return Ok(());
                }
                ('[', Some(':')) if self.named_class()? => {}
                ('\\', Some(kind @ ('p' | 'P'))) => {
                    self.chars.next();
                    self.property(kind);
                }
                ('\\', Some(class @ ('d' | 'D' | 'w' | 'W' | 's' | 'S'))) => {
                    self.chars.next();
                    self.class(class);
                }
                _ => self.range(char)?,
            }
            is_first = false;
        }
        Err("missing closing ]")
    }

    /// A character of a set, or a range. A dash before the end of the set is itself.
    fn range(&mut self, first: char) -> Result<(), &'static str> {
        let low = self.member(first)?;
        self.character(low);
        let mut ahead = self.chars.clone();
        if ahead.next() == Some('-')
            && let Some(last) = ahead.next().filter(|char| *char != ']')
        {
            self.chars = ahead;
            let high = self.member(last)?;
            if high < low {
                return Err(INVALID_RANGE);
            }
            self.out.push('-');
            self.character(high);
        }
        Ok(())
    }

    /// A character of a set that begins so.
    fn member(&mut self, first: char) -> Result<char, &'static str> {
        if first == '\\' { self.escaped() } else { Ok(first) }
    }

    /// A class of Perl. A set may have one in it.
    fn class(&mut self, class: char) {
        self.out.push_str(match class {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            's' => "[\\t\\n\\f\\r ]",
            _ => "[^\\t\\n\\f\\r ]",
        });
    }

    /// A class such as `[:alpha:]`, after the bracket; `false` if there is none.
    fn named_class(&mut self) -> Result<bool, &'static str> {
        // Only the names are taken: the other crate takes what is none for a set.
        // Not the whole rest, which would be quadratic in a set of many brackets.
        let rest: String = self.chars.clone().skip(1).take(MAX_CLASS_NAME).collect();
        let Some((name, _)) = rest.split_once(":]") else { return Ok(false) };
        if !CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(INVALID_RANGE);
        }
        self.out.push_str(&format!("[:{name}:]"));
        // All are ASCII; the colon before the name and the two characters after it.
        self.chars.nth(name.len() + 2);
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
