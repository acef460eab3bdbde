//! CPU per review and rate, beside the echo's: both answer in turn under the same load.
//!
//! They take turns several times in a round, because a shared machine changes its speed from one second
//! to the next. The figure that counts is CPU per request, injectd's ÷ the echo's: rates and times move
//! with the machine, the ratio hardly does. Alone: `just rounds`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use injectd_harness::expect::{Outcome, about, failed};

use crate::{
    Run,
    client::{Client, expect_injected},
    h2load::{Extent, Figures, h2load},
    machine,
    report::{Budget, Report, Table, count, float, grouped, median, rounded, say, write_csv},
    servers::{NO_FLAGS, Server, echo, injectd, typical},
};

// The budgets are those that docs/performance.md gives to users, who rely on them.
const CPU_BUDGET: f64 = 1.6;
const CPU_AIM: f64 = 1.3;
const RATE_BUDGET: f64 = 0.65;
/// A smoke fails above it.
// A smoke runs on busy machines: it finds a server that is broken and not one that is slow.
const MAX_RATIO: f64 = 5.0;
/// The lowest recorded CPU of Linkerd's own injector ÷ echo.
// Recorded and not measured in the same run, because Linkerd's injector takes a cluster. The lowest
// makes the budget the hardest.
const LINKERD_ECHOES: f64 = 730.0;
const LINKERD_BUDGET: f64 = 1.0 / 450.0;
const COLUMNS: [&str; 5] =
    ["round", "echo_per_second", "echo_cpu_us", "injectd_per_second", "injectd_cpu_us"];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rounds; figures are their medians
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
    /// Turns of a round, each of both
    #[arg(long, value_name = "N", default_value_t = 5)]
    turns: u32,
    /// Length of a turn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seconds: u32,
    /// Requests of a turn, instead of its length
    #[arg(long, value_name = "N")]
    requests: Option<u32>,
    /// Kept-alive connections of HTTP/1.1
    #[arg(long, value_name = "N", default_value_t = 16)]
    connections: u32,
    /// File of the `AdmissionReview` [default: that of 12 KB]
    #[arg(long, value_name = "FILE")]
    review: Option<PathBuf>,
}

/// Requests per second, and CPU of a request in µs, of all turns.
#[derive(Clone, Copy, Debug)]
struct Turns {
    rate: f64,
    cpu: f64,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    echo: Turns,
    injectd: Turns,
}

impl Round {
    fn cpu_ratio(&self) -> f64 {
        self.injectd.cpu / self.echo.cpu
    }

    fn rate_ratio(&self) -> f64 {
        self.injectd.rate / self.echo.rate
    }
}

pub(crate) async fn run(options: &Options, run: &Run, report: &mut Report) -> Outcome {
    let review = options.review.clone().unwrap_or_else(typical);
    say(&machine::before()?);
    let (base, ours) = (echo(&review, None).await?, injectd(&NO_FLAGS).await?);
    expect_review(&ours, &review).await?;
    for server in [&base, &ours] {
        h2load(server, &review, options.connections, Extent::Requests(2000)).await?;
    }
    let (turns, extent) = match options.requests {
        _ if run.smoke => (1, Extent::Seconds(1)),
        Some(requests) => (options.turns, Extent::Requests(requests)),
        None => (options.turns, Extent::Seconds(options.seconds)),
    };
    let mut rounds = Vec::new();
    for index in 1..=options.rounds {
        let (mut of_echo, mut of_injectd) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            // In turn, because the speed of a shared machine changes from minute to minute: both
            // have their share of it.
            of_echo.push(h2load(&base, &review, options.connections, extent).await?);
            of_injectd.push(h2load(&ours, &review, options.connections, extent).await?);
        }
        let round = Round { echo: all_of(&of_echo), injectd: all_of(&of_injectd) };
        say(&line(index, round));
        rounds.push(round);
    }
    if let Some(out) = &run.out {
        write_csv(&out.join("rounds.csv"), &COLUMNS, &raw(&rounds))?;
    }
    let title = format!(
        "Closed loop, {} connections, {} bytes, {turns} turns each",
        options.connections,
        count(fs::metadata(&review)?.len())
    );
    report.table(table(title, &rounds));
    let ratio = add_budgets(report, &rounds)?;
    if run.smoke && ratio > MAX_RATIO {
        return Err(failed(format!("the ratio is above {MAX_RATIO}")));
    }
    Ok(())
}

