use std::{collections::BTreeMap, sync::Arc, time::Duration};

use injectd_telemetry::recent_errors::TemplateErrors;
use injectd_templates::{Problem, schema};
use kube::{api::ObjectMeta, core::DynamicObject};
use tokio::time::Instant;

use super::*;
use crate::templates::{
    pods::Pod,
    replicas::{DIGEST_ANNOTATION, ERRORS_ANNOTATION, Replicas, digest_of, errors_text, served},
};

const NAME: &str = "agent";

fn identity() -> Identity {
    Identity { namespace: None, name: NAME.to_owned() }
}

/// A template whose object has this status.
fn template(image: &str, status: &Value) -> KnownTemplate {
    let object = json!({
        "apiVersion": "injectd.dev/v1alpha1",
        "kind": "ClusterSidecarTemplate",
        "metadata": {"name": NAME},
        "spec": {
            "match": {"podSelector": {"matchLabels": {"a": "b"}}},
            "steps": [{
                "name": "s",
                "overlay": {"spec": {"containers": [{"name": "c", "image": image}]}},
            }],
        },
    });
    let read = Template::read(&object).map(Arc::new).map_err(Arc::from);
    let metadata = ObjectMeta {
        name: Some(NAME.to_owned()),
        uid: Some("uid".to_owned()),
        resource_version: Some("7".to_owned()),
        generation: Some(3),
        ..ObjectMeta::default()
    };
    let data = json!({"spec": object["spec"], "status": status});
    let served = read.as_ref().ok().cloned();
    KnownTemplate::new(Arc::new(DynamicObject { types: None, metadata, data }), read, served)
}

fn known(template: KnownTemplate) -> KnownTemplates {
    let templates = BTreeMap::from([(identity(), template)]);
    KnownTemplates { templates, is_listed: true, ..KnownTemplates::default() }
}

/// Replicas that serve what is known, and one with another digest for each of `others`.
fn replicas(known: &KnownTemplates, others: &[&str], errors: &[TemplateErrors]) -> Vec<Replica> {
    let mut replicas = Replicas::default();
    replicas.note(&KnownTemplates::default());
    replicas.note(known);
    let own = digest_of(&served(known));
    let digests = [&*own, &*own].into_iter().chain(others.iter().copied());
    let leases = digests.enumerate().map(|(index, digest)| {
        let annotations = [
            (DIGEST_ANNOTATION.to_owned(), digest.to_owned()),
            (ERRORS_ANNOTATION.to_owned(), errors_text(errors.to_vec())),
        ];
        let metadata = ObjectMeta {
            name: Some(index.to_string()),
            annotations: Some(annotations.into()),
            ..ObjectMeta::default()
        };
        k8s_openapi::api::coordination::v1::Lease { metadata, spec: None }
    });
    let now = Instant::now();
    replicas.see(&leases.collect::<Vec<_>>(), now);
    replicas.live(now)
}

/// The status after the writes that it needs.
fn written(known: &KnownTemplates, replicas: &[Replica], counts: Option<&PodCounts>) -> Value {
    let findings = Findings::of(known, "injectd");
    let now = Timestamp::from_second(1_800_000_000).expect("a time");
    let facts = Facts { replicas, findings: &findings, counts, now };
    let template = &known.templates[&identity()];
    let mut status = template.object.data["status"].clone();
    for write in writes(known, facts) {
        let Write::Status { status: changes, version, .. } = write else { panic!("{write:?}") };
        assert_eq!(version, "7");
        for (field, value) in changes.as_object().expect("fields") {
            status[field] = value.clone();
        }
    }
    let fields = status.as_object_mut().expect("a status");
    fields.retain(|_, value| !value.is_null());
    let object = json!({
        "apiVersion": "injectd.dev/v1alpha1",
        "kind": "ClusterSidecarTemplate",
        "metadata": {"name": NAME},
        "spec": template.object.data["spec"],
        "status": status,
    });
    let problems = schema::check(&object);
    assert!(problems.iter().all(|problem| !problem.field.starts_with("status")), "{problems:?}");
    status
}

/// Status, reason and message of a condition.
fn condition(status: &Value, name: &str) -> [String; 3] {
    let conditions = status["conditions"].as_array().expect("conditions");
    let found = conditions.iter().find(|condition| condition["type"] == name);
    let found = found.expect("the condition");
    ["status", "reason", "message"].map(|key| found[key].as_str().expect("a text").to_owned())
}

