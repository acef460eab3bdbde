//! Latency against rate, injectd and the echo in turn, from a tenth of the peak up to it.
//!
//! The peak is a closed loop over 25 connections (h2load), measured again in each round, because a
//! shared machine changes its speed. Below it, requests arrive at random, at the same shares of each
//! server's own peak.

use std::{path::Path, process::Command};

use injectd_harness::{
    expect::{Outcome, failed},
    lab::root,
    process,
};

use crate::{
    Run,
    h2load::{Extent, Figures, h2load, h2load_timed},
    paced::{Asked, CONNECTIONS, Pace, paced},
    report::{
        Budget, Report, Table, float, grouped, median, micros, percentile, rounded, write_csv,
    },
    servers::{NO_FLAGS, Server, echo, injectd, typical},
};

const HALF: f64 = 0.5;
/// The share of the closed loop, in which the answers give the rate.
const PEAK: f64 = 1.0;
// The budget of docs/performance.md, at HALF: beyond it the client's own share of the cores
// decides.
const P99_BUDGET_MS: f64 = 1.0;
const NAMES: [&str; 2] = ["echo", "injectd"];
const COLUMNS: [&str; 9] = [
    "round",
    "server",
    "share_of_peak",
    "offered_per_second",
    "answered_per_second",
    "unsent",
    "p50_us",
    "p99_us",
    "cpu_us_per_request",
];

/// A server at a share of its peak, once or by the medians of the rounds; CPU per request and times in
/// seconds.
#[derive(Clone, Copy, Debug)]
struct Point {
    name: &'static str,
    share: f64,
    offered: f64,
    rate: f64,
    unsent: u32,
    p50: f64,
    p99: f64,
    cpu: f64,
}

pub(crate) async fn run(run: &Run, report: &mut Report) -> Outcome {
    let (rounds, seconds) = if run.smoke { (1, 0.5) } else { (7, 1.5) };
    let shares: &[f64] = if run.smoke { &[0.1, HALF] } else { &[0.1, 0.25, HALF, 0.65, 0.8, 0.9] };
    let servers = [echo(&typical(), None).await?, injectd(&NO_FLAGS).await?];
    for server in &servers {
        h2load(server, &typical(), CONNECTIONS, Extent::Requests(2000)).await?;
    }
    let (mut points, mut raw) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let mut found = Vec::new();
        for (name, server) in NAMES.into_iter().zip(&servers) {
            found.push(peak(name, server).await?);
        }
        let peaks = [found[0].rate, found[1].rate];
        for &share in shares {
            for ((name, server), peak) in NAMES.into_iter().zip(&servers).zip(peaks) {
                let pace = Pace { rate: share * peak, seconds, seed: round };
                found.push(at_rate(name, server, share, pace).await?);
            }
        }
        raw.extend(found.iter().map(|point| point.raw(round)));
        points.extend(found);
    }
    if let Some(out) = &run.out {
        let csv = out.join("curve.csv");
        write_csv(&csv, &COLUMNS, &raw)?;
        plot(&csv, &out.join("latency.svg")).await?;
    }
    add_results(report, &points, &[shares, &[PEAK]].concat())
}

async fn peak(name: &'static str, server: &Server) -> Outcome<Point> {
    let found = h2load_timed(server, &typical(), CONNECTIONS, Extent::Seconds(1)).await?;
    let Figures { rate, cpu, latencies, .. } = found;
    let [p50, p99] = quantiles(&latencies)?;
    Ok(Point { name, share: PEAK, offered: rate, rate, unsent: 0, p50, p99, cpu })
}

async fn at_rate(name: &'static str, server: &Server, share: f64, pace: Pace) -> Outcome<Point> {
    let before = server.cpu_seconds()?;
    let found = paced(server, &Asked::typical(), pace).await?;
    // Includes a handshake and a first review of each connection.
    let cpu = (server.cpu_seconds()? - before) / float(found.latencies.len());
    let [p50, p99] = quantiles(&found.latencies)?;
    let (offered, rate, unsent) = (pace.rate, found.rate, found.unsent);
    Ok(Point { name, share, offered, rate, unsent, p50, p99, cpu })
}

fn quantiles(latencies: &[f64]) -> Outcome<[f64; 2]> {
    Ok([percentile(latencies, 0.5)?, percentile(latencies, 0.99)?])
}

/// Draws the latencies of a run.
async fn plot(csv: &Path, picture: &Path) -> Outcome {
    let mut command = Command::new("python3");
    command.arg(root().join("loadtest/load/plot.py")).args([csv, picture]);
    process::run(command).await?.with_code(0).map(drop)
}

impl Point {
    fn raw(&self, round: u32) -> Vec<String> {
        let whole = |value: f64| format!("{value:.0}");
        vec![
            round.to_string(),
            self.name.to_owned(),
            self.share.to_string(),
            whole(self.offered),
            whole(self.rate),
            self.unsent.to_string(),
            whole(self.p50 * 1e6),
            whole(self.p99 * 1e6),
            rounded(self.cpu * 1e6, 1),
        ]
    }

    fn cells(&self) -> [String; 3] {
        [grouped(self.rate, 0), micros(self.p50), micros(self.p99)]
    }
}

/// The medians of the rounds.
fn median_of(points: &[Point], name: &'static str, share: f64) -> Outcome<Point> {
    let is_here = |point: &&Point| point.name == name && point.share.total_cmp(&share).is_eq();
    let points: Vec<_> = points.iter().filter(is_here).collect();
    let of = |figure: fn(&Point) -> f64| median(points.iter().map(|&point| figure(point)));
    let first = *points.first().copied().ok_or_else(|| failed("nothing was measured"))?;
    Ok(Point {
        rate: of(|point| point.rate)?,
        p50: of(|point| point.p50)?,
        p99: of(|point| point.p99)?,
        ..first
    })
}

fn add_results(report: &mut Report, points: &[Point], shares: &[f64]) -> Outcome {
    let mut rows = Vec::new();
    for &share in shares {
        let what = if share < PEAK {
            format!("{:.0}%", share * 100.0)
        } else {
            "peak, closed loop".to_owned()
        };
        let [base, ours] = NAMES.map(|name| median_of(points, name, share));
        let (base, ours) = (base?, ours?);
        rows.push([what].into_iter().chain(base.cells()).chain(ours.cells()).collect());
    }
    let columns = ["share of its own peak", "echo /s", "p50", "p99", "injectd /s", "p50", "p99"];
    let title = "Latency against rate, 25 connections, medians of the rounds";
    report.table(Table::new(title, &columns, rows).note(
        "Client and servers share the cores. Below the peak, requests fall due at random on each \
         connection. A time starts when its request falls due, even if the connection is busy. A \
         late wake-up of the client does not count. ![latency](latency.svg)",
    ));
    let peak = median_of(points, "injectd", PEAK)?.rate.round();
    report.facts.insert("peak_per_second".into(), peak);
    let [base, ours] = NAMES.map(|name| median_of(points, name, HALF));
    let (base_ms, ms) = (base?.p99 * 1e3, ours?.p99 * 1e3);
    let budget = Budget::most("p99 at 25 connections, half load (ms)", ms, P99_BUDGET_MS);
    report.budget(budget.baseline(format!("echo {base_ms:.2} at half of its own peak")));
    Ok(())
}
