//! `injectd explain` without a cluster.

use serde_json::{Value, json};

use super::{BINARY, example, file, injectd, text};

mod later;
mod overlooked;

fn explained(args: &[&str], stdin: &str) -> Vec<Value> {
    let output = injectd(&[&["explain", "-o", "json"], args].concat(), stdin);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(list["kind"], "ExplanationList");
    list["items"].as_array().expect("items").clone()
}

#[test]
fn each_pod_of_a_file_is_explained_with_the_facts_of_the_file() {
    let items = explained(&[&example("explain.yaml")], "");
    let found: Vec<_> =
        items.iter().map(|item| (&item["object"]["name"], &item["verdict"])).collect();
    let expected = [(json!("web"), json!("injected")), (json!("agent"), json!("skipped"))];
    assert_eq!(found, expected.iter().map(|(name, verdict)| (name, verdict)).collect::<Vec<_>>());
    let [web, agent] = &*items else { panic!("two items") };
    assert_eq!(web["webhooks"][0]["verdict"], "called");
    assert_eq!(web["webhooks"][0]["failurePolicy"], "Ignore");
    assert_eq!(web["later"][0]["by"], "PodSecurity baseline");
    assert_eq!(web["later"][0]["effect"], "warns");
    let rule =
        agent["rules"].as_array().expect("rules").iter().find(|rule| rule["rule"] == "hostNetwork");
    assert_eq!(
        rule.expect("a rule"),
        &json!({
            "rule": "hostNetwork",
            "read": [{"layer": "pod", "field": "spec.hostNetwork", "value": "true"}],
            "result": "skips",
            "reason": "host_network_enabled",
            "text": "the pod uses the network of its node",
        })
    );
}

#[test]
fn a_namespace_that_the_webhook_excludes_is_named() {
    let input = std::fs::read_to_string(example("explain.yaml")).expect("the example");
    let input = input.replace(
        "pod-security.kubernetes.io/warn: baseline",
        "config.linkerd.io/admission-webhooks: disabled",
    );
    let items = explained(&["-"], &input);
    let reason = items[0]["notAsked"].as_str().expect("a reason");
    assert!(reason.contains("must not be \"disabled\", but it is \"disabled\""), "{reason}");
    assert_eq!(items[0]["later"], json!([]));
}

#[test]
fn a_running_pod_is_explained_without_its_sidecar() {
    let pod = example("pod.json");
    let injected = injectd(&["inject", &pod], "");
    let items = explained(&["-"], text(&injected.stdout));
    assert_eq!(
        items[0]["notes"][0],
        "the pod has its sidecar; this is how it would be injected now"
    );
    let codes: Vec<_> = items[0]["reasons"].as_array().expect("reasons").iter().collect();
    assert!(codes.iter().all(|reason| reason["code"] != "sidecar_already_exists"), "{codes:?}");
}

/// "Why has this pod no proxy?"
#[test]
fn a_running_pod_that_was_left_out_is_to_be_created_anew() {
    let input = std::fs::read_to_string(example("audit.yaml")).expect("the example");
    let input = input.replacen(
        "  namespace: shop\n  creation",
        "  uid: a\n  namespace: shop\n  creation",
        1,
    );
    let items = explained(&["-"], &input);
    let web =
        items.iter().find(|item| item["object"]["name"] == "web-6d5f9c7b8-x2x9p").expect("a pod");
    let advice = web["advice"].as_str().expect("advice");
    assert!(advice.starts_with("The pod has no sidecar, although"), "{advice}");
    assert!(advice.ends_with("kubectl rollout restart deployment/web -n shop."), "{advice}");
}

/// Pods of a Deployment, of which the last one asks for no sidecar.
fn pods(count: usize) -> String {
    let pod = |index: usize| {
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f",
            "uid": "u", "controller": true});
        let inject = if index + 1 == count { "disabled" } else { "enabled" };
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": format!("web-5f-{index}"), "namespace": "shop", "uid": index.to_string(),
            "annotations": {"linkerd.io/inject": inject},
            "labels": {"pod-template-hash": "5f"}, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]}})
    };
    let items: Vec<_> = (0..count).map(pod).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

#[test]
fn equal_pods_of_a_workload_are_explained_once() {
    let output = injectd(&["explain", "-"], &pods(9));
    let shown = text(&output.stdout);
    assert_eq!(shown.matches("Verdict:").count(), 2, "{shown}");
    let note = "the same for 7 further pods of deployment/web: web-5f-1, web-5f-2, web-5f-3,";
    assert!(shown.contains(note), "{shown}");
    assert_eq!(explained(&["-"], &pods(9)).len(), 9, "programs get each");
}

