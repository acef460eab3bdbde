//! The command `injectd restart`.

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use injectd::restart::RESTARTED_AT_ANNOTATION;
use injectd_harness::{
    api::{NAMESPACES, collection},
    expect::{Outcome, eventually, expect, expect_contains, failed},
    objects::{deployment, namespace},
};
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::{Restart, fleet::LABEL};

const NAMESPACE: &str = "restart-command";
const NEIGHBOUR: &str = "restart-neighbour";
const FORGED: &str = "restart-forged";
const NOT_HELPED: &str = "restart-not-helped";
const EFFECTS: &str = "restart-effects";

/// A run of the command: its exit code and what it printed.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Runs the command with this input.
async fn injectd(it: &Restart<'_>, arguments: &[&str], input: String) -> Outcome<Ran> {
    let mut command = Command::new(&it.lab.binary);
    command.args(["restart", "--kubeconfig"]).arg(&it.lab.kubeconfig).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = spawn_blocking(move || -> std::io::Result<Output> {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // Wrong usage ends the command before it reads.
            drop(stdin.write_all(input.as_bytes()));
        }
        child.wait_with_output()
    });
    let Output { status, stdout, stderr } = output.await??;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ran { code: status.code(), out: text(&stdout), err: text(&stderr) })
}

/// The findings of the fleet, as an audit prints them.
pub(super) async fn dry_run(it: &Restart<'_>) -> Outcome<String> {
    let findings: Vec<Value> =
        it.fleet.findings().iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    let input = json!({"summary": {"pods": 200}, "workloads": findings}).to_string();
    let ran = injectd(it, &["-f", "-", "-o", "json"], input).await?;
    expect(format!("the exit code, with {:?}", ran.err), Some(3), ran.code)?;
    let answer: Value = serde_json::from_str(&ran.out)?;
    let results = answer["workloads"].as_array().ok_or_else(|| failed("no workloads"))?;
    let of = |result: &str| results.iter().filter(|it| it["result"] == result).count();
    expect("the workloads", findings.len(), results.len())?;
    expect("those that would be restarted", it.fleet.free().count(), of("dry_run"))?;
    expect("those outside of their window", it.fleet.closed().count(), of("window"))?;
    expect_contains("stderr", "dry run: nothing was restarted; restart with --yes", &ran.err)?;
    expect("the restarts", 0, it.recorder.seen().restarted)?;
    Ok(format!("{} would be restarted", of("dry_run")))
}

pub(super) async fn acts(it: &Restart<'_>) -> Outcome {
    let api = &it.lab.api;
    api.create(None, &namespace(NAMESPACE, &json!({}), &json!({}))).await?.created()?;
    let path = available(it, "web").await?;
    let arguments = ["deploy/web", "-n", NAMESPACE, "--yes"];
    let ran = injectd(it, &arguments, String::new()).await?;
    expect(format!("the exit code, with {:?}", ran.err), Some(0), ran.code)?;
    expect("stdout", format!("deployment {NAMESPACE}/web: restarted\n"), ran.out)?;
    let again = injectd(it, &arguments, String::new()).await?;
    expect("the exit code of the second", Some(3), again.code)?;
    expect_contains("stdout", "not restarted: it was restarted less than an hour ago", &again.out)?;
    expect("the generation", json!(2), generation(it, &path).await?)?;
    let gone = injectd(it, &["deploy/gone", "-n", NAMESPACE], String::new()).await?;
    expect("the exit code without a workload", Some(1), gone.code)?;
    expect_contains("stdout", "not restarted: it does not exist any more", &gone.out)?;
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": NAMESPACE,
        "name": "once"});
    let input = json!({"workloads": [job]}).to_string();
    let by_hand = injectd(it, &["-f", "-", "--yes"], input).await?;
    expect("the exit code of a Job", Some(3), by_hand.code)?;
    expect_contains("stdout", "delete the Job and create it again", &by_hand.out)
}

/// Creates a Deployment and waits for its pod; returns its path.
async fn available(it: &Restart<'_>, name: &str) -> Outcome<String> {
    available_in(it, NAMESPACE, name).await
}

