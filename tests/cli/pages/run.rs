//! The commands of pages are run, and what they print is what the page shows.
//!
//! A block of commands runs in a folder of its own with the files of the repository, the small
//! configuration of Istio, and the files of `tests/cli/pages`. A page that shows files, behind the comment
//! `file`, has one folder for all of its blocks. Not run are blocks with a program that needs more than
//! this binary and a shell, and those behind the comment `not run`, which says why.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

use super::{
    super::{BINARY, of_no_cluster, text},
    pages,
};

/// What stands before a block that is not run, with the reason.
const NOT_RUN: &str = "<!-- not run: ";
/// What stands before a block that is a file, with its path: `<!-- file: shipper/template.yaml -->`.
const FILE: &str = "<!-- file: ";
/// Programs, and what they need.
const PROGRAMS: [(&str, &[&str]); 6] = [
    ("a cluster", &["kubectl", "helm", "istioctl", "linkerd"]),
    ("a registry or a forge", &["docker", "skopeo", "gh", "sha256sum"]),
    ("a running server", &["curl", "grpcurl", "k6", "ghz"]),
    ("a tool of the checks or of the book", &["just", "cargo", "promtool", "python3", "mdbook"]),
    (
        "a script that starts servers",
        &["./take-over.sh", "e2e/run.sh", "loadtest/load.sh", "e2e/lab/build.sh", "kube-lab"],
    ),
    ("keys or man pages", &["openssl", "man"]),
];
/// Words of command lines of injectd, and what they need.
const WORDS: [(&str, &[&str]); 3] = [
    ("a cluster", &["restart", "--live", "--context"]),
    ("a running server", &["serve", "probe", "--url"]),
    ("an audit log", &["audit.log"]),
];
/// Folders and files of the repository that commands name.
const REPOSITORY: [&str; 5] = ["examples", "crates", "loadtest", "tests", "deploy"];
/// Pages besides the README and the book.
const OTHER_PAGES: [&str; 4] =
    ["CONTRIBUTING.md", "examples/templates/README.md", "loadtest/README.md", "e2e/lab/README.md"];
/// Stands for any text in what a page shows.
const ANY: char = '…';

/// A block of a page.
struct Block<'p> {
    /// `sh` or `console`.
    language: &'p str,
    lines: Vec<&'p str>,
    /// What it needs, as the page says it.
    not_run: Option<&'p str>,
    /// The path, if the block is a file.
    file: Option<&'p str>,
}

#[test]
fn commands_of_pages_print_what_the_pages_show() {
    if !has("bash") || !has("jq") {
        drop(writeln!(std::io::stderr(), "skipped: needs bash and jq"));
        return;
    }
    let (mut run, mut others) = (0, BTreeMap::<String, usize>::new());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in pages().into_iter().chain(OTHER_PAGES.map(|page| root.join(page))) {
        let page = fs::read_to_string(&path).expect("a page");
        let blocks = blocks(&page);
        let has_files = blocks.iter().any(|block| block.file.is_some());
        let mut folder = None;
        for block in blocks {
            if !has_files {
                folder = None;
            }
            let folder = folder.get_or_insert_with(filled);
            if let Some(file) = block.file {
                block.write(&folder.path().join(file));
                continue;
            }
            match block.needs() {
                None => {
                    block.check(&path, folder.path());
                    run += 1;
                }
                Some(need) => *others.entry(need.to_owned()).or_default() += 1,
            }
        }
    }
    let stderr = &mut std::io::stderr();
    drop(writeln!(stderr, "{run} blocks were run; others need more: {others:?}"));
    assert!(run > 30, "{run} blocks");
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut found, mut open, mut before) = (Vec::new(), None, "");
    for line in page.lines() {
        let text = line.trim_start();
        match &mut open {
            None if text.starts_with("```") => {
                let language = &text[3..];
                let comment = |mark: &str| before.strip_prefix(mark)?.strip_suffix(" -->");
                let (not_run, file) = (comment(NOT_RUN), comment(FILE));
                let indent = line.len() - text.len();
                open = Some((indent, Block { language, lines: Vec::new(), not_run, file }));
            }
            Some((_, _)) if text == "```" => {
                let block = open.take().map(|(_, block): (usize, Block<'_>)| block);
                found.extend(block.filter(|block| block.is_command() || block.file.is_some()));
            }
            Some((indent, block)) => block.lines.push(line.get(*indent..).unwrap_or_default()),
            None => {}
        }
        before = text;
    }
    found
}

/// What commands need, if it is more than a shell.
fn needs(commands: &str) -> Option<&'static str> {
    let parts = commands.split(['\n', '|', ';', '(', '&']);
    let programs: Vec<_> = parts.filter_map(|part| part.split_whitespace().next()).collect();
    let words: Vec<_> = commands.split_whitespace().collect();
    let has = |found: &[&str], needed: &[&str]| needed.iter().any(|one| found.contains(one));
    let programs = PROGRAMS.iter().find(|(_, needed)| has(&programs, needed));
    let words = WORDS.iter().find(|(_, needed)| has(&words, needed));
    programs.or(words).map(|(what, _)| *what)
}

