use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use serde_json::Value;

use super::*;

/// An entry with a `caBundle`, and a field of its own.
fn entry(name: &str, path: &str, bundle: &str, fields: Value) -> Value {
    let mut entry = json!({"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "timeoutSeconds": 7, "failurePolicy": "Ignore", "fieldOfALaterRelease": "kept",
        "clientConfig": {"caBundle": bundle,
            "service": {"name": "injectd", "namespace": "mesh", "path": path}}});
    if let (Some(entry), Value::Object(fields)) = (entry.as_object_mut(), fields) {
        entry.extend(fields);
    }
    entry
}

/// An entry that leads to the templates.
fn ours(name: &str, bundle: &str, fields: Value) -> Value {
    entry(name, "/templates", bundle, fields)
}

fn selected(label: &str) -> Selected {
    let webhook = json!({"name": "a", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": {},
        "objectSelector": {"matchLabels": {"a": label}}});
    Selected::of_webhook(&serde_json::from_value(webhook).expect("a webhook"))
}

/// The configuration after the edits, as an API server applies them to what it has.
fn edited(entries: &Value, wanted: &[Selected]) -> Value {
    let mut object =
        json!({"metadata": {"name": "a", "resourceVersion": "1"}, "webhooks": entries});
    let configuration: MutatingWebhookConfiguration =
        serde_json::from_value(object.clone()).expect("a configuration");
    let webhooks = configuration.webhooks.expect("webhooks");
    let is_ours = |webhook: &MutatingWebhook| {
        let to = webhook.client_config.service.as_ref();
        to.is_some_and(|to| to.path.as_deref() == Some("/templates"))
    };
    let ours: Vec<_> = (0..webhooks.len()).filter(|at| is_ours(&webhooks[*at])).collect();
    let Patch::Json::<()>(operations) = patch("1", &edits(&webhooks, &ours, wanted)) else {
        unreachable!("a JSON Patch")
    };
    // kube has another version of the package.
    let operations: json_patch::Patch =
        serde_json::from_value(json!(operations)).expect("a JSON Patch");
    json_patch::patch(&mut object, &operations).expect("the patch must apply");
    object["webhooks"].take()
}

/// Name, label that is asked for, and `caBundle` of each entry.
fn summary(entries: &Value) -> Vec<String> {
    let entries = entries.as_array().expect("entries");
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let label = |entry: &Value| text(&entry["objectSelector"]["matchExpressions"][0]["values"][0]);
    let one = |entry: &Value| {
        format!(
            "{} {} {}",
            text(&entry["name"]),
            label(entry),
            text(&entry["clientConfig"]["caBundle"])
        )
    };
    entries.iter().map(one).collect()
}

#[test]
fn entries_of_others_stay() {
    let other = entry("other", "/linkerd", "Qg==", json!({}));
    let entries = json!([other, ours("mine.example.com", "QQ==", json!({})), other]);
    let found = edited(&entries, &[selected("b"), selected("c")]);
    assert_eq!(
        summary(&found),
        [
            "other - Qg==",
            "mine.example.com b QQ==",
            "templates-2.injectd.dev c QQ==",
            "other - Qg=="
        ]
    );
    assert_eq!((&found[0], &found[3]), (&other, &other));
    for (field, expected) in [("timeoutSeconds", json!(7)), ("fieldOfALaterRelease", json!("kept"))]
    {
        assert_eq!((&found[1][field], &found[2][field]), (&expected, &expected));
    }
}

#[test]
fn what_is_right_is_not_edited() {
    let entries = json!([ours("a", "QQ==", json!({}))]);
    let wanted = [selected("b"), selected("c"), selected("d")];
    let found = edited(&entries, &wanted);
    assert_eq!(edited(&found, &wanted), found);
    assert_eq!(
        summary(&edited(&found, &wanted[..2])),
        ["a b QQ==", "templates-2.injectd.dev c QQ=="]
    );
    assert_eq!(summary(&edited(&found, &[selected("e")])), ["a e QQ=="]);
}

#[test]
fn further_entries_follow_the_first_and_keep_their_ca() {
    let entries = json!([
        ours(
            "a",
            "QQ==",
            json!({"timeoutSeconds": 3, "matchConditions": [{"name": "x", "expression": "true"}]})
        ),
        ours("b", "Qg==", json!({})),
        ours("c", "", json!({})),
    ]);
    let found = edited(&entries, &[selected("1"), selected("2"), selected("3")]);
    assert_eq!(summary(&found), ["a 1 QQ==", "b 2 Qg==", "c 3 QQ=="]);
    for at in 0..3 {
        assert_eq!(found[at]["timeoutSeconds"], 3);
        assert_eq!(found[at]["matchConditions"], json!([{"name": "x", "expression": "true"}]));
    }
}

#[test]
fn a_further_entry_has_a_name_of_its_own() {
    let entries = json!([
        ours("templates.injectd.dev", "QQ==", json!({})),
        entry("templates-2.injectd.dev", "/linkerd", "QQ==", json!({})),
    ]);
    let found = edited(&entries, &[selected("b"), selected("c"), selected("d")]);
    let names: Vec<_> = summary(&found)
        .iter()
        .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "templates.injectd.dev",
            "templates-3.injectd.dev",
            "templates-4.injectd.dev",
            "templates-2.injectd.dev"
        ]
    );
}

#[test]
fn a_condition_is_written_beside_those_of_the_operator() {
    let of = |text: &str| Selected { condition: Some(text.to_owned()), ..Selected::default() };
    let other = json!({"name": "x", "expression": "true"});
    let entries = json!([ours("a", "QQ==", json!({"matchConditions": [other]}))]);
    let found = edited(&entries, &[of("1 == 1"), of("2 == 2")]);
    for (at, text) in [(0, "1 == 1"), (1, "2 == 2")] {
        let own = json!({"name": "templates.injectd.dev", "expression": text});
        assert_eq!(found[at]["matchConditions"], json!([other, own]));
    }
    let found = edited(&found, &[Selected::nothing()]);
    assert_eq!(found[0]["matchConditions"], json!([other]));
    assert_eq!(found.as_array().map(Vec::len), Some(1));
}
