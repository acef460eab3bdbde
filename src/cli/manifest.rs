//! `injectd manifest`: prints objects to apply to a cluster.

use super::CommandError;

mod guard;

/// Print objects to apply to a cluster
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    object: Object,
}

#[derive(Debug, clap::Subcommand)]
enum Object {
    Guard(Box<guard::Args>),
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    match &args.object {
        Object::Guard(args) => guard::run(args),
    }
}
