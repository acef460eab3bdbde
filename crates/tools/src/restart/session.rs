//! Steps of the restarter, until all rollouts are finished, the time is over, or a signal.

use std::{io, time::Duration};

use injectd_cluster::causes::with_causes;
use injectd_command::{CommandError, print::print_line};
use injectd_controllers::restart::{Notice, RequestError, Restarter};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep, sleep_until},
};

use super::{Format, effect::Chosen, progress::Progress, report::Report};

/// Time between two looks at the rollouts.
// A rollout takes many seconds, so a second more is not noticed. Each look asks the API server.
const POLL: Duration = Duration::from_secs(1);

/// A run of the command.
pub(super) struct Session {
    restarter: Restarter,
    report: Report,
    progress: Progress,
    failure: Option<String>,
    is_dry_run: bool,
}

/// The signals that end the command.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// Why the command ends before all is done.
enum Stop {
    Signal,
    Timeout,
}

impl Session {
    /// A run; prints what is left out at once.
    pub(super) fn new(
        restarter: Restarter,
        chosen: Chosen,
        format: Format,
        is_dry_run: bool,
    ) -> Result<Self, CommandError> {
        let mut report = Report::new(format, chosen.effects);
        let mut left_out: Vec<_> = chosen.left_out.iter().collect();
        left_out.sort_by_key(|(workload, _)| (&workload.api_version, &workload.kind));
        for (workload, why) in left_out {
            report.left_out(workload, why).map_err(CommandError::output)?;
        }
        Ok(Self { restarter, report, progress: Progress::new(), failure: None, is_dry_run })
    }

    /// Runs to the end; prints what is left.
    pub(super) async fn run(mut self, limit: Duration) -> Result<(), CommandError> {
        let deadline = Instant::now() + limit;
        let handler = |kind| {
            signal(kind).map_err(|error| CommandError::failed("cannot handle signals", error))
        };
        let mut signals = Signals {
            interrupt: handler(SignalKind::interrupt())?,
            terminate: handler(SignalKind::terminate())?,
        };
        let stop = loop {
            // A step ends before a signal ends the command: a restart is sent and counted, or not.
            let notices = self.restarter.step(&|| true).await;
            for notice in notices {
                self.take(notice).map_err(CommandError::output)?;
            }
            if self.is_done() {
                break None;
            }
            self.progress.show(&self.restarter, self.report.count());
            tokio::select! {
                () = signals.received() => break Some(Stop::Signal),
                () = sleep_until(deadline) => break Some(Stop::Timeout),
                () = sleep(POLL) => {}
            }
        };
        self.end(stop.as_ref())
    }

    /// Prints what is left, and the reason.
    fn end(self, stop: Option<&Stop>) -> Result<(), CommandError> {
        let Self { restarter, mut report, progress, failure, is_dry_run } = self;
        // The bar would be drawn over the lines that follow.
        drop(progress);
        for restart in restarter.in_flight().iter().filter(|restart| restart.stuck.is_none()) {
            report.rolling_out(&restart.workload).map_err(CommandError::output)?;
        }
        let mut has_waiting = false;
        for (finding, wait) in restarter.waiting() {
            has_waiting = true;
            report.waits(&finding.workload, wait.as_ref()).map_err(CommandError::output)?;
        }
        match stop {
            Some(Stop::Signal) => print_line("stopped by a signal"),
            Some(Stop::Timeout) => print_line("--timeout is over"),
            None if is_dry_run && !has_waiting => {
                print_line("dry run: there is nothing to restart");
            }
            None if is_dry_run => print_line("dry run: nothing was restarted; restart with --yes"),
            None => {}
        }
        let ended = report.end();
        match failure {
            Some(problem) => Err(CommandError::Incomplete(problem)),
            None => ended,
        }
    }

    fn take(&mut self, notice: Notice) -> io::Result<()> {
        let Self { report, progress, failure, .. } = self;
        match notice {
            Notice::Finished(it) => progress.suspend(|| report.finished(&it.workload)),
            Notice::Stuck(it) => {
                let why = it.stuck.as_deref().unwrap_or_default();
                progress.suspend(|| report.stuck(&it.workload, why))
            }
            Notice::Failed(workload, error) if !matches!(error, RequestError::Changed) => {
                *failure = Some(format!("{workload}: {}", with_causes(&error)));
                Ok(())
            }
            // A changed workload is read again.
            Notice::Restarted(_)
            | Notice::Waits(..)
            | Notice::Gone(_)
            | Notice::Stopped(..)
            | Notice::Resumed
            | Notice::Failed(..) => Ok(()),
        }
    }

    /// Whether nothing rolls out, and nothing more will happen soon.
    fn is_done(&self) -> bool {
        if self.failure.is_some() {
            return true;
        }
        let mut waiting = self.restarter.waiting();
        self.restarter.in_flight().iter().all(|restart| restart.stuck.is_some())
            && waiting.all(|(_, wait)| wait.is_some_and(|wait| self.is_dry_run || !wait.is_short()))
    }
}

impl Signals {
    async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
