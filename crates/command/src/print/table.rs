//! Text in the width of the terminal: tables whose last column is wrapped, and wrapped lines.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use console::{Term, measure_text_width};

use super::{Printer, shown};

/// The width where stdout is not a terminal.
// No terminal has a say: the text goes to a file or another program, and must be the same
// everywhere.
const WIDTH: usize = 100;
/// The least width that is used.
// A terminal of a few columns, or one that says 0, as some in CI do, would get a word in each line.
const MIN_WIDTH: usize = 40;
/// The least width of a wrapped text.
// Most words are shorter.
const MIN_TEXT: usize = 20;
/// Columns between two cells.
const GAP: usize = 2;
/// The indent of a last cell that has no room beside the others.
const INDENT: usize = 4;

/// The width of the terminal.
#[must_use]
pub fn width() -> usize {
    let width = Term::stdout().size_checked().map_or(WIDTH, |(_, columns)| usize::from(columns));
    width.max(MIN_WIDTH)
}

/// A text, which is shown already, in lines of a width. Words are not broken unless they are longer.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<Cow<'_, str>> {
    let options = textwrap::Options::new(width.max(MIN_TEXT))
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(text, options)
}

impl<W: Write> Printer<W> {
    /// Prints a table. The last column is wrapped to the width, if there is one.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn table<const N: usize>(
        &mut self,
        width: Option<usize>,
        head: [&str; N],
        mut rows: Vec<[String; N]>,
    ) -> io::Result<()> {
        // Before the widths, of which the titles are a part.
        rows.insert(0, head.map(str::to_owned));
        for cell in rows.iter_mut().flatten() {
            *cell = shown(cell).into_owned();
        }
        let mut widths = [0; N];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(measure_text_width(cell));
            }
        }
        let before: usize = widths[..N.saturating_sub(1)].iter().map(|width| width + GAP).sum();
        for row in &rows {
            let Some((last, cells)) = row.split_last() else { return Ok(()) };
            let head = cells.iter().zip(widths).fold(String::new(), |line, (cell, width)| {
                line + cell + &" ".repeat(width - measure_text_width(cell) + GAP)
            });
            match width {
                None => self.line(&(head + last))?,
                Some(width) if before + MIN_TEXT <= width => {
                    self.wrapped_after(&head, before, last, width)?;
                }
                Some(width) => {
                    self.line(head.trim_end())?;
                    self.wrapped_after(&" ".repeat(INDENT), INDENT, last, width)?;
                }
            }
        }
        Ok(())
    }

    /// Prints what to do, in the width of the terminal: for whom, and the text.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn what_to_do(&mut self, remedies: &[(String, String)]) -> io::Result<()> {
        if remedies.is_empty() {
            return Ok(());
        }
        self.line("")?;
        self.line("What to do")?;
        for (whom, text) in remedies {
            for (prefix, text) in [(INDENT / 2, whom), (INDENT, text)] {
                for line in wrapped(&shown(text), width() - prefix) {
                    self.line_after(&" ".repeat(prefix), &line)?;
                }
            }
        }
        Ok(())
    }

    /// Prints a text, wrapped to the width, if there is one; further lines are indented.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn paragraph(&mut self, width: Option<usize>, text: &str) -> io::Result<()> {
        let text = shown(text);
        match width {
            None => self.line(&text),
            Some(width) => self.wrapped_after("", INDENT, &text, width),
        }
    }

    /// Prints a text behind a head of so many columns, and its further lines below its begin.
    fn wrapped_after(
        &mut self,
        head: &str,
        indent: usize,
        text: &str,
        width: usize,
    ) -> io::Result<()> {
        for (index, line) in wrapped(text, width.saturating_sub(indent)).iter().enumerate() {
            if index == 0 {
                self.line(&format!("{head}{line}"))?;
            } else {
                self.line_after(&" ".repeat(indent), line)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(width: Option<usize>) -> String {
        let rows = vec![
            ["shop", "1/1", "it was created before the webhook and has no sidecar"],
            ["a-long-name", "10/10", "short"],
        ];
        let rows = rows.into_iter().map(|row| row.map(str::to_owned)).collect();
        let mut text = Vec::new();
        Printer::new(&mut text).table(width, ["NAMESPACE", "PODS", "WHY"], rows).expect("a table");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn the_last_column_is_wrapped_below_itself() {
        let expected = "NAMESPACE    PODS   WHY
shop         1/1    it was created before
                    the webhook and has no
                    sidecar
a-long-name  10/10  short
";
        assert_eq!(printed(Some(44)), expected);
        assert!(printed(Some(44)).lines().all(|line| measure_text_width(line) <= 44));
    }

    #[test]
    fn without_room_the_last_column_has_lines_of_its_own() {
        let text = printed(Some(30));
        assert!(text.contains("shop         1/1\n    it was created before the\n"), "{text}");
    }

    #[test]
    fn without_a_width_each_row_is_a_line() {
        assert_eq!(printed(None).lines().count(), 3);
    }
}
