//! The binary as a process, by `injectd-harness`: failures of the start, of metrics and of signals end
//! the test.

use std::{
    fs,
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::{Command, ExitStatus},
};

use injectd_harness::{
    expect::{self, failed},
    process::{self, limited},
    program,
};
use rustix::process::Signal;

use super::client;

pub(super) use injectd_harness::{expect::DEADLINE as PATIENCE, process::Ended};

pub(super) const BINARY: &str = env!("CARGO_BIN_EXE_injectd");
const ADDRESSES: [&str; 6] =
    ["--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0"];

/// A running injectd, killed on drop.
pub(super) struct Process {
    inner: process::Process,
    pub(super) webhook: SocketAddr,
    pub(super) admin: SocketAddr,
}

/// Waits for a future, with a timeout.
pub(super) fn soon<T>(what: &str, future: impl Future<Output = T>) -> impl Future<Output = T> {
    let future = Box::pin(future);
    async move {
        let result = tokio::time::timeout(PATIENCE, future).await;
        result.unwrap_or_else(|_| panic!("{what}: must not hang"))
    }
}

/// Polls until there is an answer, with a timeout.
pub(super) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let answer = expect::soon(what, async || ask().await.ok_or_else(|| failed("not yet")));
    // What a test waits for may be large.
    Box::pin(answer).await.unwrap_or_else(|why| panic!("{why}"))
}

/// A command for the binary, without this process's environment.
pub(super) fn injectd(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.env_clear().args(args);
    command
}

/// Runs a command that ends by itself.
pub(super) async fn run(command: Command) -> Ended {
    process::run(command).await.unwrap_or_else(|why| panic!("{why}"))
}

impl Process {
    /// `serve --standalone` on free ports.
    pub(super) async fn serve(args: &[&str]) -> Self {
        Self::announced(injectd(&Self::standalone(args))).await
    }

    /// The same with a limit of file descriptors.
    pub(super) async fn serve_with_descriptors(descriptors: u32, args: &[&str]) -> Self {
        let mut command = limited(BINARY, &format!("-n {descriptors}"));
        command.env_clear().args(Self::standalone(args));
        Self::announced(command).await
    }

    fn standalone<'a>(args: &[&'a str]) -> Vec<&'a str> {
        [&["serve", "--standalone"], &ADDRESSES[..], args].concat()
    }

    /// Starts a `serve` command, which prints the addresses of its servers.
    pub(super) async fn announced(command: Command) -> Self {
        Self::started(process::Process::serve(command).await)
    }

    /// Starts `proxy-injector`, which does not print addresses. Its servers have different loopback
    /// addresses, so that they can be found in the list of listeners.
    pub(super) async fn proxy_injector(flags: &[&str], env: &[(&str, &str)]) -> Self {
        let ips @ [webhook, admin] = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)];
        let addresses = [format!("-addr={webhook}:0"), format!("--metrics-addr={admin}:0")];
        let mut command = injectd(&["proxy-injector"]);
        command.args(addresses).args(flags).envs(env.iter().copied());
        Self::started(process::Process::listen(command, ips).await)
    }

    fn started(started: expect::Outcome<(process::Process, process::Addresses)>) -> Self {
        let (inner, addresses) = started.unwrap_or_else(|why| panic!("{why}"));
        Self { inner, webhook: addresses.webhook, admin: addresses.admin }
    }

    pub(super) fn log(&self) -> String {
        self.inner.stderr.text()
    }

    /// Waits for a text in the log.
    pub(super) async fn logs(&self, text: &str) {
        until(&format!("log of {text:?}"), async || self.log().contains(text).then_some(())).await;
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.inner.program.signal(signal).expect("the signal must be sent");
    }

    pub(super) async fn ends(&mut self) -> ExitStatus {
        let program = &mut self.inner.program;
        until("end", async || program.exit_status().expect("the child must exist")).await
    }

    /// Kills the process, as the kernel does when memory runs out.
    pub(super) async fn kill(mut self) {
        self.signal(Signal::KILL);
        self.ends().await;
    }

    /// Memory in use, in KiB.
    pub(super) fn resident_kib(&self) -> u64 {
        program::resident_kib(self.inner.program.pid()).expect("the child must exist")
    }

    /// Names of its threads.
    pub(super) fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.inner.program.pid()));
        let tasks = tasks.expect("the child must exist").filter_map(Result::ok);
        let name = |path: PathBuf| fs::read_to_string(path.join("comm")).ok();
        tasks.filter_map(|task| Some(name(task.path())?.trim().to_owned())).collect()
    }

    /// Status and body of a page of the admin server.
    pub(super) async fn page(&self, path: &str) -> (u16, String) {
        let answer = client::get(self.admin, path).await;
        (answer.status, answer.body)
    }

    /// The value of a series, named as in `/metrics`.
    pub(super) async fn metric(&self, series: &str) -> Option<f64> {
        let (status, text) = self.page("/metrics").await;
        assert_eq!(status, 200);
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// Waits for a metric to have at least this value.
    pub(super) async fn counts(&self, series: &str, least: f64) {
        until(series, async || self.metric(series).await.filter(|value| *value >= least)).await;
    }

    /// Waits for a metric to have this value.
    pub(super) async fn has(&self, series: &str, number: f64) {
        let equal = async || self.metric(series).await.filter(|value| (value - number).abs() < 0.5);
        until(&format!("{series} to be {number}"), equal).await;
    }

    /// Waits for the number of open connections.
    pub(super) async fn has_connections(&self, number: u32) {
        self.has(r#"injectd_connections{server="webhook"}"#, f64::from(number)).await;
    }

    /// Checks that a review on a new connection is answered with a sidecar.
    pub(super) async fn must_still_serve(&self) {
        let mut connection = client::Connection::open(self.webhook).await;
        connection.must_inject().await;
    }
}
