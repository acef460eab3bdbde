//! A scenario as a plain test: what it is given, how long it may take, and why it is passed over.

use std::{
    any::Any,
    fmt::Display,
    io::{self, Write as _},
    panic::AssertUnwindSafe,
    thread,
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::{
    sync::RwLock,
    task_local,
    time::{Instant, timeout_at},
};

use crate::{
    expect::{NotPassed, Outcome, about, failed},
    lab::{self, Bench, Lab, OwnLab},
};

/// Several times what the longest scenario of the short run takes on an idle machine.
const LIMIT: Duration = Duration::from_mins(5);
/// Scenarios at full length ask the API server thousands of times.
const LONG_LIMIT: Duration = Duration::from_mins(30);
/// How long a scenario may delete what it has made, once its time is over: four requests without an answer.
const CLEAN_UP_LIMIT: Duration = Duration::from_mins(2);

/// How many lines of a log [`explain`] prints, and how much of each: lines may have a whole object.
const LAST_LINES: usize = 20;
const MAX_LINE: usize = 300;

/// Held by each scenario, and by one alone that stops what the others need.
static CLUSTER: RwLock<()> = RwLock::const_new(());

task_local! {
    /// When the time of this task's scenario is over.
    static END: Instant;
}

/// Runs a scenario that needs a cluster, beside others.
///
/// A scenario that cannot run here passes; standard error names it and the reason, also when the
/// output of tests is captured.
///
/// # Errors
///
/// Those of the scenario, of the start of the cluster, and the end of the time.
pub async fn with_lab(scenario: impl AsyncFnOnce(&Lab) -> Outcome) -> Outcome {
    beside(in_shared(scenario)).await
}

/// As [`with_lab`], while no other scenario runs: for those that stop the API server, or change what the
/// whole cluster shares, such as Nodes.
///
/// # Errors
///
/// As [`with_lab`].
pub async fn with_lab_alone(scenario: impl AsyncFnOnce(&Lab) -> Outcome) -> Outcome {
    alone(in_shared(scenario)).await
}

/// Runs a scenario with a cluster of its own, while no other scenario runs: for those that replace
/// its programs, or measure them. These are flags of kube-lab, such as `-memory=2GiB`.
///
/// # Errors
///
/// As [`with_lab`].
pub async fn with_own_lab(flags: &str, scenario: impl AsyncFnOnce(&Lab) -> Outcome) -> Outcome {
    alone(async {
        let own = OwnLab::start(flags).await?;
        // Of a cluster, scenarios are large.
        within_limit(Box::pin(scenario(&own.lab))).await
    })
    .await
}

/// Runs a scenario that needs the binary and no cluster, beside others.
///
/// # Errors
///
/// As [`with_lab`].
pub async fn with_binary(scenario: impl AsyncFnOnce(&Bench) -> Outcome) -> Outcome {
    beside(async { within_limit(Box::pin(scenario(&lab::bench().await?))).await }).await
}

/// As [`with_binary`], while no other scenario runs: for those that keep the machine busy.
///
/// # Errors
///
/// As [`with_lab`].
pub async fn with_binary_alone(scenario: impl AsyncFnOnce(&Bench) -> Outcome) -> Outcome {
    alone(async { within_limit(Box::pin(scenario(&lab::bench().await?))).await }).await
}

async fn in_shared(scenario: impl AsyncFnOnce(&Lab) -> Outcome) -> Outcome {
    let lab = lab::get().await?;
    within_limit(Box::pin(scenario(&lab))).await
}

pub(crate) async fn beside(scenario: impl Future<Output = Outcome>) -> Outcome {
    let _beside = CLUSTER.read().await;
    passed_over(scenario.await)
}

pub(crate) async fn alone(scenario: impl Future<Output = Outcome>) -> Outcome {
    let _alone = CLUSTER.write().await;
    passed_over(scenario.await)
}

pub(crate) async fn within_limit(scenario: impl Future<Output = Outcome>) -> Outcome {
    let end = Instant::now() + limit();
    let scenario = END.scope(end, scenario);
    timeout_at(end + CLEAN_UP_LIMIT, scenario).await.map_err(|_| too_late())?
}

/// Runs the part of a scenario that something must follow: its end in time, and a panic, are failures.
pub(crate) async fn part<T>(part: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let end = END.try_with(|end| *end).unwrap_or_else(|_| Instant::now() + limit());
    let ended = timeout_at(end, AssertUnwindSafe(part).catch_unwind()).await;
    ended.map_err(|_| too_late())?.map_err(|panic| failed(panic_text(&*panic)))?
}

fn limit() -> Duration {
    if lab::is_long() { LONG_LIMIT } else { LIMIT }
}

fn too_late() -> NotPassed {
    failed(format!("the scenario took longer than {} s", limit().as_secs()))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the scenario panicked: {}", text.unwrap_or("without a text"))
}

/// Runs a step of a scenario; prints its name and time, and names it in its failure.
///
/// # Errors
///
/// Those of the step.
pub async fn step<T>(name: impl Display, step: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let begin = Instant::now();
    let value = about(&name, step.await)?;
    note(&format!("ok {name} ({:.1} s)", begin.elapsed().as_secs_f64()));
    Ok(value)
}

/// Prints a line that libtest shows with `--show-output`.
#[expect(clippy::print_stdout, reason = "libtest captures what is printed in this way alone")]
pub fn note(line: &str) {
    println!("{line}");
}

/// Prints the last lines of a log below their title if a scenario has failed.
pub fn explain<'a, T>(
    outcome: &Outcome<T>,
    title: impl Display,
    log: impl IntoIterator<Item = &'a str>,
) {
    if let Err(NotPassed::Failed(_)) = outcome {
        note(&format!("the end of {title}:"));
        let lines: Vec<_> = log.into_iter().collect();
        for line in lines.iter().skip(lines.len().saturating_sub(LAST_LINES)) {
            note(&format!("  {}", line.chars().take(MAX_LINE).collect::<String>()));
        }
    }
}

/// Success for what is skipped, with a line that says so.
///
/// # Errors
///
/// Those of the outcome that are failures.
pub fn passed_over(outcome: Outcome) -> Outcome {
    let Err(NotPassed::Skipped(reason)) = outcome else { return outcome };
    say_skipped(&reason);
    Ok(())
}

/// Prints that this scenario, or a part of it, does not run here.
pub fn say_skipped(reason: &str) {
    let thread = thread::current();
    let name = thread.name().unwrap_or("a scenario");
    // Not by `eprintln!`, which tests capture. A closed output does not fail a test.
    drop(writeln!(io::stderr(), "skipped {name}: {reason}"));
}
