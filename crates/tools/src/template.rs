//! `injectd template`: checks sidecar templates, and tests them on pods.

use injectd_command::CommandError;

mod check;
mod test;

/// Check sidecar templates, and test them on pods
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Check(check::Args),
    Test(test::Args),
}

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
pub fn run(args: &Args) -> Result<(), CommandError> {
    match &args.action {
        Action::Check(args) => check::run(args),
        Action::Test(args) => test::run(args),
    }
}
