//! `injectd manifest crds`: the `CustomResourceDefinition`s of sidecar templates.

#![expect(clippy::doc_markdown, reason = "help texts have no backticks")]

use injectd_command::{
    CommandError,
    format::{Format, formats},
};
use injectd_templates::schema;

use super::output;

/// Print the CustomResourceDefinitions of sidecar templates
///
/// Prints the CustomResourceDefinitions of ClusterSidecarTemplate and SidecarTemplate. An API server that has
/// them refuses templates with unknown fields, wrong types or values out of bounds.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = formats(["yaml", "json"]))]
    output: Format,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    output::print(&schema::crds(), args.output).map_err(CommandError::output)
}
