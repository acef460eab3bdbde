//! `inject --templates`.

use serde_json::Value;

use super::{AGENT, manifest, run, with_agent};
use crate::file;

#[test]
fn every_kind_of_workload_gets_its_sidecar_and_pods_know_their_owner() {
    for (kind, path, owner) in [
        ("Pod", "", "Pod/web"),
        ("Deployment", "spec.template", "Deployment/web"),
        ("ReplicaSet", "spec.template", "ReplicaSet/web"),
        ("StatefulSet", "spec.template", "StatefulSet/web"),
        ("DaemonSet", "spec.template", "DaemonSet/web"),
        ("ReplicationController", "spec.template", "ReplicationController/web"),
    ] {
        let ran = with_agent("inject", &[], &manifest(kind, path));
        assert_eq!(ran.code, Some(0), "{kind}: {}", ran.stderr);
        assert!(ran.stdout.contains("image: registry.example.com/agent:1.20"), "{}", ran.stdout);
        assert!(ran.stdout.contains(owner), "{kind}: {}", ran.stdout);
        let made = ["ownerReferences", "generateName", "uid"];
        assert!(made.iter().all(|field| !ran.stdout.contains(field)), "{}", ran.stdout);
        let expected = format!("{}/web injected: agent\n", kind.to_lowercase());
        assert_eq!(ran.stderr, expected);
        let again = with_agent("inject", &[], &ran.stdout);
        assert_eq!(again.stdout, ran.stdout, "{kind}");
        assert!(
            again.stderr.contains("skipped: template agent: in the pod already"),
            "{}",
            again.stderr
        );
    }
    for (kind, path) in [("Job", "spec.template"), ("CronJob", "spec.jobTemplate.spec.template")] {
        let ran = with_agent("inject", &[], &manifest(kind, path));
        assert_eq!((ran.code, &*ran.stdout), (Some(0), &*manifest(kind, path)));
        let said = "skipped: template agent: not matched: condition not-batch";
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn lists_and_many_documents_keep_what_is_no_pod() {
    let pod = manifest("Pod", "");
    let text = format!(
        "# first\nkind: Secret\n---\n{pod}---\nkind: List\nitems:\n- kind: ConfigMap # last\n"
    );
    let ran = with_agent("inject", &["-"], &text);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("# first\nkind: Secret\n---\nkind: Pod\n"), "{}", ran.stdout);
    assert!(
        ran.stdout.ends_with("---\nkind: List\nitems:\n- kind: ConfigMap # last\n"),
        "{}",
        ran.stdout
    );
    let item = pod.replace('\n', "\n  ");
    let list = format!("kind: List\nitems:\n- {}\n", item.trim_end());
    let ran = with_agent("inject", &["-o", "json"], &list);
    let list: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(list["items"][0]["spec"]["containers"][1]["name"], "agent");
}

#[test]
fn namespaces_come_from_the_input_then_from_objects() {
    let team = |name: &str| {
        format!(
            "kind: Namespace\nmetadata: {{name: shop, labels: {{team: {name}, example.com/agent: enabled}}}}\n"
        )
    };
    let pod = "kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app}]}\n";
    let objects = file("objects", team("one"));
    let ran = with_agent("inject", &["-n", "shop", "--objects", objects.path()], pod);
    assert!(ran.stdout.contains("value: one"), "{}{}", ran.stdout, ran.stderr);
    let both = format!("{}---\n{pod}", team("two"));
    let ran = with_agent("inject", &["-n", "shop", "--objects", objects.path()], &both);
    assert!(ran.stdout.contains("value: two"), "{}{}", ran.stdout, ran.stderr);
    let ran = with_agent("inject", &["--objects", objects.path()], pod);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""));
    assert!(ran.stderr.contains("rejected: namespaces \"default\" not found"), "{}", ran.stderr);
    let ran = with_agent("inject", &["-n", "shop"], pod);
    assert!(ran.stderr.contains("template agent: disabled"), "{}", ran.stderr);
}

