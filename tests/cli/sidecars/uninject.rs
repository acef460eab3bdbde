//! `uninject --templates` and `--by-mark`.

use super::{AGENT, manifest, run, with_agent};
use crate::file;

#[test]
fn a_manifest_that_was_injected_comes_out_as_it_was() {
    for (kind, path) in
        [("Pod", ""), ("Deployment", "spec.template"), ("StatefulSet", "spec.template")]
    {
        let text = format!("# mine\nkind: Secret\n---\n{}", manifest(kind, path));
        let injected = with_agent("inject", &[], &text);
        let back = with_agent("uninject", &[], &injected.stdout);
        assert_eq!((back.code, &*back.stdout), (Some(0), &*text), "{kind}: {}", back.stderr);
        assert_eq!(back.stderr, format!("{}/web uninjected: agent\n", kind.to_lowercase()));
    }
}

#[test]
fn what_cannot_be_known_is_said_and_left() {
    let injected = with_agent("inject", &[], &manifest("Deployment", "spec.template"));
    let newer = file("agent", AGENT.replace("agent:1.20", "agent:1.21"));
    let back = run(&["uninject", "--templates", newer.path()], &injected.stdout);
    assert_eq!(back.code, Some(0));
    assert!(
        back.stderr.contains("of template agent are left: it has changed since"),
        "{}",
        back.stderr
    );
    assert!(!back.stdout.contains("agent:1.20") && back.stdout.contains("mountPath: /run/agent"));
    let by_mark = run(&["uninject", "--by-mark"], &injected.stdout);
    assert_eq!((by_mark.code, &by_mark.stdout), (Some(0), &back.stdout));
    assert!(by_mark.stderr.contains("--templates with it finds them"), "{}", by_mark.stderr);
}

#[test]
fn only_the_templates_that_are_given_are_removed() {
    let other =
        file("other", AGENT.replace("name: agent", "name: other").replace("/agent", "/other"));
    let asks = manifest("Pod", "").replace("enabled}", "enabled, example.com/other: enabled}");
    let one = with_agent("inject", &[], &asks);
    let both = run(&["inject", "--templates", other.path()], &one.stdout);
    assert!(both.stdout.contains("name: other"), "{}{}", both.stdout, both.stderr);
    let back = run(&["uninject", "--templates", other.path()], &both.stdout);
    assert!(back.stderr.contains("pod/web uninjected: other"), "{}", back.stderr);
    assert!(
        back.stdout.contains("name: agent") && !back.stdout.contains("name: other"),
        "{}",
        back.stdout
    );
    let none = run(&["uninject", "--templates", other.path()], &back.stdout);
    assert_eq!((none.code, &none.stdout), (Some(0), &back.stdout));
    assert!(
        none.stderr.contains("skipped: nothing of these templates is in it"),
        "{}",
        none.stderr
    );
    let all = with_agent("uninject", &[], &back.stdout);
    assert!(!all.stdout.contains("injectd.dev"), "{}", all.stdout);
}

#[test]
fn linkerds_removal_names_the_sidecars_of_templates_that_stay() {
    let injected = with_agent("inject", &[], &manifest("Pod", ""));
    let ran = run(&["uninject"], &injected.stdout);
    assert_eq!((ran.code, &ran.stdout), (Some(0), &injected.stdout));
    let said = "nothing of Linkerd is in it; sidecars of templates are in it (agent)";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn flags_of_both_ways_are_refused() {
    for args in [
        &["--by-mark", "--values", "/nowhere"][..],
        &["--by-mark", "--templates", "/nowhere"],
        &["--objects", "/nowhere"],
    ] {
        let ran = run(&[&["uninject"], args].concat(), "");
        assert_eq!(ran.code, Some(64), "{args:?}: {}", ran.stderr);
    }
    let ran = with_agent("uninject", &["--objects", "/nowhere"], "");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot read --objects /nowhere"), "{}", ran.stderr);
    let bad = with_agent("uninject", &[], "kind: Pod\nmetadata: {name: web}\n");
    assert_eq!((bad.code, &*bad.stdout), (Some(1), ""));
    assert!(bad.stderr.contains("pod/web rejected: spec is missing"), "{}", bad.stderr);
}
