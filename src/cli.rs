//! The command line: what was typed, and which command runs.
//!
//! Not for the commands themselves: each has its own file.

use std::{
    error::Error,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{Parser, Subcommand, error::ErrorKind};

use crate::{linkerd::release::Release, log, observer::LogStyle};

mod compare;
mod config;
mod inject;
mod input;
mod proxy_injector;
mod review;
mod serve;
mod stream;

/// Wrong usage (`sysexits.h`, `EX_USAGE`).
const EXIT_USAGE: u8 = 64;
/// Wrong usage in a program of Go's `flag` package.
const EXIT_GO_USAGE: u8 = 2;
/// Differences were found.
const EXIT_FINDINGS: u8 = 3;

/// A sidecar injector for large Kubernetes clusters.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Args>),
    ProxyInjector(proxy_injector::Args),
    Review(review::Args),
    Inject(inject::Args),
    Compare(compare::Args),
}

/// Why a command ended without success; both print and tell the exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// Flags that do not go together.
    #[error("{0}")]
    Usage(String),
    /// The same where Linkerd's injector is stood in for: Go's exit code.
    #[error("{0}")]
    GoUsage(String),
    /// Anything else.
    #[error("{message}")]
    Failed {
        message: String,
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// Some of the input could not be used; each piece was told already.
    #[error("{0}")]
    Incomplete(String),
    /// What was looked for was found.
    #[error("{0}")]
    Findings(String),
    /// Whoever read the output went away.
    #[error("the output was closed")]
    OutputClosed,
}

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let result = match args.command {
        Command::Serve(args) => serve::run(*args, LogStyle::Line),
        Command::ProxyInjector(args) => proxy_injector::run(args),
        Command::Review(args) => review::run(&args),
        Command::Inject(args) => inject::run(&args),
        Command::Compare(args) => compare::run(&args),
    };
    match result {
        // A closed output is what `head` leaves whoever feeds it with.
        Ok(()) | Err(CommandError::OutputClosed) => ExitCode::SUCCESS,
        Err(error) => {
            let code = match error {
                CommandError::Usage(_) => EXIT_USAGE,
                CommandError::GoUsage(_) => EXIT_GO_USAGE,
                CommandError::Findings(_) => EXIT_FINDINGS,
                _ => 1,
            };
            complain(&error);
            ExitCode::from(code)
        }
    }
}

fn usage(error: &clap::Error) -> ExitCode {
    // Nothing can be done about a closed stream here.
    drop(error.print());
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(EXIT_USAGE),
    }
}

/// The version as `proxy-injector` reports it: the releases of Linkerd that it stands in for are not
/// its own version.
fn version() -> String {
    let (oldest, newest) = (Release::stable_2_14(), Release::NEWEST);
    format!("injectd-{} (linkerd {oldest} to {newest})", env!("CARGO_PKG_VERSION"))
}

/// Prints an error and the chain of its causes.
fn complain(error: &dyn Error) {
    note(&format!("error: {}", log::with_causes(error)));
}

/// Prints a line for the person at the terminal.
fn note(line: &str) {
    // Nothing can be done about a closed stream here.
    drop(writeln!(io::stderr(), "{line}"));
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
