//! A command of injectd and what it prints: servers, which print their addresses, and commands that end.
//!
//! Not for a server that starts again on its addresses: [`crate::injectd`] configures it.

use std::{
    fs::{self, File},
    io::{Seek as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::FileExt as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{
    expect::{DEADLINE, Outcome, expect, failed, skipped, soon},
    program::Program,
};

/// What processes have printed. Copies are the same output.
#[derive(Debug)]
pub struct Printed(File);

impl Printed {
    /// An empty output.
    ///
    /// # Errors
    ///
    /// Fails if the temporary folder is not writable.
    pub fn new() -> Outcome<Self> {
        Ok(Self(tempfile::tempfile()?))
    }

    /// An output that nothing keeps.
    ///
    /// # Errors
    ///
    /// Fails without a free descriptor.
    pub fn discarded() -> Outcome<Self> {
        Ok(Self(File::options().write(true).open("/dev/null")?))
    }

    /// Another handle of this output.
    ///
    /// # Errors
    ///
    /// Fails without a free descriptor.
    pub fn handle(&self) -> Outcome<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// The text so far.
    #[must_use]
    pub fn text(&self) -> String {
        // Reads at an offset do not move that of the writer.
        let length =
            self.0.metadata().ok().and_then(|metadata| usize::try_from(metadata.len()).ok());
        let mut bytes = vec![0; length.unwrap_or(0)];
        match self.0.read_exact_at(&mut bytes, 0) {
            Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => String::new(),
        }
    }
}

/// A process and its output; it is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    /// The process.
    pub program: Program,
    /// Its standard output.
    pub stdout: Printed,
    /// Its standard error: the log of a server.
    pub stderr: Printed,
}

/// The addresses of a server's listeners.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Of the webhook server.
    pub webhook: SocketAddr,
    /// Of the admin server.
    pub admin: SocketAddr,
    /// Of the gRPC server; `None` without one, or with a Unix socket.
    pub grpc: Option<SocketAddr>,
}

/// What a command that has ended leaves.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// Its errors.
    pub stderr: String,
}

