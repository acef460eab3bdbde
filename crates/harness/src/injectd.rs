//! `injectd serve` and `injectd proxy-injector`, and the certificate that clients verify.

use std::{
    ffi::{OsStr, OsString},
    fs,
    hash::{BuildHasher as _, RandomState},
    net::{IpAddr, SocketAddr},
    ops::Range,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::process::Signal;
use tokio::net::{TcpSocket, TcpStream};

use crate::{
    certificates::Certificate,
    client::{Webhook, probe},
    expect::{Outcome, eventually, expect, expect_contains, failed},
    metrics::metric,
    process::{Printed, Process, limited},
    program::Program,
};

mod lifetime;

/// The name of Linkerd's webhook: `injectd compare` looks for its patches in audit logs.
pub const WEBHOOK_NAME: &str = "linkerd-proxy-injector.linkerd.io";

/// The values, certificates and schemas of Linkerd in this tree.
#[must_use]
pub fn linkerd_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/linkerd")
}

/// A server: how it is started, its addresses and its log. It is killed when this is dropped.
#[derive(Debug)]
pub struct Injectd {
    binary: PathBuf,
    limits: Option<String>,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    log: Printed,
    certificate: Certificate,
    process: Option<Process>,
    /// The address of the webhook server.
    pub webhook: SocketAddr,
    /// The address of the admin server.
    pub admin: SocketAddr,
}

impl Injectd {
    /// `injectd serve --standalone`, its files in this folder.
    ///
    /// # Errors
    ///
    /// Fails if there is no certificate or port for it.
    pub fn standalone(binary: &Path, folder: &Path, host: &str, ip: IpAddr) -> Outcome<Self> {
        let mut injectd = Self::new(binary, folder, host, ip)?;
        let (webhook, admin) = (injectd.webhook.to_string(), injectd.admin.to_string());
        let arguments = [
            "serve",
            "--standalone",
            "--addr",
            &webhook,
            "--metrics-addr",
            &admin,
            "--grpc-addr",
            "",
        ];
        injectd.arguments = arguments.map(OsString::from).into();
        // h2 logs each frame: scenarios see which HTTP the API server speaks.
        injectd.environment.push(("INJECTD_LOG", "info,h2=debug".into()));
        Ok(injectd)
    }

    /// `injectd proxy-injector` on the values of the tree, for the cluster of a kubeconfig.
    ///
    /// # Errors
    ///
    /// Fails if there is no certificate or port for it.
    pub fn proxy_injector(
        binary: &Path,
        folder: &Path,
        host: &str,
        ip: IpAddr,
        kubeconfig: &Path,
    ) -> Outcome<Self> {
        let mut injectd = Self::new(binary, folder, host, ip)?;
        injectd.arguments = vec![
            "proxy-injector".into(),
            format!("-kubeconfig={}", kubeconfig.display()).into(),
            format!("-addr={}", injectd.webhook).into(),
            format!("-metrics-addr={}", injectd.admin).into(),
        ];
        let linkerd = linkerd_folder();
        injectd.environment.extend([
            ("INJECTD_VALUES", linkerd.join("values/default.yaml").into()),
            ("INJECTD_TRUST_ROOTS", linkerd.join("example-root.crt").into()),
        ]);
        Ok(injectd)
    }

    /// `injectd serve` with these arguments, the addresses of its servers and this certificate.
    ///
    /// # Errors
    ///
    /// Fails if there is no port for it.
    pub fn serve(
        binary: &Path,
        folder: &Path,
        ip: IpAddr,
        certificate: Certificate,
        arguments: &[String],
    ) -> Outcome<Self> {
        let mut injectd = Self::with_certificate(binary, folder, ip, certificate)?;
        let (webhook, admin) = (injectd.webhook.to_string(), injectd.admin.to_string());
        injectd.arguments = arguments.iter().map(OsString::from).collect();
        let addresses = ["--addr", &webhook, "--metrics-addr", &admin, "--grpc-addr", ""];
        injectd.arguments.extend(addresses.map(OsString::from));
        Ok(injectd)
    }

