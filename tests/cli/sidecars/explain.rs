//! `explain --templates`.

use serde_json::{Value, json};

use super::{AGENT, Ran, folder, manifest, run};
use crate::file;

/// Explains a manifest that is in a file.
fn explain(args: &[&str], manifest: &str) -> Ran {
    let (template, manifest) = (file("agent", AGENT), file("manifest", manifest));
    run(&[&["explain", "--templates", template.path(), manifest.path()], args].concat(), "")
}

fn items(ran: &Ran) -> Vec<Value> {
    let list: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&"ExplanationList".into(), &"injectd.dev/v1".into())
    );
    list["items"].as_array().cloned().expect("items")
}

#[test]
fn each_field_has_the_template_the_step_and_the_expression_that_wrote_it() {
    let pod = manifest("Deployment", "spec.template")
        .replace("enabled}", "enabled, example.com/level: debug}");
    let ran = explain(&["-o", "json", "-n", "shop"], &pod);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    let items = items(&ran);
    let item = &items[0];
    assert_eq!(item["object"], json!({"kind": "Deployment", "namespace": "shop", "name": "web"}));
    assert_eq!((&item["verdict"], &item["mesh"]), (&"injected".into(), &"templates".into()));
    assert_eq!(item["warnings"], json!(["template agent: debug is loud"]));
    let template = &item["templates"][0];
    assert_eq!((&template["template"], &template["state"]), (&"agent".into(), &"applied".into()));
    assert!(template["cost"].as_u64().is_some_and(|cost| cost > 0), "{template}");
    assert_eq!(
        template["parameters"],
        json!([{"name": "level", "from": "annotation example.com/level"}])
    );
    let fields = template["fields"].as_array().expect("fields");
    for field in [
        json!({"place": r#"spec.containers["agent"].args"#, "step": "agent",
            "field": "spec.steps[0].overlay.spec.containers[0].args", "expression": "params.level"}),
        json!({"place": r#"spec.containers["agent"].image"#, "step": "agent",
            "field": "spec.steps[0].overlay.spec.containers[0].image"}),
        json!({"place": r#"spec.containers["app"].env["OWNER"].value"#, "step": "agent",
            "field": "spec.steps[0].containers[0].overlay.env[0].value",
            "expression": "${owner.kind}/${owner.name}"}),
    ] {
        assert!(fields.contains(&field), "{field}: {fields:#?}");
    }
    // No value of a parameter is printed.
    assert!(!ran.stdout.contains("=debug"), "{}", ran.stdout);
}

#[test]
fn what_became_of_each_template_and_what_to_do_is_said() {
    let pod = "kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app}]}\n";
    let ran = explain(&[], pod);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for line in [
        "Pod web in namespace default\n",
        "note: Namespace default is not in the input, and the templates read it",
        "): disabled\n",
        "Verdict:     skipped\n",
        "What to do:  To switch template agent on, set annotation example.com/agent to enabled.\n",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    let ran = explain(&[], &manifest("Job", "spec.template"));
    assert!(ran.stdout.contains("): not matched: condition not-batch"), "{}", ran.stdout);
    let ran = explain(&["-n", "vault"], &manifest("Pod", ""));
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("): denies the pod\n"), "{}", ran.stdout);
    let verdict = "Verdict:     denied: template agent: no agent beside the vault\n";
    assert!(ran.stdout.contains(verdict), "{}", ran.stdout);
    let outdated = r#"{"agent":{"hash":"0","added":["app"],"served":["app"]}}"#;
    let pod = format!(
        "kind: Pod\nmetadata: {{name: web, annotations: {{example.com/agent: enabled, injectd.dev/templates: \
         '{outdated}'}}}}\nspec: {{containers: [{{name: app}}]}}\n"
    );
    let ran = explain(&[], &pod);
    assert!(ran.stdout.contains("): an older revision is in the pod"), "{}", ran.stdout);
    assert!(ran.stdout.contains("create the pod anew"), "{}", ran.stdout);
}

#[test]
fn facts_come_from_the_files_and_what_refuses_the_pod_is_said() {
    let namespace = "kind: Namespace\nmetadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted, \
                     team: one, example.com/agent: enabled}}\n";
    let pod = "kind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: app, image: a}]}\n";
    let folder = folder(&[("a.yaml", namespace), ("b.yaml", pod)]);
    let template = file("agent", AGENT);
    let path = folder.path().to_str().expect("UTF-8");
    let ran = run(&["explain", "--templates", template.path(), path], "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("After the injection\n"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("note: Namespace"), "{}", ran.stdout);
}

#[test]
fn objects_of_a_cluster_and_inputs_without_pods_are_refused() {
    let template = file("agent", AGENT);
    let ran = run(&["explain", "--templates", template.path(), "pod/web"], "");
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stderr.contains("explain --templates reads files"), "{}", ran.stderr);
    for flag in [&["--context", "a"][..], &["--brief"], &["--all-settings"]] {
        let ran = explain(flag, &manifest("Pod", ""));
        assert_eq!(ran.code, Some(64), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("{} does not work with --templates", flag[0])));
    }
    let ran = explain(&[], "kind: Secret\n");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("no pod and no workload is in the input"), "{}", ran.stderr);
}
