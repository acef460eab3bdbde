//! The command line with the help of each command.

use clap::{Command, CommandFactory as _};

use super::Args;

/// The command with its groups, and with examples before the help of each command.
pub(super) fn command() -> Command {
    injectd_command::guide::described(Args::command())
}

#[cfg(all(test, feature = "service", feature = "tools"))]
mod tests {
    use clap::error::ErrorKind;
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

    /// The command lines of injectd in a page, in blocks and within sentences, without the shell's part.
    fn lines(page: &str) -> Vec<String> {
        let page = page.replace("\\\n", " ");
        let mut found = Vec::new();
        // Every second part is a block; in the others, every second one is code.
        for (index, block) in page.split("```").enumerate() {
            let parts: Vec<_> = match block.split_once('\n') {
                Some(("console", rest)) if index % 2 == 1 => {
                    rest.lines().filter_map(|line| line.trim().strip_prefix("$ ")).collect()
                }
                Some(("sh", rest)) if index % 2 == 1 => rest.lines().map(str::trim).collect(),
                _ if index % 2 == 1 => Vec::new(),
                _ => block.split('`').skip(1).step_by(2).collect(),
            };
            for part in parts {
                let begins = |at: usize| part[..at].is_empty() || part[..at].ends_with("| ");
                let starts = part.match_indices("injectd ").filter(|(at, _)| begins(*at));
                found.extend(starts.map(|(at, _)| part[at..].replace('\n', " ")));
            }
        }
        found
    }

    /// The words of a command line up to the end of the command.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for one in line.chars() {
            match (one, quote) {
                (_, Some(open)) if one == open => quote = None,
                ('\'' | '"', None) => quote = Some(one),
                ('|' | '>' | '<' | ';' | '&' | '#' | ')', None) => break,
                (' ', None) => words.push(std::mem::take(&mut word)),
                // In quotes, or of a word.
                _ => word.push(one),
            }
        }
        words.push(word);
        // A page leaves words out with an ellipsis.
        words.retain(|word| !word.is_empty() && word != "…");
        words
    }

    #[test]
    fn command_lines_of_pages_have_known_commands_and_flags() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut folders = vec![root.join("docs"), root.join("examples"), root.join("deploy")];
        let mut pages: Vec<_> = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md"]
            .map(|name| root.join(name))
            .to_vec();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let is_page = path.extension().is_some_and(|extension| extension == "md");
                if path.is_dir() { &mut folders } else { &mut pages }
                    .extend((path.is_dir() || is_page).then_some(path));
            }
        }
        let mut count = 0;
        for path in pages {
            let page = std::fs::read_to_string(&path).expect("a page");
            for line in lines(&page) {
                let words = words(&line);
                // `injectd COMMAND --help` is about any command.
                if words.get(1).is_some_and(|word| word.bytes().all(|b| b.is_ascii_uppercase())) {
                    continue;
                }
                let parsed = command().try_get_matches_from(words);
                let unknown = parsed.err().filter(|error| {
                    [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand]
                        .contains(&error.kind())
                });
                assert!(unknown.is_none(), "{}: {line}: {unknown:?}", path.display());
                count += 1;
            }
        }
        assert!(count > 100, "{count} command lines");
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
