//! `injectd manifest`: prints objects to apply to a cluster.

use injectd_command::CommandError;

mod audit;
mod check;
mod crds;
mod guard;
mod install;
mod output;

/// Print the objects that install injectd, a policy, permissions, or CRDs; check webhook configurations
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    object: Object,
}

#[derive(Debug, clap::Subcommand)]
enum Object {
    Install(install::Args),
    Check(check::Args),
    Guard(Box<guard::Args>),
    Audit(audit::Args),
    Crds(crds::Args),
}

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
pub fn run(args: &Args) -> Result<(), CommandError> {
    match &args.object {
        Object::Install(args) => install::run(args),
        Object::Check(args) => check::run(args),
        Object::Guard(args) => guard::run(args),
        Object::Audit(args) => audit::run(args),
        Object::Crds(args) => crds::run(args),
    }
}