async fn available_in(it: &Restart<'_>, namespace: &str, name: &str) -> Outcome<String> {
    let mut object = deployment(name, 1, &json!({}));
    object["spec"]["template"]["metadata"]["labels"][LABEL.0] = json!(LABEL.1);
    it.lab.api.create(Some(namespace), &object).await?.created()?;
    let path = format!("{}/{name}", collection("apps/v1", "Deployment", Some(namespace)));
    finished(it, &path).await?;
    Ok(path)
}

/// Waits for the end of a rollout.
async fn finished(it: &Restart<'_>, path: &str) -> Outcome {
    eventually("the rollout is finished", async || {
        let found = it.lab.api.get(path).await?.ok()?;
        let status = &found["status"];
        expect("the generation", &found["metadata"]["generation"], &status["observedGeneration"])?;
        let counts = ["replicas", "updatedReplicas", "availableReplicas"].map(|it| &status[it]);
        expect("the pods", [&json!(1); 3], counts)
    })
    .await
}

/// A quota allows no further pod: the first workload does not finish, and the second is not restarted.
/// That of another namespace is, although only one may roll out at a time.
pub(super) async fn stuck(it: &Restart<'_>) -> Outcome {
    let (_, second) = (available(it, "first").await?, available(it, "second").await?);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "pods"}, "spec": {"hard": {"pods": "1"}}});
    it.lab.api.create(Some(NAMESPACE), &quota).await?.created()?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/resourcequotas/pods");
    eventually("the quota is counted", async || {
        let found = it.lab.api.get(&path).await?.ok()?;
        expect("the limit", json!("1"), found["status"]["hard"]["pods"].clone())
    })
    .await?;
    it.lab.api.create(None, &namespace(NEIGHBOUR, &json!({}), &json!({}))).await?.created()?;
    let third = available_in(it, NEIGHBOUR, "third").await?;
    let all = [(NAMESPACE, "first"), (NAMESPACE, "second"), (NEIGHBOUR, "third")];
    let all = all.map(|(namespace, name)| workload(namespace, name, json!({})));
    let limits = ["--max-restarting", "1", "--rollout-timeout", "1s"];
    let ran = injectd(it, &[&["-f", "-", "--yes"][..], &limits].concat(), findings(&all)).await?;
    expect(format!("the exit code, with {:?}", ran.err), Some(1), ran.code)?;
    let first = format!("deployment {NAMESPACE}/first: its rollout is stuck: it is not finished");
    expect_contains("stdout", &first, &ran.out)?;
    let why = format!("the rollout of deployment {NAMESPACE}/first does not finish");
    let line = format!(
        "deployment {NAMESPACE}/second: not restarted: restarts of its namespace stopped: {why}"
    );
    expect_contains("stdout", &line, &ran.out)?;
    expect_contains("stdout", &format!("deployment {NEIGHBOUR}/third: restarted"), &ran.out)?;
    expect("the generation of the second", json!(1), generation(it, &second).await?)?;
    expect("the generation of the third", json!(2), generation(it, &third).await?)?;
    for name in [NAMESPACE, NEIGHBOUR] {
        it.lab.api.delete(&format!("{NAMESPACES}/{name}")).await?.ok()?;
    }
    Ok(())
}

