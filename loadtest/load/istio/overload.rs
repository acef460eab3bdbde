//! Requests at 2.5 times the capacity, over HTTP/1.1 and HTTP/2, each on a server of its own:
//! `loadtest/overload.rs`.

use std::{collections::BTreeMap, time::Duration};

use injectd_harness::{
    expect::{Outcome, about, failed},
    process::run_within,
};

use super::Pods;
use crate::{
    Run,
    h2load::end_of,
    paced::Asked,
    report::{Budget, Report, Table, count, float, grouped},
    servers::{NO_FLAGS, OVERLOAD, Server, injectd_for_istio},
};

const ANSWERED_BUDGET: f64 = 1.0;
const RSS_BUDGET_MIB: f64 = 256.0;
const BEYOND_CAPACITY: f64 = 2.5;
const SECONDS: u32 = 20;
const CAPACITY_SECONDS: u32 = 2;
/// Of one load; the longest takes [`SECONDS`].
const LIMIT: Duration = Duration::from_secs(80);

/// A load, and its connections while the capacity is measured and beyond it.
struct Load<'a> {
    name: &'static str,
    asked: &'a Asked,
    few: u32,
    many: u32,
    flags: &'static [&'static str],
}

/// How many requests ended in which way.
struct Outcomes(BTreeMap<String, u32>);

/// The outcomes of a load beyond the capacity, in requests per second, for so many seconds.
struct Found {
    name: &'static str,
    capacity: f64,
    seconds: u32,
    outcomes: Outcomes,
    peak_rss_mib: f64,
}

pub(super) async fn run(run: &Run, report: &mut Report, pods: &Pods) -> Outcome {
    let loads = [
        Load { name: "HTTP/1.1, one pod", asked: &pods.warm, few: 25, many: 1000, flags: &[] },
        Load {
            name: "HTTP/2, no two pods alike",
            asked: &pods.cold,
            few: 1,
            many: 100,
            flags: &["--http2"],
        },
    ];
    let seconds = if run.smoke { 2 } else { SECONDS };
    let mut found = Vec::new();
    for load in loads {
        found.push(about(load.name, load.run(seconds).await)?);
    }
    add_results(report, &found, seconds);
    Ok(())
}

impl Load<'_> {
    async fn run(&self, seconds: u32) -> Outcome<Found> {
        let server = injectd_for_istio(&NO_FLAGS).await?;
        let flags = ["--seconds", &CAPACITY_SECONDS.to_string()];
        let alone = self.outcomes(&server, self.few, &flags).await?;
        if alone.of("right") == 0 {
            return Err(failed(format!("no pod was injected: {:?}", alone.0)));
        }
        let capacity = float(alone.of("right")) / float(CAPACITY_SECONDS);
        let (rate, length) = (BEYOND_CAPACITY * capacity, seconds.to_string());
        let flags = ["--seconds", &length, "--rate", &rate.to_string()];
        let outcomes = self.outcomes(&server, self.many, &flags).await?;
        if outcomes.sent() == 0 {
            return Err(failed(format!("no request was sent: {:?}", outcomes.0)));
        }
        let peak_rss_mib = server.peak_rss_mib()?;
        server.stop().await?;
        Ok(Found { name: self.name, capacity, seconds, outcomes, peak_rss_mib })
    }

    async fn outcomes(
        &self,
        server: &Server,
        connections: u32,
        flags: &[&str],
    ) -> Outcome<Outcomes> {
        let mut command = self.asked.command(OVERLOAD, server)?;
        command.args(["--connections", &connections.to_string()]).args(self.flags).args(flags);
        let ended = run_within(LIMIT, command).await?;
        if ended.code != Some(0) {
            return Err(failed(format!("overload: {}", end_of(&ended.stderr))));
        }
        let counts = ended.stdout.lines().filter_map(|line| line.rsplit_once(' '));
        let counts = counts.map(|(what, count)| Ok((what.to_owned(), count.parse()?)));
        Ok(Outcomes(counts.collect::<Outcome<_>>()?))
    }
}

impl Outcomes {
    fn of(&self, what: &str) -> u32 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// Those that are neither right, refused nor late.
    fn other(&self) -> u32 {
        self.of("otherwise") + self.of("reset") + self.of("ended with the connection")
    }

    fn sent(&self) -> u32 {
        self.of("right") + self.of("refused") + self.of("late") + self.other()
    }
}

impl Found {
    /// The share that is injected or refused.
    fn share(&self) -> f64 {
        let right = self.outcomes.of("right") + self.outcomes.of("refused");
        float(right) / float(self.outcomes.sent())
    }

    fn row(&self) -> Vec<String> {
        let it = &self.outcomes;
        let rate = float(it.of("right")) / float(self.seconds);
        vec![
            self.name.to_owned(),
            grouped(self.capacity, 0),
            grouped(rate, 0),
            count(it.of("right")),
            count(it.of("refused")),
            count(it.of("late")),
            count(it.other()),
            grouped(float(it.of("offered")) - float(it.sent()), 0),
            format!("{:.2}%", self.share() * 100.0),
            format!("{:.0} MiB", self.peak_rss_mib),
        ]
    }
}

fn add_results(report: &mut Report, found: &[Found], seconds: u32) {
    let columns = [
        "load",
        "capacity /s",
        "answered /s",
        "right",
        "503 with Retry-After",
        "given up after 10 s",
        "otherwise",
        "not sent, or not answered at the end",
        "right or 503",
        "RSS peak",
    ];
    let note = "The capacity is that of the same client in a closed loop. A client gives up a request \
                ten seconds after it fell due. It does not send a request without a free connection or \
                stream.";
    let title = format!("Istio: 2.5 times the capacity for {seconds} s");
    report.table(Table::new(title, &columns, found.iter().map(Found::row)).note(note));
    let share = found.iter().map(Found::share).fold(1.0, f64::min);
    let what = "Istio: share right or 503 with Retry-After at 2.5 times the capacity";
    let budget = Budget::least(what, share, ANSWERED_BUDGET);
    report.budget(budget.decimals(4).baseline("the worse of two loads"));
    let peak = found.iter().map(|found| found.peak_rss_mib).fold(0.0, f64::max);
    let what = "Istio: RSS at 2.5 times the capacity (MiB)";
    let budget = Budget::most(what, peak, RSS_BUDGET_MIB);
    report.budget(budget.decimals(0).baseline("the larger of two loads"));
}
