//! Files and pipes without end: each command stops reading them, with little memory.
//!
//! Each argument that names a file, by the help, gets `/dev/zero` and a pipe that does not end.

use std::{
    fs,
    io::Write as _,
    process::{Child, Output, Stdio},
    sync::mpsc,
    thread,
};

use injectd_harness::process::limited;
use injectd_testkit::istio::{CONFIG, MESH, VALUES};

use super::{
    BINARY, File, PATIENCE,
    commands::{commands, each, flags, help},
    example, file, of_no_cluster, text,
};

mod answers;

/// A sidecar template.
const TEMPLATE: &str = "tests/cli/template/agent/template.yaml";

/// Virtual memory of a command in KiB, for `ulimit -v`: 256 MiB as they are read into a buffer that
/// doubles, and what a process has at its start.
const MAX_MEMORY_KIB: u32 = 2 << 20;
/// What a pipe gives to commands that read streams: more than any of them keeps.
const MAX_STREAM_BYTES: usize = 300 << 20;
/// A line of a pipe that is neither JSON nor a mapping.
const LINE_BYTES: usize = 64 << 10;

/// A way to name a file on the command line.
#[derive(Debug, Clone)]
struct Reads {
    command: String,
    /// The flag; empty for an argument.
    flag: String,
}

/// Everything that names a file that is read.
fn all_reads() -> Vec<Reads> {
    let mut reads = Vec::new();
    for command in commands() {
        let mut add =
            |flag: &str| reads.push(Reads { command: command.clone(), flag: flag.into() });
        let is_written = |name: &str| name == "--report";
        let files = flags(&command).into_iter().filter(|flag| flag.value.contains("FILE"));
        files.filter(|flag| !is_written(&flag.name)).for_each(|flag| add(&flag.name));
        let help = help(&command);
        let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap_or_default();
        if usage.contains("FILE") {
            add("");
        }
    }
    assert!(reads.len() > 50, "{reads:?}");
    reads
}

/// Files that are as they should be.
struct Files {
    istio: [File; 3],
    pod: String,
    pods_of_linkerd: String,
    pods_of_istio: File,
}

/// A server on free ports.
const SERVE: [&str; 3] =
    ["--addr=127.0.0.1:0", "--metrics-addr=127.0.0.1:0", "--grpc-addr=127.0.0.1:0"];
/// The flags of Istio's configuration.
const OF_ISTIO: [&str; 3] = ["--injector-config", "--injector-values", "--mesh-config"];

impl Files {
    fn new() -> Self {
        let istio = [("config", CONFIG), ("values", VALUES), ("mesh", MESH)];
        let pods_of_linkerd = example("audit.yaml");
        let pods = fs::read_to_string(&pods_of_linkerd).expect("the example");
        let pods = pods
            .replace("linkerd-proxy-injector.linkerd.io", "sidecar-injector.istio.io")
            .replace("name: linkerd-proxy-injector, namespace", "name: istiod, namespace");
        Self {
            istio: istio.map(|(name, text)| file(name, text)),
            pod: example("pod.json"),
            pods_of_linkerd,
            pods_of_istio: file("pods", pods),
        }
    }

    /// The command line that reads the file.
    fn args(&self, reads: &Reads, path: &str) -> Vec<String> {
        let Reads { command, flag } = reads;
        let words = command.split(' ').chain(self.needed_by(reads));
        let words = words.chain(self.needed_by_istio(reads)).chain(needed_beside(reads));
        let file = Some(&**flag).filter(|flag| !flag.is_empty()).into_iter().chain([path]);
        words.chain(file).map(str::to_owned).collect()
    }

