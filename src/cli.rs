//! Parses the command line, runs the command and turns its error into an exit code.
//!
//! Each command has its own file.

#![expect(
    clippy::disallowed_types,
    reason = "manifests, objects and reports are trees of any shape"
)]

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{
    CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    error::{ContextKind, ErrorKind},
};
use injectd_cluster::causes::with_causes;

use self::print::print_line;
use crate::{linkerd::release::Release, observer::LogStyle};

mod audit;
mod cluster_config;
mod compare;
mod config;
mod explain;
mod facts;
mod format;
mod inject;
mod input;
mod manifest;
mod manifests;
mod manual;
mod meshes;
mod print;
mod probe;
mod progress;
mod proxy_injector;
mod remote;
mod restart;
mod restart_policy;
mod review;
mod serve;
mod stream;
mod uninject;
mod units;
mod version;

/// Wrong usage (`sysexits.h`, `EX_USAGE`).
const EXIT_USAGE: u8 = 64;
/// Wrong usage, in programs that use Go's `flag` package.
const EXIT_GO_USAGE: u8 = 2;
/// Name of the binary as a plugin: `kubectl injectd` runs it.
const KUBECTL_PLUGIN: &str = "kubectl-injectd";
/// The exit code if `compare` found a difference, or a finding is one of `--fail-on`.
const EXIT_FINDINGS: u8 = 3;

/// A sidecar injector for large Kubernetes clusters.
#[derive(Debug, Parser)]
#[command(version, long_version = long_version(), propagate_version = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Args>),
    ProxyInjector(proxy_injector::Args),
    Review(review::Args),
    Inject(Box<inject::Args>),
    Uninject(uninject::Args),
    Explain(Box<explain::Args>),
    Audit(Box<audit::Args>),
    Compare(compare::Args),
    Restart(restart::Args),
    Manifest(manifest::Args),
    Probe(probe::Args),
    Version(version::Args),
    Completion(manual::CompletionArgs),
    Man(manual::ManArgs),
}

/// Why a command failed. The variant decides the exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// Invalid flags or environment variables.
    #[error("{0}")]
    Usage(String),
    /// The same for `proxy-injector`, with Go's exit code.
    #[error("{0}")]
    GoUsage(String),
    /// Anything else.
    #[error("{message}")]
    Failed {
        message: String,
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// Some of the input could not be used; each problem is printed already.
    #[error("{0}")]
    Incomplete(String),
    /// `compare` found a difference, or a finding is one of `--fail-on`.
    #[error("{0}")]
    Findings(String),
    /// The reader closed the pipe.
    #[error("stdout was closed")]
    OutputClosed,
}

/// Parses the command line and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(error) => return usage(error),
    };
    let result = match args.command {
        Command::Serve(args) => serve::run(*args, LogStyle::Line),
        Command::ProxyInjector(args) => proxy_injector::run(args),
        Command::Review(args) => review::run(&args),
        Command::Inject(args) => inject::run(*args),
        Command::Uninject(args) => uninject::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Restart(args) => restart::run(args),
        Command::Manifest(args) => manifest::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Version(args) => version::run(&args),
        Command::Completion(args) => manual::print_completion(Args::command(), &args),
        Command::Man(args) => manual::write_man_pages(Args::command(), &args),
    };
    match result {
        // Not an error: `head` closes the pipe once it has read enough.
        Ok(()) | Err(CommandError::OutputClosed) => ExitCode::SUCCESS,
        Err(error) => {
            let code = match error {
                CommandError::Usage(_) => EXIT_USAGE,
                CommandError::GoUsage(_) => EXIT_GO_USAGE,
                CommandError::Findings(_) => EXIT_FINDINGS,
                _ => 1,
            };
            print_error(&error);
            ExitCode::from(code)
        }
    }
}

/// Parses the command line. As a plugin of kubectl, the program calls itself as its user does.
fn parse() -> Result<Args, clap::Error> {
    let called = std::env::args_os().next().map(PathBuf::from);
    let name = called.as_deref().and_then(Path::file_stem);
    if name.is_some_and(|name| name == KUBECTL_PLUGIN) {
        let matches = Args::command().bin_name("kubectl injectd").try_get_matches()?;
        return Args::from_arg_matches(&matches);
    }
    Args::try_parse()
}

fn usage(mut error: clap::Error) -> ExitCode {
    // clap's advice to pass an unknown flag as a value is never right here.
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    if error.kind() == ErrorKind::InvalidValue {
        error.remove(ContextKind::SuggestedValue);
    }
    if let ErrorKind::DisplayHelp | ErrorKind::DisplayVersion = error.kind() {
        // A closed stream cannot be reported.
        drop(error.print());
        return ExitCode::SUCCESS;
    }
    print::print_usage(error);
    ExitCode::from(EXIT_USAGE)
}

/// The version that `proxy-injector` reports: injectd's own, and the Linkerd releases it supports.
fn version() -> String {
    format!("injectd-{} ({})", env!("CARGO_PKG_VERSION"), releases())
}

/// The version with the commit, if the build set `INJECTD_COMMIT`, and the Linkerd releases.
fn long_version() -> String {
    let commit = option_env!("INJECTD_COMMIT").map(|commit| format!("\ncommit {commit}"));
    format!("{}{}\n{}", env!("CARGO_PKG_VERSION"), commit.unwrap_or_default(), releases())
}

fn releases() -> String {
    format!("linkerd {} to {}", Release::stable_2_14(), Release::NEWEST)
}

/// Prints an error and the chain of its causes.
fn print_error(error: &(dyn Error + 'static)) {
    print_line(&format!("error: {}", with_causes(error)));
}

/// The first flag that is set, by its name.
fn first_set<const N: usize>(flags: [(&'static str, bool); N]) -> Option<&'static str> {
    flags.into_iter().find_map(|(flag, is_set)| is_set.then_some(flag))
}

/// A number with its noun: `1 review`, `2 reviews`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

impl CommandError {
    fn failed(message: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed { message: message.into(), cause: cause.into() }
    }

    fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::failed("cannot write to stdout", error)
    }
}
