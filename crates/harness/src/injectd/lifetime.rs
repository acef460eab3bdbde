//! What only some scenarios do with the process: its end by itself, its memory, its log, signals.

use std::process::ExitStatus;

use rustix::process::Signal;

use super::Injectd;
use crate::{expect::Outcome, process::Printed, program::resident_kib};

impl Injectd {
    /// Keeps no log, which takes CPU to write. For the next start.
    ///
    /// # Errors
    ///
    /// Fails without a free descriptor.
    pub fn discard_log(&mut self) -> Outcome {
        self.log = Printed::discarded()?;
        Ok(())
    }

    /// Starts a process that must end by itself; returns its exit code and the last line it wrote.
    ///
    /// # Errors
    ///
    /// Fails if it does not end in time.
    pub async fn run(&mut self) -> Outcome<(Option<i32>, String)> {
        let mut process = self.spawn()?;
        let code = process.program.wait().await?.code();
        let log = self.log();
        Ok((code, log.lines().last().unwrap_or("it logged nothing").to_owned()))
    }

    /// The memory in use, in KiB.
    ///
    /// # Errors
    ///
    /// Fails if the process does not run.
    pub fn resident_kib(&mut self) -> Outcome<u64> {
        resident_kib(self.pid()?)
    }

    /// Sends a signal, without waiting for the end.
    ///
    /// # Errors
    ///
    /// Fails if the process does not run.
    pub fn signal(&mut self, signal: Signal) -> Outcome {
        self.running()?.signal(signal)
    }

    /// Waits for the end of the process.
    ///
    /// # Errors
    ///
    /// Fails if the process does not end in time.
    pub async fn ends(&mut self) -> Outcome<ExitStatus> {
        self.running()?.wait().await
    }
}
