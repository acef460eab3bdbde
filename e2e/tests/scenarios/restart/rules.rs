//! What the command `injectd restart` leaves alone, and why.

use injectd_controllers::restart::RESTARTED_AT_ANNOTATION;
use injectd_harness::{
    api::collection,
    expect::{Outcome, eventually, expect, expect_contains},
    namespaced::{Namespaced, OF_SCENARIO},
    objects::deployment,
};
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::command::{ACT, injectd, with_kubelet};

#[tokio::test]
async fn a_rollout_that_does_not_finish_stops_restarts_of_its_namespace_only() -> Outcome {
    with_kubelet(stuck).await
}

/// A quota allows no further pod: the first workload does not finish, and the second is not restarted.
/// That of another namespace is, although only one may roll out at a time.
async fn stuck(it: &Namespaced<'_>) -> Outcome {
    let (namespace, neighbour) = (&*it.name, &*it.name_of("neighbour"));
    let (_, second) = (available(it, "first").await?, available(it, "second").await?);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "pods"}, "spec": {"hard": {"pods": "1"}}});
    it.create(&quota).await?.created()?;
    let path = it.path("v1", "ResourceQuota", "pods");
    eventually("the quota is counted", async || {
        let found = it.lab.api.get(&path).await?.ok()?;
        expect("the limit", json!("1"), found["status"]["hard"]["pods"].clone())
    })
    .await?;
    it.make(neighbour, &json!({})).await?;
    let third = available_in(it, neighbour, "third").await?;
    let all = [(namespace, "first"), (namespace, "second"), (neighbour, "third")];
    let all = all.map(|(namespace, name)| workload(namespace, name, json!({})));
    let limits = ["--max-restarting", "1", "--rollout-timeout", "1s"];
    let ran = injectd(it.lab, &[&ACT[..], &limits].concat(), findings(&all)).await?;
    expect(format!("the exit code, with {:?}", ran.stderr), Some(1), ran.code)?;
    let first = format!("deployment {namespace}/first: its rollout is stuck: it is not finished");
    expect_contains("stdout", &first, &ran.stdout)?;
    let why = format!("the rollout of deployment {namespace}/first does not finish");
    let line = format!(
        "deployment {namespace}/second: not restarted: restarts of its namespace stopped: {why}"
    );
    expect_contains("stdout", &line, &ran.stdout)?;
    expect_contains("stdout", &format!("deployment {neighbour}/third: restarted"), &ran.stdout)?;
    expect("the generation of the second", json!(1), generation(it, &second).await?)?;
    expect("the generation of the third", json!(2), generation(it, &third).await?)
}

#[tokio::test]
async fn a_workload_is_not_restarted_for_pods_that_only_claim_to_be_of_it() -> Outcome {
    with_kubelet(forged).await
}

/// What pods claim of their controller is compared with the `ReplicaSet`.
async fn forged(it: &Namespaced<'_>) -> Outcome {
    let (web, _) = (available(it, "web").await?, available(it, "db").await?);
    let sets = it.lab.api.get(&collection("apps/v1", "ReplicaSet", Some(&it.name))).await?.ok()?;
    let claim = |deployment: &str| {
        let of = |set: &&Value| set["metadata"]["ownerReferences"][0]["name"] == deployment;
        let set = sets["items"].as_array().into_iter().flatten().find(of);
        let metadata = set.map(|set| set["metadata"].clone()).unwrap_or_default();
        json!({"name": metadata["name"], "uid": metadata["uid"]})
    };
    let mut other_uid = claim("web");
    other_uid["uid"] = json!("00000000-0000-0000-0000-000000000000");
    let gone = json!({"name": "web-abc", "uid": other_uid["uid"]});
    for named in [other_uid, gone, claim("db")] {
        let input = findings(&[workload(&it.name, "web", json!({"replicaSets": [named]}))]);
        let ran = injectd(it.lab, &ACT, input).await?;
        expect(format!("the exit code for {named}"), Some(3), ran.code)?;
        expect_contains("stdout", "name no ReplicaSet that is of it", &ran.stdout)?;
        expect("the generation", json!(1), generation(it, &web).await?)?;
    }
    let input = findings(&[workload(&it.name, "web", json!({"cause": "outage"}))]);
    let ran = injectd(it.lab, &ACT, input).await?;
    expect("the exit code for pods of the Deployment itself", Some(3), ran.code)?;
    expect("the generation", json!(1), generation(it, &web).await?)?;
    let named = [claim("db"), claim("web")];
    let input = findings(&[workload(&it.name, "web", json!({"replicaSets": named}))]);
    let ran = injectd(it.lab, &ACT, input).await?;
    expect(format!("the exit code of its own, with {:?}", ran.stderr), Some(0), ran.code)?;
    expect("the generation", json!(2), generation(it, &web).await?)
}

#[tokio::test]
async fn a_restart_that_did_not_help_is_not_repeated_before_something_changed() -> Outcome {
    with_kubelet(did_not_help).await
}

