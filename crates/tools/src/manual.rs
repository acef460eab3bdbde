//! `injectd completion` and `injectd man`: what a package installs beside the binary.

use std::{io::Write as _, path::PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use injectd_command::{CommandError, print::stdout};

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
pub struct CompletionArgs {
    /// Shell to print the script for
    shell: Shell,
}

/// Write the man pages
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Folder for the pages, which must exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Prints the script for a shell.
///
/// # Errors
/// The variant decides the exit code.
pub fn print_completion(mut command: Command, args: &CompletionArgs) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "injectd", &mut script);
    stdout().write_all(&script).map_err(CommandError::output)
}

/// Writes the pages into the folder.
///
/// # Errors
/// The variant decides the exit code.
pub fn write_man_pages(command: Command, args: &ManArgs) -> Result<(), CommandError> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let subcommands: Vec<_> = command.get_subcommands().cloned().collect();
    for command in subcommands.into_iter().chain([command]) {
        let man = Man::new(command);
        let path = args.folder.join(man.get_filename());
        let mut page = Vec::new();
        man.render(&mut page).and_then(|()| std::fs::write(&path, page)).map_err(|error| {
            CommandError::failed(format!("cannot write {}", path.display()), error)
        })?;
    }
    Ok(())
}
