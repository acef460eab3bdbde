//! `injectd completion` and `injectd man`: what a package installs beside the binary.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use injectd_command::{
    CommandError, EXIT_USAGE,
    guide::{GUIDES, Guide, WRONG_USAGE},
    print::stdout,
};

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
pub struct CompletionArgs {
    /// Shell to print the script for
    shell: Shell,
}

/// Write a man page for each command
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Folder for the pages; it is created if the folder above it exists
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
    // The folder above it must exist: it is a mistake otherwise.
    if !args.folder.exists() {
        fs::create_dir(&args.folder).map_err(|error| {
            CommandError::failed(format!("cannot create {}", args.folder.display()), error)
        })?;
    }
    write_page(&command, "", &args.folder)
}

/// Writes the page of a command and of the commands below it.
fn write_page(command: &Command, words: &str, folder: &Path) -> Result<(), CommandError> {
    let guide = GUIDES.iter().find(|guide| guide.command == words);
    // Examples have a section of their own.
    let man = Man::new(command.clone().before_help(None));
    let path = folder.join(man.get_filename());
    let mut page = Vec::new();
    man.render(&mut page)
        .and_then(|()| guide.map_or(Ok(()), |guide| write_sections(guide, &mut page)))
        .and_then(|()| fs::write(&path, page))
        .map_err(|error| CommandError::failed(format!("cannot write {}", path.display()), error))?;
    for inner in command.get_subcommands() {
        write_page(inner, format!("{words} {}", inner.get_name()).trim(), folder)?;
    }
    Ok(())
}

/// The sections that clap does not know.
fn write_sections(guide: &Guide, page: &mut Vec<u8>) -> io::Result<()> {
    writeln!(page, ".SH EXAMPLES")?;
    for (about, line) in guide.examples {
        writeln!(page, ".TP\n{}\n\\fB{}\\fR", escaped(about), escaped(line))?;
    }
    writeln!(page, ".SH EXIT STATUS")?;
    // `proxy-injector` has Go's code for it.
    let has_other = guide.exit_codes.iter().any(|(_, meaning)| *meaning == WRONG_USAGE);
    let usage = Some((EXIT_USAGE, WRONG_USAGE)).filter(|_| !has_other);
    for (code, meaning) in guide.exit_codes.iter().chain(&usage) {
        writeln!(page, ".TP\n{code}\n{}", escaped(meaning))?;
    }
    writeln!(page, ".SH SEE ALSO\n.BR injectd (1)")?;
    for name in guide.related {
        writeln!(page, ".BR injectd\\-{} (1)", escaped(name))?;
    }
    Ok(())
}

/// A text as roff prints it: no escape, no request at the begin of a line.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
