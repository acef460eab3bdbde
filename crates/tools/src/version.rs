//! `injectd version`: the version, for people and programs.

use std::io::Write as _;

use injectd_command::{
    CommandError,
    format::{Format, formats},
    istio_releases, long_version,
    print::stdout,
};
use injectd_core::linkerd::release::Release;
use serde_json::json;

/// Print the version, the commit and the supported releases
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_parser = formats(["json", "yaml"]))]
    output: Option<Format>,
}

/// Runs the command of a binary of this commit, if it is known.
///
/// # Errors
/// The variant decides the exit code.
///
/// # Panics
/// Never: a tree is JSON.
pub fn run(args: &Args, commit: Option<&str>) -> Result<(), CommandError> {
    let [oldest, newest] = istio_releases();
    let version = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": commit,
        "linkerd": {
            "oldest": Release::stable_2_14().to_string(),
            "newest": Release::NEWEST.to_string(),
        },
        "istio": {"oldest": oldest, "newest": newest},
    });
    let text = match args.output {
        None => format!("injectd {}\n", long_version(commit)),
        Some(Format::Json) => {
            serde_json::to_string_pretty(&version).expect("a tree must be JSON") + "\n"
        }
        Some(_) => injectd_yaml::write(&version),
    };
    stdout().write_all(text.as_bytes()).map_err(CommandError::output)
}