/// What pods claim of their controller is compared with the `ReplicaSet`.
pub(super) async fn forged(it: &Restart<'_>) -> Outcome {
    it.lab.api.create(None, &namespace(FORGED, &json!({}), &json!({}))).await?.created()?;
    let (web, _) = (available_in(it, FORGED, "web").await?, available_in(it, FORGED, "db").await?);
    let sets = it.lab.api.get(&collection("apps/v1", "ReplicaSet", Some(FORGED))).await?.ok()?;
    let claim = |deployment: &str| {
        let of = |it: &&Value| it["metadata"]["ownerReferences"][0]["name"] == deployment;
        let set = sets["items"].as_array().into_iter().flatten().find(of);
        let metadata = set.map(|it| it["metadata"].clone()).unwrap_or_default();
        json!({"name": metadata["name"], "uid": metadata["uid"]})
    };
    let mut other_uid = claim("web");
    other_uid["uid"] = json!("00000000-0000-0000-0000-000000000000");
    let gone = json!({"name": "web-abc", "uid": other_uid["uid"]});
    for named in [other_uid, gone, claim("db")] {
        let input = findings(&[workload(FORGED, "web", json!({"replicaSets": [named]}))]);
        let ran = injectd(it, &["-f", "-", "--yes"], input).await?;
        expect(format!("the exit code for {named}"), Some(3), ran.code)?;
        expect_contains("stdout", "name no ReplicaSet that is of it", &ran.out)?;
        expect("the generation", json!(1), generation(it, &web).await?)?;
    }
    let input = findings(&[workload(FORGED, "web", json!({"cause": "outage"}))]);
    let ran = injectd(it, &["-f", "-", "--yes"], input).await?;
    expect("the exit code for pods of the Deployment itself", Some(3), ran.code)?;
    expect("the generation", json!(1), generation(it, &web).await?)?;
    let named = [claim("db"), claim("web")];
    let input = findings(&[workload(FORGED, "web", json!({"replicaSets": named}))]);
    let ran = injectd(it, &["-f", "-", "--yes"], input).await?;
    expect(format!("the exit code of its own, with {:?}", ran.err), Some(0), ran.code)?;
    expect("the generation", json!(2), generation(it, &web).await?)?;
    it.lab.api.delete(&format!("{NAMESPACES}/{FORGED}")).await?.ok().map(drop)
}

/// A restart that did not help is not repeated before something changed, also long after it.
pub(super) async fn did_not_help(it: &Restart<'_>) -> Outcome {
    it.lab.api.create(None, &namespace(NOT_HELPED, &json!({}), &json!({}))).await?.created()?;
    let path = available_in(it, NOT_HELPED, "web").await?;
    let restart = async |cause: &str, since: Timestamp| {
        let audited = Timestamp::now().to_string();
        let sets =
            it.lab.api.get(&collection("apps/v1", "ReplicaSet", Some(NOT_HELPED))).await?.ok()?;
        let metadata = &sets["items"][0]["metadata"];
        let set = json!({"name": metadata["name"], "uid": metadata["uid"]});
        let more = json!({"environment": cause, "cause": cause, "audited": audited,
            "since": since.to_string(), "replicaSets": [set]});
        injectd(it, &["-f", "-", "--yes"], findings(&[workload(NOT_HELPED, "web", more)])).await
    };
    let ran = restart("outage", Timestamp::now()).await?;
    expect(format!("the exit code, with {:?}", ran.err), Some(0), ran.code)?;
    let again = restart("outage", Timestamp::now()).await?;
    expect_contains("stdout", "restarted less than an hour ago", &again.out)?;
    expect("the generation", json!(2), generation(it, &path).await?)?;
    let long_ago = Timestamp::now() - 2.hours();
    it.lab
        .api
        .update(&path, |it| {
            let annotations = &mut it["spec"]["template"]["metadata"]["annotations"];
            annotations[RESTARTED_AT_ANNOTATION] = json!(long_ago.to_string());
        })
        .await?;
    finished(it, &path).await?;
    let later = restart("outage", long_ago + 1.minute()).await?;
    expect("the exit code after two hours", Some(3), later.code)?;
    expect_contains("stdout", "did not help", &later.out)?;
    expect("the generation", json!(3), generation(it, &path).await?)?;
    // As after a change of a webhook, or of the configuration.
    let changed = restart("other", long_ago + 1.minute()).await?;
    expect(format!("the exit code after a change, with {:?}", changed.out), Some(0), changed.code)?;
    expect("the generation", json!(4), generation(it, &path).await?)?;
    it.lab.api.delete(&format!("{NAMESPACES}/{NOT_HELPED}")).await?.ok().map(drop)
}

