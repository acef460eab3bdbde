//! `injectd manifest guard`: the whole output for both meshes, and the output that its page shows.
//!
//! `BLESS=1` rewrites the files in `manifest` and the output in the page.

use std::{env, fs};

use super::{injectd, text};

/// Before a command and its output in the page.
const MARKER: &str = "<!-- output of the command -->\n";

fn path(name: &str) -> String {
    format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn is_blessed() -> bool {
    env::var_os("BLESS").is_some()
}

fn printed(args: &[&str]) -> String {
    let output = injectd(&[&["manifest", "guard"], args].concat(), "");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{args:?}");
    text(&output.stdout).to_owned()
}

#[test]
fn the_objects_of_both_meshes() {
    for (name, args) in [
        ("guard-linkerd.yaml", &[][..]),
        ("guard-istio.yaml", &["--mesh", "istio", "--revision", "default,canary"]),
        (
            "guard-istio-settings.yaml",
            &[
                "--mesh=istio",
                "--istio-release=1.24.6",
                "--enable-namespaces-by-default",
                "--injector-policy=disabled",
                "--never-inject-selector=job",
                "--always-inject-selector=team=shop,tier notin (old, test)",
                "--action=deny,audit",
                "--namespace-selector=guarded",
            ],
        ),
    ] {
        let found = printed(args);
        let file = path(&format!("tests/cli/manifest/{name}"));
        if is_blessed() {
            fs::write(&file, &found).expect("the file must be written");
        }
        let expected = fs::read_to_string(file).expect("must be there: run with BLESS=1");
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn the_page_shows_the_output_of_the_binary() {
    let file = path("docs/commands/manifest-guard.md");
    let page = fs::read_to_string(&file).expect("the page must be read");
    let (begin, rest) = page.split_once(MARKER).expect("the page must have the marker");
    let rest = rest.strip_prefix("```console\n$ injectd manifest guard").expect("a command");
    let (args, rest) = rest.split_once('\n').expect("the command must end");
    let (shown, end) = rest.split_once("```\n").expect("the block must end");
    let found = printed(&args.split_whitespace().collect::<Vec<_>>());
    if is_blessed() {
        let block = format!("```console\n$ injectd manifest guard{args}\n{found}```\n");
        fs::write(&file, format!("{begin}{MARKER}{block}{end}")).expect("must be written");
    } else {
        assert_eq!(shown, found, "the page is stale: run with BLESS=1");
    }
}

#[test]
fn json_is_one_list() {
    let list: serde_json::Value = serde_json::from_str(&printed(&["-o", "json"])).expect("JSON");
    assert_eq!(
        (&list["kind"], &list["items"][1]["kind"]),
        (&"List".into(), &"ValidatingAdmissionPolicyBinding".into())
    );
}

#[test]
fn wrong_flags_exit_with_64_and_one_line() {
    for (args, line) in [
        (
            &["--action", "warn,deny"][..],
            "error: --action: deny and warn exclude each other: the message of a refused pod is \
             shown anyway\n",
        ),
        (&["--revision", "a"], "error: --revision needs --mesh istio\n"),
        (
            &["--namespace-selector", "a in b"],
            "error: --namespace-selector \"a in b\": not a label selector; expected such as \
             team=shop,!old\n",
        ),
    ] {
        let output = injectd(&[&["manifest", "guard"], args].concat(), "");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(64), line));
        assert_eq!(text(&output.stdout), "");
    }
    for args in [&["manifest"][..], &["manifest", "guard", "--mesh", "x"]] {
        assert_eq!(injectd(args, "").status.code(), Some(64), "{args:?}");
    }
}
