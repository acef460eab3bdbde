//! Values of another type than that of their field.

use injectd_merge::schema::{Kind, POD};

use super::{nulls::rich, *};

fn undecoded(pod: &Value) -> Vec<String> {
    let found = objections(Checks::default(), pod, pod).into_iter();
    found
        .filter(|objection| objection.cause == Cause::Types)
        .map(|objection| objection.text)
        .collect()
}

/// The places of all values, with what their field holds.
fn places(value: &Value, kind: &'static Kind, at: &str, found: &mut Vec<(String, &'static Kind)>) {
    found.push((at.to_owned(), kind));
    match (kind, value) {
        (Kind::Struct(fields), Value::Object(members)) => {
            for (key, value) in members {
                let field = fields.get().field(key).expect("a field");
                places(value, &field.kind, &format!("{at}/{key}"), found);
            }
        }
        (Kind::Map(_, inner), Value::Object(members)) => {
            for (key, value) in members {
                places(value, inner, &format!("{at}/{}", key.replace('/', "~1")), found);
            }
        }
        (Kind::List(inner), Value::Array(list)) => {
            for (index, value) in list.iter().enumerate() {
                places(value, inner, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Values of each type of JSON.
fn values() -> [Value; 7] {
    [json!(true), json!(5), json!(1.5), json!("5"), json!("x y"), json!([[]]), json!({"a": [[]]})]
}

/// Whether the API server decodes a value of [`values`] as a kind, without what is in it.
fn fits(kind: &Kind, value: &Value) -> bool {
    match kind {
        Kind::Text(_) => value.is_string(),
        Kind::Boolean => value.is_boolean(),
        Kind::Int32 | Kind::Int64 => value.is_i64(),
        Kind::IntOrString => value.is_i64() || value.is_string(),
        Kind::Quantity => value.is_number() || value == "5",
        // An object with an unknown field.
        Kind::Struct(_) => value.is_object(),
        // What is in the list or map is of another type.
        Kind::List(_) | Kind::Map(..) | Kind::Time => false,
        Kind::Any => true,
    }
}

#[test]
fn a_value_of_another_type_is_refused_wherever_it_is() {
    let pod = rich();
    assert_eq!(undecoded(&pod), Vec::<String>::new());
    let mut found = Vec::new();
    places(&pod, &POD, "", &mut found);
    assert!(found.len() > 80, "{found:?}");
    for (place, kind) in &found {
        for value in values() {
            let mut changed = pod.clone();
            *changed.pointer_mut(place).expect("a value") = value.clone();
            let refused = refusals(Checks::default(), &changed);
            let texts = undecoded(&changed);
            assert_eq!(texts.is_empty(), fits(kind, &value), "{place} {value}: {texts:?}");
            // Nothing else is said of a pod that cannot be decoded.
            assert!(texts.is_empty() || texts.len() == refused.len(), "{place}: {refused:?}");
        }
    }
}

#[test]
fn the_text_has_the_path_and_what_to_write() {
    let context = |context: Value| json!({"spec": {"containers": [{"name": "a", "securityContext": context}]}});
    let path = "spec.containers[0]";
    for (pod, text) in [
        (pod(&json!([])), format!("{path}.resources is a list, but must be an object")),
        (
            pod(&json!({"limits": "5"})),
            format!(
                "{path}.resources.limits is \"5\", but must be an object such as {{cpu: 100m, memory: 64Mi}}"
            ),
        ),
        (
            pod(&json!({"limits": {"cpu": "much"}})),
            format!(
                "{path}.resources.limits.cpu is \"much\", but must be a quantity such as 100m or 64Mi"
            ),
        ),
        (
            context(json!({"runAsUser": "5"})),
            format!(
                "{path}.securityContext.runAsUser is \"5\", but must be an integer: write it without quotes"
            ),
        ),
        (
            context(json!({"privileged": "true"})),
            format!(
                "{path}.securityContext.privileged is \"true\", but must be true or false without quotes"
            ),
        ),
        (
            json!({"metadata": {"labels": {"a": true}}}),
            "metadata.labels.a is true, but must be a string: put it in quotes".to_owned(),
        ),
        (
            json!({"spec": {"overhead": {"cpu": "x".repeat(1000)}}}),
            format!(
                "spec.overhead.cpu is \"{}…, but must be a quantity such as 100m or 64Mi",
                "x".repeat(59)
            ),
        ),
        (json!({"spec": []}), "spec is a list, but must be an object".to_owned()),
    ] {
        assert_eq!(undecoded(&pod), [text]);
    }
    // kubectl sends it as 0.
    let root = context(json!({"runAsUser": 0.0}));
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace = json!({"metadata": {"labels": labels}});
    let checks = Checks { namespace: Some(&namespace), ..Checks::default() };
    let found = refusals(checks, &root);
    assert!(found.iter().any(|text| text.contains("runs as user 0")), "{found:?}");
}

#[test]
fn the_last_text_says_that_there_are_more() {
    let labels = |count| {
        let labels: serde_json::Map<_, _> =
            (0..count).map(|at| (format!("{at}"), json!(5))).collect();
        undecoded(&json!({"metadata": {"labels": labels}}))
    };
    for (count, says) in [(1, false), (10, false), (11, true), (30, true)] {
        let texts = labels(count);
        assert_eq!(texts.len(), count.min(10));
        let (last, others) = texts.split_last().expect("a text");
        assert_eq!(last.ends_with("; and more values have a wrong type"), says, "{last}");
        assert!(others.iter().all(|text| !text.contains("more")), "{others:?}");
    }
}

#[test]
fn a_pod_that_cannot_be_decoded_is_refused_before_the_webhooks() {
    let before = pod(&json!({"limits": []}));
    let mut injected = before.clone();
    injected["spec"]["containers"][0]["name"] = "other".into();
    let due = |before: &Value, injected: &Value| {
        let found = objections(Checks::default(), before, injected);
        found.iter().map(|objection| objection.due_to_sidecar).collect::<Vec<_>>()
    };
    assert_eq!(due(&before, &injected), [false]);
    assert_eq!(due(&pod(&json!({})), &injected), [true]);
}

#[test]
fn policies_and_namespaces_that_cannot_be_decoded_are_named() {
    let limits = |limits: Value| json!({"metadata": {"name": "it"}, "spec": {"limits": limits}});
    let quota = |spec: Value, status: Value| json!({"spec": spec, "status": status});
    for (kind, object, problem) in [
        ("LimitRange", limits(json!([{"type": "Pod", "max": {"cpu": "1"}}, null])), None),
        ("LimitRange", limits(json!({})), Some("spec.limits is an object, but must be a list")),
        ("LimitRange", limits(json!([5])), Some("spec.limits[0] is 5, but must be an object")),
        (
            "LimitRange",
            limits(json!([{}, {"min": {"cpu": "x"}}])),
            Some("spec.limits[1].min.cpu is \"x\", but must be a quantity such as 100m or 64Mi"),
        ),
        ("ResourceQuota", quota(json!({"hard": {"pods": 5}}), json!(null)), None),
        (
            "ResourceQuota",
            quota(json!({"hard": {"pods": []}}), json!(null)),
            Some("spec.hard.pods is a list, but must be a quantity such as 100m or 64Mi"),
        ),
        (
            "ResourceQuota",
            quota(json!({"scopes": "BestEffort"}), json!(null)),
            Some("spec.scopes is \"BestEffort\", but must be a list"),
        ),
        (
            "ResourceQuota",
            quota(json!(null), json!({"used": {"pods": "x"}})),
            Some("status.used.pods is \"x\", but must be a quantity such as 100m or 64Mi"),
        ),
        (
            "Namespace",
            json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce-version": 1.25}}}),
            Some(
                "metadata.labels.pod-security.kubernetes.io/enforce-version is 1.25, but must be a \
                 string: put it in quotes",
            ),
        ),
        ("Namespace", json!([]), Some("it is a list, but must be an object")),
    ] {
        assert_eq!(unreadable(kind, &object).as_deref(), problem, "{object}");
    }
}
