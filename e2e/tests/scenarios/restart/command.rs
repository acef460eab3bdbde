//! The command `injectd restart`: how it is used, and what it prints.

use std::process::Command;

use injectd_harness::{
    expect::{Outcome, eventually, expect, expect_contains, failed},
    lab::Lab,
    namespaced::{Namespaced, with_namespace},
    objects::deployment,
    process::{Ended, run_with_text},
    scenario::{note, with_lab},
};
use serde_json::{Value, json};

use super::{
    fleet::{Fleet, client_of},
    kubelet::Kubelet,
    rules::{available, generation},
};

/// The arguments with which it restarts what standard input names.
pub(super) const ACT: [&str; 3] = ["-f", "-", "--yes"];

/// Runs the command with this input.
pub(super) async fn injectd(lab: &Lab, arguments: &[&str], input: String) -> Outcome<Ended> {
    let mut command = Command::new(&lab.binary);
    command.args(["restart", "--kubeconfig"]).arg(&lab.kubeconfig).args(arguments);
    run_with_text(command, &input).await
}

/// Runs a scenario in a namespace whose pods become ready.
pub(super) async fn with_kubelet(
    scenario: impl AsyncFnOnce(&Namespaced<'_>) -> Outcome,
) -> Outcome {
    with_lab(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| {
            let _kubelet = Kubelet::start(&client_of(lab).await?, &namespaced.name);
            scenario(namespaced).await
        })
        .await
    })
    .await
}

/// A dry run, the default, decides about the findings of a fleet, as an audit prints them.
pub(super) async fn dry_run_of(fleet: &Fleet<'_>) -> Outcome {
    let findings: Vec<Value> =
        fleet.findings().iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    let input = json!({"summary": {"pods": 200}, "workloads": findings}).to_string();
    let ran = injectd(fleet.it.lab, &["-f", "-", "-o", "json"], input).await?;
    expect(format!("the exit code, with {:?}", ran.stderr), Some(3), ran.code)?;
    let answer: Value = serde_json::from_str(&ran.stdout)?;
    let results = answer["workloads"].as_array().ok_or_else(|| failed("no workloads"))?;
    let of = |result: &str| results.iter().filter(|entry| entry["result"] == result).count();
    expect("the workloads", findings.len(), results.len())?;
    expect("those that would be restarted", fleet.free().count(), of("dry_run"))?;
    expect("those outside of their window", fleet.closed().count(), of("window"))?;
    expect_contains("stderr", "dry run: nothing was restarted; restart with --yes", &ran.stderr)?;
    note(&format!("{} would be restarted by the command", of("dry_run")));
    Ok(())
}

#[tokio::test]
async fn the_command_restarts_and_not_twice_an_hour() -> Outcome {
    with_kubelet(acts).await
}

async fn acts(it: &Namespaced<'_>) -> Outcome {
    let (namespace, path) = (&*it.name, available(it, "web").await?);
    let arguments = ["deploy/web", "-n", namespace, "--yes"];
    let ran = injectd(it.lab, &arguments, String::new()).await?;
    expect(format!("the exit code, with {:?}", ran.stderr), Some(0), ran.code)?;
    expect("stdout", format!("deployment {namespace}/web: restarted\n"), ran.stdout)?;
    let again = injectd(it.lab, &arguments, String::new()).await?;
    expect("the exit code of the second", Some(3), again.code)?;
    expect_contains(
        "stdout",
        "not restarted: it was restarted less than an hour ago",
        &again.stdout,
    )?;
    expect("the generation", json!(2), generation(it, &path).await?)?;
    let gone = injectd(it.lab, &["deploy/gone", "-n", namespace], String::new()).await?;
    expect("the exit code without a workload", Some(1), gone.code)?;
    expect_contains("stdout", "not restarted: it does not exist", &gone.stdout)?;
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": namespace,
        "name": "once"});
    let input = json!({"workloads": [job]}).to_string();
    let by_hand = injectd(it.lab, &ACT, input).await?;
    expect("the exit code of a Job", Some(3), by_hand.code)?;
    expect_contains("stdout", "delete the Job and create it again", &by_hand.stdout)
}

#[tokio::test]
async fn the_page_shows_what_the_command_prints() -> Outcome {
    with_lab(async |lab| with_namespace(lab, &json!({}), page).await).await
}

/// The namespace of the page has the name of the scenario's.
async fn page(it: &Namespaced<'_>) -> Outcome {
    it.create(&deployment("web", 0, &json!({}))).await?.created()?;
    let mut database = deployment("db", 0, &json!({}));
    database["kind"] = "StatefulSet".into();
    database["spec"]["serviceName"] = "db".into();
    it.create(&database).await?.created()?;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "db"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}});
    it.create(&budget).await?.created()?;
    for path in [
        it.path("policy/v1", "PodDisruptionBudget", "db"),
        it.path("apps/v1", "Deployment", "web"),
        it.path("apps/v1", "StatefulSet", "db"),
    ] {
        eventually("the controllers have seen the objects", async || {
            let found = it.lab.api.get(&path).await?.ok()?;
            expect("the generation", json!(1), found["status"]["observedGeneration"].clone())
        })
        .await?;
    }
    let page = include_str!("../../../../docs/commands/restart.md");
    let block = page.split("```console\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.ok_or_else(|| failed("the page has no block"))?;
    let mut found = String::new();
    for line in block.lines().filter_map(|line| line.strip_prefix("$ injectd restart ")) {
        let arguments = line.split_whitespace();
        let arguments: Vec<_> =
            arguments.map(|word| if word == "shop" { &*it.name } else { word }).collect();
        let ran = injectd(it.lab, &arguments, String::new()).await?;
        let printed = [ran.stdout, ran.stderr].concat().replace(&it.name, "shop");
        found.extend(["$ injectd restart ", line, "\n", &printed]);
    }
    expect("the block of the page", block, &found)
}

#[tokio::test]
async fn the_command_names_wrong_input() -> Outcome {
    with_lab(wrong_usage).await
}

async fn wrong_usage(lab: &Lab) -> Outcome {
    for (arguments, problem) in [
        (&[][..], "required arguments were not provided"),
        (&["web"], "write KIND/NAME, such as deploy/web"),
        (&["pod/web"], "the kind must be a Deployment"),
        (&["deploy/web", "--window", "always"], "expected [DAYS] HH:MM-HH:MM [TIME ZONE]"),
        (&["deploy/web", "--max-restarting", "0"], "expected a number above zero"),
        (&["deploy/web", "--include", "unexpected"], "--filename"),
    ] {
        let ran = injectd(lab, arguments, String::new()).await?;
        expect(format!("the exit code of {arguments:?}"), Some(64), ran.code)?;
        expect_contains(format!("stderr of {arguments:?}"), problem, &ran.stderr)?;
    }
    let ran = injectd(lab, &["-f", "-"], "[]".to_owned()).await?;
    expect("the exit code of wrong JSON", Some(1), ran.code)?;
    expect_contains("stderr", "cannot use stdin", &ran.stderr)
}