    /// What the command needs to come to the file.
    fn needed_by<'f>(&'f self, Reads { command, flag }: &Reads) -> Vec<&'f str> {
        let pod = &*self.pod;
        match (&**command, &**flag) {
            ("serve", "--kubeconfig") => {
                [&SERVE[..], &["--values", pod, "--trust-roots", pod]].concat()
            }
            ("serve", "--templates") => {
                [&SERVE[..], &["--standalone", "--mesh", "templates"]].concat()
            }
            ("serve", _) => [&SERVE[..], &["--standalone"]].concat(),
            ("probe", _) => vec!["--review", "istio", "https://localhost:1"],
            ("manifest install", _) => vec!["-n", "a"],
            ("manifest guard", _) => vec!["--mesh", "templates"],
            ("manifest check", "--kubeconfig") => vec!["--live"],
            ("restart", "--kubeconfig") => vec!["deploy/web"],
            ("uninject", "--objects") => vec!["--templates", TEMPLATE],
            ("template check", "--manifests") => vec![TEMPLATE],
            (_, "") | ("inject", "--filename") | ("audit", "--kubeconfig" | "--audit-log") => {
                vec![]
            }
            ("inject" | "explain", _) => vec![pod],
            ("audit", flag) if OF_ISTIO.contains(&flag) => vec![self.pods_of_istio.path()],
            ("audit", _) => vec![&self.pods_of_linkerd],
            ("compare", flag)
                if ["--ca", "--templates"].contains(&flag) || OF_ISTIO.contains(&flag) =>
            {
                vec!["--url", "https://localhost:1"]
            }
            _ => vec![],
        }
    }

    /// The other files of Istio's configuration.
    fn needed_by_istio<'f>(&'f self, Reads { command, flag }: &Reads) -> Vec<&'f str> {
        if !OF_ISTIO.contains(&&**flag) {
            return Vec::new();
        }
        let has_two = command == "serve" && flag == "--injector-values";
        let values = if flag == "--injector-values" { OF_ISTIO[1] } else { "--values" };
        let names = [OF_ISTIO[0], values, OF_ISTIO[2]].into_iter().zip(&self.istio);
        let others = names.filter(|(name, _)| name != flag);
        let others = others.flat_map(|(name, file)| [name, file.path()]);
        let mesh = if has_two { "linkerd,istio" } else { "istio" };
        ["--mesh", mesh].into_iter().chain(others).collect()
    }
}

/// The other flag of a pair.
fn needed_beside(reads: &Reads) -> Vec<&'static str> {
    match &*reads.flag {
        "--tls-cert" => vec!["--tls-key", "/dev/null"],
        "--tls-key" => vec!["--tls-cert", "Cargo.toml"],
        "--grpc-allow-file" => vec!["--grpc-client-ca", "Cargo.toml"],
        _ => vec![],
    }
}

impl Reads {
    /// Whether the file is a stream of which a document at a time is in memory.
    fn is_stream(&self) -> bool {
        match (&*self.command, &*self.flag) {
            ("review" | "compare", "") | ("compare", "--answers") => true,
            ("audit", flag) => flag == "--audit-log",
            _ => false,
        }
    }
}

/// Starts the command with little memory. It must end in time.
fn run(args: &[String], stdin: Stdio) -> Child {
    of_no_cluster(limited(BINARY, &format!("-v {MAX_MEMORY_KIB}")))
        .args(args)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary must start")
}

/// The output of a command, which is killed if it takes too long.
fn ended(mut child: Child, args: &[String]) -> Output {
    let pid = rustix::process::Pid::from_child(&child);
    drop(child.stdin.take());
    let (sender, outputs) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let output = outputs.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        panic!("{args:?} does not end")
    });
    output.expect("the output must be read")
}

/// Checks that the command ended with an error about the file. `audit` has it in its output.
fn has_refused(output: &Output, args: &[String], problems: &[&str]) {
    let errors = [text(&output.stdout), text(&output.stderr)].concat();
    assert!(output.status.code().is_some_and(|code| code != 0), "{args:?}: {output:?}");
    assert!(problems.iter().any(|problem| errors.contains(problem)), "{args:?}: {errors}");
}

#[test]
fn no_command_reads_a_device_to_its_end() {
    let files = Files::new();
    each(&all_reads(), |_, reads| {
        let args = files.args(reads, "/dev/zero");
        let output = ended(run(&args, Stdio::null()), &args);
        has_refused(&output, &args, &["larger than 256 MiB", "not a regular file", "binary data"]);
    });
}

#[test]
fn no_command_keeps_a_pipe_without_end_in_memory() {
    let files = Files::new();
    each(&all_reads(), |_, reads| {
        let args = files.args(reads, "/dev/stdin");
        let mut child = run(&args, Stdio::piped());
        let mut pipe = child.stdin.take().expect("stdin must be piped");
        let line = ["x".repeat(LINE_BYTES - 1), "\n".to_owned()].concat();
        // It ends early where the command closes the pipe.
        let writer = thread::spawn(move || {
            let lines = MAX_STREAM_BYTES / LINE_BYTES;
            drop((0..lines).try_for_each(|_| pipe.write_all(line.as_bytes())));
        });
        let output = ended(child, &args);
        writer.join().expect("the pipe must be written");
        // What reads a document at a time ends with its pipe.
        let refused = &["larger than 256 MiB", "not a regular file"][..];
        let problems = if reads.is_stream() { &[""] } else { refused };
        has_refused(&output, &args, problems);
    });
}