#[test]
fn a_template_that_all_replicas_serve_is_programmed_once() {
    let first = known(template("a:1", &json!({})));
    let replicas = replicas(&first, &[], &[]);
    let status = written(&first, &replicas, None);
    let hash = &first.templates[&identity()].served.as_ref().expect("a revision").hash;
    let message = format!("revision {hash} is in order");
    assert_eq!(condition(&status, "Accepted"), ["True", "Accepted", &*message]);
    let message = format!("2 of 2 replicas serve revision {hash}");
    assert_eq!(condition(&status, "Programmed"), ["True", "Programmed", &*message]);
    assert_eq!(condition(&status, "Conflicting"), ["False", "NoConflict", ""]);
    assert_eq!(condition(&status, "Degraded"), ["False", "NoErrors", ""]);
    assert_eq!(status["currentRevision"], **hash);
    assert_eq!(status["updateRevision"], **hash);
    assert_eq!((&status["observedGeneration"], &status["pods"]), (&json!(3), &Value::Null));
    // Nothing changes after that.
    let second = known(template("a:1", &status));
    assert_eq!(written(&second, &replicas, None), status);
}

#[test]
fn conditions_have_the_generation_that_they_are_about() {
    let first = known(template("a:1", &json!({})));
    let replicas = replicas(&first, &[], &[]);
    let generations = |status: &Value| {
        let conditions = status["conditions"].as_array().expect("conditions");
        let of = |condition: &Value| condition["observedGeneration"].as_i64();
        conditions.iter().map(of).collect::<Vec<_>>()
    };
    let mut status = written(&first, &replicas, None);
    assert_eq!(generations(&status), [Some(3); 4]);
    for condition in status["conditions"].as_array_mut().expect("conditions") {
        condition["observedGeneration"] = json!(2);
    }
    let mut broken = template("${object.", &status);
    broken.served.clone_from(&first.templates[&identity()].served);
    let status = written(&known(broken), &replicas, None);
    assert_eq!(status["observedGeneration"], 3);
    assert_eq!(generations(&status), [Some(3), Some(3), Some(2), Some(2)]);
    let never = written(&known(template("${object.", &json!({}))), &replicas, None);
    assert_eq!(generations(&never), [Some(3), Some(3), None, None]);
}

#[test]
fn a_replica_that_serves_something_else_is_counted() {
    let known = known(template("a:1", &json!({})));
    let none = digest_of(&served(&KnownTemplates::default()));
    for (others, expected) in [
        (vec![&*none], ["False", "Pending", "2 of 3 replicas"]),
        (vec!["?"], ["Unknown", "ReplicaUnknown", "2 of 3 replicas"]),
        (vec!["?", &*none], ["False", "Pending", "2 of 4 replicas"]),
    ] {
        let status = written(&known, &replicas(&known, &others, &[]), None);
        let [truth, reason, message] = condition(&status, "Programmed");
        assert_eq!([&*truth, &*reason], expected[..2], "{message}");
        assert!(message.starts_with(expected[2]), "{message}");
        assert_eq!(status["currentRevision"], Value::Null);
    }
    let [truth, reason, _] = condition(&written(&known, &[], None), "Programmed");
    assert_eq!([truth, reason], ["Unknown", "NoReplica"]);
}

#[test]
fn a_template_that_is_not_accepted_names_problems_and_what_stays_in_use() {
    let before = template("a:1", &json!({"updateRevision": "0123456789"}));
    let served = before.served.clone();
    let mut broken = template("${params.none}", &before.object.data["status"]);
    let [_, _, nothing] = condition(&written(&known(broken.clone()), &[], None), "Accepted");
    assert!(nothing.ends_with("no revision is in use"), "{nothing}");
    broken.served.clone_from(&served);
    let known = known(broken);
    let status = written(&known, &replicas(&known, &[], &[]), None);
    let hash = &served.expect("a revision").hash;
    let [truth, reason, message] = condition(&status, "Accepted");
    assert_eq!([&*truth, &*reason], ["False", "Invalid"]);
    assert!(message.starts_with("spec.steps[0].overlay.spec.containers[0].image: "), "{message}");
    let in_use = format!("the last good revision {hash} stays in use");
    assert!(message.ends_with(&in_use), "{message}");
    assert_eq!(condition(&status, "Programmed"), ["False", "NotAccepted", &*in_use]);
    assert_eq!([&status["currentRevision"], &status["updateRevision"]], [&**hash; 2]);
}

#[test]
fn messages_are_bounded() {
    let long: Vec<_> = (0..1_000)
        .map(|number| Problem::new(format!("spec.steps[{number}]"), "x\n".repeat(10_000)))
        .collect();
    let mut broken = template("a:1", &json!({}));
    broken.read = Err(long.into());
    let status = written(&known(broken), &[], None);
    let [_, _, message] = condition(&status, "Accepted");
    assert!(message.len() < 5_000 && !message.contains('\n'), "{} bytes", message.len());
    assert!(message.contains("and 999 more"), "{message}");
}

