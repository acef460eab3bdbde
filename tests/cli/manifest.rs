//! `injectd manifest guard`: the whole output for both meshes.
//!
//! `BLESS=1` rewrites the files in `manifest`.

use std::fs;

use super::{injectd, is_blessed, text};

fn path(name: &str) -> String {
    format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))
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
fn the_audit_needs_no_permission_to_change_workloads_unless_it_restarts_them() {
    let printed = |args: &[&str]| {
        let output =
            injectd(&[&["manifest", "audit", "-n", "mesh", "-o", "json"], args].concat(), "");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    let kinds = |list: &serde_json::Value| {
        let items = list["items"].as_array().expect("items");
        items.iter().map(|it| it["kind"].as_str().expect("a kind").to_owned()).collect::<Vec<_>>()
    };
    let all = printed(&[]);
    assert_eq!(kinds(&all), ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]);
    let verbs = |list: &serde_json::Value| {
        let rules = list["items"][0]["rules"].as_array().expect("rules").clone();
        let apps = rules.into_iter().find(|rule| rule["apiGroups"][0] == "apps");
        apps.expect("a rule")["verbs"].clone()
    };
    assert_eq!(verbs(&all), serde_json::json!(["get", "list", "patch"]));
    assert_eq!(verbs(&printed(&["--read-only"])), serde_json::json!(["get", "list"]));
    let yaml = injectd(&["manifest", "audit", "-n", "mesh"], "");
    assert_eq!(text(&yaml.stdout).matches("\n---\n").count(), 3);
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
