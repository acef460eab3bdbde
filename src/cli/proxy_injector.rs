//! `injectd proxy-injector`: `serve` with the flags, files and log lines of Linkerd's injector.
//!
//! The `INJECTD_*` variables that `injectd serve --help` lists set everything else.

use std::{ffi::OsString, fmt::Write as _, io::Write as _};

use clap::Parser;
use injectd_command::{
    CommandError,
    print::{in_one_line, stdout},
    version,
};
use injectd_gocompat::number::parse_bool;

use super::serve;
use crate::observer::LogStyle;

/// The gRPC server runs only if this variable is set: Linkerd's injector has no gRPC server.
const GRPC_ADDR: &str = "INJECTD_GRPC_ADDR";

/// The flags of `linkerd-proxy-injector` (`docs/spec/linkerd/injection.md` §3), as Go reads them.
const FLAGS: [Flag; 8] = [
    Flag {
        name: "addr",
        kind: FlagKind::Passed("--addr"),
        default: ":8443",
        about: "address to serve on",
    },
    Flag {
        name: "enable-pprof",
        kind: FlagKind::Switch("--enable-pprof"),
        default: "false",
        about: "Enable pprof endpoints on the admin server",
    },
    Flag {
        name: "kubeconfig",
        kind: FlagKind::Passed("--kubeconfig"),
        default: "",
        about: "path to kubeconfig",
    },
    Flag {
        name: "linkerd-namespace",
        kind: FlagKind::Passed("--linkerd-namespace"),
        default: "linkerd",
        about: "control plane namespace",
    },
    Flag {
        name: "log-format",
        kind: FlagKind::Passed("--log-format"),
        default: "plain",
        about: "log format, must be one of: plain, json",
    },
    Flag {
        name: "log-level",
        kind: FlagKind::Level,
        default: "info",
        about: "log level, must be one of: panic, fatal, error, warn, info, debug, trace",
    },
    Flag {
        name: "metrics-addr",
        kind: FlagKind::Passed("--metrics-addr"),
        default: ":9995",
        about: "address to serve scrapable metrics on",
    },
    Flag {
        name: "version",
        kind: FlagKind::Version,
        default: "false",
        about: "print version and exit",
    },
];

/// Flag and variable of each file that injectd reads, and the path where the chart mounts it.
const MOUNTS: [(&str, &str, &str); 4] = [
    ("--values", "INJECTD_VALUES", "/var/run/linkerd/config/values"),
    ("--trust-roots", "INJECTD_TRUST_ROOTS", "/var/run/linkerd/identity/trust-roots/ca-bundle.crt"),
    ("--tls-cert", "INJECTD_TLS_CERT", "/var/run/linkerd/tls/tls.crt"),
    ("--tls-key", "INJECTD_TLS_KEY", "/var/run/linkerd/tls/tls.key"),
];

/// Run as a drop-in replacement for linkerd-proxy-injector, with its flags, files, ports and log
/// lines
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(super) struct Args {
    /// Flags in Go's syntax, such as -log-level=debug; -help lists them
    #[arg(value_name = "FLAG", trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<OsString>,
}