/// The command for a binary with a limit of `ulimit`, such as `-n 64` for its open files.
#[must_use]
pub fn limited(binary: impl AsRef<Path>, limit: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!(r#"ulimit {limit} && exec "$0" "$@""#)).arg(binary.as_ref());
    command
}

/// Runs a command until it ends. Its input is empty.
///
/// # Errors
///
/// Fails if the command does not start, or does not end in time.
pub async fn run(command: Command) -> Outcome<Ended> {
    run_within(DEADLINE, command).await
}

/// As [`run`], for a command that takes another time than [`DEADLINE`].
///
/// # Errors
///
/// As [`run`].
pub async fn run_within(limit: Duration, mut command: Command) -> Outcome<Ended> {
    command.stdin(Stdio::null());
    start(&mut command)?.end(limit).await
}

/// As [`run_within`], for a program that a machine may lack.
///
/// # Errors
///
/// Skips if the command does not start; fails if it does not end in time.
pub async fn run_installed(limit: Duration, mut command: Command) -> Outcome<Ended> {
    command.stdin(Stdio::null());
    start(&mut command).map_err(|why| skipped(why.to_string()))?.end(limit).await
}

fn start(command: &mut Command) -> Outcome<Process> {
    Process::spawn(command, Printed::new()?, Printed::new()?)
}

/// As [`run`], with this text as the input.
///
/// # Errors
///
/// As [`run`], and if the temporary folder is not writable.
pub async fn run_with_text(mut command: Command, text: &str) -> Outcome<Ended> {
    let mut input = tempfile::tempfile()?;
    input.write_all(text.as_bytes())?;
    input.rewind()?;
    command.stdin(input);
    run_with_input(command).await
}

/// As [`run`], for a command that has its input already.
///
/// # Errors
///
/// As [`run`].
pub async fn run_with_input(mut command: Command) -> Outcome<Ended> {
    start(&mut command)?.end(DEADLINE).await
}

impl Ended {
    /// What the command printed, if it ended with this code.
    ///
    /// # Errors
    ///
    /// Names another exit code, with the errors.
    pub fn with_code(self, code: i32) -> Outcome<String> {
        let Self { code: found, stdout, stderr } = self;
        expect(format!("the exit code ({stderr:?}, {stdout:?})"), Some(code), found)?;
        Ok(stdout)
    }
}

impl Process {
    /// Starts a command, whose output these are; they may be the same.
    ///
    /// # Errors
    ///
    /// Names the command that cannot be started.
    pub fn spawn(command: &mut Command, stdout: Printed, stderr: Printed) -> Outcome<Self> {
        let (out, err) = (stdout.handle()?.0, stderr.handle()?.0);
        Ok(Self { program: Program::start_with(command, out, err)?, stdout, stderr })
    }

    /// Waits until the process ends.
    async fn end(mut self, limit: Duration) -> Outcome<Ended> {
        let code = self.program.wait_within(limit).await?.code();
        Ok(Ended { code, stdout: self.stdout.text(), stderr: self.stderr.text() })
    }

    /// Starts `serve`, and waits for the addresses that it prints.
    ///
    /// # Errors
    ///
    /// Fails if the process ends, or does not print them in time.
    pub async fn serve(mut command: Command) -> Outcome<(Self, Addresses)> {
        command.stdin(Stdio::null());
        let mut process = start(&mut command)?;
        let addresses = process.addresses().await?;
        Ok((process, addresses))
    }

    /// The addresses that `serve` prints.
    ///
    /// # Errors
    ///
    /// As [`Process::serve`].
    pub async fn addresses(&mut self) -> Outcome<Addresses> {
        let printed = self.stdout.handle()?;
        self.open(async || Addresses::printed(&printed.text())).await
    }

    /// Starts a server that does not print its addresses, and waits until it listens on these two IPs, of
    /// the webhook and of the admin server.
    ///
    /// # Errors
    ///
    /// Fails if the process ends, or does not listen in time.
    pub async fn listen(mut command: Command, ips: [Ipv4Addr; 2]) -> Outcome<(Self, Addresses)> {
        command.stdin(Stdio::null());
        let mut process = start(&mut command)?;
        let pid = process.program.pid();
        let addresses = process.open(async || {
            let listeners = listeners(pid)?;
            let of = |ip: Ipv4Addr| listeners.iter().copied().find(|addr| addr.ip() == ip);
            let [Some(webhook), Some(admin)] = ips.map(of) else {
                return Err(failed(format!("it listens on {listeners:?}")));
            };
            Ok(Addresses { webhook, admin, grpc: None })
        });
        let addresses = addresses.await?;
        Ok((process, addresses))
    }

    /// Waits until an attempt to find the open servers does not fail.
    ///
    /// # Errors
    ///
    /// Fails at once if the process ends.
    pub async fn open<T>(&mut self, mut attempt: impl AsyncFnMut() -> Outcome<T>) -> Outcome<T> {
        let found = soon("the servers are open", async || match self.program.exit_status()? {
            Some(status) => Ok(Err(status)),
            None => attempt().await.map(Ok),
        });
        found.await?.map_err(|status| {
            let (log, printed) = (self.stderr.text(), self.stdout.text());
            let last = log.lines().chain(printed.lines()).last().unwrap_or("it printed nothing");
            failed(format!("injectd ended with {status}: {last}"))
        })
    }
}

impl Addresses {
    /// Those in the output of `serve`, once it is whole.
    fn printed(output: &str) -> Outcome<Self> {
        let of = |server: &str| {
            let line = output.lines().find_map(|line| line.strip_prefix(server))?;
            line.split(' ').next()?.parse().ok()
        };
        let is_whole = output.lines().any(|line| line.starts_with("try it: "));
        match (of("webhook server: "), of("admin server: ")) {
            (Some(webhook), Some(admin)) if is_whole => {
                Ok(Self { webhook, admin, grpc: of("gRPC server: ") })
            }
            _ => Err(failed(format!("it has printed {output:?}"))),
        }
    }
}

/// The IPv4 addresses on which a process listens.
fn listeners(pid: u32) -> Outcome<Vec<SocketAddr>> {
    let sockets: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))?
        .filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok())
        .filter_map(|target| {
            Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let table = fs::read_to_string("/proc/net/tcp")?;
    let listening = table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_ours = *fields.get(3)? == "0A" && sockets.iter().any(|inode| inode == fields[9]);
        let (ip, port) = fields[1].split_once(':').filter(|_| is_ours)?;
        let ip = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
        Some(SocketAddr::from((ip, u16::from_str_radix(port, 16).ok()?)))
    });
    Ok(listening.collect())
}
