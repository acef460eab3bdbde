//! `audit --templates`, and what `restart` makes of its findings.

use std::fs;

use serde_json::{Value, json};

use super::{AGENT, Ran, run};
use crate::file;

/// A pod of a StatefulSet in a namespace that asks for the agent.
fn pod(name: &str, annotations: &Value) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": name,
        "controller": true});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{name}-0"),
            "namespace": "shop", "annotations": annotations, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "app", "image": "app"}]}})
}

fn namespace() -> Value {
    let labels = json!({"example.com/agent": "enabled"});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}})
}

fn owner(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "shop", "uid": name}})
}

/// A webhook of templates that is called for pods with this label.
fn webhook(label: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "injectd"}, "webhooks": [{
            "name": "templates.injectd.dev", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "clientConfig": {"service": {"name": "injectd", "namespace": "injectd", "path": "/templates"}},
            "objectSelector": {"matchExpressions": [{"key": label, "operator": "DoesNotExist"}]},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["pods"]}]}]})
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// The pod as the webhook of this template changes it.
fn injected(template: &str, pod: &Value) -> Value {
    let template = file("agent", template);
    let input = list(&[namespace(), pod.clone()]);
    let ran = run(&["inject", "--templates", template.path(), "-o", "json", "-"], &input);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let items: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    items["items"][1].clone()
}

fn audited(args: &[&str], items: &[Value]) -> Ran {
    let template = file("agent", AGENT);
    let args = [&["audit", "--templates", template.path(), "-"], args].concat();
    run(&args, &list(items))
}

/// By workload: the finding and the reason.
fn rows(ran: &Ran) -> Vec<(String, String, String)> {
    let audit: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let text = |row: &Value, field: &str| row[field].as_str().expect("a text").to_owned();
    let rows = audit["workloads"].as_array().expect("rows");
    rows.iter().map(|row| (text(row, "name"), text(row, "finding"), text(row, "reason"))).collect()
}

/// Four pods: as it should be, without the template, with an older one, with one that it should not have.
fn pods() -> Vec<Value> {
    let none = json!({});
    let older = AGENT.replace("agent:1.20", "agent:1.19");
    let mut off = injected(AGENT, &pod("off", &none));
    off["metadata"]["annotations"]["example.com/agent"] = "disabled".into();
    vec![
        namespace(),
        injected(AGENT, &pod("fine", &none)),
        pod("bare", &none),
        injected(&older, &pod("old", &none)),
        off,
    ]
}

fn owners() -> Vec<Value> {
    ["fine", "bare", "old", "off"].map(owner).to_vec()
}

#[test]
fn pods_of_a_folder_are_compared_with_templates() {
    let folder = tempfile::tempdir().expect("a folder");
    for (index, object) in pods().into_iter().chain(owners()).enumerate() {
        fs::write(folder.path().join(format!("{index}.json")), object.to_string())
            .expect("written");
    }
    let template = file("agent", AGENT);
    let path = folder.path().to_str().expect("text");
    let ran = run(&["audit", "--templates", template.path(), path, "-o", "json"], "");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let audit: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let counts = &audit["pods"];
    let counted = ["total", "meshed", "missing", "outdated", "unexpected", "unknown"];
    assert_eq!(counted.map(|count| counts[count].as_u64().expect("a number")), [4, 1, 1, 1, 1, 0]);
    let rows = rows(&ran);
    let of = |name: &str| {
        let row = rows.iter().find(|(workload, ..)| workload == name).expect("a row");
        (row.1.as_str(), row.2.as_str())
    };
    let (finding, reason) = of("bare");
    assert_eq!(finding, "missing");
    assert!(reason.starts_with("template agent ") && reason.ends_with("not in it"), "{reason}");
    let (finding, reason) = of("old");
    assert_eq!(finding, "outdated");
    assert!(reason.starts_with("template agent ") && reason.contains(", now "), "{reason}");
    let (finding, reason) = of("off");
    assert_eq!(finding, "unexpected");
    assert!(reason.ends_with("would not be in a new pod: disabled"), "{reason}");
}

#[test]
fn only_pods_for_which_the_webhook_is_called_count() {
    let all = |label: &str| [pods(), owners(), vec![webhook(label)]].concat();
    let ran = audited(&["-o", "json"], &all("nothing"));
    let findings: Vec<_> = rows(&ran).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(findings, ["bare", "off", "old"]);
    // The mark's label keeps the webhook from no pod: a new one does not have it.
    let ran = audited(&["-o", "json"], &all("injectd.dev/injected"));
    assert_eq!(rows(&ran).len(), 3);
    let mut labelled = pods();
    labelled[2]["metadata"]["labels"]["off"] = "".into();
    labelled[3]["metadata"]["labels"]["off"] = "".into();
    let ran = audited(&["-o", "json"], &[labelled, owners(), vec![webhook("off")]].concat());
    let audit: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(audit["notCalled"], json!([{"mesh": "templates", "pods": 1}]));
    assert_eq!(rows(&ran).len(), 1, "{}", ran.stdout);
}

#[test]
fn what_is_not_in_the_input_is_named() {
    let ran = audited(&["--fail-on", "none"], &pods());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let expected = "unknown: 1 pod: template agent: StatefulSet shop/bare is not known";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    let ran = audited(&["--fail-on", "none"], &pods()[1..]);
    let expected = "template agent: Namespace shop is not known";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
}

#[test]
fn a_template_with_a_problem_ends_the_audit() {
    let template = file("agent", AGENT.replace("owner.kind in", "owner.kin in"));
    let ran = run(&["audit", "--templates", template.path(), "-"], &list(&pods()));
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("--templates: 1 problem in 1 template"), "{}", ran.stderr);
}

/// The rows have what `restart` reads.
#[test]
fn the_findings_are_those_that_restart_reads() {
    let ran = audited(&["-o", "json", "--finding", "missing"], &[pods(), owners()].concat());
    let audit: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let row = &audit["workloads"][0];
    assert_eq!((&row["kind"], &row["restartCures"]), (&"StatefulSet".into(), &true.into()));
    assert_eq!(row["remedy"], "kubectl rollout restart statefulset/bare -n shop");
}