/// A restart that did not help is not repeated before something changed, also long after it.
async fn did_not_help(it: &Namespaced<'_>) -> Outcome {
    let path = available(it, "web").await?;
    let restart = async |cause: &str, since: Timestamp| {
        let audited = Timestamp::now().to_string();
        let sets =
            it.lab.api.get(&collection("apps/v1", "ReplicaSet", Some(&it.name))).await?.ok()?;
        let metadata = &sets["items"][0]["metadata"];
        let set = json!({"name": metadata["name"], "uid": metadata["uid"]});
        let more = json!({"environment": cause, "cause": cause, "audited": audited,
            "since": since.to_string(), "replicaSets": [set]});
        injectd(it.lab, &ACT, findings(&[workload(&it.name, "web", more)])).await
    };
    let ran = restart("outage", Timestamp::now()).await?;
    expect(format!("the exit code, with {:?}", ran.stderr), Some(0), ran.code)?;
    let again = restart("outage", Timestamp::now()).await?;
    expect_contains("stdout", "restarted less than an hour ago", &again.stdout)?;
    expect("the generation", json!(2), generation(it, &path).await?)?;
    let long_ago = Timestamp::now() - 2.hours();
    it.lab
        .api
        .update(&path, |object| {
            let annotations = &mut object["spec"]["template"]["metadata"]["annotations"];
            annotations[RESTARTED_AT_ANNOTATION] = json!(long_ago.to_string());
        })
        .await?;
    finished(it, &path).await?;
    let later = restart("outage", long_ago + 1.minute()).await?;
    expect("the exit code after two hours", Some(3), later.code)?;
    expect_contains("stdout", "did not help", &later.stdout)?;
    expect("the generation", json!(3), generation(it, &path).await?)?;
    // As after a change of a webhook, or of the configuration.
    let changed = restart("other", long_ago + 1.minute()).await?;
    expect(
        format!("the exit code after a change, with {:?}", changed.stdout),
        Some(0),
        changed.code,
    )?;
    expect("the generation", json!(4), generation(it, &path).await?)
}

#[tokio::test]
async fn nobody_loses_a_sidecar_without_include_unexpected() -> Outcome {
    with_kubelet(effects).await
}

/// A dry run says what would happen to sidecars, and who would lose one is left out.
async fn effects(it: &Namespaced<'_>) -> Outcome {
    let kept = available(it, "kept").await?;
    available(it, "left").await?;
    let named = |name: &str, finding: &str| workload(&it.name, name, json!({"finding": finding}));
    let input = findings(&[named("kept", "unexpected"), named("left", "missing")]);
    let line = |name: &str, text: &str| format!("deployment {}/{name}: {text}", it.name);
    let gets = line("left", "would be restarted now: would get its sidecar");
    let ran = injectd(it.lab, &["-f", "-"], input.clone()).await?;
    expect(format!("the exit code, with {:?}", ran.stderr), Some(0), ran.code)?;
    expect_contains("stdout", &gets, &ran.stdout)?;
    expect_contains("stdout", &line("kept", "left out: it would lose its sidecar"), &ran.stdout)?;
    let ran = injectd(it.lab, &["-f", "-", "--include", "unexpected"], input).await?;
    let loses = line("kept", "would be restarted now: would lose its sidecar");
    expect_contains("stdout with --include", &loses, &ran.stdout)?;
    let only = findings(&[named("kept", "unexpected")]);
    let ran = injectd(it.lab, &["-f", "-", "--yes", "-o", "json"], only).await?;
    expect(format!("the exit code of --yes, with {:?}", ran.stderr), Some(0), ran.code)?;
    let answer: Value = serde_json::from_str(&ran.stdout)?;
    expect("the result", json!("left_out"), answer["workloads"][0]["result"].clone())?;
    expect("the generation", json!(1), generation(it, &kept).await?)
}

/// Creates a Deployment and waits for its pod; returns its path.
pub(super) async fn available(it: &Namespaced<'_>, name: &str) -> Outcome<String> {
    available_in(it, &it.name, name).await
}

async fn available_in(it: &Namespaced<'_>, namespace: &str, name: &str) -> Outcome<String> {
    let mut object = deployment(name, 1, &json!({}));
    object["spec"]["template"]["metadata"]["labels"][OF_SCENARIO] = json!(it.name);
    it.lab.api.create(Some(namespace), &object).await?.created()?;
    let path = format!("{}/{name}", collection("apps/v1", "Deployment", Some(namespace)));
    finished(it, &path).await?;
    Ok(path)
}

/// Waits for the end of a rollout.
async fn finished(it: &Namespaced<'_>, path: &str) -> Outcome {
    eventually("the rollout is finished", async || {
        let found = it.lab.api.get(path).await?.ok()?;
        let status = &found["status"];
        expect("the generation", &found["metadata"]["generation"], &status["observedGeneration"])?;
        let counts =
            ["replicas", "updatedReplicas", "availableReplicas"].map(|field| &status[field]);
        expect("the pods", [&json!(1); 3], counts)
    })
    .await
}

/// A Deployment as the audit lists it, with further fields.
fn workload(namespace: &str, name: &str, more: Value) -> Value {
    let mut found = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "namespace": namespace, "name": name});
    if let (Some(found), Value::Object(more)) = (found.as_object_mut(), more) {
        found.extend(more);
    }
    found
}

fn findings(workloads: &[Value]) -> String {
    json!({"workloads": workloads}).to_string()
}

pub(super) async fn generation(it: &Namespaced<'_>, path: &str) -> Outcome<Value> {
    Ok(it.lab.api.get(path).await?.ok()?["metadata"]["generation"].clone())
}
