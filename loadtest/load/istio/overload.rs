//! Requests at 2.5 times the capacity, over HTTP/1.1 and HTTP/2, each on a server of its own:
//! `loadtest/overload.rs`.

use std::time::Duration;

use injectd_harness::{
    expect::{Outcome, about, failed},
    overload::Ends,
};

use super::Pods;
use crate::{
    Run,
    paced::Asked,
    report::{Budget, Report, Table, count, float, grouped},
    servers::{NO_FLAGS, OVERLOAD, Server, injectd_for_istio},
};

// Every one, as an API server takes a request without an answer for a failure of the webhook.
const ANSWERED_BUDGET: f64 = 1.0;
const RSS_BUDGET_MIB: f64 = 256.0;
const BEYOND_CAPACITY: f64 = 2.5;
const SECONDS: u32 = 20;
// Long enough for a mean, and short enough that the machine is still the same after it.
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

/// What came of a load beyond the capacity, in requests per second, for so many seconds.
struct Found {
    name: &'static str,
    capacity: f64,
    seconds: u32,
    ends: Ends,
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
        // One for each load: only this load makes its peak of memory.
        let server = injectd_for_istio(&NO_FLAGS).await?;
        let flags = ["--seconds", &CAPACITY_SECONDS.to_string()];
        let alone = self.ends(&server, self.few, &flags).await?;
        if alone.count("right") == 0 {
            return Err(failed(format!("no pod was injected: {alone:?}")));
        }
        let capacity = float(alone.count("right")) / float(CAPACITY_SECONDS);
        let (rate, length) = (BEYOND_CAPACITY * capacity, seconds.to_string());
        let flags = ["--seconds", &length, "--rate", &rate.to_string()];
        let ends = self.ends(&server, self.many, &flags).await?;
        if sent(&ends) == 0 {
            return Err(failed(format!("no request was sent: {ends:?}")));
        }
        let peak_rss_mib = server.peak_rss_mib()?;
        server.stop().await?;
        Ok(Found { name: self.name, capacity, seconds, ends, peak_rss_mib })
    }

    async fn ends(&self, server: &Server, connections: u32, flags: &[&str]) -> Outcome<Ends> {
        let mut command = self.asked.command(OVERLOAD, server)?;
        command.args(["--connections", &connections.to_string()]).args(self.flags).args(flags);
        Ends::of(command, LIMIT).await
    }
}

/// Those that are neither right, refused nor late.
fn other(ends: &Ends) -> u32 {
    ["otherwise", "reset", "ended with the connection"].map(|what| ends.count(what)).iter().sum()
}

fn sent(ends: &Ends) -> u32 {
    ends.count("right") + ends.count("refused") + ends.count("late") + other(ends)
}

impl Found {
    /// The share that is injected or refused.
    fn share(&self) -> f64 {
        let right = self.ends.count("right") + self.ends.count("refused");
        float(right) / float(sent(&self.ends))
    }

    fn row(&self) -> Vec<String> {
        let of = |what| self.ends.count(what);
        vec![
            self.name.to_owned(),
            grouped(self.capacity, 0),
            grouped(float(of("right")) / float(self.seconds), 0),
            count(of("right")),
            count(of("refused")),
            count(of("late")),
            count(other(&self.ends)),
            grouped(float(of("offered")) - float(sent(&self.ends)), 0),
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
