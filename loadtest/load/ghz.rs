//! CPU of a gRPC call beside a review of the same object, on one process: in turn, ghz calls the gRPC
//! server, and h2load calls it and the webhook.
//!
//! The figure that counts is CPU per answer, gRPC's ÷ the webhook's: rates and times move with the machine
//! and with the cost of the client, the ratio hardly does. Alone: `just ghz`.

use std::path::PathBuf;

use clap::Args;
use injectd_harness::expect::{Outcome, failed};

use crate::{
    Run,
    h2load::Extent,
    machine,
    report::{Budget, Report, Table, grouped, median, rounded, say, write_csv},
    rounds::expect_review,
    servers::{injectd, typical},
};

mod clients;

use clients::{Bench, KINDS, Kind, WEBHOOK, WEBHOOK_HTTP2};

// The budget of docs/performance.md.
const BUDGET: f64 = 1.4;
/// A smoke fails above it.
const MAX_RATIO: f64 = 5.0;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rounds, each of every kind
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
    /// Length of a run
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u32,
    /// Callers at a time, each over a connection of its own
    #[arg(long, value_name = "N…", default_value = "1 25 100", value_delimiter = ' ')]
    callers: Vec<u32>,
    /// File of the `AdmissionReview` [default: that of 12 KB]
    #[arg(long, value_name = "FILE")]
    review: Option<PathBuf>,
}

/// The runs of a kind with so many callers, one for each round.
struct Runs {
    callers: u32,
    kind: Kind,
    /// Answers per second.
    rates: Vec<f64>,
    /// CPU of an answer in µs.
    cpu: Vec<f64>,
}

pub(crate) async fn run(options: &Options, run: &Run, report: &mut Report) -> Outcome {
    let review = options.review.clone().unwrap_or_else(typical);
    let (rounds, seconds, callers) = if run.smoke {
        (1, 1, &[25][..])
    } else {
        (options.rounds, options.seconds, &options.callers[..])
    };
    say(&machine::before()?);
    let server = injectd(&["--grpc-addr", "127.0.0.1:0"]).await?;
    expect_review(&server, &review).await?;
    let bench = Bench::new(&server, review).await?;
    bench.warm_up().await?;
    let mut all = Vec::new();
    for &callers in callers {
        let runs = |kind| Runs { callers, kind, rates: Vec::new(), cpu: Vec::new() };
        let mut of_callers = KINDS.map(runs);
        for _ in 0..rounds {
            for runs in &mut of_callers {
                runs.measure(&bench, seconds).await?;
            }
        }
        all.push(of_callers);
    }
    drop(bench);
    server.stop().await?;
    if let Some(out) = &run.out {
        let columns = ["callers", "kind", "round", "per_second", "cpu_us"];
        let rows: Vec<_> = all.iter().flatten().flat_map(Runs::raw).collect();
        write_csv(&out.join("ghz.csv"), &columns, &rows)?;
    }
    let worst = add_results(report, &all)?;
    if run.smoke && worst > MAX_RATIO {
        return Err(failed(format!("the ratio is above {MAX_RATIO}")));
    }
    Ok(())
}

impl Runs {
    async fn measure(&mut self, bench: &Bench<'_>, seconds: u32) -> Outcome {
        let before = bench.server.cpu_seconds()?;
        let answers = bench.run(self.kind, self.callers, Extent::Seconds(seconds)).await?;
        let cpu = (bench.server.cpu_seconds()? - before) / f64::from(answers.count) * 1e6;
        let (callers, label, rate) = (self.callers, self.kind.label, answers.rate);
        say(&format!("{callers} callers, {label}: {rate:.0}/s, {cpu:.1} µs"));
        self.rates.push(rate);
        self.cpu.push(cpu);
        Ok(())
    }

    /// The median of its CPU ÷ that of a webhook.
    fn ratio(&self, all: &[Self], webhook: Kind) -> Outcome<f64> {
        let of_webhook = all.iter().filter(|runs| runs.kind == webhook).flat_map(|runs| &runs.cpu);
        median(self.cpu.iter().zip(of_webhook).map(|(cpu, of_webhook)| cpu / of_webhook))
    }

    fn raw(&self) -> Vec<Vec<String>> {
        let row = |(round, (rate, cpu)): (u32, (&f64, &f64))| {
            let (callers, kind) = (self.callers.to_string(), self.kind.name.to_owned());
            vec![callers, kind, round.to_string(), rounded(*rate, 1), rounded(*cpu, 2)]
        };
        (1..).zip(self.rates.iter().zip(&self.cpu)).map(row).collect()
    }
}

/// Returns the largest ratio of a call to the webhook.
fn add_results(report: &mut Report, all: &[[Runs; KINDS.len()]]) -> Outcome<f64> {
    let (mut rows, mut worst) = (Vec::new(), 0.0);
    for of_callers in all {
        for runs in of_callers {
            let to_webhook = runs.ratio(of_callers, WEBHOOK)?;
            let to_http2 = runs.ratio(of_callers, WEBHOOK_HTTP2)?;
            if ![WEBHOOK, WEBHOOK_HTTP2].contains(&runs.kind) {
                worst = f64::max(worst, to_webhook);
            }
            rows.push(vec![
                runs.callers.to_string(),
                runs.kind.label.to_owned(),
                grouped(median(runs.rates.iter().copied())?, 0),
                format!("{:.1}", median(runs.cpu.iter().copied())?),
                format!("{to_webhook:.2}"),
                format!("{to_http2:.2}"),
            ]);
        }
    }
    let columns = ["callers", "answers", "/s", "CPU µs", "÷ webhook", "÷ webhook over HTTP/2"];
    report.table(Table::new("gRPC beside the webhook, the same object", &columns, rows));
    let budget = Budget::most("CPU of gRPC ÷ webhook, at most", worst, BUDGET).decimals(2);
    report.budget(budget.baseline("webhook over HTTP/1.1 = 1"));
    Ok(worst)
}
