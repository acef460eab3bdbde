//! Rules for the text of the code that no lint has.
//!
//! Each has the number of places that do not keep it yet. A new place fails the test, and so does a number
//! that is too high: it only falls.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A rule.
struct Rule {
    name: &'static str,
    /// What to do instead.
    instead: &'static str,
    /// Where it holds.
    holds: fn(&Source) -> bool,
    /// The places in a file that do not keep it.
    count: fn(&Source) -> usize,
    /// The places that do not keep it yet.
    open: usize,
}

/// A file of Rust.
struct Source {
    /// From the root of the project.
    path: String,
    text: String,
    /// The bytes before its module of tests.
    product: usize,
}

/// Longest file without its tests; a reader sees a whole one.
const MAX_LINES: usize = 400;

/// Roots on the way of a review. Each file below that uses trees says so itself.
const WITHOUT_TREES: [&str; 11] = [
    "crates/cluster/src/lib.rs",
    "crates/core/src/lib.rs",
    "crates/profiles/src/lib.rs",
    "crates/profiles/src/profile.rs",
    "src/admin.rs",
    "src/grpc.rs",
    "src/lib.rs",
    "src/main.rs",
    "src/observer.rs",
    "src/server.rs",
    "src/webhook.rs",
];

/// Folders with the modules of the service. The root of a module says whether trees may be used in it.
const OF_THE_SERVICE: [&str; 4] =
    ["crates/cluster/src", "crates/controllers/src", "crates/profiles/src", "src"];

const RULES: [Rule; 5] = [
    Rule {
        name: "a file of a package has at most 400 lines without its tests",
        instead: "divide it",
        holds: |source| source.path.contains("src/") && !source.is_test() && !source.is_generated(),
        count: |source| usize::from(source.product().lines().count() > MAX_LINES),
        open: 0,
    },
    Rule {
        name: "a parameter is no tuple",
        instead: "give the pair a name: a struct; or take two parameters",
        // Its own test has examples.
        holds: |source| !source.path.ends_with("/house.rs"),
        count: |source| {
            source.text.match_indices("fn ").map(|(at, _)| tuples(&source.text[at..])).sum()
        },
        open: 0,
    },
    Rule {
        name: "a closure names what it takes",
        instead: "name the thing, not `it`",
        holds: Source::is_product,
        count: |source| source.product().matches("|it|").count(),
        open: 0,
    },
    Rule {
        name: "a comment does not tell",
        instead: "write says, names, shows, returns or records",
        holds: |source| !source.is_generated(),
        count: |source| comments(&source.text).map(tells).sum(),
        open: 0,
    },
    Rule {
        name: "a waiver of disallowed_types is at the root of a program or of a module of the service",
        instead: "move it there",
        holds: |source| !source.is_root() && !source.path.ends_with("/house.rs"),
        count: |source| {
            let all = source.text.matches("clippy::disallowed_types").count();
            all - source.text.matches("deny(clippy::disallowed_types").count()
        },
        open: 28,
    },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of Rust that are written by hand, or generated and kept.
fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders: Vec<_> = ["benches", "crates", "e2e", "loadtest", "src", "tests"]
        .map(|name| root().join(name))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a file of Rust");
                let product = text.find("\nmod tests {").unwrap_or(text.len());
                let path = path.strip_prefix(root()).expect("below the root");
                found.push(Source { path: path.display().to_string(), text, product });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

impl Source {
    /// The text without its module of tests.
    fn product(&self) -> &str {
        &self.text[..self.product]
    }

    /// Whether a program wrote it.
    fn is_generated(&self) -> bool {
        self.path.ends_with(".v1.rs")
    }

    /// Whether it is the root of a library, of a program, of a test, or of a module of the service in which
    /// trees may be used.
    fn is_root(&self) -> bool {
        if WITHOUT_TREES.contains(&&*self.path) {
            return false;
        }
        let (folder, file) = self.path.rsplit_once('/').unwrap_or_default();
        let is_test = folder.ends_with("tests") && !folder.contains("src/");
        ["lib.rs", "main.rs"].contains(&file) || is_test || OF_THE_SERVICE.contains(&folder)
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests")
    }

    /// Whether users run it.
    fn is_product(&self) -> bool {
        let in_package = |name: &str| self.path.starts_with(&format!("crates/{name}/"));
        let is_test = ["harness", "reference", "testkit"].into_iter().any(in_package);
        self.path.contains("src/") && !is_test && !self.is_test()
    }
}

/// The tuples among the parameters of a function, whose text begins with `fn `.
fn tuples(text: &str) -> usize {
    let Some(open) = parameters(text) else { return 0 };
    let (mut depth, mut is_begin, mut count) = (0_u32, true, 0);
    for (at, letter) in text[open..].char_indices() {
        match letter {
            '(' | '[' | '<' => {
                // `(): &()` has no names.
                let is_pair = letter == '(' && depth == 1 && is_begin;
                count += usize::from(is_pair && !text[open + at..].starts_with("()"));
                depth += 1;
                is_begin = depth == 1;
            }
            '>' if text[..open + at].ends_with('-') => {}
            ')' | ']' | '>' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
                is_begin = false;
            }
            ',' => is_begin = depth == 1,
            _ => is_begin &= letter.is_whitespace(),
        }
    }
    count
}