/// Fails unless injectd injects the pod of this review.
pub(crate) async fn expect_review(server: &Server, review: &Path) -> Outcome {
    let answer = Client::open(server).await?.ask(&fs::read(review)?).await?;
    about(review.display(), expect_injected(&answer))
}

/// Rate and CPU of all turns together.
fn all_of(turns: &[Figures]) -> Turns {
    let sum = |of: fn(&Figures) -> f64| turns.iter().map(of).sum::<f64>();
    let done = sum(|round| float(round.done));
    Turns {
        rate: done / sum(|round| float(round.done) / round.rate),
        cpu: sum(|round| round.cpu * float(round.done)) / done * 1e6,
    }
}

fn line(index: u32, found: Round) -> String {
    let Round { echo, injectd } = found;
    format!(
        "round {index}: echo {:.0} requests/s, {:.1} µs; injectd {:.0} requests/s, {:.1} µs; \
         ratio {:.2}",
        echo.rate,
        echo.cpu,
        injectd.rate,
        injectd.cpu,
        found.cpu_ratio()
    )
}

fn raw(rounds: &[Round]) -> Vec<Vec<String>> {
    let row = |(index, Round { echo, injectd }): (u32, &Round)| {
        let figures = [echo.rate, echo.cpu, injectd.rate, injectd.cpu];
        [index.to_string()].into_iter().chain(figures.map(|figure| rounded(figure, 1))).collect()
    };
    (1..).zip(rounds).map(row).collect()
}

fn table(title: String, rounds: &[Round]) -> Table {
    let columns = [
        "round",
        "echo requests/s",
        "echo CPU µs",
        "injectd reviews/s",
        "injectd CPU µs",
        "CPU ÷ echo",
        "rate ÷ echo",
    ];
    let row = |(index, round): (u32, &Round)| {
        vec![
            index.to_string(),
            grouped(round.echo.rate, 0),
            format!("{:.1}", round.echo.cpu),
            grouped(round.injectd.rate, 0),
            format!("{:.1}", round.injectd.cpu),
            format!("{:.2}", round.cpu_ratio()),
            format!("{:.2}", round.rate_ratio()),
        ]
    };
    Table::new(title, &columns, (1..).zip(rounds).map(row))
}

/// Returns the ratio of CPU.
fn add_budgets(report: &mut Report, rounds: &[Round]) -> Outcome<f64> {
    let cpu = median(rounds.iter().map(Round::cpu_ratio))?;
    let rate = median(rounds.iter().map(Round::rate_ratio))?;
    report.facts.insert("cpu_ratio".into(), cpu);
    report.facts.insert("rate_ratio".into(), rate);
    let of_echo = "echo = 1";
    let per_review = Budget::most("CPU per injected 12 KB review ÷ echo", cpu, CPU_BUDGET);
    report.budget(per_review.baseline(of_echo));
    report.budget(Budget::most("the same, aim", cpu, CPU_AIM).baseline(of_echo));
    let what = "CPU per review ÷ that of Linkerd's injector, as recorded";
    let of_linkerd = Budget::most(what, cpu / LINKERD_ECHOES, LINKERD_BUDGET).decimals(5);
    report.budget(of_linkerd.baseline(format!("{LINKERD_ECHOES} × echo, at best")));
    let rate = Budget::least("rate ÷ echo, 16 connections", rate, RATE_BUDGET);
    report.budget(rate.baseline(of_echo));
    Ok(cpu)
}