struct Flag {
    name: &'static str,
    kind: FlagKind,
    default: &'static str,
    about: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FlagKind {
    /// A value for the flag of `serve`.
    Passed(&'static str),
    /// A boolean for the flag of `serve`.
    Switch(&'static str),
    /// One of logrus' levels.
    Level,
    Version,
}

/// `serve` as this command calls it.
#[derive(Debug, Parser)]
// Go takes the last value of a flag that is repeated; clap would refuse it.
#[command(name = "injectd proxy-injector", args_override_self = true)]
struct Serve {
    #[command(flatten)]
    args: serve::Args,
}

enum Parsed {
    Serve(Vec<String>),
    Help,
    Version,
}

pub(super) fn run(args: Args) -> Result<(), CommandError> {
    let mut serve = match parse(args.flags).map_err(CommandError::GoUsage)? {
        Parsed::Serve(serve) => serve,
        Parsed::Help => return print(&usage()),
        Parsed::Version => return print(&format!("{}\n", version())),
    };
    // Linkerd's injector has no gRPC server: its replacement opens no port that was closed before.
    if !is_set(GRPC_ADDR) {
        serve.push("--grpc-addr=".to_owned());
    }
    for (flag, variable, path) in MOUNTS {
        if !is_set(variable) {
            serve.extend([flag.to_owned(), path.to_owned()]);
        }
    }
    let serve =
        Serve::try_parse_from(["injectd proxy-injector".to_owned()].into_iter().chain(serve))
            .map_err(|error| CommandError::GoUsage(in_one_line(error)))?;
    serve::run(serve.args, LogStyle::Linkerd).map_err(|error| match error {
        CommandError::Usage(text) => CommandError::GoUsage(text),
        error => error,
    })
}

#[expect(clippy::disallowed_methods, reason = "this is configuration")]
fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok()
}

fn print(text: &str) -> Result<(), CommandError> {
    stdout().write_all(text.as_bytes()).map_err(CommandError::output)
}

fn usage() -> String {
    let mut text = "Usage of proxy-injector:\n".to_owned();
    for Flag { name, default, about, .. } in FLAGS {
        writeln!(text, "  -{name}\n    \t{about} (default {default:?})")
            .expect("writing to a string must succeed");
    }
    text.push_str(
        "Further settings are INJECTD_* environment variables; injectd serve --help lists them.\n",
    );
    text
}

/// Reads flags as Go's `flag` package does: `-x=v`, `--x=v`, `-x v`; booleans `-x` and `-x=v`.
/// Parsing stops at the first word that is not a flag.
fn parse(flags: Vec<OsString>) -> Result<Parsed, String> {
    let mut words = flags.into_iter();
    let mut serve = Vec::new();
    while let Some(word) = words.next() {
        let word = word.into_string().map_err(|word| format!("{}: not UTF-8", word.display()))?;
        let Some(body) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            break;
        };
        // `--` ends the flags and `-` is no flag, in Go's package as well.
        if body.is_empty() {
            break;
        }
        if body.starts_with(['-', '=']) {
            return Err(format!("bad flag syntax: {word}"));
        }
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (body, None),
        };
        if matches!(name, "h" | "help") {
            return Ok(Parsed::Help);
        }
        let flag = FLAGS.iter().find(|flag| flag.name == name);
        let flag = flag.ok_or_else(|| format!("flag provided but not defined: -{name}"))?;
        if let FlagKind::Switch(_) | FlagKind::Version = flag.kind {
            let value = value.as_deref().unwrap_or("true");
            let is_on = parse_bool(value).ok_or_else(|| {
                format!("invalid boolean value {value:?} for -{name}: expected true or false")
            })?;
            match flag.kind {
                FlagKind::Version if is_on => return Ok(Parsed::Version),
                FlagKind::Switch(serve_flag) => {
                    // The last value wins.
                    serve.retain(|word| word != serve_flag);
                    serve.extend(is_on.then(|| serve_flag.to_owned()));
                }
                _ => {}
            }
            continue;
        }
        let next = || words.next().and_then(|word| word.into_string().ok());
        let value =
            value.or_else(next).ok_or_else(|| format!("flag needs an argument: -{name}"))?;
        match flag.kind {
            // Go's default is empty: the flag counts as unset.
            FlagKind::Passed("--kubeconfig") if value.is_empty() => {}
            FlagKind::Passed(serve_flag) => serve.push(format!("{serve_flag}={value}")),
            FlagKind::Level => serve.push(format!("--log-level={}", level(&value)?)),
            _ => {}
        }
    }
    Ok(Parsed::Serve(serve))
}

/// Maps logrus' levels to ours, of which `error` is the highest.
fn level(text: &str) -> Result<&'static str, String> {
    match text.to_ascii_lowercase().as_str() {
        "panic" | "fatal" | "error" => Ok("error"),
        "warn" | "warning" => Ok("warn"),
        "info" => Ok("info"),
        // At debug, the libraries of HTTP and TLS log each frame, which Linkerd's injector never
        // did.
        "debug" => Ok("info,injectd=debug"),
        "trace" => Ok("trace"),
        _ => Err(format!(
            "invalid log-level {text:?}: expected panic, fatal, error, warn, info, debug or trace"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<String, String> {
        let words = words.iter().map(OsString::from).collect();
        Ok(match parse(words)? {
            Parsed::Serve(serve) => serve.join(" "),
            Parsed::Help => "help".to_owned(),
            Parsed::Version => "version".to_owned(),
        })
    }

    #[test]
    fn flags_are_read_as_go_reads_them() {
        for (words, expected) in [
            (&["-addr=:1", "--metrics-addr=:2"][..], "--addr=:1 --metrics-addr=:2"),
            (&["-addr", ":1", "-log-level", "WARN"], "--addr=:1 --log-level=warn"),
            (&["-enable-pprof"], "--enable-pprof"),
            (&["-enable-pprof=T", "-enable-pprof=false"], ""),
            (&["-enable-pprof", "false", "-addr=:1"], "--enable-pprof"),
            (&["-log-level=debug"], "--log-level=info,injectd=debug"),
            (&["-kubeconfig=", "-kubeconfig", ""], ""),
            (&["-version"], "version"),
            (&["-version=0", "--help"], "help"),
            (&["--", "-nope"], ""),
            (&[], ""),
        ] {
            assert_eq!(parsed(words).as_deref(), Ok(expected), "{words:?}");
        }
    }

    #[test]
    fn errors_name_the_flag() {
        for (words, message) in [
            (&["-nope"][..], "not defined: -nope"),
            (&["-addr"], "needs an argument: -addr"),
            (&["-enable-pprof=perhaps"], "-enable-pprof"),
            (&["-log-level=loud"], "log-level"),
            (&["---addr"], "bad flag syntax"),
        ] {
            assert!(parsed(words).expect_err("must be rejected").contains(message), "{words:?}");
        }
    }
}