/// Where the parameters begin: behind the name and its generics.
fn parameters(text: &str) -> Option<usize> {
    let mut generics = 0_u32;
    let bytes = text.as_bytes();
    for (at, letter) in text.char_indices().skip(3) {
        match letter {
            '<' => generics += 1,
            '>' if bytes[at - 1] != b'-' => generics = generics.checked_sub(1)?,
            '(' if generics == 0 => return Some(at),
            '{' | ';' | '"' => return None,
            _ => {}
        }
    }
    None
}

fn comments(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_start).filter(|line| line.starts_with("//"))
}

/// How often a comment has the verb.
fn tells(comment: &str) -> usize {
    let words = comment.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| ["tell", "tells", "telling", "told"].contains(word)).count()
}

#[test]
fn the_places_that_do_not_keep_a_rule_become_fewer() {
    let sources = sources();
    assert!(sources.len() > 500, "{} files", sources.len());
    let mut problems = Vec::new();
    for Rule { name, instead, holds, count, open } in RULES {
        let found: Vec<_> = sources
            .iter()
            .filter(|source| holds(source))
            .map(|source| (count(source), &source.path))
            .filter(|(count, _)| *count > 0)
            .collect();
        let all: usize = found.iter().map(|(count, _)| count).sum();
        if all > open {
            let places: Vec<_> =
                found.iter().map(|(count, path)| format!("  {path}: {count}")).collect();
            problems.push(format!(
                "{name}: {all} places do not keep it, {open} before; {instead}:\n{}",
                places.join("\n")
            ));
        } else if all < open {
            problems.push(format!("{name}: {all} places are left; set `open` to it"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A file or a folder of the documentation that a comment names is there.
#[test]
fn pages_that_comments_name_exist() {
    let mut missing = Vec::new();
    for Source { path, text, .. } in sources() {
        for line in comments(&text) {
            let words = line
                .split(|letter: char| letter.is_whitespace() || "`()[]<>,;\"'".contains(letter));
            for word in words.filter(|word| word.starts_with("docs/")) {
                let page = word.split('#').next().unwrap_or(word).trim_end_matches(['.', ':']);
                if !root().join(page).exists() {
                    missing.push(format!("{path}: {page}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn tuples_are_found_among_parameters() {
    for (text, expected) in [
        ("fn a(b: (u8, u8))", 0),
        ("fn a((b, c): (u8, u8), (d, e): &(u8, u8)) {", 2),
        ("fn a<T>(&self, f: impl Fn((u8, u8)) -> u8, (b, c): (u8, u8))", 1),
        ("fn a<F: Fn(u8) -> u8>((b, c): (u8, u8), f: F) {", 1),
        ("fn a<\n    F,\n>(\n    (b, c): (u8, u8),\n) {", 1),
        ("fn a((): &()) {}", 0),
        ("fn call() { a((1, 2)) }", 0),
    ] {
        assert_eq!(tuples(text), expected, "{text}");
    }
}
