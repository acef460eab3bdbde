//! A stream of JSON documents: on one line each, or pretty-printed.

use std::io::{self, BufRead};

use crate::json::Nesting;

/// Cuts a stream into reviews.
pub(super) struct Reviews<R> {
    reader: R,
    line: usize,
    /// The review that was read last.
    pub(super) text: Vec<u8>,
    ahead: Vec<u8>,
}

impl<R: BufRead> Reviews<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, line: 0, text: Vec::new(), ahead: Vec::new() }
    }

    /// Reads the next review into `text` and tells the line it begins on, counted from 1.
    ///
    /// It ends where its braces close; what is not closed ends where a line opens the next one.
    pub(super) fn next(&mut self) -> io::Result<Option<usize>> {
        self.text.clear();
        let mut nesting = Nesting::default();
        let mut begin = self.line;
        loop {
            if self.ahead.is_empty() && self.reader.read_until(b'\n', &mut self.ahead)? == 0 {
                let is_blank = self.text.trim_ascii().is_empty();
                return Ok((!is_blank).then_some(begin + 1));
            }
            let is_begun = !self.text.is_empty();
            if is_begun && self.ahead.starts_with(b"{") {
                return Ok(Some(begin + 1));
            }
            if !is_begun {
                begin = self.line;
            }
            self.line += 1;
            let is_closed = nesting.end_in(&self.ahead).is_some() || !nesting.is_open();
            self.text.append(&mut self.ahead);
            if self.text.trim_ascii().is_empty() {
                self.text.clear();
            } else if is_closed {
                return Ok(Some(begin + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(stream: &str) -> Vec<(usize, String)> {
        let mut reviews = Reviews::new(stream.as_bytes());
        let mut found = Vec::new();
        while let Some(line) = reviews.next().expect("memory") {
            found.push((line, String::from_utf8_lossy(&reviews.text).trim().to_owned()));
        }
        found
    }

    fn expect(stream: &str, reviews: &[(usize, &str)]) {
        let expected: Vec<_> =
            reviews.iter().map(|&(line, text)| (line, text.to_owned())).collect();
        assert_eq!(cut(stream), expected, "{stream:?}");
    }

    #[test]
    fn reviews_stand_on_lines_or_over_many() {
        expect("{\"a\":1}\n{\"b\":2}", &[(1, "{\"a\":1}"), (2, "{\"b\":2}")]);
        expect("\n{\n  \"a\": {\n  }\n}\n\n{}\r\n", &[(2, "{\n  \"a\": {\n  }\n}"), (7, "{}")]);
        expect("{\"a\":\"}{\\\"\"}\n", &[(1, "{\"a\":\"}{\\\"\"}")]);
        expect("", &[]);
    }

    #[test]
    fn an_unfinished_review_does_not_swallow_the_next() {
        expect("{\"a\":\n{}\nwhat\n{}", &[(1, "{\"a\":"), (2, "{}"), (3, "what"), (4, "{}")]);
        expect("{\"a\": \"open\n{}", &[(1, "{\"a\": \"open"), (2, "{}")]);
    }
}
