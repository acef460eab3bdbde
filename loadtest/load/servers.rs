//! Servers under load: started on free ports, measured through `/proc`, killed when dropped.

use std::{
    env,
    ffi::OsStr,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use injectd_harness::{
    client::probe,
    expect::{Outcome, expect, failed},
    istio_files::{self, Files},
    lab::{root, variable},
    metrics::metric,
    process::{Printed, Process},
    program::{cpu_seconds_of_threads, memory_kib},
};
use rustix::process::Signal;

use crate::report::float;

/// Binaries, by the variable that names one to use instead of that of this build.
pub(crate) const INJECTD: Binary = Binary { variable: "INJECTD", built: "injectd" };
const ECHO: Binary = Binary { variable: "ECHO", built: "examples/echo" };
pub(crate) const OVERLOAD: Binary = Binary { variable: "OVERLOAD", built: "examples/overload" };
pub(crate) const PACED: Binary = Binary { variable: "PACED", built: "examples/paced" };
/// The default timeout of a webhook, which the API server names in each request.
pub(crate) const TIMEOUT_SECONDS: u64 = 10;
/// For servers without flags of their own.
pub(crate) const NO_FLAGS: [&str; 0] = [];

/// A program of this project.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binary {
    variable: &'static str,
    /// Below the folder that cargo builds this program in.
    built: &'static str,
}

impl Binary {
    pub(crate) fn path(self) -> Outcome<PathBuf> {
        if let Some(path) = variable(self.variable) {
            return Ok(path.into());
        }
        let own = env::current_exe()?;
        let folder = own.ancestors().nth(2).ok_or_else(|| failed("this program has no folder"))?;
        Ok(folder.join(self.built))
    }

    pub(crate) fn command(self) -> Outcome<Command> {
        let mut command = Command::new(self.path()?);
        // deploy/pgo.sh keeps the counts of this program, and not its own, from the profile.
        command.stdin(Stdio::null()).env_remove("LLVM_PROFILE_FILE");
        Ok(command)
    }
}

/// A server, measured from the outside.
#[derive(Debug)]
pub(crate) struct Server {
    /// Of the webhook.
    pub(crate) address: SocketAddr,
    pub(crate) grpc: Option<SocketAddr>,
    /// Of the webhook.
    pub(crate) path: &'static str,
    /// When it was started.
    pub(crate) begin: Instant,
    /// None of the echo.
    admin: Option<SocketAddr>,
    process: Process,
}

impl Server {
    /// User and system time of its threads so far.
    pub(crate) fn cpu_seconds(&self) -> Outcome<f64> {
        cpu_seconds_of_threads(self.pid())
    }

    pub(crate) fn rss_mib(&self) -> Outcome<f64> {
        self.memory_mib("VmRSS")
    }

    pub(crate) fn peak_rss_mib(&self) -> Outcome<f64> {
        self.memory_mib("VmHWM")
    }

    fn memory_mib(&self, field: &str) -> Outcome<f64> {
        Ok(float(memory_kib(self.pid(), field)?) / 1024.0)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.program.pid()
    }

    /// The sum of the samples with these labels.
    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Outcome<u64> {
        let admin = self.admin.ok_or_else(|| failed("the echo has no metrics"))?;
        let (status, text) = probe(admin, "/metrics").await?;
        expect("the status of /metrics", 200, status)?;
        Ok(metric(&text, name, labels))
    }

    /// Waits for its end, so that it does all that it does at the end.
    pub(crate) async fn stop(mut self) -> Outcome {
        let status = self.process.program.stop(Signal::INT).await?;
        expect("the exit code of a server", Some(0), status.code())
    }

    /// The URL that an API server calls.
    pub(crate) fn review_url(&self) -> String {
        format!("https://{}{}?timeout={TIMEOUT_SECONDS}s", self.address, self.path)
    }
}

/// Starts `injectd serve --standalone`; without a gRPC server, unless the flags have an address for it.
pub(crate) async fn injectd<S: AsRef<OsStr>>(flags: &[S]) -> Outcome<Server> {
    let any = "127.0.0.1:0";
    let mut command = INJECTD.command()?;
    command.args(["serve", "--standalone", "--addr", any, "--metrics-addr", any]).args(flags);
    if !flags.iter().any(|flag| flag.as_ref() == "--grpc-addr") {
        command.args(["--grpc-addr", ""]);
    }
    let (begin, mut process) = (Instant::now(), start(&mut command)?);
    let addresses = process.addresses().await?;
    let (address, grpc) = (addresses.webhook, addresses.grpc);
    Ok(Server { address, grpc, path: "/", begin, admin: Some(addresses.admin), process })
}

/// The same for Istio, with the recorded configuration, or the small one of the tests.
pub(crate) async fn injectd_for_istio<S: AsRef<OsStr>>(flags: &[S]) -> Outcome<Server> {
    injectd_with(&istio_files::recorded_or_small(), flags).await
}

/// The same with these files: the configuration, the values, the configuration of the mesh.
pub(crate) async fn injectd_with<S: AsRef<OsStr>>(files: &Files, flags: &[S]) -> Outcome<Server> {
    let files = istio_files::flags(files);
    let all: Vec<_> = files.iter().map(OsStr::new).chain(flags.iter().map(AsRef::as_ref)).collect();
    Ok(Server { path: "/inject", ..injectd(&all).await? })
}

/// The same for a sidecar template with ten expressions.
pub(crate) async fn injectd_for_templates() -> Outcome<Server> {
    Ok(Server { path: "/templates", ..injectd(&template_flags("templates")).await? })
}

/// The same for Linkerd, Istio and this template in one process.
pub(crate) async fn injectd_for_all_meshes() -> Outcome<Server> {
    let files = istio_files::flags(&istio_files::recorded_or_small());
    injectd(&[files, template_flags("linkerd,templates")].concat()).await
}

fn template_flags(meshes: &str) -> Vec<String> {
    let template = root().join("crates/templates-mesh/benches/ten.yaml");
    let template = template.display().to_string();
    ["--mesh", meshes, "--templates", &template].map(str::to_owned).to_vec()
}

/// Starts an echo with answers of this length, or of the length of injectd's for Linkerd.
pub(crate) async fn echo(review: &Path, answer_bytes: Option<usize>) -> Outcome<Server> {
    let mut command = ECHO.command()?;
    command.arg(review).args(["--addr", "127.0.0.1:0"]);
    if let Some(bytes) = answer_bytes {
        command.args(["--answer-bytes", &bytes.to_string()]);
    }
    let (begin, mut process) = (Instant::now(), start(&mut command)?);
    let printed = process.stdout.handle()?;
    let address = process.open(async || {
        let text = printed.text();
        let address = text.strip_prefix("echo server: ").and_then(|rest| rest.split_once(' '));
        Ok(address.ok_or_else(|| failed("it has printed no address"))?.0.parse()?)
    });
    let address = address.await?;
    Ok(Server { address, grpc: None, path: "/", begin, admin: None, process })
}

/// Without its log, which takes CPU to keep.
fn start(command: &mut Command) -> Outcome<Process> {
    Process::spawn(command, Printed::new()?, Printed::discarded()?)
}

/// The review of 12 KB.
pub(crate) fn typical() -> PathBuf {
    root().join("loadtest/review-12k.json")
}
