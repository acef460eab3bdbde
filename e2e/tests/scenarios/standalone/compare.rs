//! `injectd compare`: the answers in the audit log beside those that injectd gives now.

use std::{ffi::OsStr, fs, process::Command};

use injectd_harness::{
    api::{NAMESPACES, collection},
    audit_log::{events, has_failed_open, is_webhook_called, verdict},
    expect::{
        Outcome, about, eventually, expect, expect_contains, expect_listed, expect_same, failed,
    },
    injectd::linkerd_folder,
    objects::CONNECT_TIMEOUT,
    process::run,
};
use serde_json::{Value, json};

use super::{Standalone, lifecycle, reviews, with_standalone};

const PLACE: &str = "linkerd-proxy/env/LINKERD2_PROXY_OUTBOUND_CONNECT_TIMEOUT/value";

#[tokio::test]
async fn compare_reports_what_has_changed_since_the_answers_in_the_audit_log() -> Outcome {
    with_standalone(async |standalone| {
        reviews::all(standalone).await?;
        lifecycle::fail_open(standalone).await?;
        about("the same settings", same(standalone).await)?;
        about("other values", other_values(standalone).await)?;
        about("other annotations of the namespace", other_annotations(standalone).await)
    })
    .await
}

async fn same(standalone: &Standalone<'_>) -> Outcome {
    let objects = objects(standalone, &json!({})).await?;
    let Compared { report, verdicts } = compare(standalone, 0, &objects, &[]).await?;
    for verdict in ["annotated", "injected", "skipped"] {
        expect_listed("the verdicts", verdict.to_owned(), &verdicts)?;
    }
    expect_same("the differences", &json!([]), &report["differences"])?;
    expect_same("the number of same answers", &report["compared"], &report["same"])?;
    expect_same("the number that failed open", &json!(1), &report["failedOpen"])
}

async fn other_values(standalone: &Standalone<'_>) -> Outcome {
    let values = fs::read_to_string(linkerd_folder().join("values/default.yaml"))?;
    let [line, other] =
        ["1000ms", "2000ms"].map(|timeout| format!("outboundConnectTimeout: {timeout}\n"));
    expect_contains("the values", &line, &values)?;
    let file = standalone.folder.path().join("values.yaml");
    fs::write(&file, values.replace(&line, &other))?;
    let flags = ["--values".as_ref(), file.as_os_str()];
    let objects = objects(standalone, &json!({})).await?;
    let Compared { report, verdicts } = compare(standalone, 3, &objects, &flags).await?;
    expect("the places", vec![PLACE], places(&report))?;
    let difference = &report["differences"][0];
    expect_same("theirs", &json!("\"1000ms\""), &difference["example"]["theirs"])?;
    expect_same("ours", &json!("\"2000ms\""), &difference["example"]["ours"])?;
    // One of the pods has a timeout of its own.
    let injected = verdicts.iter().filter(|verdict| *verdict == "injected").count();
    expect_same("the number of reviews", &json!(injected - 1), &difference["reviews"])
}

async fn other_annotations(standalone: &Standalone<'_>) -> Outcome {
    let objects = objects(standalone, &json!({CONNECT_TIMEOUT: "2s"})).await?;
    let Compared { report, .. } = compare(standalone, 3, &objects, &[]).await?;
    let path = format!("/metadata/annotations/{}", CONNECT_TIMEOUT.replace('/', "~1"));
    let place = format!("operations: - +\"{path}\"");
    expect_listed("the places", &*place, &places(&report))
}

fn places(report: &Value) -> Vec<&str> {
    let differences = report["differences"].as_array().into_iter().flatten();
    differences.filter_map(|difference| difference["place"].as_str()).collect()
}

/// The report, and the verdicts in the audit log.
struct Compared {
    report: Value,
    verdicts: Vec<String>,
}

/// Compares with the audit log once it has all reviews.
async fn compare(
    standalone: &Standalone<'_>,
    exit_code: i32,
    objects: &Value,
    flags: &[&OsStr],
) -> Outcome<Compared> {
    let logged = eventually("the audit log is complete", async || logged(standalone).await).await?;
    let called = logged.iter().filter(|event| is_webhook_called(event));
    let created = called.filter(|event| event["responseStatus"]["code"] == 201).collect::<Vec<_>>();
    let answered: Vec<_> = created.iter().filter(|event| !has_failed_open(event)).collect();
    let file = |name: &str| standalone.folder.path().join(name);
    let lines: Vec<_> = logged.iter().map(Value::to_string).collect();
    fs::write(file("audit.log"), lines.join("\n") + "\n")?;
    fs::write(file("objects.json"), objects.to_string())?;
    let report = report(standalone, exit_code, flags).await?;
    for (field, count) in [
        ("compared", answered.len()),
        ("failedOpen", created.len() - answered.len()),
        ("ignored", logged.len() - created.len()),
    ] {
        expect_same(field, &json!(count), &report[field])?;
    }
    let verdicts = answered.iter().filter_map(|event| verdict(event)).map(str::to_owned);
    Ok(Compared { report, verdicts: verdicts.collect() })
}

/// The report on `audit.log` and `objects.json`.
async fn report(standalone: &Standalone<'_>, exit_code: i32, flags: &[&OsStr]) -> Outcome<Value> {
    let file = |name: &str| standalone.folder.path().join(name);
    let mut command = Command::new(&standalone.it.lab.binary);
    command.args(["compare", "--output", "json", "--objects"]).arg(file("objects.json"));
    command.args(flags).arg(file("audit.log"));
    Ok(serde_json::from_str(&run(command).await?.with_code(exit_code)?)?)
}

/// The events of the namespace, once there is one of each pod.
async fn logged(standalone: &Standalone<'_>) -> Outcome<Vec<Value>> {
    let of_namespace = format!("\"namespace\":\"{}\"", standalone.it.name);
    let logged = events(standalone.audit_log()?, &of_namespace)?;
    let uid = |event: &Value| event["responseObject"]["metadata"]["uid"].clone();
    let logged_uids: Vec<_> = logged.iter().map(uid).collect();
    let pods = list(standalone, "v1", "Pod").await?;
    for pod in pods["items"].as_array().into_iter().flatten() {
        if !logged_uids.contains(&pod["metadata"]["uid"]) {
            return Err(failed(format!("no event of the pod {}", pod["metadata"]["name"])));
        }
    }
    Ok(logged)
}

/// What answers depend on; the namespace had no annotations when the webhook was called.
async fn objects(standalone: &Standalone<'_>, annotations: &Value) -> Outcome<Value> {
    let it = standalone.it;
    let mut namespace = it.lab.api.get(&format!("{NAMESPACES}/{}", it.name)).await?.ok()?;
    namespace["metadata"]["annotations"] = annotations.clone();
    let items = [namespace, list(standalone, "apps/v1", "ReplicaSet").await?];
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
}

async fn list(standalone: &Standalone<'_>, version: &str, kind: &str) -> Outcome<Value> {
    let it = standalone.it;
    it.lab.api.get(&collection(version, kind, Some(&it.name))).await?.ok()
}
