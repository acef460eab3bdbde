//! What a run is given: the binary under test, a cluster and, of a local one, its audit log.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    api::Api,
    expect::{Outcome, failed},
};

/// Why scenarios are skipped without [`Local`].
pub const NOT_LOCAL: &str = "it needs an API server on this machine (--audit-log)";

/// The binary under test and the cluster.
#[derive(Clone)]
pub struct Lab {
    /// The binary `injectd`.
    pub binary: PathBuf,
    /// The API server.
    pub api: Api,
    /// The kubeconfig of an administrator.
    pub kubeconfig: PathBuf,
    /// The folder with manifests of Linkerd's charts, to compare with.
    pub corpus: Option<PathBuf>,
    /// Only of an API server on this machine, which reaches loopback addresses.
    pub local: Option<Local>,
    /// Whether scenarios run at full length.
    pub is_long: bool,
}

/// What only an API server on this machine has.
#[derive(Clone, Debug)]
pub struct Local {
    /// The audit log, written by `audit-policy.yaml`.
    pub audit_log: PathBuf,
    pid: Pid,
}

impl Local {
    /// The API server of kube-lab, whose process id is in a file beside the kubeconfig.
    ///
    /// # Errors
    ///
    /// Names the file that has no process id.
    pub fn beside(kubeconfig: &Path, audit_log: PathBuf) -> Outcome<Self> {
        let file = kubeconfig.with_file_name("kube-apiserver.pid");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let pid = text.trim().parse().ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| failed(format!("no process id in {}", file.display())))?;
        Ok(Self { audit_log, pid })
    }

    /// Stops the API server, as one that hangs, until the guard is dropped.
    ///
    /// # Errors
    ///
    /// Fails if there is no such process.
    pub fn hang(&self) -> Outcome<Hanging> {
        kill_process(self.pid, Signal::STOP)?;
        Ok(Hanging(self.pid))
    }
}

/// An API server that hangs; it goes on when this is dropped.
#[derive(Debug)]
pub struct Hanging(Pid);

impl Drop for Hanging {
    fn drop(&mut self) {
        // It fails for a process that has ended.
        let _ = kill_process(self.0, Signal::CONT);
    }
}
