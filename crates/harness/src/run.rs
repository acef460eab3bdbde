//! The runner: suites one after the other, and the scenarios of each in their order.
//!
//! Each scenario prints a line: `ok`, `FAILED` with the expectation that was not met, or `skipped`
//! with its reason.

use std::{
    fmt::Display,
    io::{self, Write as _},
    process::ExitCode,
    time::Duration,
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep_until},
};

use crate::expect::{NotPassed, Outcome, failed};

/// What a scenario may return: nothing, or a text that is printed beside its name.
pub trait Note {
    /// The text; empty for nothing.
    fn text(self) -> String;
}

impl Note for () {
    fn text(self) -> String {
        String::new()
    }
}

impl Note for String {
    fn text(self) -> String {
        self
    }
}

/// A run of suites: what is selected, and how many scenarios passed, failed or were skipped.
#[derive(Debug)]
pub struct Run {
    filters: Vec<Filter>,
    interrupt: Signal,
    terminate: Signal,
    is_stopped: bool,
    begin: Instant,
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// `SUITE/TEXT`, or `SUITE` with an empty text.
#[derive(Debug)]
struct Filter {
    suite: String,
    text: String,
    /// Whether a scenario was selected by it.
    is_used: bool,
}

impl Filter {
    fn new(filter: &str) -> Self {
        let (suite, text) = filter.split_once('/').unwrap_or((filter, ""));
        Self { suite: suite.to_owned(), text: text.to_owned(), is_used: false }
    }
}

impl Run {
    /// A run of the suites and scenarios that a filter selects: `SUITE`, or `SUITE/TEXT` for the
    /// scenarios of a suite whose names contain a text. No filter selects all.
    ///
    /// # Errors
    ///
    /// Fails if the handlers of SIGINT and SIGTERM cannot be installed.
    pub fn new(filters: &[String]) -> io::Result<Self> {
        Ok(Self {
            filters: filters.iter().map(|filter| Filter::new(filter)).collect(),
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            is_stopped: false,
            begin: Instant::now(),
            passed: 0,
            failed: 0,
            skipped: 0,
        })
    }

    /// A suite, which may take so long; `None` if no filter selects it.
    pub fn suite(&mut self, name: &'static str, limit: Duration) -> Option<Suite<'_>> {
        if !self.filters.is_empty() && self.filters.iter().all(|filter| filter.suite != name) {
            return None;
        }
        print(&format!("suite {name}"));
        let blocked = self.is_stopped.then(|| "the run was stopped".to_owned());
        Some(Suite { run: self, name, limit, begin: Instant::now(), blocked, failures: 0 })
    }

    /// Records the failure of a whole suite, such as one that cannot begin.
    pub fn record(&mut self, suite: &str, outcome: Outcome) {
        if let Err(NotPassed::Failed(why) | NotPassed::Skipped(why)) = outcome {
            self.failed += 1;
            print(&format!("FAILED suite {suite}: {why}"));
        }
    }

    /// Prints the counts; the exit code says whether a scenario failed. A filter that selects no
    /// scenario is a failure too.
    #[must_use]
    pub fn end(mut self) -> ExitCode {
        for Filter { suite, text, .. } in self.filters.iter().filter(|it| !it.is_used) {
            self.failed += 1;
            print(&format!("FAILED filter {suite}/{text}: it selects no scenario"));
        }
        let Self { passed, failed, skipped, .. } = self;
        let seconds = self.begin.elapsed().as_secs();
        print(&format!("{passed} passed, {failed} failed, {skipped} skipped, {seconds} s"));
        if failed == 0 && !self.is_stopped { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    async fn stopped(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        self.is_stopped = true;
    }
}

/// A suite that runs: its scenarios share what the first ones made.
#[derive(Debug)]
pub struct Suite<'a> {
    run: &'a mut Run,
    name: &'static str,
    limit: Duration,
    begin: Instant,
    blocked: Option<String>,
    failures: usize,
}

impl Suite<'_> {
    /// Runs a scenario that the others of the suite depend on: no filter leaves it out, and if it
    /// does not pass, they are skipped.
    pub async fn setup<N: Note>(&mut self, name: &str, scenario: impl Future<Output = Outcome<N>>) {
        self.selects(name);
        let has_passed = self.try_one(name, scenario).await;
        if !has_passed && self.blocked.is_none() {
            self.block(format!("it needs {name:?}"));
        }
    }

    /// Runs a scenario, if a filter selects it.
    pub async fn scenario<N: Note>(
        &mut self,
        name: &str,
        scenario: impl Future<Output = Outcome<N>>,
    ) {
        if self.selects(name) {
            self.try_one(name, scenario).await;
        }
    }

    /// Skips all scenarios from here on, for this reason.
    pub fn block(&mut self, reason: impl Into<String>) {
        self.blocked = Some(reason.into());
    }

    /// Skips the suite, for this reason.
    pub fn skip(self, reason: &str) {
        self.run.skipped += 1;
        print(&format!("skipped suite {}: {reason}", self.name));
    }

    /// Whether a scenario of this suite failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Prints the last lines of a log below a title.
    pub fn print_end(&self, title: &str, lines: &[&str]) {
        print(&format!("{title}:"));
        for line in lines.iter().skip(lines.len().saturating_sub(20)) {
            let line: String = line.chars().take(300).collect();
            print(&format!("  {line}"));
        }
    }

    fn selects(&mut self, name: &str) -> bool {
        let mut is_selected = self.run.filters.is_empty();
        for filter in &mut self.run.filters {
            if filter.suite == self.name && name.contains(&filter.text) {
                filter.is_used = true;
                is_selected = true;
            }
        }
        is_selected
    }

    async fn try_one<N: Note>(
        &mut self,
        name: &str,
        scenario: impl Future<Output = Outcome<N>>,
    ) -> bool {
        let begin = Instant::now();
        let outcome = match &self.blocked {
            Some(reason) => Err(NotPassed::Skipped(reason.clone())),
            None => self.outcome(scenario).await,
        };
        let seconds = begin.elapsed().as_secs_f64();
        match outcome {
            Ok(note) => {
                self.run.passed += 1;
                print(&format!("ok {name}{} ({seconds:.1} s)", after_colon(&note.text())));
                return true;
            }
            Err(NotPassed::Failed(why)) => {
                self.run.failed += 1;
                self.failures += 1;
                print(&format!("FAILED {name}: {why} ({seconds:.1} s)"));
            }
            Err(NotPassed::Skipped(reason)) => {
                self.run.skipped += 1;
                print(&format!("skipped {name}: {reason}"));
            }
        }
        false
    }

    /// The outcome of a scenario; a failure if the time of the suite is over, or the run stopped.
    async fn outcome<N>(&mut self, scenario: impl Future<Output = Outcome<N>>) -> Outcome<N> {
        let why = tokio::select! {
            outcome = scenario => return outcome,
            () = sleep_until(self.begin + self.limit) => {
                format!("the suite took longer than {} s", self.limit.as_secs())
            }
            () = self.run.stopped() => "the run was stopped".to_owned(),
        };
        self.block(why.clone());
        Err(failed(why))
    }
}

fn after_colon(text: &str) -> impl Display {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// Prints a line. A closed output does not end the run: processes would be left behind.
pub fn print(line: &str) {
    drop(writeln!(io::stdout().lock(), "{line}"));
}