#[test]
fn errors_of_all_replicas_make_a_template_degraded() {
    let known = known(template("a:1", &json!({})));
    let errors = |template: &str, count| TemplateErrors {
        template: template.to_owned(),
        count,
        field: "spec.match.conditions[0].expression".to_owned(),
    };
    for (count, times) in
        [(1, "at least once"), (5, "at least 10 times"), (600, "at least 1000 times")]
    {
        let replicas = replicas(&known, &[], &[errors(NAME, count), errors("other", 9)]);
        let status = written(&known, &replicas, None);
        let text = format!(
            "spec.match.conditions[0].expression failed {times} in the last hour, and pods were denied"
        );
        assert_eq!(condition(&status, "Degraded"), ["True", "EvaluationErrors", &*text]);
    }
}

#[test]
fn the_time_of_a_transition_changes_with_the_status_only() {
    let earlier = "2026-01-01T00:00:00Z";
    let of = |name: &str, truth: &str| {
        json!({
            "type": name, "status": truth, "reason": "Old", "message": "old",
            "lastTransitionTime": earlier, "observedGeneration": 1,
        })
    };
    let before = json!({
        "conditions": [of("Progressing", "True"), of("Accepted", "True"), of("Degraded", "True")],
    });
    let known = known(template("a:1", &before));
    let status = written(&known, &replicas(&known, &[], &[]), None);
    let times: BTreeMap<_, _> = status["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .map(|condition| (&condition["type"], &condition["lastTransitionTime"]))
        .map(|(name, time)| (name.as_str().expect("a name"), time.as_str().expect("a time")))
        .collect();
    let now = "2027-01-15T08:00:00Z";
    let expected = [
        ("Accepted", earlier),
        ("Conflicting", now),
        ("Degraded", now),
        ("Programmed", now),
        ("Progressing", earlier),
    ];
    assert_eq!(times, expected.into());
}

#[test]
fn the_definitions_name_the_conditions_that_are_written() {
    for definition in schema::crds() {
        let version = &definition["spec"]["versions"][0];
        let status = "/schema/openAPIV3Schema/properties/status/properties/conditions/description";
        let text = version.pointer(status).and_then(Value::as_str).expect("a description");
        let (_, names) = text.trim_end_matches('.').split_once(": ").expect("names");
        let names: Vec<_> = names.split(", ").flat_map(|name| name.split(" and ")).collect();
        assert_eq!(names, NAMES);
        let columns = version["additionalPrinterColumns"].as_array().expect("columns");
        let paths = columns.iter().filter_map(|column| column["jsonPath"].as_str());
        let shown = paths.filter_map(|path| path.split_once("@.type==\"")?.1.split_once('"'));
        for (name, _) in shown {
            assert!(NAMES.contains(&name), "a column shows {name}, which is not written");
        }
    }
}

#[test]
fn pods_are_counted_by_revision() {
    let mut known = known(template("a:1", &json!({})));
    let hash = known.templates[&identity()].served.as_ref().expect("a revision").hash.clone();
    let pods = |hash: &str, count: usize| {
        let mark = json!({NAME: {"hash": hash, "added": [], "served": []}}).to_string();
        let pod = json!({"metadata": {"annotations": {"injectd.dev/templates": mark}}});
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        vec![pod; count]
    };
    let mut counts = PodCounts::default();
    let names = BTreeSet::from([identity()]);
    counts.add(&names, &pods(&hash, 2));
    counts.add(&names, &pods("0123456789", 5));
    for number in 0..200 {
        counts.add(&names, &pods(&format!("{number:010x}"), 3));
    }
    known.revisions = Vec::new();
    let status = written(&known, &[], Some(&counts));
    assert_eq!((&status["pods"], &status["outdated"]), (&json!(607), &json!(605)));
    let revisions = status["revisions"].as_array().expect("revisions");
    assert_eq!(revisions.len(), MAX_REVISIONS);
    // Revisions that are known come first, then those that most pods have.
    assert_eq!(revisions[0], json!({"hash": hash, "pods": 2}));
    assert_eq!(revisions[1], json!({"hash": "0123456789", "pods": 5}));
}

#[test]
fn a_digest_is_taken_for_the_one_before_only_for_a_while() {
    // A replica that saw a change earlier than the leader is not reported as one that lags.
    let known = known(template("a:1", &json!({})));
    let mut replicas = Replicas::default();
    replicas.note(&known);
    let mut lease = k8s_openapi::api::coordination::v1::Lease::default();
    let (begin, own) = (Instant::now(), digest_of(&served(&known)));
    for (second, digest, expected) in [(0, &*own, "True"), (5, "?", "True"), (70, "?", "Unknown")] {
        lease.metadata.annotations =
            Some([(DIGEST_ANNOTATION.to_owned(), digest.to_owned())].into());
        lease.metadata.resource_version = Some(second.to_string());
        let now = begin + Duration::from_secs(second);
        replicas.see(std::slice::from_ref(&lease), now);
        let status = written(&known, &replicas.live(now), None);
        assert_eq!(condition(&status, "Programmed")[0], expected, "{second} s");
    }
}
