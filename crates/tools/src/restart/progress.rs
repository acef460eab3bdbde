//! The line that says what the command waits for, shown on terminals only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use injectd_command::print::shown;
use injectd_controllers::restart::{Restarter, Wait};

/// Time between two pictures of the spinner.
// A spinner looks still below some ten pictures a second.
const TICK: Duration = Duration::from_millis(100);

/// A spinner on stderr. Cleared on drop.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
        bar.set_style(style.expect("a template must be valid"));
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    pub(super) fn show(&self, restarter: &Restarter, finished: usize) {
        let (rolling_out, left) = (restarter.in_flight().len(), restarter.waiting().count());
        let text = format!("{finished} finished, {rolling_out} rolling out, {left} waiting");
        let short = restarter.waiting().filter_map(|(_, wait)| wait).find(Wait::is_short);
        let why = short.filter(|_| rolling_out == 0).map(|wait| format!(": {wait}"));
        self.0.set_message(shown(&(text + &why.unwrap_or_default())).into_owned());
    }

    /// Prints without a mixture with the line.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
