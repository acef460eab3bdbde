//! `injectd compare`: the answers in the audit log beside those that injectd gives now.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use injectd_harness::{
    api::{NAMESPACES, collection},
    audit_log::{events, has_failed_open, is_webhook_called, verdict},
    expect::{Outcome, eventually, expect, expect_contains, expect_listed, expect_same, failed},
    injectd::linkerd_folder,
    objects::CONNECT_TIMEOUT,
    program::Program,
    run::Suite,
};
use serde_json::{Value, json};

use super::Standalone;

const PLACE: &str = "linkerd-proxy/env/LINKERD2_PROXY_OUTBOUND_CONNECT_TIMEOUT/value";

pub(super) async fn all(suite: &mut Suite<'_>, it: &Standalone) {
    let name = "compare: the reviews of the audit log get the same answers";
    suite.scenario(name, same(it)).await;
    let name = "compare: a difference in the values is reported with its place";
    suite.scenario(name, other_values(it)).await;
    let name = "compare: a difference in the namespace's annotations is reported";
    suite.scenario(name, other_annotations(it)).await;
}

async fn same(it: &Standalone) -> Outcome {
    let (report, verdicts) = compare(it, 0, &objects(it, &json!({})).await?, &[]).await?;
    for verdict in ["annotated", "injected", "skipped"] {
        expect_listed(
            "the verdicts",
            verdict,
            &verdicts.iter().map(|it| &**it).collect::<Vec<_>>(),
        )?;
    }
    expect_same("the differences", &json!([]), &report["differences"])?;
    expect_same("the number of same answers", &report["compared"], &report["same"])?;
    expect_same("the number that failed open", &json!(1), &report["failedOpen"])
}

async fn other_values(it: &Standalone) -> Outcome {
    let values = fs::read_to_string(linkerd_folder().join("values/default.yaml"))?;
    let [line, other] = ["1000ms", "2000ms"].map(|it| format!("outboundConnectTimeout: {it}\n"));
    expect_contains("the values", &line, &values)?;
    let file = it.folder.path().join("values.yaml");
    fs::write(&file, values.replace(&line, &other))?;
    let flags = ["--values".as_ref(), &*file];
    let (report, verdicts) = compare(it, 3, &objects(it, &json!({})).await?, &flags).await?;
    expect("the places", vec![PLACE], places(&report))?;
    let difference = &report["differences"][0];
    expect_same("theirs", &json!("\"1000ms\""), &difference["example"]["theirs"])?;
    expect_same("ours", &json!("\"2000ms\""), &difference["example"]["ours"])?;
    // One of the pods has a timeout of its own.
    let injected = verdicts.iter().filter(|it| *it == "injected").count();
    expect_same("the number of reviews", &json!(injected - 1), &difference["reviews"])
}

async fn other_annotations(it: &Standalone) -> Outcome {
    let objects = objects(it, &json!({CONNECT_TIMEOUT: "2s"})).await?;
    let (report, _) = compare(it, 3, &objects, &[]).await?;
    let path = format!("/metadata/annotations/{}", CONNECT_TIMEOUT.replace('/', "~1"));
    let place = format!("operations: - +\"{path}\"");
    expect_listed("the places", &*place, &places(&report))
}

fn places(report: &Value) -> Vec<&str> {
    let differences = report["differences"].as_array().into_iter().flatten();
    differences.filter_map(|it| it["place"].as_str()).collect()
}

/// The report, once the audit log has all reviews, and the verdicts in the log.
async fn compare(
    it: &Standalone,
    exit_code: i32,
    objects: &Value,
    flags: &[&Path],
) -> Outcome<(Value, Vec<String>)> {
    let logged = eventually("the audit log is complete", async || logged(it).await).await?;
    let called = logged.iter().filter(|event| is_webhook_called(event));
    let created = called.filter(|event| event["responseStatus"]["code"] == 201).collect::<Vec<_>>();
    let answered: Vec<_> = created.iter().filter(|event| !has_failed_open(event)).collect();
    let report = report(it, exit_code, &logged, objects, flags).await?;
    for (field, count) in [
        ("compared", answered.len()),
        ("failedOpen", created.len() - answered.len()),
        ("ignored", logged.len() - created.len()),
    ] {
        expect_same(field, &json!(count), &report[field])?;
    }
    let verdicts = answered.iter().filter_map(|event| verdict(event)).map(str::to_owned);
    Ok((report, verdicts.collect()))
}

async fn report(
    it: &Standalone,
    exit_code: i32,
    logged: &[Value],
    objects: &Value,
    flags: &[&Path],
) -> Outcome<Value> {
    let file = |name: &str| it.folder.path().join(name);
    let lines: Vec<_> = logged.iter().map(Value::to_string).collect();
    fs::write(file("audit.log"), lines.join("\n") + "\n")?;
    fs::write(file("objects.json"), objects.to_string())?;
    let mut command = Command::new(&it.lab.binary);
    command.args(["compare", "--output", "json", "--objects"]).arg(file("objects.json"));
    command.args(flags).arg(file("audit.log"));
    let [out, err] = [file("compare.out"), file("compare.err")];
    let mut program = Program::start(&mut command, File::create(&out)?, File::create(&err)?)?;
    let status = program.wait().await?;
    let [out, err] = [fs::read_to_string(out)?, fs::read_to_string(err)?];
    let what = format!("the exit code of compare, which printed {err:?} {out:?}");
    expect(what, Some(exit_code), status.code())?;
    Ok(serde_json::from_str(&out)?)
}

/// The audit log, once it has an event of each pod.
async fn logged(it: &Standalone) -> Outcome<Vec<Value>> {
    let logged = events(it.audit_log()?, "")?;
    let uid = |event: &Value| event["responseObject"]["metadata"]["uid"].clone();
    let logged_uids: Vec<_> = logged.iter().map(uid).collect();
    let pods = list(it, "v1", "Pod").await?;
    for pod in pods["items"].as_array().into_iter().flatten() {
        if !logged_uids.contains(&pod["metadata"]["uid"]) {
            return Err(failed(format!("no event of the pod {}", pod["metadata"]["name"])));
        }
    }
    Ok(logged)
}

/// What answers depend on; the namespace had no annotations when the webhook was called.
async fn objects(it: &Standalone, annotations: &Value) -> Outcome<Value> {
    let mut namespace = it.lab.api.get(&format!("{NAMESPACES}/{}", it.namespace)).await?.ok()?;
    namespace["metadata"]["annotations"] = annotations.clone();
    let items = [namespace, list(it, "apps/v1", "ReplicaSet").await?];
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
}

async fn list(it: &Standalone, version: &str, kind: &str) -> Outcome<Value> {
    it.lab.api.get(&collection(version, kind, Some(&it.namespace))).await?.ok()
}
