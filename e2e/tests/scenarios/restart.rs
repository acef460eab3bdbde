//! Restarts of 200 workloads by two controllers of which one is killed, and restarts by the command.
//!
//! No kubelet runs: the scenarios set the status of pods. A recorder watches the workloads, budgets
//! and namespaces, and a judge replays what it saw.

use injectd_controllers::restart::{Mode, Wait};
use injectd_harness::{
    expect::{Outcome, expect, failed},
    namespaced::with_namespace,
    scenario::{note, with_lab},
};
use serde_json::json;

mod command;
mod controllers;
mod fleet;
mod judge;
mod kubelet;
mod recorder;
mod rules;

pub(crate) use self::{fleet::client_of, kubelet::Kubelet};
use controllers::{Controllers, MAX_RESTARTING};
use fleet::Fleet;
use judge::{Verdict, judge};
use recorder::Recorder;

/// Restarts after which the leader is killed.
const KILLED_AFTER: usize = 40;

/// What is restarted, who watches it, and who restarts it.
struct Restart<'a> {
    fleet: Fleet<'a>,
    recorder: Recorder,
    controllers: Controllers<'a>,
}

// Leaders renew their Lease beside hundreds of changes.
#[tokio::test(flavor = "multi_thread")]
async fn controllers_restart_each_of_200_workloads_once_by_the_rules_also_if_the_leader_is_killed()
-> Outcome {
    with_lab(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| {
            let fleet = Fleet::new(namespaced).await?;
            let recorder = Recorder::start(&fleet.client, &namespaced.name);
            let controllers = Controllers::new(&fleet).await?;
            let mut restart = Restart { fleet, recorder, controllers };
            steps(&mut restart).await
        })
        .await
    })
    .await
}

async fn steps(it: &mut Restart<'_>) -> Outcome {
    created(it).await?;
    dry_run(it).await?;
    command::dry_run_of(&it.fleet).await?;
    expect("the restarts by the command", 0, it.recorder.seen().restarted)?;
    leader_killed(it).await?;
    opened(it).await?;
    judged(it).await?;
    released(it).await
}

async fn created(it: &Restart<'_>) -> Outcome {
    it.fleet.create().await?;
    let count = it.fleet.workloads.len();
    it.recorder.wait("all workloads are rolled out", |seen| seen.finished == count).await?;
    let budgets = it.fleet.budgets().count();
    it.recorder.wait("all budgets are counted", |seen| seen.exhausted == budgets).await?;
    note(&format!("{count} workloads, {budgets} budgets"));
    Ok(())
}

/// Decides about all workloads and changes none.
async fn dry_run(it: &mut Restart<'_>) -> Outcome {
    it.controllers.start("dry", Mode::DryRun);
    let count = it.fleet.workloads.len();
    let decided = it.controllers.wait("all are decided", |seen| seen.waits.len() == count).await?;
    it.controllers.terminate("dry").await?;
    let of = |label| decided.waits.values().filter(|wait| wait.as_str() == label).count();
    let (closed, budgets) = (it.fleet.closed().count(), it.fleet.open_with_budget().count());
    expect("those outside of their window", closed, of("window"))?;
    expect("those whose budget allows none", budgets, of(budget_label()))?;
    let free = count - closed - budgets;
    expect("those that would be restarted", free, of(Wait::DryRun.as_str()))?;
    expect("the restarts", 0, it.recorder.seen().restarted)?;
    note(&format!(
        "{free} would be restarted, {closed} outside of their window, {budgets} budgets"
    ));
    Ok(())
}

fn budget_label() -> &'static str {
    Wait::Budget { budget: String::new() }.as_str()
}

/// Another controller goes on where a killed leader stopped.
async fn leader_killed(it: &mut Restart<'_>) -> Outcome {
    it.controllers.start("first", Mode::On);
    it.controllers.wait("the first leads", |seen| seen.leader == Some("first")).await?;
    it.controllers.start("second", Mode::On);
    it.recorder.wait("the first restarts", |seen| seen.restarted >= KILLED_AFTER).await?;
    it.controllers.kill("first");
    let at = it.recorder.seen().restarted;
    it.controllers.wait("the second leads", |seen| seen.leader == Some("second")).await?;
    let free = it.fleet.free().count();
    let what = "all that are free are restarted";
    it.recorder.wait(what, |seen| seen.restarted == free && seen.in_flight == 0).await?;
    note(&format!("killed after {at} restarts, {free} are done"));
    Ok(())
}

/// Once budgets and windows allow it, all are restarted.
async fn opened(it: &Restart<'_>) -> Outcome {
    let free = it.fleet.free().count();
    expect("the restarts before", free, it.recorder.seen().restarted)?;
    it.fleet.open_budgets().await?;
    let allowed = free + it.fleet.open_with_budget().count();
    let what = "those whose budget allows it are restarted";
    it.recorder.wait(what, |seen| seen.restarted == allowed).await?;
    it.fleet.open_windows().await?;
    let count = it.fleet.workloads.len();
    let what = "all are restarted";
    it.recorder.wait(what, |seen| seen.restarted == count && seen.in_flight == 0).await?;
    note(&format!("{free} restarts, then {allowed}, then {count}"));
    Ok(())
}

/// Every workload was restarted once, by the rules.
async fn judged(it: &Restart<'_>) -> Outcome {
    let verdict = judge(&it.recorder.records())?;
    expect("the workloads that were restarted", it.fleet.workloads.len(), verdict.restarted)?;
    if verdict.most_at_once > MAX_RESTARTING {
        return Err(failed(format!("{} rolled out at once", verdict.most_at_once)));
    }
    let events = it.fleet.events("InjectdRestarted").await?;
    // The leader that was killed wrote no event of its last step.
    if events > verdict.restarted || events + MAX_RESTARTING < verdict.restarted {
        return Err(failed(format!("{events} events of {} restarts", verdict.restarted)));
    }
    let Verdict { restarted, most_at_once } = verdict;
    note(&format!("{restarted} restarts, at most {most_at_once} at once, {events} events"));
    Ok(())
}

/// A leader that ends gives its Lease away.
async fn released(it: &mut Restart<'_>) -> Outcome {
    // On a slow machine it may just have lost it.
    it.controllers.wait("the second leads", |seen| seen.leader == Some("second")).await?;
    it.controllers.terminate("second").await?;
    expect("the holder", Some(String::new()), it.controllers.holder().await?)
}