    /// As [`Injectd::serve`], with certificates that it makes itself.
    ///
    /// # Errors
    ///
    /// Fails if there is no port for it.
    pub fn serve_managed(
        binary: &Path,
        folder: &Path,
        ip: IpAddr,
        arguments: &[String],
    ) -> Outcome<Self> {
        let unused = Certificate::new("unused", ip)?;
        let mut injectd = Self::serve(binary, folder, ip, unused, arguments)?;
        injectd.environment.retain(|(name, _)| !name.starts_with("INJECTD_TLS_"));
        Ok(injectd)
    }

    fn new(binary: &Path, folder: &Path, host: &str, ip: IpAddr) -> Outcome<Self> {
        Self::with_certificate(binary, folder, ip, Certificate::new(host, ip)?)
    }

    fn with_certificate(
        binary: &Path,
        folder: &Path,
        ip: IpAddr,
        certificate: Certificate,
    ) -> Outcome<Self> {
        let [cert_file, key_file] = ["tls.crt", "tls.key"].map(|name| folder.join(name));
        fs::write(&cert_file, &certificate.certificate)?;
        fs::write(&key_file, &certificate.key)?;
        Ok(Self {
            binary: binary.to_owned(),
            limits: None,
            arguments: Vec::new(),
            environment: vec![
                ("NO_COLOR", "1".into()),
                ("INJECTD_TLS_CERT", cert_file.into()),
                ("INJECTD_TLS_KEY", key_file.into()),
            ],
            log: Printed::new()?,
            certificate,
            process: None,
            webhook: free_port(ip)?,
            admin: free_port(ip)?,
        })
    }

    /// Limits its next starts, as [`limited`] does.
    pub fn set_limits(&mut self, limits: String) {
        self.limits = Some(limits);
    }

    /// Adds an argument.
    pub fn add_argument(&mut self, argument: &str) {
        self.arguments.push(argument.into());
    }

    /// Sets the value of a flag that it has already.
    pub fn set_flag(&mut self, flag: &str, value: impl Into<OsString>) {
        let at = self.arguments.iter().position(|argument| argument == flag);
        if let Some(old) = at.and_then(|at| self.arguments.get_mut(at + 1)) {
            *old = value.into();
        }
    }

    /// Sets a variable of its environment.
    pub fn set_variable(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.environment.push((name, value.into()));
    }