#[test]
fn owners_of_a_pod_come_from_the_input() {
    let owned = |kind: &str, owner: &str| {
        format!(
            "kind: {kind}\nmetadata:\n  name: a\n  annotations: {{example.com/agent: enabled}}\n  \
                 ownerReferences: [{{kind: {owner}, name: a, controller: true}}]\n"
        )
    };
    let pod = format!("{}spec: {{containers: [{{name: app}}]}}\n", owned("Pod", "Job"));
    let ran = with_agent("inject", &[], &pod);
    assert!(ran.stderr.contains("not matched: condition not-batch"), "{}", ran.stderr);
    let set = "kind: ReplicaSet\nmetadata: {name: a, ownerReferences: [{kind: Rollout, name: r, controller: true}]}\n\
               spec: {template: {spec: {containers: []}}}\n";
    let pod = pod.replace("kind: Job", "kind: ReplicaSet");
    let ran = with_agent("inject", &[], &format!("{set}---\n{pod}"));
    assert!(ran.stdout.contains("value: Rollout/r"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_denied_pod_is_rejected_with_the_message_and_nothing_is_printed() {
    let ran = with_agent("inject", &["-n", "vault"], &manifest("Deployment", "spec.template"));
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""));
    let said = "stdin:1: deployment/web rejected: template agent: no agent beside the vault";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let level = manifest("Pod", "").replace("enabled}", "enabled, example.com/level: trace-7}");
    let ran = with_agent("inject", &[], &level);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("parameter level: annotation example.com/level"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("trace-7"), "{}", ran.stderr);
}

#[test]
fn warnings_are_those_of_validations_and_of_the_result() {
    let pod = manifest("Pod", "").replace("enabled}", "enabled, example.com/level: debug}");
    let ran = with_agent("inject", &["--fail-on", "warning"], &pod);
    assert_eq!((ran.code, &*ran.stdout), (Some(3), ""));
    assert!(ran.stderr.contains("  warning: template agent: debug is loud"), "{}", ran.stderr);
    let template =
        file("agent", AGENT.replace("not-batch, expression: \"!(", "any, expression: \"("));
    let template = template.path();
    let job =
        manifest("Job", "spec.template").replace("spec: {c", "spec: {restartPolicy: Never, c");
    let ran = run(&["inject", "--templates", template], &job);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("container agent does not end with the pod's own"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("Job/web"), "{}", ran.stdout);
    let cron = manifest("CronJob", "spec.jobTemplate.spec.template");
    let ran = run(&["inject", "--templates", template], &cron);
    assert!(ran.stdout.contains("value: CronJob/web"), "{}", ran.stdout);
}

#[test]
fn kinds_that_are_not_known_stay_and_flags_of_a_mesh_are_refused() {
    let rollout = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {template: {spec: \
                   {containers: []}}}\n";
    let ran = with_agent("inject", &[], rollout);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), rollout));
    assert!(ran.stderr.contains("the kind Rollout of argoproj.io is not known"), "{}", ran.stderr);
    let template = AGENT.replace("name: agent}", "name: other}");
    let ran = with_agent("inject", &[], &template);
    assert_eq!((ran.code, &ran.stdout), (Some(0), &template));
    let said = "clustersidecartemplate/other unchanged: a sidecar template in the input";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    for args in [&["--annotate"][..], &["--proxy-uid", "5"], &["--context", "a"]] {
        let ran = with_agent("inject", args, "");
        assert_eq!(ran.code, Some(64), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("{} does not work with --templates", args[0])));
    }
}

#[test]
fn templates_and_a_mesh_are_two_injections_in_a_pipe() {
    let ran = with_agent("inject", &[], &manifest("Deployment", "spec.template"));
    let both = run(&["inject"], &ran.stdout);
    assert_eq!(both.code, Some(0), "{}", both.stderr);
    for name in ["name: agent", "name: linkerd-proxy"] {
        assert!(both.stdout.contains(name), "{name}: {}", both.stdout);
    }
}
