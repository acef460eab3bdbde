//! The progress bar of commands that read much, shown on terminals only.

use std::{
    fs,
    io::Read,
    path::PathBuf,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use injectd_command::{
    counted,
    print::{print_line, shown},
};

const KNOWN_LENGTH: &str = "{bar:30} {bytes} of {total_bytes}, {msg}, {eta} left";
const UNKNOWN_LENGTH: &str = "{spinner} {bytes}, {msg}";

const REQUESTS: &str = "{spinner} reading {msg}";

/// Work on manifests that takes less time has no bar.
// A bar that appears and is gone at once is a flicker; most manifests take milliseconds.
const DELAY: Duration = Duration::from_secs(1);

/// A progress bar on stderr; hidden if stderr is not a terminal. Cleared on drop.
pub(super) struct Progress {
    bar: ProgressBar,
    noun: &'static str,
    count: usize,
    /// The time from which on the bar is shown; `None` once it is.
    from: Option<Instant>,
}

impl Progress {
    /// A bar over the bytes of these files. If one of them has no length, such as a pipe, the bar
    /// shows no total.
    pub(super) fn of(files: &[PathBuf]) -> Self {
        let length = |path: &PathBuf| {
            fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len())
        };
        let mut progress = Self::new(files.iter().map(length).sum(), Duration::ZERO, "document");
        progress.draw();
        progress
    }

    /// A bar over the bytes of manifests, which is shown after a second.
    pub(super) fn of_manifests(bytes: u64) -> Self {
        Self::new(Some(bytes), DELAY, "object")
    }

    /// A spinner that says what is read from a cluster.
    pub(super) fn of_requests(is_shown: bool) -> Self {
        let style = ProgressStyle::with_template(REQUESTS).expect("a template must be valid");
        let target =
            if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
        Self { bar, noun: "", count: 0, from: None }
    }

    /// Says how many objects of a cluster are read.
    pub(super) fn count(&mut self, count: usize, noun: &str) {
        self.count += count;
        self.say(&counted(self.count, noun));
    }

    /// Names what is read.
    pub(super) fn say(&self, what: &str) {
        self.bar.set_message(shown(what).into_owned());
        self.bar.tick();
    }

    /// Clears the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn new(length: Option<u64>, delay: Duration, noun: &'static str) -> Self {
        let template = if length.is_some() { KNOWN_LENGTH } else { UNKNOWN_LENGTH };
        let style = ProgressStyle::with_template(template).expect("a template must be valid");
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
        Self { bar: bar.with_style(style), noun, count: 0, from: Some(Instant::now() + delay) }
    }

    /// A reader that advances the bar.
    pub(super) fn reader(&self, reader: impl Read + 'static) -> impl Read + 'static {
        self.bar.wrap_read(reader)
    }

    /// Advances the bar by so many bytes.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.bar.inc(bytes as u64);
        self.draw();
    }

    /// Counts a document or an object.
    pub(super) fn add(&mut self) {
        self.count += 1;
    }

    pub(super) fn draw(&mut self) {
        if self.from.is_some_and(|from| from <= Instant::now()) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.from = None;
        }
        if !self.bar.is_hidden() {
            self.bar.set_message(self.message());
        }
    }

    fn message(&self) -> String {
        counted(self.count, self.noun)
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
    fn one_object_is_singular() {
        let mut progress = Progress::of_manifests(0);
        for expected in ["0 objects", "1 object", "2 objects"] {
            assert_eq!(progress.message(), expected);
            progress.add();
        }
    }

    #[test]
    fn the_bar_of_manifests_is_shown_after_a_delay() {
        let mut progress = Progress::of_manifests(2);
        progress.advance(1);
        let from = progress.from.expect("must wait");
        progress.from = from.checked_sub(DELAY);
        progress.advance(1);
        assert_eq!(progress.from, None);
    }
}
