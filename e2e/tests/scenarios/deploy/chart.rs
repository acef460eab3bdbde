//! The chart as Helm renders it and as injectd does.

use std::{collections::BTreeMap, path::Path, process::Command};

use injectd_harness::{
    expect::{DEADLINE, Outcome, about, expect, expect_same, failed},
    lab::root,
    process::{run, run_installed},
    scenario::note,
};
use injectd_webhooks::check::{Finding, Severity, check};
use serde_json::Value;

use super::{
    matrix::{MATRIX, arguments},
    release::{IMAGE, objects},
};

/// The release, and its namespace.
const NAME: &str = "injectd";
const NAMESPACE: &str = "rendered";

pub(super) async fn same_as_helm(binary: &Path) -> Outcome {
    let mut count = 0;
    for (row, set) in MATRIX.iter().enumerate() {
        let (by_helm, tests) = by_helm(set).await?;
        let by_injectd = by_key(objects(binary, &arguments(NAMESPACE, NAME, set)).await?);
        let names = |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<Vec<_>>();
        expect(format!("the objects of row {row}"), names(&by_helm), names(&by_injectd))?;
        for (key, object) in &by_helm {
            expect_same(&format!("row {row}: {key}"), object, &by_injectd[key])?;
        }
        for test in &tests {
            expect_test(binary, test).await?;
        }
        expect(format!("the findings of row {row}"), Vec::<String>::new(), findings(&by_helm))?;
        count += by_helm.len() + tests.len();
    }
    note(&format!("{} rows of values, {count} objects", MATRIX.len()));
    Ok(())
}

/// What `manifest check` finds in the objects of a row.
fn findings(objects: &BTreeMap<String, Value>) -> Vec<String> {
    let all = check(objects.values()).into_iter();
    // A row asks for a webhook for every object.
    let is_wanted =
        |finding: &Finding| finding.severity == Severity::Suggestion && finding.field == "rules";
    all.filter(|finding| !is_wanted(finding))
        .map(|finding| format!("{}: {}", finding.field, finding.problem))
        .collect()
}

/// Runs Helm, or skips without it; the inner error is what it prints.
pub(super) async fn helm(arguments: &[&str], kubeconfig: &Path) -> Outcome<Result<String, String>> {
    let mut command = Command::new("helm");
    command.args(arguments).env("KUBECONFIG", kubeconfig);
    let ran = run_installed(DEADLINE, command).await?;
    Ok(if ran.code == Some(0) { Ok(ran.stdout) } else { Err(ran.stderr) })
}

/// The objects of Helm, and those of `helm test`, after `helm lint`.
async fn by_helm(set: &[&str]) -> Outcome<(BTreeMap<String, Value>, Vec<Value>)> {
    let (chart, no_cluster) = (chart(), Path::new("/dev/null"));
    let values: Vec<_> = set.iter().flat_map(|setting| ["--set", *setting]).collect();
    let common = ["-n", NAMESPACE, "--kube-version", "1.36", "--set", IMAGE];
    let common = [&common[..], &*values].concat();
    let lint = [&["lint", "--strict", &chart], &*common].concat();
    helm(&lint, no_cluster).await?.map_err(failed)?;
    let template = [&["template", NAME, &chart], &*common].concat();
    let text = helm(&template, no_cluster).await?.map_err(failed)?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let objects = objects.into_iter().filter(Value::is_object);
    let is_hook = |object: &Value| object["metadata"]["annotations"]["helm.sh/hook"].is_string();
    let (hooks, objects): (Vec<_>, Vec<_>) = objects.partition(is_hook);
    Ok((by_key(objects), hooks))
}

/// The pod of `helm test`: its probes can be run, it needs no permission, and sees no key.
async fn expect_test(binary: &Path, pod: &Value) -> Outcome {
    let spec = &pod["spec"];
    expect("a token", Some(false), spec["automountServiceAccountToken"].as_bool())?;
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        let source = if volume["secret"].is_object() { "secret" } else { "downwardAPI" };
        let items = volume[source]["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let files: Vec<_> = items.iter().map(|item| item["path"].as_str()).collect();
        expect("the files of the test", vec![Some("ca.crt")], files)?;
    }
    let containers = spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    for container in containers {
        let mut command = Command::new(binary);
        let arguments = container["args"].as_array().into_iter().flatten();
        command.args(arguments.filter_map(Value::as_str)).arg("--timeout=1s");
        // There is no server; wrong arguments would be 64.
        about("a probe", run(command).await?.with_code(1))?;
    }
    expect("whether a mesh is probed", false, containers.is_empty())
}

/// The folder of the chart.
pub(super) fn chart() -> String {
    root().join("deploy/helm/injectd").display().to_string()
}

/// Objects by kind and name, without the label that names who rendered them.
fn by_key(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let keyed = objects.into_iter().map(|mut object| {
        let labels = object["metadata"]["labels"].as_object_mut();
        labels.map(|labels| labels.remove("app.kubernetes.io/managed-by"));
        let key = format!("{} {}", object["kind"], object["metadata"]["name"]);
        (key, object)
    });
    keyed.collect()
}
