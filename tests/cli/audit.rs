//! `injectd audit` without a cluster.

use serde_json::{Value, json};

use super::{example, file, injectd, text};

const EXIT_FINDINGS: i32 = 3;

fn pods() -> String {
    std::fs::read_to_string(example("audit.yaml")).expect("the example")
}

fn audited(input: &str) -> Value {
    let output = injectd(&["audit", "-", "-o", "json", "--fail-on", "none"], input);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn findings_decide_the_exit_code() {
    let path = example("audit.yaml");
    for (fail_on, code, error) in [
        (
            "missing,outdated",
            3,
            "error: pods: 1 without their sidecar, 1 with an outdated sidecar\n",
        ),
        ("outdated", EXIT_FINDINGS, "error: pods: 1 with an outdated sidecar\n"),
        ("unexpected,failed-open", 0, ""),
        ("none", 0, ""),
    ] {
        let output = injectd(&["audit", &path, "--fail-on", fail_on], "");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(code), error), "{fail_on}");
    }
}

#[test]
fn each_pod_is_judged_as_if_it_were_created_now() {
    let audit = audited(&pods());
    assert_eq!(audit["pods"]["unmeshed"], 1, "hostNetwork");
    let found: Vec<_> =
        audit["workloads"].as_array().expect("rows").iter().map(|it| &it["finding"]).collect();
    assert_eq!(found, ["missing", "outdated"]);

    // Injected anew, pods are as they should be; without their annotations too.
    let injected = injectd(&["inject", "-", "-n", "shop"], &pods());
    let audit = audited(text(&injected.stdout));
    assert_eq!((&audit["pods"]["meshed"], &audit["workloads"]), (&json!(2), &json!([])));

    // A namespace that no longer asks.
    let out = text(&injected.stdout).replacen(
        "linkerd.io/inject: enabled",
        "linkerd.io/inject: disabled",
        1,
    );
    let audit = audited(&out);
    assert_eq!(audit["pods"]["unexpected"], 2, "{audit}");

    // The namespace asks, although the webhook is not called: the sidecars are as they should be.
    let gone =
        text(&injected.stdout).replace("resources: [pods, services]", "resources: [services]");
    assert_eq!(audited(&gone)["pods"]["meshed"], 2);
}

/// What asks for injection decides, whatever the webhook's state; no restart is advised.
#[test]
fn a_mesh_without_a_webhook_is_a_finding_of_its_own() {
    let pods = pods();
    let (pods, _) = pods.split_once("---\napiVersion: admissionregistration").expect("its webhook");
    let other = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n\
                 metadata: {name: other}\nwebhooks: []\n";
    let audit = audited(&format!("{pods}{other}"));
    let counts = &audit["pods"];
    let found = [&counts["missing"], &counts["meshed"], &counts["unexpected"], &counts["unmeshed"]];
    assert_eq!(found, [1, 1, 0, 1], "{audit}");
    assert_eq!(audit["withoutWebhook"], json!([{"mesh": "linkerd", "pods": 2}]));
    assert_eq!(audit["workloads"][0]["restartCures"], false);
    let reason = audit["workloads"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("linkerd.io/inject: enabled of the namespace asks"), "{reason}");
    let output = injectd(&["audit", "-"], &format!("{pods}{other}"));
    assert_eq!(output.status.code(), Some(EXIT_FINDINGS));
    let shown = text(&output.stdout);
    assert!(shown.contains("no webhook of Linkerd is there: 2 pods"), "{shown}");
    assert!(!shown.contains("rollout restart"), "{shown}");
    // Nothing asks any more: the webhook is gone, and what runs is no reason for a restart.
    let off = pods.replacen("linkerd.io/inject: enabled", "linkerd.io/inject: disabled", 1);
    let counts = &audited(&format!("{off}{other}"))["pods"];
    assert_eq!([&counts["missing"], &counts["meshed"], &counts["unexpected"]], [0, 1, 0]);
}

/// Such as Dapr's, which is called for every pod.
#[test]
fn the_webhook_of_another_product_changes_nothing() {
    let other = "  - name: sidecar-injector.dapr.io\n    rules: [{operations: [CREATE], apiGroups: [\"\"], \
                 apiVersions: [v1], resources: [pods]}]\n";
    let input = pods().replacen("webhooks:\n", &format!("webhooks:\n{other}"), 1);
    let audit = audited(&input);
    let counts = &audit["pods"];
    let found = [&counts["missing"], &counts["outdated"], &counts["unmeshed"], &counts["unknown"]];
    assert_eq!(found, [1, 1, 1, 0]);
}

