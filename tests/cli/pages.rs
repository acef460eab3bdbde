//! The pages of the commands: output that they show is what the binary prints.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

mod run;

use super::{
    command,
    commands::{commands, help},
    is_blessed, text,
};

/// Stands before a block whose command is run in the folder of the project.
const MARKER: &str = "<!-- output of the command -->\n";
const BEGIN: &str = "```console\n$ injectd ";
const END: &str = "```\n";

#[test]
fn pages_show_the_output_of_the_binary() {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut blocks = 0;
    for entry in fs::read_dir(format!("{root}/docs/commands")).expect("the pages") {
        let path = entry.expect("an entry").path();
        let page = fs::read_to_string(&path).expect("a page");
        let (mut found, mut parts) = (String::new(), page.split(MARKER));
        found.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let rest = part.strip_prefix(BEGIN).expect("a command follows the marker");
            let (args, rest) = rest.split_once('\n').expect("the command must end");
            let (_, end) = rest.split_once(END).expect("the block must end");
            let words: Vec<_> = args.split_whitespace().collect();
            let shown = command(&words).current_dir(root).output().expect("the binary must run");
            assert_eq!(text(&shown.stderr), "", "{args}");
            let output = text(&shown.stdout);
            found.extend([MARKER, BEGIN, args, "\n", output, END, end]);
            blocks += 1;
        }
        if is_blessed() {
            fs::write(&path, &found).expect("the page must be written");
            continue;
        }
        // Both texts are long.
        assert!(page == found, "{} is stale: run with BLESS=1", path.display());
    }
    assert!(blocks >= 2, "no page shows output");
}

/// The picture of the dashboard has every panel with queries: `loadtest/plot_dashboard.py` draws it.
#[test]
fn the_picture_of_the_dashboard_has_every_panel() {
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |path: &str| fs::read_to_string(format!("{root}/{path}")).expect("a file");
    let dashboard: Value =
        serde_json::from_str(&read("deploy/grafana-dashboard.json")).expect("JSON");
    let picture = read("docs/img/dashboard.svg");
    let panels = dashboard["panels"].as_array().expect("a list");
    assert!(panels.len() > 20, "{} panels", panels.len());
    for panel in panels {
        let title = panel["title"].as_str().expect("a title").replace('\'', "&#x27;");
        assert!(picture.contains(&format!(">{title}</text>")), "{title} is not in the picture");
    }
}

/// Stands before the flags of a command, as its help has them: `<!-- flags of inject -->`.
const FLAGS: &str = "<!-- flags of ";
const FLAGS_END: &str = "<!-- end of flags -->\n";
/// The width of the pages.
pub(super) const WIDTH: usize = 150;

/// Every command has a page with its flags, which are those of its help.
#[test]
fn pages_list_the_flags_of_every_command() {
    let mut listed = Vec::new();
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        let mut parts = page.split(FLAGS);
        let mut found = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once(" -->\n").expect("the marker must end");
            let (_, rest) = rest.split_once(FLAGS_END).expect("the flags must end");
            let flags = flags_as_list(&help(name));
            found.extend([FLAGS, name, " -->\n", &flags, FLAGS_END, rest]);
            listed.push(name.to_owned());
        }
        if is_blessed() {
            fs::write(&path, &found).expect("the page must be written");
            continue;
        }
        // Both texts are long.
        assert!(page == found, "{} is stale: run with BLESS=1", path.display());
    }
    // The flags of Linkerd's injector are in the help of another form, which its section shows.
    let mut expected: Vec<_> = commands().into_iter().filter(|it| it != "proxy-injector").collect();
    expected.sort();
    listed.sort();
    assert_eq!(listed, expected);
}

/// The README and the book.
pub(super) fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the pages") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The group of flags that the introduction describes for all commands.
const OF_ISTIO: &str = "Options of --mesh istio";
const OF_ISTIO_LINK: &str = "\n[Options of --mesh istio](../introduction.md#flags-of-istio)\n";

/// The flags of a short help as a list, below the headings of their groups.
fn flags_as_list(help: &str) -> String {
    let mut list = String::new();
    for (heading, entries) in groups_of_flags(help) {
        if heading == OF_ISTIO && entries.iter().any(|entry| entry.starts_with("--mesh-config")) {
            list.push_str(OF_ISTIO_LINK);
            continue;
        }
        if !heading.is_empty() {
            list.extend(["\n", &heading, ":\n\n"]);
        }
        for entry in &entries {
            add_entry(&mut list, entry);
        }
    }
    list
}

/// The headings of a short help with the lines below them, each flag in one line.
fn groups_of_flags(help: &str) -> Vec<(String, Vec<String>)> {
    let (_, options) = help.split_once("\nUsage:").expect("the usage");
    let mut groups = vec![(String::new(), Vec::<String>::new())];
    let mut is_open = false;
    for line in options.lines().skip(1) {
        let text = line.trim();
        if line == text {
            is_open = false;
            let heading = text.strip_suffix(':').unwrap_or_default();
            if !["", "Options", "Arguments"].contains(&heading) {
                groups.push((heading.to_owned(), Vec::new()));
            }
            continue;
        }
        let entries = &mut groups.last_mut().expect("a group").1;
        if text.starts_with('-') || is_argument(text) {
            is_open = true;
            entries.push(text.to_owned());
        } else if let Some(entry) = entries.last_mut().filter(|_| is_open) {
            entry.extend(["  ", text]);
        }
    }
    groups
}

#[test]
fn the_introduction_has_every_command() {
    let page = include_str!("../../docs/introduction.md");
    for command in commands() {
        assert!(page.contains(&format!("`{command}`")), "{command}");
    }
}

#[test]
fn the_introduction_has_the_flags_of_istio() {
    let page = include_str!("../../docs/introduction.md");
    for (heading, entries) in groups_of_flags(&help("inject")) {
        for entry in entries.iter().filter(|_| heading == OF_ISTIO) {
            let name = entry.split([' ', '=']).next().unwrap_or_default();
            assert!(page.contains(&format!("`{name} ")), "{name}");
        }
    }
}

/// Such as `[FILE]...` or `<URL>...`.
fn is_argument(text: &str) -> bool {
    text.starts_with(['[', '<']) && text.contains("  ")
}

fn add_entry(list: &mut String, entry: &str) {
    let (flag, about) = entry.split_once("  ").unwrap_or((entry, ""));
    if flag.ends_with("--help") || flag.ends_with("--version") {
        return;
    }
    let names: Vec<_> = flag.split(", ").map(|name| format!("`{name}`")).collect();
    let names = names.join(", ").replace(['<', '>'], "").replace("`[", "`").replace("]...`", "…`");
    list.push_str(&wrapped(&format!("- {names}: {}", variables(about.trim()))));
}

/// Without what the variables of this process are.
fn variables(about: &str) -> String {
    let mut parts = about.split("[env: ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (variable, rest) = part.split_once(']').unwrap_or((part, ""));
        let name = variable.split('=').next().unwrap_or(variable);
        text.extend(["[variable: `", name, "`]", rest]);
    }
    text
}

/// A list item in lines of the pages' width.
fn wrapped(text: &str) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines.push_str("\n ");
            width = 1;
        }
        lines.push_str(if width > 0 { " " } else { "" });
        lines.push_str(word);
        width += length + usize::from(width > 0);
    }
    lines.push('\n');
    lines
}