#[test]
fn brief_has_a_row_for_each_workload_and_verdict() {
    let output = injectd(&["explain", "--brief", "-"], &pods(9));
    let shown = text(&output.stdout);
    let (table, remedies) = shown.split_once("\nWhat to do\n").expect("what to do");
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("shop")).collect();
    assert_eq!(rows.len(), 2, "{shown}");
    assert!(rows[0].starts_with("shop       deployment/web  8     injected  "), "{shown}");
    assert!(rows[1].starts_with("shop       deployment/web  1     skipped   "), "{shown}");
    assert!(remedies.starts_with("  deployment/web\n    The pod has no sidecar"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let output = injectd(&["explain", "--brief", "-o", "json", "-"], &pods(9));
    assert_eq!(output.status.code(), Some(64));
}

#[test]
fn yaml_has_what_json_has() {
    let output = injectd(&["explain", "-o", "yaml", &example("explain.yaml")], "");
    let yaml: Value = serde_saphyr::from_str(text(&output.stdout)).expect("YAML");
    assert_eq!(yaml["items"], Value::from(explained(&[&example("explain.yaml")], "")));
}

#[test]
fn every_setting_has_an_origin() {
    let output = injectd(&["explain", "--all-settings", &example("explain.yaml")], "");
    let shown = text(&output.stdout);
    assert!(
        shown.contains("proxy.logLevel = warn,linkerd=info,hickory=error  (configuration)"),
        "{shown}"
    );
    assert!(!shown.contains("--all-settings shows them"));
}

/// `kubectl injectd` runs a binary of this name.
#[test]
fn the_plugin_of_kubectl_calls_itself_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let plugin = folder.path().join("kubectl-injectd");
    std::os::unix::fs::symlink(BINARY, &plugin).expect("a link");
    let run = |args: &[&str]| {
        std::process::Command::new(&plugin).args(args).output().expect("the plugin must run")
    };
    let help = run(&["audit", "--help"]);
    let shown = text(&help.stdout);
    assert!(shown.contains("Usage: kubectl injectd audit"), "{shown}");
    for flag in ["--context <", "--as <", "-n, --namespace", "-A, --all-namespaces"] {
        assert!(shown.contains(flag), "{flag}: {shown}");
    }
    let explained = run(&["explain", &example("explain.yaml")]);
    assert_eq!(explained.status.code(), Some(0));
}

/// What a user sees of wrong input: one line, and the exit code.
#[test]
fn wrong_input_is_named_in_one_line() {
    let binary = file("binary", b"\x7fELF\0\0\xff");
    let half = file("half.yaml", "kind: Pod\nmetadata: {name: a\n");
    let unknown = file("unknown.yaml", "kind: Widget\nmetadata: {name: a}\n");
    let empty = file("empty.yaml", "");
    let shape = file("shape.yaml", "kind: Pod\nmetadata: [a]\nspec: {}\n");
    let no_spec = file("no-spec.yaml", "kind: Deployment\nmetadata: {name: a}\n");
    let webhook = file(
        "webhook.yaml",
        "kind: MutatingWebhookConfiguration\nmetadata: {name: c}\nwebhooks: [{timeoutSeconds: x}]\n\
         ---\nkind: Pod\nspec: {}\n",
    );
    for (args, code, part) in [
        (&["missing.yaml"][..], 1, "cannot read missing.yaml"),
        (&[binary.path()], 1, "UTF-8"),
        (&[half.path()], 1, "unclosed bracket"),
        (&[unknown.path()], 1, "no pod and no workload is in the input"),
        (&[empty.path()], 1, "no pod and no workload is in the input"),
        (&[shape.path()], 1, "metadata is not an object"),
        (&[no_spec.path()], 1, "spec.template.spec is missing"),
        (&[webhook.path()], 1, "webhook configuration c"),
        (&["widget/a"], 64, "widget is none of pod, deployment"),
        (&["pod/A_b"], 64, "is not a name"),
        (&["pod/a", "--kubeconfig", "missing.config"], 1, "missing.config"),
        (&["-o", "xml", "-"], 64, "xml"),
        (&[], 64, "FILE|TYPE/NAME"),
    ] {
        let output = injectd(&[&["explain"], args].concat(), "");
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