#[test]
fn a_mesh_whose_configuration_is_missing_is_named() {
    let other = "  - name: rev.namespace.sidecar-injector.istio.io\n    rules: [{operations: [CREATE], \
                 apiGroups: [\"\"], apiVersions: [v1], resources: [pods]}]\n";
    let input = pods().replacen("webhooks:\n", &format!("webhooks:\n{other}"), 1);
    let output = injectd(&["audit", "-", "--fail-on", "none"], &input);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let shown = text(&output.stdout);
    assert!(shown.contains("not read: the configuration of Istio is not known"), "{shown}");
    assert!(shown.contains("1 missing, 1 outdated"), "{shown}");
}

#[test]
fn a_pod_that_has_ended_is_no_finding() {
    let ended = pods().replace(
        "spec:\n  containers:\n    - name: web",
        "status: {phase: Succeeded}\nspec:\n  containers:\n    - name: web",
    );
    let audit = audited(&ended);
    assert_eq!((&audit["pods"]["ended"], &audit["pods"]["missing"]), (&json!(1), &json!(0)));
}

#[test]
fn a_webhook_that_cannot_be_told_makes_pods_unknown() {
    let input = pods().replace("    failurePolicy: Ignore\n", "    failurePolicy: Ignore\n    matchConditions: [{name: who, expression: \"request.userInfo.username != 'a'\"}]\n");
    let audit = audited(&input);
    assert_eq!(audit["pods"]["unknown"], 3);
    let reason = audit["unknown"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("it depends on who sends the request"), "{reason}");
}

#[test]
fn the_audit_log_tells_when_a_webhook_failed() {
    let event = |stage: &str| {
        json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Event", "stage": stage, "verb": "create",
            "objectRef": {"resource": "pods", "namespace": "shop", "name": "web"},
            "responseStatus": {"code": 201}, "requestReceivedTimestamp": "2026-11-23T10:11:12Z",
            "annotations": {"failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": "inj"},
        })
        .to_string()
    };
    let log = file("audit.log", format!("{}\n{}\n", event("ResponseComplete"), event("Panic")));
    let output = injectd(&["audit", "--audit-log", log.path()], "");
    assert_eq!(output.status.code(), Some(EXIT_FINDINGS));
    let shown = text(&output.stdout);
    assert!(shown.contains("2026-11-23T10:11:12Z  shop       web  inj"), "{shown}");
    assert!(shown.ends_with("1 pods were let in while a webhook failed\n"), "{shown}");
    let broken = file("audit.log", format!("{}\n{{\"half\n", event("ResponseComplete")));
    let output = injectd(&["audit", "--audit-log", broken.path(), "--fail-on", "none"], "");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

/// What a user sees of wrong input: one line, and the exit code.
#[test]
fn wrong_input_is_named_in_one_line() {
    let binary = file("binary", b"\x7fELF\0\0\xff");
    let half = file("half.yaml", "kind: Pod\nmetadata: {name: a\n");
    let unknown = file("unknown.yaml", "kind: Widget\nmetadata: {name: a}\n");
    let no_webhook = file("pod.yaml", "kind: Pod\nmetadata: {name: a}\n");
    let no_events = file("empty.log", "");
    for (args, code, part) in [
        (&["missing.yaml"][..], 1, "cannot read missing.yaml"),
        (&[binary.path()], 1, "UTF-8"),
        (&[half.path()], 1, "unclosed bracket"),
        (&[unknown.path()], 1, "no pod is in the input"),
        (&[no_webhook.path()], 1, "no webhook configuration is in the input"),
        (&["--audit-log", "missing.log"], 1, "missing.log"),
        (&["--audit-log", no_events.path()], 1, "no event of audit.k8s.io"),
        (&["--kubeconfig", "missing.config"], 1, "missing.config"),
        (&["--fail-on", "everything"], 64, "everything"),
        (&["-o", "xml"], 64, "xml"),
        (&["-n", "a", "-A"], 64, "--all-namespaces"),
    ] {
        let output = injectd(&[&["audit"], args].concat(), "");
        let error = text(&output.stderr);
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(code), ""),
            "{args:?}: {error}"
        );
        assert!(error.contains(part), "{args:?}: {error}");
        assert!(code == 64 || error.lines().count() == 1, "{args:?}: {error}");
    }
}
