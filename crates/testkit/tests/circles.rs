//! Circles between modules: siblings that use each other, so that each is read only with the others.
//!
//! Here a module is all of its files: if `a/b.rs` uses `c/d.rs`, then `a` uses `c`. A module that uses
//! the module around it, and one that uses its own parts, makes no circle.
//!
//! The test reads paths that begin with `crate::` or `super::`, in `use` and elsewhere, without tests. A
//! name that a module takes from one of its parts (`pub use part::Name`) counts as a name of that part.
//! The test does not see methods, macros, and names that come from `use super::*`. Of
//! `use crate::a` it sees `a`, and not what the file takes from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Circles that stay, as the package and its modules.
const NATURAL: [&str; 4] = [
    // Lists contain lists with keys, whose elements contain lists: recursion over a tree.
    "merge: apply/keyed apply/lists",
    // The oracle of tests follows the specification page by page, not layer by layer.
    "reference: annotations ports",
    "reference: debug init mounts patch proxy proxy_env tracing validator",
    "reference: env_list values",
];

/// The path of a module from the root of its package.
type Module = Vec<String>;

/// The modules of a package.
#[derive(Default)]
struct Package {
    texts: BTreeMap<Module, String>,
    /// For a module, the names that it takes from its parts, and the part.
    taken: BTreeMap<Module, BTreeMap<String, Module>>,
}

/// Which sibling uses which, with an example.
type Uses = BTreeMap<Module, BTreeMap<Module, String>>;

impl Package {
    fn read(src: &Path) -> Self {
        let mut package = Self::default();
        package.read_folder(src, src);
        for (module, text) in &package.texts {
            let mut names = BTreeMap::new();
            for path in used(text) {
                let path = path.strip_prefix(&["self".to_owned()][..]).unwrap_or(&path);
                let [part, .., name] = path else { continue };
                let part = [&module[..], std::slice::from_ref(part)].concat();
                if package.texts.contains_key(&part) {
                    names.insert(name.clone(), part);
                }
            }
            package.taken.insert(module.clone(), names);
        }
        package
    }

    fn read_folder(&mut self, folder: &Path, src: &Path) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                self.read_folder(&path, src);
                continue;
            }
            let name = path.strip_prefix(src).expect("below the sources").with_extension("");
            let mut module: Module =
                name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            if !is_source || module.iter().any(|part| part == "tests") {
                continue;
            }
            module.retain(|part| part != "lib" && part != "main");
            let text = fs::read_to_string(&path).expect("a file of Rust");
            self.texts.entry(module).or_default().push_str(&without_tests(&text));
        }
    }

    /// The module that a path leads to, from the text of another one.
    fn resolve(&self, from: &[String], path: &[String]) -> Module {
        let mut module = if path[0] == "crate" { Module::new() } else { from.to_vec() };
        let mut names = path.iter().filter(|name| *name != "crate").peekable();
        while names.next_if(|name| *name == "super").is_some() {
            module.pop();
        }
        while let Some(name) = names.peek() {
            let part = [&module[..], std::slice::from_ref(*name)].concat();
            if self.texts.contains_key(&part) {
                names.next();
                module = part;
            } else if let Some(part) = self.taken[&module].get(*name) {
                module.clone_from(part);
            } else {
                break;
            }
        }
        module
    }

    fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (module, text) in &self.texts {
            for path in paths(text) {
                let other = self.resolve(module, &path);
                let shared = module.iter().zip(&other).take_while(|(one, other)| one == other);
                let depth = shared.count();
                if depth < module.len() && depth < other.len() {
                    let by_module = uses.entry(module[..=depth].to_vec()).or_default();
                    let example = format!("{}: {}", module.join("/"), path.join("::"));
                    by_module.entry(other[..=depth].to_vec()).or_insert(example);
                }
            }
        }
        uses
    }
}

/// The text without comments and without its module of tests.
fn without_tests(text: &str) -> String {
    let product = text.find("\nmod tests {").map_or(text, |end| &text[..end]);
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    product.lines().filter(is_code).flat_map(|line| [line, "\n"]).collect()
}

/// The paths of a text that begin with `crate::` or `super::`.
fn paths(text: &str) -> Vec<Module> {
    let begins = ["crate::", "super::"].into_iter().flat_map(|begin| text.match_indices(begin));
    let is_inside = |letter: char| letter.is_alphanumeric() || ":$_".contains(letter);
    let is_begin = |at: usize| !text[..at].ends_with(is_inside);
    let mut found = Vec::new();
    for (at, _) in begins.filter(|(at, _)| is_begin(*at)) {
        tree(&text[at..], &[], &mut found);
    }
    found
}

