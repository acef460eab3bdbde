//! Exit codes: man page and page of a command name the same ones, and each one is what a run ends with.

use std::{collections::BTreeSet, fs, path::Path, process::Stdio};

use super::{
    command,
    commands::commands,
    example, file, injectd, is_blessed,
    pages::{WIDTH, pages},
    text,
};

/// A command that ends with a code.
struct Run {
    code: i32,
    /// The command, without its flags.
    command: &'static str,
    /// Its flags and files; `FILE` is one with the text.
    args: &'static str,
    text: &'static str,
}

impl Run {
    const fn new(code: i32, command: &'static str, args: &'static str, text: &'static str) -> Self {
        Self { code, command, args, text }
    }
}

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: \
                   {containers: [{name: web, image: a}]}\n";
/// A template with problems.
const BROKEN: &str = "kind: SidecarTemplate";
const NO_PODS: &str = "kind: Secret\n";
const NOT_YAML: &str = "kind: Pod\nmetadata: [\n";
const REVIEW: &str = r#"{"request":{"uid":"1","namespace":"a","object":{"kind":"Pod"}}}"#;
const WEBHOOKS: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n\
                        metadata: {name: none}\nwebhooks: []\n";
/// A webhook without the fields that the API server requires.
const INCOMPLETE: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n\
                          metadata: {name: none}\nwebhooks: [{name: a.example.com}]\n";
/// A stdout to which nothing can be written.
const FULL: &str = "/dev/full";

const RUNS: &[Run] = &[
    Run::new(0, "inject", "FILE", POD),
    Run::new(1, "inject", "FILE", NOT_YAML),
    Run::new(3, "inject", "--fail-on warning FILE", NO_PODS),
    Run::new(3, "inject", "--templates FILE examples/deployment.yaml", BROKEN),
    Run::new(3, "review", "--templates FILE -", BROKEN),
    Run::new(3, "explain", "--templates FILE examples/deployment.yaml", BROKEN),
    Run::new(0, "uninject", "FILE", POD),
    Run::new(1, "uninject", "FILE", NOT_YAML),
    Run::new(3, "uninject", "--fail-on warning FILE", NO_PODS),
    Run::new(0, "explain", "FILE", POD),
    Run::new(1, "explain", "/nowhere", ""),
    Run::new(0, "audit", "--fail-on none FILE examples/explain.yaml", POD),
    Run::new(1, "audit", "FILE", POD),
    Run::new(3, "audit", "FILE examples/explain.yaml", POD),
    Run::new(1, "restart", "deploy/web", ""),
    Run::new(0, "manifest install", "-n a --set image.repository=registry.example.com/injectd", ""),
    Run::new(1, "manifest install", "-n a -f /nowhere", ""),
    Run::new(0, "manifest check", "FILE", WEBHOOKS),
    Run::new(1, "manifest check", "FILE", POD),
    Run::new(0, "manifest check", "examples/explain.yaml", ""),
    Run::new(0, "manifest check", "examples/audit.yaml", ""),
    Run::new(3, "manifest check", "FILE", INCOMPLETE),
    Run::new(0, "manifest guard", "--mesh linkerd", ""),
    Run::new(1, "manifest guard", "--mesh linkerd", FULL),
    Run::new(1, "manifest guard", "--mesh templates --templates /nowhere", ""),
    Run::new(3, "manifest guard", "--mesh templates --templates FILE", BROKEN),
    Run::new(0, "manifest crds", "", ""),
    Run::new(1, "manifest crds", "", FULL),
    Run::new(0, "manifest audit", "-n a --service-account a", ""),
    Run::new(1, "manifest audit", "-n a --service-account a", FULL),
    Run::new(0, "template check", "tests/cli/template/agent/template.yaml", ""),
    Run::new(1, "template check", "FILE", POD),
    Run::new(3, "template check", "FILE", BROKEN),
    Run::new(0, "template test", "tests/cli/template/agent", ""),
    Run::new(1, "template test", "/nowhere", ""),
    Run::new(3, "template test", "tests/cli/template/failing", ""),
    Run::new(1, "serve", "--standalone --tls-cert /nowhere --tls-key /nowhere", ""),
    Run::new(0, "proxy-injector", "-version", ""),
    Run::new(1, "proxy-injector", "-kubeconfig /nowhere", ""),
    Run::new(1, "probe", "http://127.0.0.1:1/ready", ""),
    Run::new(1, "compare", "FILE", ""),
    Run::new(0, "review", "FILE", REVIEW),
    Run::new(1, "review", "FILE", "no review"),
    Run::new(0, "version", "", ""),
    Run::new(1, "version", "", FULL),
    Run::new(0, "completion", "bash", ""),
    Run::new(1, "completion", "bash", FULL),
    Run::new(0, "man", "FOLDER", ""),
    Run::new(1, "man", "/nowhere/man/man1", ""),
];

/// Codes that other tests see: the command, the code, and the test.
const ELSEWHERE: [(&str, i32, &str, &str); 6] = [
    ("restart", 0, RESTART, "acts"),
    ("restart", 3, RESTART, "acts"),
    ("serve", 0, "tests/faults/shutdown.rs", "ends_at_once"),
    ("probe", 0, "tests/cli/probe.rs", "a_server_is_ready_or_not"),
    ("compare", 0, COMPARE, "compare_finds_a_planted_difference_and_prints_its_place"),
    ("compare", 3, COMPARE, "compare_finds_a_planted_difference_and_prints_its_place"),
];
const RESTART: &str = "e2e/tests/scenarios/restart/command.rs";
const COMPARE: &str = "tests/cli/compare.rs";