/// A dry run says what would happen to sidecars, and who would lose one is left out.
pub(super) async fn effects(it: &Restart<'_>) -> Outcome {
    it.lab.api.create(None, &namespace(EFFECTS, &json!({}), &json!({}))).await?.created()?;
    let kept = available_in(it, EFFECTS, "kept").await?;
    available_in(it, EFFECTS, "left").await?;
    let named = |name: &str, finding: &str| workload(EFFECTS, name, json!({"finding": finding}));
    let input = findings(&[named("kept", "unexpected"), named("left", "missing")]);
    let line = |name: &str, text: &str| format!("deployment {EFFECTS}/{name}: {text}");
    let gets = line("left", "would be restarted now: would get its sidecar");
    let ran = injectd(it, &["-f", "-"], input.clone()).await?;
    expect(format!("the exit code, with {:?}", ran.err), Some(0), ran.code)?;
    expect_contains("stdout", &gets, &ran.out)?;
    expect_contains("stdout", &line("kept", "left out: it would lose its sidecar"), &ran.out)?;
    let ran = injectd(it, &["-f", "-", "--include", "unexpected"], input).await?;
    let loses = line("kept", "would be restarted now: would lose its sidecar");
    expect_contains("stdout with --include", &loses, &ran.out)?;
    let only = findings(&[named("kept", "unexpected")]);
    let ran = injectd(it, &["-f", "-", "--yes", "-o", "json"], only).await?;
    expect(format!("the exit code of --yes, with {:?}", ran.err), Some(0), ran.code)?;
    let answer: Value = serde_json::from_str(&ran.out)?;
    expect("the result", json!("left_out"), answer["workloads"][0]["result"].clone())?;
    expect("the generation", json!(1), generation(it, &kept).await?)?;
    it.lab.api.delete(&format!("{NAMESPACES}/{EFFECTS}")).await?.ok().map(drop)
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

async fn generation(it: &Restart<'_>, path: &str) -> Outcome<Value> {
    Ok(it.lab.api.get(path).await?.ok()?["metadata"]["generation"].clone())
}

/// The page of the command shows what it prints for these workloads.
pub(super) async fn page(it: &Restart<'_>) -> Outcome {
    const SHOP: &str = "shop";
    let api = &it.lab.api;
    api.create(None, &namespace(SHOP, &json!({}), &json!({}))).await?.created()?;
    api.create(Some(SHOP), &deployment("web", 0, &json!({}))).await?.created()?;
    let mut database = deployment("db", 0, &json!({}));
    database["kind"] = "StatefulSet".into();
    database["spec"]["serviceName"] = "db".into();
    api.create(Some(SHOP), &database).await?.created()?;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "db"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}});
    api.create(Some(SHOP), &budget).await?.created()?;
    for (path, field) in [
        ("/apis/policy/v1/namespaces/shop/poddisruptionbudgets/db", "observedGeneration"),
        ("/apis/apps/v1/namespaces/shop/deployments/web", "observedGeneration"),
        ("/apis/apps/v1/namespaces/shop/statefulsets/db", "observedGeneration"),
    ] {
        eventually("the controllers have seen the objects", async || {
            let found = api.get(path).await?.ok()?;
            expect("the generation", json!(1), found["status"][field].clone())
        })
        .await?;
    }
    let page = include_str!("../../../../docs/commands/restart.md");
    let block = page.split("```console\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.ok_or_else(|| failed("the page has no block"))?;
    let mut found = String::new();
    for line in block.lines().filter_map(|line| line.strip_prefix("$ injectd restart ")) {
        let arguments: Vec<_> = line.split_whitespace().collect();
        let ran = injectd(it, &arguments, String::new()).await?;
        found.extend(["$ injectd restart ", line, "\n", &ran.out, &ran.err]);
    }
    expect("the block of the page", block, &found)?;
    api.delete("/api/v1/namespaces/shop").await?.ok().map(drop)
}

pub(super) async fn wrong_usage(it: &Restart<'_>) -> Outcome {
    for (arguments, problem) in [
        (&[][..], "required arguments were not provided"),
        (&["web"], "write KIND/NAME, such as deploy/web"),
        (&["pod/web"], "the kind must be a Deployment"),
        (&["deploy/web", "--window", "always"], "expected [DAYS] HH:MM-HH:MM [TIME ZONE]"),
        (&["deploy/web", "--max-restarting", "0"], "expected a number above zero"),
        (&["deploy/web", "--include", "unexpected"], "--filename"),
    ] {
        let ran = injectd(it, arguments, String::new()).await?;
        expect(format!("the exit code of {arguments:?}"), Some(64), ran.code)?;
        expect_contains(format!("stderr of {arguments:?}"), problem, &ran.err)?;
    }
    let ran = injectd(it, &["-f", "-"], "[]".to_owned()).await?;
    expect("the exit code of wrong JSON", Some(1), ran.code)?;
    expect_contains("stderr", "cannot use stdin", &ran.err)
}
