//! The binary as a process: starts it, reads its metrics, and stops it at the end of a test.

use std::{
    fs,
    future::Future,
    io::Read,
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use injectd_harness::program;
use rustix::process::{Pid, Signal, kill_process};

use super::client;

/// Longer than any step takes on a slow machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between two checks of a condition.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

const ADDRESSES: [&str; 6] =
    ["--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0"];

/// A running injectd, killed on drop.
pub(super) struct Process {
    child: Child,
    pub(super) webhook: SocketAddr,
    pub(super) admin: SocketAddr,
    stdout: Output,
    stderr: Output,
}

/// Exit code and output of a process that ended by itself.
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// The text written to a pipe so far.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<String>>);

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
    let begin = Instant::now();
    loop {
        if let Some(answer) = soon(what, ask()).await {
            return answer;
        }
        assert!(begin.elapsed() < PATIENCE, "{what}: must not take that long");
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// A command for the binary, without this process's environment.
pub(super) fn injectd(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_injectd"));
    command.env_clear().args(args);
    command
}

/// Runs a command that ends by itself.
pub(super) async fn run(command: Command) -> Ended {
    let mut process = Process::spawn(command);
    let status = process.ends().await;
    let [stdout, stderr] = [&process.stdout, &process.stderr].map(Output::whole);
    Ended { code: status.code(), stdout: stdout.await, stderr: stderr.await }
}

impl Process {
    /// `serve --standalone` on free ports.
    pub(super) async fn serve(args: &[&str]) -> Self {
        let all = ["serve", "--standalone"].iter().chain(&ADDRESSES).chain(args);
        Self::announced(injectd(&all.copied().collect::<Vec<_>>())).await
    }

    /// The same with a limit of file descriptors.
    pub(super) async fn serve_with_descriptors(descriptors: u32, args: &[&str]) -> Self {
        let mut command = Command::new("/bin/sh");
        let script = format!(r#"ulimit -n {descriptors} && exec "$0" "$@""#);
        command.env_clear().args(["-c", &script, env!("CARGO_BIN_EXE_injectd")]);
        command.args(["serve", "--standalone"]).args(ADDRESSES).args(args);
        Self::announced(command).await
    }

    /// Starts a `serve` command and reads the addresses of its servers from stdout.
    pub(super) async fn announced(command: Command) -> Self {
        let mut process = Self::spawn(command);
        let [webhook, admin] = until("servers", async || {
            process.must_live();
            let stdout = process.stdout.text();
            let server = |name: &str| {
                let address = stdout.lines().find_map(|line| line.strip_prefix(name))?;
                address.split_once(' ')?.0.parse().ok()
            };
            Some([server("webhook server: ")?, server("admin server: ")?])
        })
        .await;
        (process.webhook, process.admin) = (webhook, admin);
        process
    }

    /// Starts `proxy-injector`, which does not print addresses. Its servers have different loopback
    /// addresses, so that they can be found in the list of listeners.
    pub(super) async fn proxy_injector(flags: &[&str], env: &[(&str, &str)]) -> Self {
        let (webhook, admin) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
        let addresses = [format!("-addr={webhook}:0"), format!("--metrics-addr={admin}:0")];
        let mut command = injectd(&["proxy-injector"]);
        command.args(addresses).args(flags).envs(env.iter().copied());
        let mut process = Self::spawn(command);
        [process.webhook, process.admin] = until("servers", async || {
            process.must_live();
            let open = listeners(process.child.id());
            let server = |ip: Ipv4Addr| open.iter().copied().find(|addr| addr.ip() == ip);
            Some([server(webhook)?, server(admin)?])
        })
        .await;
        process
    }

    fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary must start");
        let stdout = Output::of(child.stdout.take().expect("stdout must be piped"));
        let stderr = Output::of(child.stderr.take().expect("stderr must be piped"));
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Self { child, webhook: nowhere, admin: nowhere, stdout, stderr }
    }

    fn must_live(&mut self) {
        let status = self.child.try_wait().expect("the child must exist");
        assert!(status.is_none(), "ended with {status:?}: {}", self.log());
    }

    pub(super) fn log(&self) -> String {
        self.stderr.text()
    }

    /// Waits for a text in the log.
    pub(super) async fn logs(&self, text: &str) {
        until(&format!("log of {text:?}"), async || self.log().contains(text).then_some(())).await;
    }

    pub(super) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("an id must be a pid");
        let pid = Pid::from_raw(id).expect("a pid must not be 0");
        kill_process(pid, signal).expect("the signal must be sent");
    }

    pub(super) async fn ends(&mut self) -> ExitStatus {
        until("end", async || self.child.try_wait().expect("the child must exist")).await
    }

    /// Kills the process, as the kernel does when memory runs out.
    pub(super) async fn kill(mut self) {
        self.child.kill().expect("the child must exist");
        self.ends().await;
    }

    /// Memory in use, in KiB.
    pub(super) fn resident_kib(&self) -> u64 {
        program::resident_kib(self.child.id()).expect("the child must exist")
    }

    /// Names of its threads.
    pub(super) fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let tasks = tasks.expect("the child must exist").filter_map(Result::ok);
        let name = |path: std::path::PathBuf| fs::read_to_string(path.join("comm")).ok();
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

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let output = Self::default();
        let written = output.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..length]);
                written.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        output
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The whole text, once the other end is closed and the reading thread has ended.
    async fn whole(&self) -> String {
        until("end of output", async || (Arc::strong_count(&self.0) == 1).then(|| self.text()))
            .await
    }
}

/// The IPv4 addresses on which a process listens.
fn listeners(id: u32) -> Vec<SocketAddr> {
    let descriptors = fs::read_dir(format!("/proc/{id}/fd")).expect("the child must exist");
    let sockets: Vec<String> = descriptors
        .filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok())
        .filter_map(|target| {
            Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let table = fs::read_to_string("/proc/net/tcp").expect("the kernel must list its sockets");
    let listening = table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_ours = *fields.get(3)? == "0A" && sockets.iter().any(|inode| inode == fields[9]);
        let (ip, port) = fields[1].split_once(':').filter(|_| is_ours)?;
        let ip = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
        Some(SocketAddr::from((ip, u16::from_str_radix(port, 16).ok()?)))
    });
    listening.collect()
}
