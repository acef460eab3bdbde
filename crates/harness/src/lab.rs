//! What a run is given: the binary under test, a cluster and, of a local one, its audit log.
//!
//! Without `$KUBECONFIG` the first scenario starts a cluster, `e2e/lab.sh`, which ends with the process.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{BufRead as _, BufReader},
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU8, Ordering},
    },
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{sync::OnceCell, task::spawn_blocking};

use crate::{
    api::Api,
    expect::{Outcome, failed, skipped},
    program,
};

/// Why scenarios are skipped without [`Local`].
const NOT_LOCAL: &str = "it needs an API server on this machine ($E2E_AUDIT_LOG)";

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

impl Lab {
    /// What only an API server on this machine has.
    ///
    /// # Errors
    ///
    /// Skips with another API server.
    pub fn local(&self) -> Outcome<&Local> {
        self.local.as_ref().ok_or_else(|| skipped(NOT_LOCAL))
    }
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
    /// As [`program::hang`].
    pub async fn hang(&self) -> Outcome<Hanging> {
        let hanging = Hanging(self.pid);
        program::hang(self.pid).await?;
        Ok(hanging)
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

/// What all scenarios of a process share; a client of the API server belongs to one test's runtime.
struct Shared {
    binary: PathBuf,
    kubeconfig: PathBuf,
    audit_log: Option<PathBuf>,
    /// The cluster that this process has started; it ends once its input is closed.
    started: Option<Child>,
}

impl Shared {
    async fn lab(&self) -> Outcome<Lab> {
        let log = self.audit_log.clone();
        Ok(Lab {
            binary: self.binary.clone(),
            api: Api::from_file(&self.kubeconfig).await?,
            kubeconfig: self.kubeconfig.clone(),
            corpus: variable("INJECTD_CORPUS").map(PathBuf::from),
            local: log.map(|log| Local::beside(&self.kubeconfig, log)).transpose()?,
            is_long: is_long(),
        })
    }
}

/// The lab of this process. The environment: `$KUBECONFIG` is a cluster that runs; `$INJECTD` the
/// binary \[built from this tree\]; `$E2E_AUDIT_LOG`, `$INJECTD_CORPUS` and `$E2E_LONG` are fields of
/// [`Lab`].
///
/// # Errors
///
/// Skips where no cluster can be built; fails if one does not start.
pub async fn get() -> Outcome<Lab> {
    static SHARED: OnceCell<Outcome<Shared>> = OnceCell::const_new();
    let start = async || spawn_blocking(start).await.unwrap_or_else(|error| Err(error.into()));
    let shared = SHARED.get_or_init(start).await.as_ref().map_err(Clone::clone)?;
    shared.lab().await
}

/// A cluster of one scenario, which ends when this is dropped.
pub struct OwnLab {
    /// The cluster.
    pub lab: Lab,
    child: Child,
}

impl OwnLab {
    /// Starts a cluster with these flags of kube-lab.
    ///
    /// # Errors
    ///
    /// As [`get`].
    pub async fn start(flags: &str) -> Outcome<Self> {
        let flags = flags.to_owned();
        Self::of(spawn_blocking(move || start_cluster(binary()?, &flags, AUDITED)).await??).await
    }

    /// As [`OwnLab::start`], for this binary, and without an audit log, which takes the API server CPU
    /// time.
    ///
    /// # Errors
    ///
    /// As [`get`].
    pub async fn unaudited(binary: PathBuf, flags: &str) -> Outcome<Self> {
        let flags = flags.to_owned();
        Self::of(spawn_blocking(move || start_cluster(binary, &flags, "")).await??).await
    }

    async fn of(mut shared: Shared) -> Outcome<Self> {
        let child = shared.started.take().ok_or_else(|| failed("the cluster must be started"))?;
        Ok(Self { lab: shared.lab().await?, child })
    }
}

impl Drop for OwnLab {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It fails for a process that has ended already.
        drop(self.child.wait());
    }
}

/// What a scenario without a cluster is given.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The binary `injectd`.
    pub binary: PathBuf,
    /// Whether scenarios run at full length.
    pub is_long: bool,
}

/// As [`get`], without a cluster.
///
/// # Errors
///
/// Fails if there is no binary.
pub async fn bench() -> Outcome<Bench> {
    let binary = spawn_blocking(binary).await.unwrap_or_else(|error| Err(error.into()))?;
    Ok(Bench { binary, is_long: is_long() })
}