/// The paths of the declarations `use`.
fn used(text: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let line = text[..at].rsplit('\n').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with("pub") {
            tree(&text[at + "use ".len()..], &[], &mut found);
        }
    }
    found
}

/// Reads a path, or several that begin alike: `a::{b, c::d}`. Returns the text behind it.
fn tree<'t>(text: &'t str, before: &[String], found: &mut Vec<Module>) -> &'t str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let path = [before, &[name.to_owned()]].concat();
    let Some(more) = rest.strip_prefix("::") else {
        found.push(path);
        return rest;
    };
    let Some(mut list) = more.strip_prefix('{') else { return tree(more, &path, found) };
    while !list.trim_start().starts_with('}') && !list.is_empty() {
        list = tree(list.trim_start(), &path, found);
        // An alias, `as _`.
        let next = list.find([',', '}']).unwrap_or(list.len());
        list = list[next..].trim_start_matches(',');
    }
    list.trim_start().trim_start_matches('}')
}

/// The modules in the order in which all that they use was visited (Kosaraju's algorithm).
fn visit(at: &Module, uses: &Uses, seen: &mut BTreeSet<Module>, done: &mut Vec<Module>) {
    if seen.insert(at.clone()) {
        for next in uses.get(at).into_iter().flat_map(BTreeMap::keys) {
            visit(next, uses, seen, done);
        }
        done.push(at.clone());
    }
}

/// Modules of which each uses all others, directly or not.
fn circles(uses: &Uses) -> Vec<Vec<Module>> {
    let mut reverse = Uses::new();
    for (user, others) in uses {
        for other in others.keys() {
            reverse.entry(other.clone()).or_default().insert(user.clone(), String::new());
        }
    }
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    for module in uses.keys() {
        visit(module, uses, &mut seen, &mut order);
    }
    seen.clear();
    let mut found = Vec::new();
    for module in order.iter().rev() {
        let mut circle = Vec::new();
        visit(module, &reverse, &mut seen, &mut circle);
        circle.sort();
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found.sort();
    found
}

/// The circles of a package by name, each with the uses in it.
fn named(package: &str, uses: &Uses) -> Vec<(String, String)> {
    let named = |circle: Vec<Module>| {
        let names: Vec<_> = circle.iter().map(|module| module.join("/")).collect();
        let examples = circle.iter().filter_map(|module| uses.get(module)).flatten();
        let inside = examples.filter(|(other, _)| circle.contains(other));
        let lines: Vec<_> = inside.map(|(_, example)| format!("\n    {example}")).collect();
        (format!("{package}: {}", names.join(" ")), lines.concat())
    };
    circles(uses).into_iter().map(named).collect()
}

fn packages() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = fs::read_dir(root.join("crates")).expect("the packages");
    let folders = folders.map(|entry| entry.expect("an entry").path());
    let name =
        |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut packages: Vec<_> = folders.map(|folder| (name(&folder), folder.join("src"))).collect();
    packages.push(("injectd".to_owned(), root.join("src")));
    packages.sort();
    packages
}

#[test]
fn siblings_form_no_circle() {
    let mut known: BTreeSet<_> = NATURAL.into_iter().collect();
    let mut problems = Vec::new();
    for (package, src) in packages() {
        let package_modules = Package::read(&src);
        assert!(!package_modules.texts.is_empty(), "{package} has no sources");
        for (name, lines) in named(&package, &package_modules.uses()) {
            if !known.remove(&*name) {
                problems.push(format!("the modules form a circle: {name}{lines}"));
            }
        }
    }
    problems.extend(known.iter().map(|name| format!("no circle any more, remove it: {name}")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_circle_is_found_behind_names_that_a_module_passes_on() {
    let mut package = Package::default();
    for (module, text) in [
        ("", "pub mod a; pub mod b;\npub use b::c::Name;"),
        ("a", "use std::fmt;\nuse crate::Name as Other;"),
        ("b", "mod c; mod d;"),
        ("b/c", "use super::{\n    d::{self, D as _},\n    e::E,\n};"),
        ("b/d", "fn run() -> crate::a::A { super::run() }"),
    ] {
        let module = module.split('/').filter(|part| !part.is_empty()).map(str::to_owned);
        package.texts.insert(module.collect(), text.to_owned());
    }
    let root = BTreeMap::from([("Name".to_owned(), vec!["b".to_owned(), "c".to_owned()])]);
    let empty = package.texts.keys().map(|module| (module.clone(), BTreeMap::new()));
    package.taken = empty.chain([(Module::new(), root)]).collect();
    let found = named("p", &package.uses());
    let uses = "\n    a: crate::Name\n    b/d: crate::a::A";
    assert_eq!(found, [("p: a b".to_owned(), uses.to_owned())]);
}
