//! Links of the pages lead to files and headings that exist, and the book has every page.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

/// Folders without pages of the project.
const SKIPPED: [&str; 4] = ["target", ".git", "node_modules", "runs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The pages of the repository with their texts, by their path from its top.
fn pages() -> BTreeMap<PathBuf, String> {
    let root = root();
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !path.is_symlink() && !SKIPPED.contains(&name) {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).expect("a page");
                let name = path.strip_prefix(&root).expect("below the top").to_owned();
                found.insert(name, text);
            }
        }
    }
    found
}

/// The lines of a page that are no code.
fn prose(page: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push(line);
        }
    }
    lines
}

/// The anchors of the headings, as GitHub and mdbook make them.
fn anchors(page: &str) -> Vec<String> {
    let headings = prose(page).into_iter().filter(|line| line.starts_with('#'));
    headings.map(|line| slug(line.trim_start_matches('#').trim())).collect()
}

fn slug(heading: &str) -> String {
    let kept = |sign: &char| sign.is_alphanumeric() || " -_".contains(*sign);
    let text: String = heading.to_lowercase().chars().filter(kept).collect();
    text.replace(' ', "-")
}

/// Targets of `[text](target)` and of `[text]: target`.
fn links(page: &str) -> Vec<String> {
    // What stands between backquotes is no link.
    let text: String = prose(page).join("\n").split('`').step_by(2).collect();
    let mut found = Vec::new();
    for part in text.split("](").skip(1) {
        found.extend(part.split_once(')').map(|(target, _)| target.to_owned()));
    }
    let defined = text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    found.extend(defined.map(|(_, target)| target.to_owned()));
    found.retain(|target| !target.contains("://") && !target.contains(char::is_whitespace));
    found
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

#[test]
fn tables_fit_into_a_terminal() {
    const MAX_COLUMNS: usize = 150;
    for (name, page) in pages() {
        for row in prose(&page).into_iter().filter(|line| line.starts_with('|')) {
            let columns = row.chars().count();
            assert!(columns <= MAX_COLUMNS, "{}: make it a list: {row}", name.display());
        }
    }
}

#[test]
fn links_lead_to_files_and_headings() {
    let (root, pages) = (root(), pages());
    assert!(pages.len() > 30, "{} pages", pages.len());
    let anchors: BTreeMap<_, _> = pages.iter().map(|(path, text)| (path, anchors(text))).collect();
    let mut problems = Vec::new();
    for (path, text) in &pages {
        for link in links(text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = path.parent().unwrap_or(Path::new(""));
            let target = if file.is_empty() { path.clone() } else { plain(&folder.join(file)) };
            let known = anchors.get(&target);
            if !root.join(&target).exists() {
                problems.push(format!("{}: {link} is not there", path.display()));
            } else if known.is_some_and(|known| {
                !anchor.is_empty() && known.iter().filter(|one| *one == anchor).count() != 1
            }) {
                problems.push(format!("{}: {link} leads to no heading, or two", path.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn the_book_has_every_page_once() {
    let pages = pages();
    let summary = &pages[Path::new("docs/SUMMARY.md")];
    let listed = links(summary);
    let unique: BTreeSet<_> = listed.iter().collect();
    assert_eq!(listed.len(), unique.len(), "a page is listed twice");
    for path in pages.keys().filter_map(|path| path.strip_prefix("docs").ok()) {
        let name = path.to_str().expect("a name");
        assert!(name == "SUMMARY.md" || listed.iter().any(|one| one == name), "{name}");
    }
}

/// What an alert prints is a link to the section on it.
#[test]
fn runbooks_of_alerts_are_headings() {
    let rules = fs::read_to_string(root().join("deploy/prometheus-rules.yaml")).expect("rules");
    let pages = pages();
    let mut alerts = 0;
    for line in rules.lines() {
        let Some(runbook) = line.trim().strip_prefix("runbook: ") else { continue };
        let (page, anchor) = runbook.split_once('#').expect("an anchor");
        let known = anchors(&pages[Path::new(page)]);
        assert!(known.iter().any(|one| one == anchor), "{runbook}");
        alerts += 1;
    }
    assert!(alerts > 20, "{alerts} alerts");
}

/// The page lists the alerts of each severity.
#[test]
fn the_page_lists_every_alert_with_its_severity() {
    let rules = fs::read_to_string(root().join("deploy/prometheus-rules.yaml")).expect("rules");
    let (mut alert, mut expected) = ("", BTreeSet::new());
    for line in rules.lines().map(str::trim) {
        alert = line.strip_prefix("- alert: ").unwrap_or(alert);
        if let Some(severity) = line.strip_prefix("labels: {severity: ") {
            expected.insert(format!("{} {alert}", severity.trim_end_matches('}')));
        }
    }
    let pages = pages();
    let page = &pages[Path::new("docs/operations.md")];
    let (mut severity, mut listed) = ("", BTreeSet::new());
    for line in prose(page) {
        let item = line.strip_prefix("- ").and_then(|item| item.split_once(": "));
        let begins = item.map(|(name, _)| name);
        severity = match begins.filter(|name| ["critical", "warning", "info"].contains(name)) {
            Some(name) => name,
            None if line.starts_with("  ") => severity,
            None => "",
        };
        let names = line.split('`').filter(|name| name.starts_with("Injectd"));
        listed.extend(
            names.filter(|_| !severity.is_empty()).map(|name| format!("{severity} {name}")),
        );
    }
    assert_eq!(listed, expected);
}

#[test]
fn headings_become_anchors() {
    for (heading, anchor) in [
        ("7. Seen on the real binaries", "7-seen-on-the-real-binaries"),
        ("2.8 proxy-additional-env (≥26.4.3)", "28-proxy-additional-env-2643"),
        ("`config`", "config"),
    ] {
        assert_eq!(slug(heading), anchor);
    }
}