/// The value of a variable that is set and not empty.
#[must_use]
pub fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether scenarios run at full length.
#[must_use]
pub fn is_long() -> bool {
    variable("E2E_LONG").is_some()
}

/// The folder of recordings of real injectors.
///
/// # Errors
///
/// Skips without it.
pub fn corpus() -> Outcome<PathBuf> {
    let folder = variable("INJECTD_CORPUS").map(PathBuf::from);
    folder.ok_or_else(|| skipped("it needs $INJECTD_CORPUS"))
}

fn start() -> Outcome<Shared> {
    if let Some(kubeconfig) = variable("KUBECONFIG") {
        let audit_log = variable("E2E_AUDIT_LOG").map(PathBuf::from);
        let kubeconfig = kubeconfig.into();
        return Ok(Shared { binary: binary()?, kubeconfig, audit_log, started: None });
    }
    start_cluster(binary()?, "", AUDITED)
}

/// Builds the programs of a cluster, unless they are there: it needs the network.
///
/// # Errors
///
/// Skips where they cannot be built.
pub fn build_cluster() -> Outcome {
    let mut build = Command::new(root().join("e2e/lab/build.sh"));
    let has_lab = variable("KUBE_LAB").is_some() || build.stdout(Stdio::null()).status()?.success();
    let why = "e2e/lab/build.sh builds no cluster";
    if has_lab { Ok(()) } else { Err(skipped(why)) }
}

fn start_cluster(binary: PathBuf, flags: &str, audit: &str) -> Outcome<Shared> {
    build_cluster()?;
    let mut command = Command::new(root().join("e2e/lab.sh"));
    command.args(["sh", "-c", SAY_AND_WAIT]).env("INJECTD", &binary).env("E2E_AUDIT", audit);
    let of_user = variable("LAB_FLAGS").unwrap_or_default();
    command.env("LAB_FLAGS", [&*of_user, flags.as_ref()].join(OsStr::new(" ")));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().ok_or_else(|| failed("the output of lab.sh must be piped"))?;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        let Some(files) = line.strip_prefix(FILES) else { continue };
        let (kubeconfig, audit_log) = files.split_once(' ').unwrap_or((files, ""));
        let audit_log = Some(PathBuf::from(audit_log)).filter(|path| !path.as_os_str().is_empty());
        let kubeconfig = kubeconfig.into();
        return Ok(Shared { binary, kubeconfig, audit_log, started: Some(child) });
    }
    Err(failed(format!("e2e/lab.sh ended with {}", child.wait()?)))
}

/// The value of `$E2E_AUDIT` for an API server with an audit log.
const AUDITED: &str = "1";
/// What begins the line of [`SAY_AND_WAIT`].
const FILES: &str = "files: ";
/// Says where the kubeconfig and the audit log are, and ends with its input.
const SAY_AND_WAIT: &str = r#"echo "files: $KUBECONFIG $E2E_AUDIT_LOG"; exec cat"#;

/// The root of the repository.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The binary under test: `$INJECTD`, else built from this tree, once.
///
/// # Errors
///
/// Fails if it does not build.
pub fn binary() -> Outcome<PathBuf> {
    static BINARY: OnceLock<Outcome<PathBuf>> = OnceLock::new();
    BINARY.get_or_init(build).clone()
}

fn build() -> Outcome<PathBuf> {
    if let Some(binary) = variable("INJECTD") {
        return Ok(binary.into());
    }
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root()).args(["build", "--locked", "--bin", "injectd"]);
    let status = command.stdin(Stdio::null()).status()?;
    if !status.success() {
        return Err(failed(format!("cargo build ended with {status}")));
    }
    let target = variable("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("debug/injectd"))
}

/// The range of cluster IPs of kube-lab: addresses of this machine, so that a Service leads to a
/// server here without a proxy. The first belongs to the API server.
// All of 127.0.0.0/8 is the machine itself: each server has the port 443 on an address of its own.
const SERVICE_IPS: [u8; 3] = [127, 100, 0];

/// An address for a server and its Service, which no other scenario of this process has.
///
/// # Errors
///
/// Fails if all are given away.
pub fn service_ip() -> Outcome<IpAddr> {
    static NEXT: AtomicU8 = AtomicU8::new(2);
    let last = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        last.checked_add(1).filter(|&next| next < u8::MAX)
    });
    let last = last.map_err(|_| failed("all cluster IPs are given away"))?;
    let [a, b, c] = SERVICE_IPS;
    Ok(IpAddr::V4(Ipv4Addr::new(a, b, c, last)))
}
