//! Prints what commands say: lines of text, and reports in JSON, YAML and XML.
//!
//! Names, annotations, answers, files and flags come from outside. Here they are escaped, so that a
//! terminal shows them and does not follow them: no control, format or line-separating character is
//! printed raw, no text from outside begins a line of its own or is a command of a CI system.
//! A test finds `io::stdout` and `io::stderr` elsewhere.
//!
//! Not for documents that are the output themselves, such as manifests: [`stdout`] prints them byte for
//! byte.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, StdoutLock, Write},
};

use console::Style;
use injectd_core::text::{printable, printable_json};
use injectd_gocompat::text::is_print;
use serde::Serialize;
use serde_json::Value;

pub mod table;
mod usage;

pub use self::usage::{in_one_line, print_usage};

/// Stdout, for documents that go on to other programs as they are.
pub fn stdout() -> StdoutLock<'static> {
    io::stdout().lock()
}

/// Prints a line to stderr.
pub fn print_line(line: &str) {
    // A closed stream cannot be reported.
    drop(writeln!(io::stderr(), "{}", shown(line)));
}

/// Prints lines and reports.
pub struct Printer<W>(W);

impl Printer<StdoutLock<'static>> {
    /// Prints to stdout.
    #[must_use]
    pub fn stdout() -> Self {
        Self(stdout())
    }
}

impl<W: Write> Printer<W> {
    /// Prints to a writer.
    pub fn new(out: W) -> Self {
        Self(out)
    }

    /// Prints a line.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.0, "{}", shown(line))
    }

    /// Prints a line in a style.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn styled(&mut self, style: &Style, line: &str) -> io::Result<()> {
        writeln!(self.0, "{}", style.apply_to(shown(line)))
    }

    /// Prints a line that begins with this program's own text, which may have a style.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn line_after(&mut self, own: &str, line: &str) -> io::Result<()> {
        writeln!(self.0, "{own}{}", shown(line))
    }

    /// Prints a line of XML, in which text from outside is escaped by [`xml`].
    ///
    /// # Errors
    /// When the writer fails.
    pub fn xml_line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.0, "{line}")
    }

    /// Prints a report as JSON.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn json(&mut self, report: &impl Serialize) -> io::Result<()> {
        self.0.write_all(json_report(report)?.as_bytes())
    }

    /// Prints a report as JSON on one line.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn json_line(&mut self, report: &impl Serialize) -> io::Result<()> {
        writeln!(self.0, "{}", json_shown(&serde_json::to_string(report)?))
    }

    /// Prints a report as YAML.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn yaml(&mut self, report: &Value) -> io::Result<()> {
        // Where a string has brackets, it stands in double quotes.
        let text = without_commands(injectd_yaml::write_report(report).into(), r"\x23");
        self.0.write_all(text.as_bytes())
    }
}

/// A text as it is shown in a line. Text that is shown already stays as it is.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    without_lines_of_commands(without_commands(printable(text), r"\u{23}"))
}

/// A report in JSON, with a line break at its end.
///
/// # Errors
/// When the report is not JSON.
pub fn json_report(report: &impl Serialize) -> serde_json::Result<String> {
    Ok(json_shown(&serde_json::to_string_pretty(report)?).into_owned() + "\n")
}

/// JSON as it is shown: the same values, with more escapes.
#[must_use]
pub fn json_shown(json: &str) -> Cow<'_, str> {
    without_commands(printable_json(json), r"\u0023")
}

/// A text in an attribute or an element of XML.
#[must_use]
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            letter if is_print(letter) => out.push(letter),
            // XML 1.0 forbids these characters, and references to them as well (2.2, Char).
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                out.extend(letter.escape_debug());
            }
            // Writing into a String cannot fail.
            letter => _ = write!(out, "&#x{:x};", u32::from(letter)),
        }
    }
    without_commands(out.into(), "&#x23;").into_owned()
}

/// The text without `##[…]` and `##word[…]`, which Azure Pipelines and GitHub Actions read as commands
/// anywhere in a line: `sharp` is in place of the second `#`.
fn without_commands<'t>(text: Cow<'t, str>, sharp: &str) -> Cow<'t, str> {
    if !text.contains("##") {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find("##") {
        let (before, second) = rest.split_at(at + 1);
        out.push_str(before);
        let word = second[1..].trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
        if word.starts_with('[') {
            out.push_str(sharp);
            rest = &second[1..];
        } else {
            rest = second;
        }
    }
    Cow::Owned(out + rest)
}

/// The text without `::word` at its begin or behind a space, where a line may be wrapped: GitHub
/// Actions reads it as a command at the begin of a line, also behind spaces.
fn without_lines_of_commands(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_command = |at: usize| {
        let bytes = text.as_bytes();
        (at == 0 || bytes[at - 1] == b' ') && bytes.get(at + 2).is_some_and(u8::is_ascii_alphabetic)
    };
    let found: Vec<_> = text.match_indices("::").filter(|(at, _)| is_command(*at)).collect();
    if found.is_empty() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in found {
        out.push_str(&text[done..=at]);
        out.push_str(r"\u{3a}");
        done = at + 2;
    }
    Cow::Owned(out + &text[done..])
}

#[cfg(test)]
mod tests;
