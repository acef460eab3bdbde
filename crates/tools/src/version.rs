//! `injectd version`: the version, for people and programs.

use std::io::Write as _;

use injectd_command::{
    CommandError,
    format::{Format, formats},
    long_version,
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

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
///
/// # Panics
/// Never: a tree is JSON.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let version = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("INJECTD_COMMIT"),
        "linkerd": {
            "oldest": Release::stable_2_14().to_string(),
            "newest": Release::NEWEST.to_string(),
        },
    });
    let text = match args.output {
        None => format!("injectd {}\n", long_version()),
        Some(Format::Json) => {
            serde_json::to_string_pretty(&version).expect("a tree must be JSON") + "\n"
        }
        Some(_) => injectd_yaml::write(&version),
    };
    stdout().write_all(text.as_bytes()).map_err(CommandError::output)
}
