//! The command line with the help of each command.

use clap::{Command, CommandFactory as _};

use super::Args;

/// The command with its groups, and with examples before the help of each command.
pub(super) fn command() -> Command {
    injectd_command::guide::described(Args::command())
}

#[cfg(all(test, feature = "service", feature = "tools"))]
mod tests {
    use injectd_command::guide::{GROUPS, GUIDES};

    use super::*;

    /// Calls `check` with the words of each command that has no commands of its own.
    fn each(command: &Command, words: &str, check: &mut dyn FnMut(&str, &Command)) {
        check(words, command);
        for inner in command.get_subcommands() {
            each(inner, format!("{words} {}", inner.get_name()).trim(), check);
        }
    }

    #[test]
    fn every_command_has_a_guide_and_a_group() {
        let command = Args::command();
        let grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).collect();
        for inner in command.get_subcommands() {
            assert!(grouped.contains(&&inner.get_name()), "{}", inner.get_name());
        }
        each(&command, "", &mut |words, _| {
            assert!(GUIDES.iter().any(|guide| guide.command == words), "{words}");
        });
    }

    /// A heading is of the flags below it: flags of all meshes behind it would get it, too.
    #[test]
    fn flags_of_all_meshes_have_no_heading() {
        each(&command(), "", &mut |words, command| {
            for flag in command.get_arguments() {
                let is_of_all = ["mesh", "values", "objects"].contains(&flag.get_id().as_str());
                assert!(!is_of_all || flag.get_help_heading().is_none(), "{words} {flag}");
            }
        });
    }

    #[test]
    fn examples_parse_and_related_commands_exist() {
        let mut pages = Vec::new();
        each(&Args::command(), "", &mut |words, _| {
            pages.push(words.replace(' ', "-"));
        });
        for guide in GUIDES {
            for page in guide.related {
                assert!(pages.contains(&(*page).to_owned()), "{page}");
            }
            assert!(!guide.examples.is_empty(), "{}", guide.command);
            let parts = guide.examples.iter().flat_map(|(_, line)| line.split(" | "));
            for line in parts.filter(|line| line.starts_with("injectd ")) {
                let parsed = command().try_get_matches_from(line.split_whitespace());
                assert!(parsed.is_ok(), "{line}: {parsed:?}");
            }
        }
    }
}