impl Block<'_> {
    fn is_command(&self) -> bool {
        ["sh", "console"].contains(&self.language)
    }

    fn write(&self, path: &Path) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
        fs::write(path, self.lines.join("\n") + "\n").expect("the file");
    }

    /// What it needs, if it is more than the binary and a shell.
    fn needs(&self) -> Option<&str> {
        self.not_run
            .map(|need| need.strip_prefix("needs ").unwrap_or(need))
            .or_else(|| needs(&self.commands()))
    }

    fn commands(&self) -> String {
        self.steps().into_iter().map(|(command, _)| command).collect::<Vec<_>>().join("\n")
    }

    /// Commands with the lines that the page shows for each; all of them in a block without output.
    fn steps(&self) -> Vec<(String, Vec<&str>)> {
        if self.language == "sh" {
            return vec![(self.lines.join("\n"), Vec::new())];
        }
        let mut steps: Vec<(String, Vec<&str>)> = Vec::new();
        for line in &self.lines {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push((command.to_owned(), Vec::new()));
                continue;
            }
            let (command, shown) = steps.last_mut().expect("a block begins with a command");
            match line
                .strip_prefix("> ")
                .filter(|_| shown.is_empty() && command.ends_with(['\\', '|']))
            {
                Some(more) => command.extend(["\n", more]),
                None => shown.push(line),
            }
        }
        steps
    }

    fn check(&self, page: &Path, folder: &Path) {
        for (command, shown) in self.steps() {
            let output = run(&command, folder);
            let at = format!("{}: {command}", page.display());
            if self.language == "sh" {
                assert!(output.status.success(), "{at}: {}", text(&output.stderr));
            } else {
                compare(&at, shown, &output);
            }
        }
    }
}

/// Compares what a page shows with both streams: lines of the errors may be anywhere among the others.
fn compare(at: &str, mut shown: Vec<&str>, output: &Output) {
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    for line in errors.lines() {
        let is_shown = |pattern: &&str| pattern.trim() != "…" && is_like(pattern, line);
        let place = shown.iter().position(is_shown);
        let place = place.unwrap_or_else(|| panic!("{at}: the page lacks {line:?}"));
        shown.remove(place);
    }
    let shown = shown.join("\n");
    assert!(
        is_like(shown.trim_end(), printed.trim_end()),
        "{at}\n--- the page\n{shown}\n--- printed\n{printed}"
    );
}

/// Whether a text is like a pattern in which `…` is any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split(ANY);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

/// A folder with the files that commands of pages name.
fn filled() -> TempDir {
    let made = tempfile::tempdir().expect("a folder");
    let folder = made.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in REPOSITORY {
        symlink(root.join(name), folder.join(name)).expect("a link");
    }
    for from in ["examples/istio", "tests/cli/pages"] {
        for entry in fs::read_dir(root.join(from)).expect("the files") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name");
            fs::copy(&path, folder.join(name)).expect("a copy");
        }
    }
    made
}

fn run(command: &str, folder: &Path) -> Output {
    let binaries = Path::new(BINARY).parent().expect("a folder");
    let command = format!("PATH={:?}:$PATH\n{command}", binaries.display().to_string());
    let mut shell = of_no_cluster(Command::new("bash"));
    shell.args(["-e", "-o", "pipefail", "-c", &command]).current_dir(folder).stdin(Stdio::null());
    shell.output().expect("bash must run")
}

#[test]
fn a_text_is_like_its_pattern() {
    for (pattern, text, expected) in [
        ("a…c", "abc", true),
        ("a…c…", "abcd", true),
        ("…", "", true),
        ("a", "ab", false),
        ("a…b…c", "ac", false),
    ] {
        assert_eq!(is_like(pattern, text), expected, "{pattern} {text}");
    }
}
