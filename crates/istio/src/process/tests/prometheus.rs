use serde_json::{Value, json};

use super::{super::process, facts, pod, processed};
use crate::{process::Facts, release::Release};

fn merging(release: Release) -> Facts<'static> {
    Facts { release, prometheus_merge: true, ..facts() }
}

const OLD: Release = Release::new(30, 0);

/// The annotations about Prometheus, and the scrape settings of the agent.
fn merged(annotations: &Value, release: Release) -> (Value, Value) {
    let mut pod = processed(&pod(annotations), &merging(release));
    let given = pod["spec"]["containers"][1]["env"][0]["value"].clone();
    let mut annotations = pod["metadata"]["annotations"].take();
    annotations.as_object_mut().map(|all| all.remove("sidecar.istio.io/status"));
    (annotations, given)
}

fn redirected() -> Value {
    json!({
        "prometheus.io/port": "15020",
        "prometheus.io/path": "/stats/prometheus",
        "prometheus.io/scrape": "true",
    })
}

#[test]
fn annotations_are_handed_to_the_agent_in_any_spelling() {
    for key in ["prometheus.io/port", "prometheus-io/port", "prometheus_io_port"] {
        let (annotations, given) = merged(&json!({key: "8080"}), OLD);
        assert_eq!(annotations, redirected());
        assert_eq!(given, r#"{"scrape":"","path":"","port":"8080"}"#);
    }
    let annotations = json!({"prometheus.io/path": "/a?b&c", "prometheus.io/scrape": "t"});
    let given = merged(&annotations, OLD).1;
    assert_eq!(given, r#"{"scrape":"t","path":"/a?b\u0026c","port":""}"#);
}

#[test]
fn a_pod_without_annotations_gets_them_and_the_agent_nothing() {
    assert_eq!(merged(&json!({}), OLD), (redirected(), Value::Null));
    let pod = processed(&json!({}), &merging(OLD));
    assert_eq!(pod["metadata"]["annotations"]["prometheus.io/port"], "15020");
}

#[test]
fn the_exact_spelling_wins_and_then_the_first() {
    let both = json!({"prometheus-io/port": "1", "prometheus.io/port": "2"});
    assert_eq!(merged(&both, OLD).1, r#"{"scrape":"","path":"","port":"2"}"#);
    let two = json!({"prometheus_io/port": "2", "prometheus.io-port": "1"});
    assert_eq!(merged(&two, OLD).1, r#"{"scrape":"","path":"","port":"1"}"#);
}

#[test]
fn nothing_changes_if_pod_or_mesh_say_no_or_if_it_has_happened() {
    for annotations in [
        json!({"prometheus.io/scrape": "false"}),
        json!({"prometheus.istio.io/merge-metrics": "F"}),
        json!({"prometheus.io/port": "15020"}),
    ] {
        assert_eq!(merged(&annotations, Release::NEWEST), (annotations, Value::Null));
    }
    let off = Facts { prometheus_merge: false, ..facts() };
    let untouched = processed(&pod(&json!({"prometheus.io/port": "1"})), &off);
    assert_eq!(untouched["metadata"]["annotations"]["prometheus.io/port"], "1");
    let on = pod(&json!({"prometheus.istio.io/merge-metrics": "true"}));
    assert_eq!(processed(&on, &off)["metadata"]["annotations"]["prometheus.io/port"], "15020");
    let unreadable = json!({"prometheus.io/scrape": "no"});
    assert_eq!(merged(&unreadable, OLD).0, redirected());
}

#[test]
fn targets_are_consumed_since_1_31() {
    let targets = json!({"prometheus.istio.io/scrape-targets": "8080:/a, 9090"});
    let (annotations, given) = merged(&targets, Release::NEWEST);
    assert_eq!(annotations, redirected());
    let expected = r#"{"scrape":"","path":"/a","port":"8080","targets":[{"port":"8080","path":"/a"},{"port":"9090","path":"/metrics"}]}"#;
    assert_eq!(given, expected);
    let (annotations, given) = merged(&targets, OLD);
    assert_eq!(annotations["prometheus.istio.io/scrape-targets"], "8080:/a, 9090");
    assert_eq!(given, Value::Null);
}

#[test]
fn bad_ports_are_denied_since_1_31() {
    let target = |text: &str| json!({"prometheus.istio.io/scrape-targets": text});
    let port = |text: &str| json!({"prometheus.io/port": text});
    for (annotations, expected) in [
        (target("8080,bad:/x"), r#"invalid prometheus scrape targets: invalid target port "bad""#),
        (
            target("15020"),
            "invalid prometheus scrape targets: target port 15020 conflicts with agent port",
        ),
        (
            target("15090"),
            "invalid prometheus scrape targets: target port 15090 is reserved for Istio (Envoy Prometheus (already merged)) and cannot be scraped",
        ),
        (port("abc"), r#"invalid prometheus scrape configuration: invalid port "abc""#),
        (port("65536"), r#"invalid prometheus scrape configuration: invalid port "65536""#),
        (
            port("15000"),
            "invalid prometheus scrape configuration: port 15000 is reserved for Istio (Envoy admin) and cannot be scraped",
        ),
    ] {
        let mut denied = pod(&annotations);
        let error = process(&mut denied, &json!({}), &merging(Release::NEWEST));
        assert_eq!(error.map_err(|error| error.to_string()), Err(expected.to_owned()));
        let older = process(&mut pod(&annotations), &json!({}), &merging(OLD));
        let is_port = annotations.get("prometheus.io/port").is_some();
        let warnings: Vec<_> =
            older.expect("must not be denied").iter().map(ToString::to_string).collect();
        let later = is_port.then(|| format!("later releases of Istio deny the pod: {expected}"));
        assert_eq!(later.into_iter().collect::<Vec<_>>(), warnings);
    }
}

#[test]
fn an_entry_without_a_port_disables_all_targets() {
    let mut pod = pod(&json!({"prometheus.istio.io/scrape-targets": "8080,:/x"}));
    let warnings = process(&mut pod, &json!({}), &merging(Release::NEWEST));
    assert_eq!(warnings.map(|warnings| warnings.len()), Ok(1));
    assert_eq!(pod["spec"]["containers"][1].get("env"), None);
}
