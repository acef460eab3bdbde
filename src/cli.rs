//! Parses the command line, runs the command and turns its error into an exit code.
//!
//! The commands of the service have their files here, the others are in `injectd-tools`. A feature has
//! each of both.

#![cfg_attr(
    feature = "service",
    expect(clippy::disallowed_types, reason = "probe reads an answer and its patch")
)]

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{
    FromArgMatches as _, Parser, Subcommand,
    error::{ContextKind, ErrorKind},
};
use injectd_cluster::causes::with_causes;
use injectd_command::{
    CommandError, EXIT_GO_USAGE, EXIT_USAGE, long_version,
    print::{print_line, print_usage},
};
#[cfg(feature = "tools")]
use injectd_tools::{
    audit, compare, explain, inject, manifest, manual, restart, review, template, uninject, version,
};

#[cfg(feature = "service")]
use crate::observer::LogStyle;

mod guide;
#[cfg(feature = "service")]
mod probe;
#[cfg(feature = "service")]
mod proxy_injector;
#[cfg(feature = "service")]
mod serve;

/// Name of the binary as a plugin: `kubectl injectd` runs it.
const KUBECTL_PLUGIN: &str = "kubectl-injectd";
/// The exit code if `compare` found a difference, or a finding is one of `--fail-on`.
// 1 is any failure, and 2 is the wrong usage of a program in Go. A script must not take these for
// findings.
const EXIT_FINDINGS: u8 = 3;

/// The commit of this build (`build.rs`).
const COMMIT: Option<&str> = option_env!("INJECTD_COMMIT");

/// Sidecar injector for Linkerd, Istio and sidecars of your own: manifests, webhook, explanations and
/// audits
#[derive(Debug, Parser)]
#[command(version, long_version = long_version(COMMIT), propagate_version = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "service")]
    Serve(Box<serve::Args>),
    #[cfg(feature = "service")]
    ProxyInjector(proxy_injector::Args),
    #[cfg(feature = "tools")]
    Review(review::Args),
    #[cfg(feature = "tools")]
    Inject(Box<inject::Args>),
    #[cfg(feature = "tools")]
    Uninject(uninject::Args),
    #[cfg(feature = "tools")]
    Explain(Box<explain::Args>),
    #[cfg(feature = "tools")]
    Audit(Box<audit::Args>),
    #[cfg(feature = "tools")]
    Compare(compare::Args),
    #[cfg(feature = "tools")]
    Restart(restart::Args),
    #[cfg(feature = "tools")]
    Manifest(manifest::Args),
    #[cfg(feature = "tools")]
    Template(template::Args),
    #[cfg(feature = "service")]
    Probe(probe::Args),
    #[cfg(feature = "tools")]
    Version(version::Args),
    #[cfg(feature = "tools")]
    Completion(manual::CompletionArgs),
    #[cfg(feature = "tools")]
    Man(manual::ManArgs),
}

/// Parses the command line and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(error) => return usage(error),
    };
    let result = match args.command {
        #[cfg(feature = "service")]
        Command::Serve(args) => serve::run(*args, LogStyle::Line),
        #[cfg(feature = "service")]
        Command::ProxyInjector(args) => proxy_injector::run(args),
        #[cfg(feature = "tools")]
        Command::Review(args) => review::run(&args),
        #[cfg(feature = "tools")]
        Command::Inject(args) => inject::run(*args),
        #[cfg(feature = "tools")]
        Command::Uninject(args) => uninject::run(&args),
        #[cfg(feature = "tools")]
        Command::Audit(args) => audit::run(&args),
        #[cfg(feature = "tools")]
        Command::Explain(args) => explain::run(&args),
        #[cfg(feature = "tools")]
        Command::Compare(args) => compare::run(&args),
        #[cfg(feature = "tools")]
        Command::Restart(args) => restart::run(args),
        #[cfg(feature = "tools")]
        Command::Manifest(args) => manifest::run(&args),
        #[cfg(feature = "tools")]
        Command::Template(args) => template::run(&args),
        #[cfg(feature = "service")]
        Command::Probe(args) => probe::run(&args),
        #[cfg(feature = "tools")]
        Command::Version(args) => version::run(&args, COMMIT),
        #[cfg(feature = "tools")]
        Command::Completion(args) => manual::print_completion(guide::command(), &args),
        #[cfg(feature = "tools")]
        Command::Man(args) => manual::write_man_pages(guide::command(), &args),
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
        let matches = guide::command().bin_name("kubectl injectd").try_get_matches()?;
        return Args::from_arg_matches(&matches);
    }
    Args::from_arg_matches(&guide::command().try_get_matches()?)
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
    print_usage(error);
    ExitCode::from(EXIT_USAGE)
}

/// Prints an error and the chain of its causes.
fn print_error(error: &(dyn Error + 'static)) {
    print_line(&format!("error: {}", with_causes(error)));
}
