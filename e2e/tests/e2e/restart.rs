//! Restarts of 200 workloads, by two controllers of which one is killed, and by the command.
//!
//! No kubelet runs: the suite sets the status of pods. A recorder watches the workloads, budgets and
//! namespaces, and a judge replays what it saw.

use std::time::Duration;

use injectd::restart::{Mode, Wait};
use injectd_harness::{
    expect::{Outcome, expect, failed},
    lab::{Lab, NOT_LOCAL},
    run::{Run, Suite},
};

mod command;
mod controllers;
mod fleet;
mod judge;
mod kubelet;
mod recorder;

use controllers::{Controllers, MAX_RESTARTING};
use fleet::Fleet;
use judge::{Verdict, judge};
use recorder::Recorder;

pub(crate) const NAME: &str = "restart";
const LIMIT: Duration = Duration::from_mins(10);
/// Restarts after which the leader is killed.
const KILLED_AFTER: usize = 40;

/// The cluster of the suite.
struct Restart<'a> {
    lab: &'a Lab,
    fleet: Fleet,
    recorder: Recorder,
    controllers: Controllers,
}

pub(crate) async fn run(run: &mut Run, lab: &Lab) -> Outcome {
    let Some(mut suite) = run.suite(NAME, LIMIT) else { return Ok(()) };
    if lab.local.is_none() {
        suite.skip(NOT_LOCAL);
        return Ok(());
    }
    let fleet = Fleet::new(lab).await?;
    let recorder = Recorder::start(&fleet.client);
    let controllers = Controllers::new(lab, &fleet).await?;
    let mut it = Restart { lab, fleet, recorder, controllers };
    all(&mut suite, &mut it).await;
    it.controllers.kill_all();
    it.fleet.delete().await
}

async fn all(suite: &mut Suite<'_>, it: &mut Restart<'_>) {
    suite.setup("200 workloads roll out", created(it)).await;
    suite.scenario("a dry run decides about all workloads and changes none", dry_run(it)).await;
    suite.scenario("the command: a dry run by default", command::dry_run(it)).await;
    suite.scenario("the command restarts, and not twice an hour", command::acts(it)).await;
    let name = "a rollout that does not finish stops restarts of its namespace only";
    suite.scenario(name, command::stuck(it)).await;
    let name = "a workload is not restarted for pods that only claim to be of it";
    suite.scenario(name, command::forged(it)).await;
    let name = "a restart that did not help is not repeated before something changed";
    suite.scenario(name, command::did_not_help(it)).await;
    let name = "nobody loses a sidecar without --include unexpected";
    suite.scenario(name, command::effects(it)).await;
    suite.scenario("the page shows what the command prints", command::page(it)).await;
    suite.scenario("the command names wrong input", command::wrong_usage(it)).await;
    suite
        .scenario("another controller goes on where a killed leader stopped", leader_killed(it))
        .await;
    suite.scenario("once budgets and windows allow it, all are restarted", opened(it)).await;
    suite.scenario("every workload was restarted once, by the rules", judged(it)).await;
    suite.scenario("a controller that ends gives its Lease away", released(it)).await;
}

async fn created(it: &mut Restart<'_>) -> Outcome<String> {
    it.fleet.create().await?;
    let count = it.fleet.workloads.len();
    it.recorder.wait("all workloads are rolled out", |seen| seen.finished == count).await?;
    let budgets = it.fleet.budgets().count();
    it.recorder.wait("all budgets are counted", |seen| seen.exhausted == budgets).await?;
    Ok(format!("{count} workloads, {budgets} budgets"))
}

async fn dry_run(it: &mut Restart<'_>) -> Outcome<String> {
    it.controllers.start("dry", Mode::DryRun);
    let count = it.fleet.workloads.len();
    let decided = it.controllers.wait("all are decided", |seen| seen.waits.len() == count).await?;
    it.controllers.terminate("dry").await?;
    let of = |label| decided.waits.values().filter(|it| it.as_str() == label).count();
    let (closed, budgets) = (it.fleet.closed().count(), it.fleet.open_with_budget().count());
    expect("those outside of their window", closed, of("window"))?;
    expect("those whose budget allows none", budgets, of(budget_label()))?;
    let free = count - closed - budgets;
    expect("those that would be restarted", free, of(Wait::DryRun.as_str()))?;
    expect("the restarts", 0, it.recorder.seen().restarted)?;
    Ok(format!("{free} would be restarted, {closed} outside of their window, {budgets} budgets"))
}

fn budget_label() -> &'static str {
    Wait::Budget { budget: String::new() }.as_str()
}

async fn leader_killed(it: &mut Restart<'_>) -> Outcome<String> {
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
    Ok(format!("killed after {at} restarts, {free} are done"))
}

async fn opened(it: &mut Restart<'_>) -> Outcome<String> {
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
    Ok(format!("{free}, then {allowed}, then {count}"))
}

async fn judged(it: &mut Restart<'_>) -> Outcome<String> {
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
    Ok(format!("{restarted} restarts, at most {most_at_once} at once, {events} events"))
}

async fn released(it: &mut Restart<'_>) -> Outcome {
    it.controllers.terminate("second").await?;
    expect("the holder", Some(String::new()), it.controllers.holder().await?)
}
