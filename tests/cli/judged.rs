//! What `explain` and `audit` judge about objects that were once judged wrongly, as people reported
//! them.

use serde_json::Value;

use super::{
    injectd,
    istio::{Files, args},
    text,
};

fn case(name: &str) -> String {
    format!("{}/tests/cli/judged/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// The last lines of the text for people: verdict and advice, in one line.
fn conclusion(arguments: &[&str]) -> String {
    let output = injectd(arguments, "");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{arguments:?}");
    let (_, end) = text(&output.stdout).split_once("Verdict:").expect("a verdict");
    end.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_verdict_and_the_advice_are_those_of_the_pod() {
    for (name, verdict, advice) in [
        ("denied-annotation", "denied: ", "Quote the value in the manifest"),
        ("denied-type", "denied: ", "Correct the field that the denial names."),
        (
            "failing-condition",
            "not injected: webhook linkerd-proxy-injector.linkerd.io rejects the pod",
            "Correct the matchConditions of linkerd-proxy-injector-webhook-config.",
        ),
        (
            "unknown-condition",
            "injected, if the webhook is called, which is not known",
            "See whether condition c of linkerd-proxy-injector-webhook-config is true.",
        ),
    ] {
        let found = conclusion(&["explain", &case(name)]);
        assert!(found.starts_with(verdict) && found.contains(advice), "{name}: {found}");
    }
    let files = Files::valid();
    let refused = case("refused");
    let found = conclusion(&[&args(&["explain"], files.paths())[..], &[&refused]].concat());
    assert!(found.starts_with("refused, by LimitRange limits"), "{found}");
    assert!(found.contains("Change the pod as LimitRange limits asks"), "{found}");
}

#[test]
fn proxies_that_no_injector_added_are_no_finding() {
    let files = Files::valid();
    let istio = args(&["audit"], files.paths());
    for (command, name, pods) in [(&["audit"][..], "control-plane", 1), (&istio, "gateways", 2)] {
        let path = case(name);
        let output = injectd(&[command, &["-o", "json", &path]].concat(), "");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{name}");
        let audit: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (&audit["pods"]["meshed"], &audit["workloads"]),
            (&pods.into(), &Value::Array(vec![]))
        );
    }
}

/// Whose configuration is not known is not answered by the rules of the other mesh.
#[test]
fn nobody_is_told_to_install_another_mesh() {
    let output = injectd(&["explain", &case("gateways")], "");
    let shown = text(&output.stdout);
    assert!(!shown.contains("Install the webhook of Linkerd"), "{shown}");
    assert!(shown.contains("Nothing: the pod belongs to Istio itself, or has a proxy"), "{shown}");
}
