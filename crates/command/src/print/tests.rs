use std::{
    fs,
    path::{Path, PathBuf},
};

use super::*;

#[test]
fn lines_hold_no_command_of_a_ci_system() {
    for (text, expected) in [
        ("::error::x", r":\u{3a}error::x"),
        ("  ::add-mask::x ::b", r"  :\u{3a}add-mask::x :\u{3a}b"),
        ("a::b [::1]:80 ::1 ::", "a::b [::1]:80 ::1 ::"),
        (":::a :: ::::", ":::a :: ::::"),
        ("a ##vso[task.x]", r"a #\u{23}vso[task.x]"),
        ("##[error]##[x]", r"#\u{23}[error]#\u{23}[x]"),
        ("###[a] ##a##b[ ## c[", r"##\u{23}[a] ##a#\u{23}b[ ## c["),
        ("a\n::error::x\u{9b}", r"a\n::error::x\u{9b}"),
    ] {
        let line = shown(text);
        assert_eq!(line, expected);
        assert_eq!(shown(&line), line);
    }
}

#[test]
fn reports_are_the_same_values_without_commands() {
    let report = serde_json::json!({"##[a]": "##vso[b]\n::error::c\u{9b}"});
    let text = json_report(&report).expect("JSON");
    assert_eq!(text, "{\n  \"#\\u0023[a]\": \"#\\u0023vso[b]\\n::error::c\\u009b\"\n}\n");
    assert_eq!(serde_json::from_str::<Value>(&text).ok().as_ref(), Some(&report));
    let mut out = Vec::new();
    Printer::new(&mut out).yaml(&report).expect("must be printed");
    let text = String::from_utf8(out).expect("text");
    assert_eq!(text, "\"#\\x23[a]\": \"#\\x23vso[b]\\n::error::c\\u009b\"\n");
    assert_eq!(injectd_core::yaml::parse(&text).ok().as_ref(), Some(&report));
}

#[test]
fn xml_has_references_for_what_it_allows() {
    let text = xml("<a b='\"'>&\t\r\n\u{202e}\u{9b}\u{1b}\0\u{ffff}ü##[x]");
    let expected = "&lt;a b=&apos;&quot;&apos;&gt;&amp;&#x9;&#xd;&#xa;&#x202e;&#x9b;\
        \\u{1b}\\0\\u{ffff}ü#&#x23;[x]";
    assert_eq!(text, expected);
}

/// Calls `read` with each file of Rust in a folder.
fn each_source(folder: &Path, read: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            each_source(&path, read);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            read(&path, &fs::read_to_string(&path).expect("a file"));
        }
    }
}

/// The folder of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources of the packages that users run.
fn sources_of_packages() -> Vec<PathBuf> {
    let root = root();
    let packages = fs::read_dir(root.join("crates")).expect("the packages");
    let packages = packages.map(|entry| entry.expect("an entry").path());
    let is_run = |package: &PathBuf| {
        !["harness", "reference", "testkit"].iter().any(|tests| package.ends_with(tests))
    };
    packages.filter(is_run).chain([root]).map(|package| package.join("src")).collect()
}

#[test]
fn no_other_module_prints() {
    let root = root();
    // The log escapes by the same rule.
    let printers =
        ["crates/command/src/print.rs", "crates/telemetry/src/log.rs"].map(|file| root.join(file));
    let mut found = Vec::new();
    let mut read = |path: &Path, text: &str| {
        let prints = ["io::stdout", "io::stderr"].iter().any(|stream| text.contains(stream));
        if prints && !path.ends_with("print/tests.rs") {
            found.push(path.to_owned());
        }
    };
    for folder in sources_of_packages() {
        each_source(&folder, &mut read);
    }
    found.sort();
    assert_eq!(found, printers);
}
