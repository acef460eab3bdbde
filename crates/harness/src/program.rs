//! A process that ends with its owner.

use std::{
    fs::{self, File},
    io,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid},
};
use tokio::{task::spawn_blocking, time::timeout};

use crate::expect::{DEADLINE, NotPassed, Outcome, expect, failed, soon};

/// A process; it is killed when this is dropped.
#[derive(Debug)]
pub struct Program(Child);

impl Program {
    /// Starts a command with an empty input.
    ///
    /// # Errors
    ///
    /// Names the command that cannot be started.
    pub fn start(command: &mut Command, out: File, err: File) -> Outcome<Self> {
        command.stdin(Stdio::null());
        Self::start_with(command, out, err)
    }

    /// Starts a command that has its input already.
    ///
    /// # Errors
    ///
    /// Names the command that cannot be started.
    pub fn start_with(command: &mut Command, out: File, err: File) -> Outcome<Self> {
        let started = command.stdout(out).stderr(err).spawn();
        started.map(Self).map_err(|error| cannot_start(command, &error))
    }

    /// The exit status; `None` while the process runs.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot say.
    pub fn exit_status(&mut self) -> Outcome<Option<ExitStatus>> {
        Ok(self.0.try_wait()?)
    }

    /// Waits for the end of the process.
    ///
    /// # Errors
    ///
    /// Fails if the process does not end in time.
    pub async fn wait(&mut self) -> Outcome<ExitStatus> {
        self.wait_within(DEADLINE).await
    }

    /// As [`Program::wait`], for so long.
    ///
    /// # Errors
    ///
    /// As [`Program::wait`].
    pub async fn wait_within(&mut self, limit: Duration) -> Outcome<ExitStatus> {
        if let Some(status) = self.exit_status()? {
            return Ok(status);
        }
        let pid = Pid::from_child(&self.0);
        // Leaves the status to be read.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        // A thread, to know the end at once.
        let ends = move || retry_on_intr(|| waitid(WaitId::Pid(pid), options));
        let ended = timeout(limit, spawn_blocking(ends)).await;
        self.exit_status()?.ok_or_else(|| match ended {
            Err(_) => failed(format!("the process still runs after {} s", limit.as_secs())),
            Ok(_) => failed("the process has ended without a status"),
        })
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Sends a signal.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses.
    pub fn signal(&self, signal: Signal) -> Outcome {
        Ok(kill_process(Pid::from_child(&self.0), signal)?)
    }

    /// Stops the process as one that hangs: [`hang`].
    ///
    /// # Errors
    ///
    /// As [`hang`].
    pub async fn hang(&self) -> Outcome {
        hang(Pid::from_child(&self.0)).await
    }

    /// Sends a signal and waits for the end of the process.
    ///
    /// # Errors
    ///
    /// Fails if the process does not end in time.
    pub async fn stop(&mut self, signal: Signal) -> Outcome<ExitStatus> {
        self.signal(signal)?;
        self.wait().await
    }
}

fn cannot_start(command: &Command, error: &io::Error) -> NotPassed {
    failed(format!("cannot start {}: {error}", command.get_program().display()))
}

/// Stops a process as one that hangs, until it gets SIGCONT. On a busy machine its threads still work for a
/// while after the signal. When this returns, all of them have stopped.
///
/// # Errors
///
/// Fails if there is no such process, or a thread does not stop in time.
pub async fn hang(pid: Pid) -> Outcome {
    kill_process(pid, Signal::STOP)?;
    soon("all threads are stopped", async || {
        for thread in fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()))? {
            let fields = stat(&thread?.path())?;
            expect("the state of a thread", Some("T"), fields.first().map(String::as_str))?;
        }
        Ok(())
    })
    .await
}

/// The fields of `stat` of a process or thread that follow the program's name, which may have spaces: its
/// state first.
fn stat(folder: &Path) -> Outcome<Vec<String>> {
    let text = fs::read_to_string(folder.join("stat"))?;
    // The name of a program stands in parentheses and may have blanks and parentheses in it: the
    // last one ends it.
    let fields = text.rsplit(')').next().unwrap_or_default();
    Ok(fields.split_whitespace().map(str::to_owned).collect())
}

/// The memory that a process has in use, in KiB.
///
/// # Errors
///
/// Fails if there is no such process.
pub fn resident_kib(pid: u32) -> Outcome<u64> {
    memory_kib(pid, "VmRSS")
}

/// A size in the status of a process, in KiB: `VmRSS`, or its peak `VmHWM`.
///
/// # Errors
///
/// As [`status_of`].
pub fn memory_kib(pid: u32, field: &str) -> Outcome<u64> {
    Ok(status_of(pid, field)?.trim_end_matches(" kB").parse()?)
}

/// The CPU time that a process has used, threads that have ended included, in seconds.
///
/// # Errors
///
/// Fails if there is no such process.
pub fn cpu_seconds(pid: u32) -> Outcome<f64> {
    let fields = stat(Path::new(&format!("/proc/{pid}")))?;
    let ticks = fields.iter().skip(11).take(2).map(|field| field.parse());
    let ticks: Vec<u32> = ticks.collect::<Result<_, _>>()?;
    Ok(f64::from(ticks.iter().sum::<u32>()) / TICKS_A_SECOND)
}

/// The CPU time that the threads of a process have used which run now, in seconds, to the nanosecond.
///
/// # Errors
///
/// Fails if there is no such process.
pub fn cpu_seconds_of_threads(pid: u32) -> Outcome<f64> {
    let mut time = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end meanwhile.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        time += Duration::from_nanos(text.split(' ').next().unwrap_or_default().parse()?);
    }
    Ok(time.as_secs_f64())
}

/// `USER_HZ`, the same on all machines that Rust's standard library supports well.
const TICKS_A_SECOND: f64 = 100.0;

/// A field of `/proc/PID/status`.
///
/// # Errors
///
/// Fails if there is no such process or field.
pub fn status_of(pid: u32, field: &str) -> Outcome<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mut values = text.lines().filter_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let value = values.next().ok_or_else(|| failed(format!("process {pid} has no {field}")))?;
    Ok(value.trim().to_owned())
}

impl Drop for Program {
    fn drop(&mut self) {
        // It fails for a process that has ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
