//! A program of kube-lab that a scenario stops, and starts again with the same flags.
//!
//! Only of a cluster of its own ([`crate::scenario::with_own_lab`]): kube-lab does not know the new one.

use std::{
    ffi::OsString,
    fs::{self, File},
    os::unix::{ffi::OsStringExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::time::{Instant, sleep};

use crate::{
    expect::{DEADLINE, Outcome, failed},
    program::{self, Program},
};

/// For requests in progress; the API server itself waits longer for open watches.
const GRACE: Duration = Duration::from_secs(1);

/// A program of the control plane, such as `kube-apiserver`. Dropping it lets one that hangs go on.
#[derive(Debug)]
pub struct Component {
    /// The log of the program.
    pub log: PathBuf,
    pid: Pid,
    executable: PathBuf,
    command: Vec<OsString>,
    environment: Vec<OsString>,
    started: Option<Program>,
}

impl Component {
    /// The program of this name, of the cluster of a kubeconfig.
    ///
    /// # Errors
    ///
    /// Fails if there is no such process.
    pub fn beside(kubeconfig: &Path, name: &str) -> Outcome<Self> {
        let file = kubeconfig.with_file_name(format!("{name}.pid"));
        let pid = fs::read_to_string(&file)?.trim().parse().ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| failed(format!("no process id in {}", file.display())))?;
        let process = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
        let list = |name: &str| -> Outcome<Vec<OsString>> {
            let bytes = fs::read(process.join(name))?;
            let items = bytes.split(|byte| *byte == 0).filter(|item| !item.is_empty());
            Ok(items.map(|item| OsString::from_vec(item.to_vec())).collect())
        };
        Ok(Self {
            log: file.with_extension("log"),
            pid,
            executable: fs::read_link(process.join("exe"))?,
            command: list("cmdline")?,
            environment: list("environ")?,
            started: None,
        })
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Stops the process as one that hangs, until [`Component::resume`].
    ///
    /// # Errors
    ///
    /// As [`program::hang`].
    pub async fn hang(&self) -> Outcome {
        program::hang(self.pid).await
    }

    /// Lets a process that hangs go on.
    ///
    /// # Errors
    ///
    /// Fails if there is no such process.
    pub fn resume(&self) -> Outcome {
        Ok(kill_process(self.pid, Signal::CONT)?)
    }

    /// Ends the process with SIGTERM; a second one ends it at once.
    ///
    /// # Errors
    ///
    /// Fails if it does not end in time.
    pub async fn stop(&mut self) -> Outcome {
        for patience in [GRACE, DEADLINE] {
            kill_process(self.pid, Signal::TERM)?;
            let deadline = Instant::now() + patience;
            while Instant::now() < deadline {
                if !self.is_running()? {
                    return Ok(());
                }
                sleep(Duration::from_millis(10)).await;
            }
        }
        Err(failed(format!("{} still runs", self.executable.display())))
    }

    fn is_running(&mut self) -> Outcome<bool> {
        match &mut self.started {
            Some(program) => Ok(program.exit_status()?.is_none()),
            None => Ok(test_kill_process(self.pid).is_ok()),
        }
    }

    /// Starts it again.
    ///
    /// # Errors
    ///
    /// Fails if the program cannot be started.
    pub fn start(&mut self) -> Outcome {
        let log = File::options().append(true).open(&self.log)?;
        let mut command = Command::new(&self.executable);
        let [name, arguments @ ..] = &*self.command else { return Err(failed("no command")) };
        command.arg0(name).args(arguments).env_clear();
        command.envs(self.environment.iter().filter_map(|variable| {
            let text = variable.to_string_lossy().into_owned();
            text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
        }));
        let program = Program::start(&mut command, log.try_clone()?, log)?;
        let pid = i32::try_from(program.pid())?;
        self.pid = Pid::from_raw(pid).ok_or_else(|| failed("a process has an id"))?;
        self.started = Some(program);
        Ok(())
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        // It fails for a process that has ended.
        let _ = self.resume();
    }
}
