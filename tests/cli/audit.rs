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
        audit["workloads"].as_array().expect("rows").iter().map(|row| &row["finding"]).collect();
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
    assert!(shown.contains("there is no webhook of Linkerd: 2 pods"), "{shown}");
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
    // Istio has several entries, and the same is to be said of each.
    let four = other.repeat(4).replacen("rev.namespace", "rev.object", 1);
    let input = pods().replacen("webhooks:\n", &format!("webhooks:\n{four}"), 1);
    let output = injectd(&["audit", "-", "--fail-on", "none"], &input);
    assert_eq!(text(&output.stdout).matches("not read:").count(), 1);
    assert!(shown.contains("1 missing, 1 outdated"), "{shown}");
}

/// Many pods of Deployments in several namespaces, each without its sidecar.
fn many(namespaces: usize, pods: usize) -> String {
    let mut items = vec![json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration", "metadata": {"name": "a"},
        "webhooks": [{"name": "linkerd-proxy-injector.linkerd.io",
            "clientConfig": {"service": {"name": "a", "namespace": "a"}}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["pods"]}]}]})];
    for namespace in 0..namespaces {
        let namespace = format!("team-{namespace:03}");
        items.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace,
            "annotations": {"linkerd.io/inject": "enabled"}}}));
        for pod in 0..pods {
            let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f",
                "uid": "u", "controller": true});
            items.push(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
                "name": format!("web-5f-{pod}"), "namespace": namespace,
                "creationTimestamp": "2026-11-23T10:11:12Z",
                "labels": {"pod-template-hash": "5f"}, "ownerReferences": [owner]},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]}}));
        }
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

#[test]
fn the_table_fits_its_width_and_says_once_what_to_do() {
    let output = injectd(&["audit", "-"], &many(30, 3));
    let shown = text(&output.stdout);
    let widest = shown.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{shown}");
    assert_eq!(shown.matches("injectd restart -f -").count(), 1, "{shown}");
    assert_eq!(shown.matches("kubectl rollout restart").count(), 0, "{shown}");
    assert!(shown.contains("team-019   1     3        0"), "{shown}");
    assert!(shown.contains("\nand 10 further namespaces\n"), "{shown}");
    let wide = injectd(&["audit", "-", "-o", "wide"], &many(2, 3));
    let row = "team-001   deployment/web  3/3   missing  ";
    let rows: Vec<_> = text(&wide.stdout).lines().filter(|line| line.starts_with(row)).collect();
    let [row] = &*rows else { panic!("{}", text(&wide.stdout)) };
    assert!(row.ends_with("kubectl rollout restart deployment/web -n team-001"), "{row}");
}

#[test]
fn only_the_findings_that_are_asked_for_are_printed_and_decide() {
    for (finding, code, rows) in
        [("missing", 3, 1), ("outdated,missing", 3, 2), ("unexpected", 0, 0), ("failed-open", 0, 0)]
    {
        let output = injectd(&["audit", "-", "-o", "json", "--finding", finding], &pods());
        let audit: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = audit["workloads"].as_array().expect("rows").len();
        assert_eq!((output.status.code(), found), (Some(code), rows), "{finding}");
        assert_eq!(audit["pods"]["total"], 3, "the counts are those of all");
    }
}

#[test]
fn each_pod_has_a_line_of_json() {
    let lines = |args: &[&str], input: &str| {
        let output = injectd(&[&["audit", "-", "-o", "jsonl"], args].concat(), input);
        let lines = text(&output.stdout).lines().map(serde_json::from_str);
        lines.collect::<Result<Vec<Value>, _>>().expect("JSON")
    };
    let all = lines(&[], &pods());
    let found: Vec<_> = all.iter().map(|pod| pod["judgement"].as_str().expect("a text")).collect();
    assert_eq!(found, ["missing", "outdated", "unmeshed"]);
    assert_eq!(all[0]["workload"]["kind"], "Deployment");
    assert!(all[0]["pod"].as_str().is_some_and(|name| name.starts_with("web-")), "{}", all[0]);
    assert_eq!(lines(&["--finding", "outdated"], &pods()).len(), 1);
    assert_eq!(lines(&[], &many(3, 7)).len(), 21);
    let output = injectd(&["audit", "-", "-o", "jsonl", "--watch"], "");
    assert_eq!(output.status.code(), Some(64));
}

#[test]
fn a_row_names_its_first_pods() {
    let audit = audited(&many(1, 7));
    let names = ["web-5f-0", "web-5f-1", "web-5f-2", "web-5f-3", "web-5f-4"];
    let row = &audit["workloads"][0];
    assert_eq!((&row["pods"], &row["podNames"]), (&json!(7), &json!(names)));
}

/// As in manifests, and in the output of other programs.
#[test]
fn a_pod_without_a_time_has_a_reason_without_one() {
    let input = pods().replace("  creationTimestamp: \"2026-11-23T10:11:12Z\"\n", "");
    let audit = audited(&input);
    let reason = audit["workloads"][0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("the webhook failed when it was created, or"), "{reason}");
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
    // One is on the network of its node.
    assert_eq!((&audit["pods"]["unknown"], &audit["pods"]["unmeshed"]), (&json!(2), &json!(1)));
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
    assert!(shown.ends_with("1 pod was let in while a webhook failed\n"), "{shown}");
    let outdated = ["audit", "--audit-log", log.path(), "--finding", "outdated"];
    let output = injectd(&outdated, "");
    assert_eq!((output.status.code(), text(&output.stdout).lines().count()), (Some(0), 1));
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
