//! The progress bar of a comparison, shown on terminals only.

use std::{fs, io::Read, path::PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::super::{counted, print_line};

const KNOWN_LENGTH: &str = "{bar:30} {bytes} of {total_bytes}, {msg}, {eta} left";
const UNKNOWN_LENGTH: &str = "{spinner} {bytes}, {msg}";

/// A progress bar on stderr; hidden if stderr is not a terminal. Cleared on drop.
pub(super) struct Progress {
    bar: ProgressBar,
    documents: usize,
}

impl Progress {
    /// A bar over the bytes of these files. If one of them has no length, such as a pipe, the bar
    /// shows no total.
    pub(super) fn of(files: &[PathBuf]) -> Self {
        let length = |path: &PathBuf| {
            fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len())
        };
        let length: Option<u64> = files.iter().map(length).sum();
        let template = if length.is_some() { KNOWN_LENGTH } else { UNKNOWN_LENGTH };
        let style = ProgressStyle::with_template(template).expect("a template must be valid");
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        let progress = Self { bar: bar.with_style(style), documents: 0 };
        progress.draw();
        progress
    }

    /// A reader that advances the bar.
    pub(super) fn reader(&self, reader: impl Read + 'static) -> impl Read + 'static {
        self.bar.wrap_read(reader)
    }

    pub(super) fn add_document(&mut self) {
        self.documents += 1;
    }

    pub(super) fn draw(&self) {
        if !self.bar.is_hidden() {
            self.bar.set_message(self.message());
        }
    }

    fn message(&self) -> String {
        counted(self.documents, "document")
    }

    /// Prints a line above the bar.
    pub(super) fn print_line(&self, line: &str) {
        self.bar.suspend(|| print_line(line));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_document_is_singular() {
        let mut progress = Progress {
            bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()),
            documents: 0,
        };
        for expected in ["0 documents", "1 document", "2 documents"] {
            assert_eq!(progress.message(), expected);
            progress.add_document();
        }
    }
}
