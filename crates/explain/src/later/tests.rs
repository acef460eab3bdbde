use serde_json::json;

use super::*;

mod admission;
mod beyond;
mod limits;
mod nulls;
mod pod_security;
mod quota;
mod types;
mod validity;

/// Who objects, to what, and whether because of the sidecar.
fn texts(objections: &[Objection]) -> Vec<(&str, &str, bool)> {
    objections
        .iter()
        .map(|objection| (&*objection.by, &*objection.text, objection.due_to_sidecar))
        .collect()
}

/// Who refuses a pod that is not changed.
fn refusals(checks: Checks<'_>, pod: &Value) -> Vec<String> {
    let found = objections(checks, pod, pod);
    let found = found.into_iter().filter(|objection| objection.effect == Effect::Refuses);
    found.map(|objection| format!("{}: {}", objection.by, objection.text)).collect()
}

/// A pod with one container, which has these resources.
fn pod(resources: &Value) -> Value {
    json!({"spec": {"containers": [{"name": "app", "resources": resources}]}})
}

/// A limit range of one item.
fn range(item: &Value) -> [Value; 1] {
    [json!({"metadata": {"name": "range"}, "spec": {"limits": [item]}})]
}

/// A quota of which nothing is used.
fn quota(spec: &Value) -> [Value; 1] {
    [json!({"metadata": {"name": "quota"}, "spec": spec})]
}

/// Checks on an API server of a release.
fn on<'c>(minor: u16) -> Checks<'c> {
    Checks { version: Version::minor(minor), ..Checks::default() }
}

/// A pod, and the same with an init container of a sidecar.
fn pods() -> (Value, Value) {
    let app =
        json!({"name": "app", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}});
    let add = json!({"capabilities": {"add": ["NET_ADMIN"]}});
    let init = json!({"name": "linkerd-init", "resources": null, "securityContext": add});
    let before = json!({"spec": {"containers": [app]}});
    let injected = json!({"spec": {"initContainers": [init], "containers": [app]}});
    (before, injected)
}

#[test]
fn objections_come_in_the_order_of_the_api_server() {
    let namespace =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    let checks = Checks {
        namespace: Some(&namespace),
        quotas: &quota(&json!({"hard": {"memory": "1Gi"}})),
        limit_ranges: &range(&json!({"type": "Pod", "max": {"memory": "1Gi"}})),
        ..Checks::default()
    };
    let mut pod = pod(&json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}));
    pod["spec"]["hostPID"] = true.into();
    let found = objections(checks, &pod, &pod);
    let by: Vec<_> = found.iter().map(|objection| &*objection.by).collect();
    assert_eq!(by, [VALIDATION, "LimitRange range", "PodSecurity baseline", "ResourceQuota quota"]);
}

#[test]
fn a_check_that_fails_for_other_amounts_with_the_sidecar_is_the_same_check() {
    let before = pod(&json!({"requests": {"cpu": "3"}}));
    let mut injected = before.clone();
    let proxy = json!({"name": "linkerd-proxy", "resources": {"requests": {"cpu": "1"}}});
    injected["spec"]["containers"].as_array_mut().expect("a list").push(proxy);
    let quotas = quota(&json!({"hard": {"cpu": "2"}}));
    let found = objections(Checks { quotas: &quotas, ..Checks::default() }, &before, &injected);
    let text = "cpu: the pod takes 4, 0 is used, and the quota allows 2";
    assert_eq!(texts(&found), [("ResourceQuota quota", text, false)]);
}

#[test]
fn a_release_is_read_as_api_servers_and_people_write_it() {
    for text in [
        "1.36",
        "v1.36",
        "1.36.3",
        "v1.36.3",
        "1.36+",
        "v1.36.3-gke.1",
        "v1.36.3+k3s1",
        "v1.36.0-rc.1",
    ] {
        assert_eq!(text.parse(), Ok(Version::minor(36)), "{text}");
    }
    for text in [
        "",
        "1",
        "1.",
        "2.36",
        "1.x",
        "1.36x",
        "latest",
        "1.36.",
        "1.36.x",
        "1.36.nonsense",
        "1.36.3.4",
        "1.036",
        "1.36.03",
        "1.-36",
        "1.+36",
        "1.36+ ",
        "1.36-\u{202e}",
        "1.99999",
    ] {
        assert_eq!(text.parse::<Version>(), Err(NotVersion), "{text}");
    }
}

#[test]
fn a_release_whose_checks_are_not_known_counts_as_the_nearest() {
    let pod = json!({"spec": {"containers": [{"name": "app", "securityContext": {"procMount": "Unmasked"}}],
        "hostUsers": false, "resources": {"limits": {"cpu": "-1"}}}});
    let namespace =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    let of = |minor| refusals(Checks { namespace: Some(&namespace), ..on(minor) }, &pod);
    for (minor, judged) in [(0, 34), (25, 34), (33, 34), (38, 37), (u16::MAX, 37)] {
        assert_eq!(of(minor), of(judged), "{minor}");
        let note = Version::minor(minor).note().expect("a note");
        let named = [format!("Kubernetes 1.{minor} are not known"), format!("that of 1.{judged}")];
        assert!(named.iter().all(|text| note.contains(text)), "{note}");
    }
    assert_ne!(of(34), of(37));
    assert!((34..=37).all(|minor| Version::minor(minor).note().is_none()));
}

#[test]
fn a_note_says_that_releases_differ() {
    let pod = json!({"spec": {"containers": [
        {"name": "app", "securityContext": {"procMount": "Unmasked"}},
    ], "hostUsers": false}});
    let namespace =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    let checks = Checks { namespace: Some(&namespace), ..Checks::default() };
    let note = note_on_versions(checks, &pod, &pod).expect("a note");
    assert!(note.contains("Kubernetes 1.37; those of 1.34 refuse it"), "{note}");
    assert_eq!(note_on_versions(Checks::default(), &pod, &pod), None);
    // Warnings and audits are not compared.
    let namespace = json!({"metadata": {"labels": {"pod-security.kubernetes.io/warn": "baseline",
            "pod-security.kubernetes.io/audit": "baseline"}}});
    let checks = Checks { namespace: Some(&namespace), ..Checks::default() };
    assert_eq!(note_on_versions(checks, &pod, &pod), None);
}