const USAGE: i32 = 64;
const GO_USAGE: i32 = 2;
/// Stands before the exit codes of a command: `<!-- exit codes of inject -->`.
const CODES: &str = "<!-- exit codes of ";
const CODES_END: &str = "<!-- end of exit codes -->\n";
/// Wrong usage ends it with Go's code.
const OTHER: &str = "proxy-injector";

/// The exit codes of a command in its man page, with their meaning.
fn of_man(folder: &Path, command: &str) -> Vec<(i32, String)> {
    let page = folder.join(format!("injectd-{}.1", command.replace(' ', "-")));
    let page = fs::read_to_string(page).expect("a man page");
    let (_, section) = page.split_once("\n.SH EXIT STATUS\n").expect("the section");
    let section = section.split(".SH").next().unwrap_or_default();
    let entries = section.split(".TP\n").skip(1).map(|entry| {
        let (code, meaning) = entry.split_once('\n').expect("a code and its meaning");
        (code.parse().expect("a number"), meaning.trim_end().replace("\\-", "-"))
    });
    entries.collect()
}

/// A text with its flags as code.
fn with_flags(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let flag = word.trim_end_matches([':', ',', ';']);
        let is_flag = flag.starts_with("--");
        if is_flag { word.replacen(flag, &format!("`{flag}`"), 1) } else { word.to_owned() }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn man_pages() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let output = injectd(&["man", folder.path().to_str().expect("UTF-8")], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    folder
}

#[test]
fn pages_have_the_exit_codes_of_every_command() {
    let man = man_pages();
    let mut listed = Vec::new();
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        let mut parts = page.split(CODES);
        let mut found = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once(" -->\n").expect("the marker must end");
            let (_, rest) = rest.split_once(CODES_END).expect("the exit codes must end");
            let lines = of_man(man.path(), name).into_iter().map(|(code, meaning)| {
                let line = format!("- {code}: {}\n", with_flags(&meaning));
                assert!(line.chars().count() <= WIDTH, "{line}");
                line
            });
            found.extend([CODES, name, " -->\n", &lines.collect::<String>(), CODES_END, rest]);
            listed.push(name.to_owned());
        }
        if is_blessed() {
            fs::write(&path, &found).expect("the page must be written");
            continue;
        }
        // Both texts are long.
        assert!(page == found, "{} is stale: run with BLESS=1", path.display());
    }
    let mut expected = commands();
    expected.sort();
    listed.sort();
    assert_eq!(listed, expected);
}

#[test]
fn every_exit_code_of_a_man_page_is_reached_and_no_other() {
    let man = man_pages();
    let mut seen: BTreeSet<_> = RUNS.iter().map(|run| (run.command.to_owned(), run.code)).collect();
    for (command, code, file, test) in ELSEWHERE {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let source = fs::read_to_string(path).expect("the source of a test");
        assert!(source.contains(&format!("fn {test}(")), "{test} of {file}");
        seen.insert((command.to_owned(), code));
    }
    for command in commands() {
        let usage = if command == OTHER { GO_USAGE } else { USAGE };
        assert_eq!(run_of(&format!("{command} --nonsense"), ""), Some(usage), "{command}");
        seen.insert((command, usage));
    }
    let named: BTreeSet<_> = commands()
        .into_iter()
        .flat_map(|command| {
            let codes = of_man(man.path(), &command);
            codes.into_iter().map(move |(code, _)| (command.clone(), code))
        })
        .collect();
    assert_eq!(seen, named);
    for Run { code, command, args, text } in RUNS {
        let found = run_of(&format!("{command} {args}"), text);
        assert_eq!(found, Some(*code), "{command} {args}");
    }
}

/// The exit code of a command line with a text in `FILE`, or with a stdout that is full.
fn run_of(line: &str, content: &str) -> Option<i32> {
    let folder = tempfile::tempdir().expect("a folder");
    let input = file("input", content);
    let words = line.split_whitespace().map(|word| match word {
        "FILE" => input.path().to_owned(),
        "FOLDER" => folder.path().join("man").display().to_string(),
        word => word.strip_prefix("examples/").map_or_else(|| word.to_owned(), example),
    });
    let mut command = command(&words.collect::<Vec<_>>());
    if content == FULL {
        command.stdout(fs::File::options().write(true).open(FULL).expect("the device"));
    } else {
        command.stdout(Stdio::null());
    }
    command.stderr(Stdio::null()).status().expect("the binary must run").code()
}

/// The list of the introduction names the commands that end with 3, and that 2 is of one command.
#[test]
fn the_introduction_has_every_exit_code() {
    let man = man_pages();
    let page = include_str!("../../docs/introduction.md");
    let (_, section) = page.split_once("## Exit codes\n").expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let codes: Vec<_> = section.split("\n- ").skip(1).collect();
    let of = |code: i32| codes.iter().find(|entry| entry.starts_with(&format!("{code}: ")));
    let findings = of(3).expect("findings");
    for command in commands() {
        for (code, _) in of_man(man.path(), &command) {
            assert!(of(code).is_some(), "{code}");
            if code == 3 {
                assert!(findings.contains(&format!("`{command}`")), "{command}");
            }
        }
    }
    assert!(of(2).is_some_and(|entry| entry.contains("`proxy-injector`")));
    assert_eq!(codes.len(), 5);
}
