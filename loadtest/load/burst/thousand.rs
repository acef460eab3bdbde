//! A closed loop over a thousand connections, beside the peak at sixteen.

use std::time::Duration;

use injectd_harness::expect::Outcome;
use tokio::time::sleep;

use super::FEW;
use crate::{
    Run,
    h2load::{Extent, Figures, Steady, h2load, h2load_timed, steady},
    report::{Budget, Report, Table, grouped, median, p50_p99, rounded, write_csv},
    servers::{Server, typical},
};

const MANY: u32 = 1000;
// As docs/performance.md has them. The memory is the limit that the chart sets by default.
const RATE_BUDGET: f64 = 0.9;
const RSS_BUDGET_MIB: f64 = 256.0;
/// The server notices closed connections in this time.
const SETTLING: Duration = Duration::from_millis(50);
const CSV_COLUMNS: [&str; 7] = [
    "round",
    "rate_16",
    "rate_1000",
    "rate_16_in_the_second_after",
    "open_after",
    "rss_after_mib",
    "rss_peak_mib",
];
const COLUMNS: [&str; 13] = [
    "round",
    "16: /s",
    "p50",
    "p99",
    "1,000: /s",
    "p50",
    "p99",
    "16 after: /s",
    "p50",
    "p99",
    "open 0.05 s later",
    "RSS then",
    "RSS peak",
];

/// Sixteen connections, a thousand, and sixteen in the second after.
struct Round {
    few: Figures,
    many: Steady,
    again: Figures,
    /// Connections that are open after the thousand, and the memory then.
    open: u64,
    rss_mib: f64,
    peak_mib: f64,
}

pub(super) async fn run(run: &Run, report: &mut Report, server: &Server) -> Outcome {
    let (rounds, seconds, requests) = if run.smoke { (1, 1, 40) } else { (3, 4, 60) };
    let review = typical();
    h2load(server, &review, FEW, Extent::Requests(2000)).await?;
    let idle = server.rss_mib()?;
    let mut found = Vec::new();
    for _ in 0..rounds {
        let few = h2load_timed(server, &review, FEW, Extent::Seconds(seconds)).await?;
        let many = steady(server, &review, MANY, requests).await?;
        sleep(SETTLING).await;
        let open = server.metric("injectd_connections", &[("server", "webhook")]).await?;
        let rss_mib = server.rss_mib()?;
        let again = h2load_timed(server, &review, FEW, Extent::Seconds(1)).await?;
        let peak_mib = server.peak_rss_mib()?;
        found.push(Round { few, many, again, open, rss_mib, peak_mib });
    }
    add_results(report, &found, idle)?;
    if let Some(out) = &run.out {
        let rows: Vec<_> = (1..).zip(&found).map(|(index, round)| round.raw(index)).collect();
        write_csv(&out.join("thousand.csv"), &CSV_COLUMNS, &rows)?;
    }
    Ok(())
}

impl Round {
    fn raw(&self, index: u32) -> Vec<String> {
        let rates = [self.few.rate, self.many.rate, self.again.rate];
        let memory = [self.rss_mib, self.peak_mib].map(|mib| rounded(mib, 1));
        let rates = rates.map(|rate| format!("{rate:.0}"));
        let open = [self.open.to_string()];
        [index.to_string()].into_iter().chain(rates).chain(open).chain(memory).collect()
    }

    fn cells(&self, index: u32) -> Outcome<Vec<String>> {
        let Self { few, many, again, .. } = self;
        let mut cells = vec![index.to_string()];
        for (rate, latencies) in [
            (few.rate, &few.latencies),
            (many.rate, &many.latencies),
            (again.rate, &again.latencies),
        ] {
            cells.push(grouped(rate, 0));
            cells.extend(p50_p99(latencies)?);
        }
        cells.push(self.open.to_string());
        cells.extend([self.rss_mib, self.peak_mib].map(|mib| format!("{mib:.0} MiB")));
        Ok(cells)
    }
}

fn add_results(report: &mut Report, rounds: &[Round], idle: f64) -> Outcome {
    let rows = (1..).zip(rounds).map(|(index, round)| round.cells(index));
    let rows = rows.collect::<Outcome<Vec<_>>>()?;
    let title = "1,000 connections, closed loop; 16 before, and in the second after";
    report.table(Table::new(title, &COLUMNS, rows).note(format!(
        "RSS before: {idle:.0} MiB. The figures of 1,000 connections are those while all are open and \
         busy."
    )));
    let ratio = median(rounds.iter().map(|round| round.many.rate / round.few.rate))?;
    let back = median(rounds.iter().map(|round| round.again.rate / round.few.rate))?;
    let peak = rounds.iter().map(|round| round.peak_mib).fold(0.0, f64::max);
    let many = Budget::least("rate with 1,000 connections ÷ peak at 16", ratio, RATE_BUDGET);
    report.budget(many.baseline("rate at 16 = 1"));
    let what = "RSS with 1,000 connections, closed loop (MiB)";
    let memory = Budget::most(what, peak, RSS_BUDGET_MIB).decimals(0);
    report.budget(memory.baseline(format!("{idle:.0} before")));
    let after = Budget::least("rate at 16 in the second after ÷ before", back, RATE_BUDGET);
    report.budget(after.baseline("rate before = 1"));
    Ok(())
}