    /// A variable that [`Injectd::set_variable`] has set.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let mut variables = self.environment.iter().rev();
        variables.find(|(key, _)| *key == name).map(|(_, value)| &**value)
    }

    /// Sets the clock of its next starts ahead by these seconds, or behind, with a library of
    /// [`faketime`]. Clocks that measure durations stay right, and so do times of files.
    pub fn set_clock(&mut self, seconds: i64, library: &Path) {
        self.set_variable("LD_PRELOAD", library);
        self.set_variable("FAKETIME", format!("{seconds:+}s"));
        self.set_variable("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        self.set_variable("NO_FAKE_STAT", "1");
    }

    /// Starts the server and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// Fails if the server ends or does not accept connections in time.
    pub async fn start(&mut self) -> Outcome {
        let mut process = self.spawn()?;
        let opens = process.open(async || Ok(TcpStream::connect(self.webhook).await?)).await;
        forget_clock(process.program.pid());
        self.process = Some(process);
        opens.map(drop)
    }

    fn spawn(&self) -> Outcome<Process> {
        let mut command = match &self.limits {
            Some(limits) => limited(&self.binary, limits),
            None => Command::new(&self.binary),
        };
        command.args(&self.arguments).envs(self.environment.iter().map(|(k, v)| (k, v)));
        command.stdin(Stdio::null());
        Process::spawn(&mut command, self.log.handle()?, self.log.handle()?)
    }

    /// The process id.
    ///
    /// # Errors
    ///
    /// Fails before the first start.
    pub fn pid(&mut self) -> Outcome<u32> {
        Ok(self.running()?.pid())
    }

    /// Stops the process as one that hangs, until [`Injectd::resume`].
    ///
    /// # Errors
    ///
    /// Fails if the process does not run.
    pub async fn hang(&mut self) -> Outcome {
        self.running()?.hang().await
    }

    /// Lets a process that hangs go on.
    ///
    /// # Errors
    ///
    /// Fails if the process does not run.
    pub fn resume(&mut self) -> Outcome {
        self.running()?.signal(Signal::CONT)
    }

    /// Fails unless the process runs.
    ///
    /// # Errors
    ///
    /// Names the exit status of a process that has ended.
    pub fn expect_running(&mut self) -> Outcome {
        expect("injectd's exit status", None, self.running()?.exit_status()?)
    }

    /// Sends a signal and waits for the end of the process.
    ///
    /// # Errors
    ///
    /// Fails if the process does not run, or does not end in time.
    pub async fn stop(&mut self, signal: Signal) -> Outcome<ExitStatus> {
        self.running()?.stop(signal).await
    }

    /// Ends the server with SIGTERM, on which it drains.
    ///
    /// # Errors
    ///
    /// Fails unless the exit code is 0.
    pub async fn terminate(&mut self) -> Outcome {
        let status = self.stop(Signal::TERM).await?;
        expect("the exit code", Some(0), status.code())
    }

    /// Ends the server at once.
    ///
    /// # Errors
    ///
    /// Fails if the process ends by anything else.
    pub async fn kill(&mut self) -> Outcome {
        let status = self.stop(Signal::KILL).await?;
        expect("the signal that ended it", Some(Signal::KILL.as_raw()), status.signal())
    }

    /// Ends the server without asking how.
    pub fn discard(&mut self) {
        self.process = None;
    }

    fn running(&mut self) -> Outcome<&mut Program> {
        let process = self.process.as_mut().ok_or_else(|| failed("injectd was not started"))?;
        Ok(&mut process.program)
    }

    /// A client of the webhook.
    #[must_use]
    pub fn client(&self) -> Webhook<'_> {
        let Certificate { host, ca, .. } = &self.certificate;
        Webhook { addr: self.webhook, server_name: host, ca }
    }

    /// What [`metric`] reads in the answer of `/metrics`.
    ///
    /// # Errors
    ///
    /// Fails if the admin server does not answer.
    pub async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Outcome<u64> {
        let (_, text) = probe(self.admin, "/metrics").await?;
        Ok(metric(&text, name, labels))
    }

    /// PEM of the CA that the API server verifies the webhook by.
    #[must_use]
    pub fn ca(&self) -> &str {
        &self.certificate.ca
    }

    /// The log of all starts; empty before the first.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits for a text in the log.
    ///
    /// # Errors
    ///
    /// Fails if the text is not there in time.
    pub async fn logs(&self, text: &str) -> Outcome {
        let what = format!("the log has {text:?}");
        let found =
            async || expect_contains("its end", text, &self.log()).map_err(|_| failed("no"));
        eventually(&what, found).await
    }
}

/// The library of the Debian package `faketime`, which gives a process another time of day; `None` if it
/// is not installed.
#[must_use]
pub fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut files = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    files.find(|file| file.exists())
}

/// Removes what the library leaves in memory. A process uses it by its mappings.
fn forget_clock(pid: u32) {
    for name in ["faketime_shm", "sem.faketime_sem"] {
        // Only processes with another clock have it.
        let _ = fs::remove_file(format!("/dev/shm/{name}_{pid}"));
    }
}

/// Ports that the kernel gives to no connection and Kubernetes to no Service, so that a port stays free
/// until the server, and the next one in its place, binds it.
// Below the ports that Linux gives to clients, of which one could be taken in between.
const PORTS: Range<u16> = 20_000..30_000;

/// A port of [`PORTS`] that no process has and that this function has not returned before.
fn free_port(ip: IpAddr) -> Outcome<SocketAddr> {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        // Runs beside this one begin elsewhere.
        AtomicU64::new(RandomState::new().hash_one(0) >> 1)
    });
    let count = u64::from(PORTS.end - PORTS.start);
    for _ in PORTS {
        let offset = u16::try_from(NEXT.fetch_add(1, Ordering::Relaxed) % count)?;
        let addr = SocketAddr::new(ip, PORTS.start + offset);
        if TcpSocket::new_v4()?.bind(addr).is_ok() {
            return Ok(addr);
        }
    }
    Err(failed(format!("{ip} has no free port in {PORTS:?}")))
}
