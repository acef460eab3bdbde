//! A million reviews through one process, of all sizes and verdicts: does its memory grow?

use std::path::Path;

use injectd_harness::expect::Outcome;
use injectd_testkit::reviews::MIX;

use crate::{
    Run,
    h2load::{Extent, h2load},
    mixed::mix_text,
    paced::CONNECTIONS,
    report::{Budget, Report, Table, count, float, rounded, write_csv},
    reviews,
    servers::{NO_FLAGS, Server, injectd},
};

// The budget of docs/performance.md. The allocator keeps some memory free, which is no leak.
const GROWTH_BUDGET: f64 = 1.1;
const COLUMNS: [&str; 4] = ["reviews", "per_second", "rss_mib", "rss_peak_mib"];
/// In the order of the text below the table.
const VERDICTS: [&str; 4] = ["injected", "skipped", "annotated", "denied"];

/// The reviews of the first block, and of the others.
struct Blocks {
    first: u32,
    others: u32,
    each: u32,
}

// A million in all. The first block fills caches and pools, so growth counts from its end.
const BLOCKS: Blocks = Blocks { first: 10_000, others: 20, each: 49_500 };
const SMOKE: Blocks = Blocks { first: 2000, others: 2, each: 2000 };

/// The memory after so many reviews, and the rate of the last block.
struct Point {
    done: u32,
    rate: f64,
    rss_mib: f64,
    /// Not taken before the first review.
    peak_mib: Option<f64>,
}

pub(crate) async fn run(run: &Run, report: &mut Report) -> Outcome {
    let Blocks { first, others, each } = if run.smoke { SMOKE } else { BLOCKS };
    let (folder, server) = (tempfile::tempdir()?, injectd(&NO_FLAGS).await?);
    reviews::write(folder.path(), &MIX)?;
    let begin = Point { done: 0, rate: 0.0, rss_mib: server.rss_mib()?, peak_mib: None };
    let mut points = vec![begin];
    for block in [first].into_iter().chain((0..others).map(|_| each)) {
        let rate = mixed(&server, folder.path(), block).await?;
        let done = server.metric("injectd_reviews_total", &[("server", "webhook")]).await?;
        let (rss_mib, peak_mib) = (server.rss_mib()?, Some(server.peak_rss_mib()?));
        points.push(Point { done: done.try_into()?, rate, rss_mib, peak_mib });
    }
    let mut verdicts = Vec::new();
    for verdict in VERDICTS {
        let found = server.metric("injectd_reviews_total", &[("verdict", verdict)]).await?;
        verdicts.push(format!("{} {verdict}", count(found)));
    }
    if let Some(out) = &run.out {
        let rows: Vec<_> = points.iter().map(Point::raw).collect();
        write_csv(&out.join("soak.csv"), &COLUMNS, &rows)?;
    }
    add_results(report, &points, &verdicts.join(", "));
    Ok(())
}

/// Sends a block of the mix, the most frequent reviews last; returns the rate of all.
async fn mixed(server: &Server, folder: &Path, reviews: u32) -> Outcome<f64> {
    let mut mix = MIX;
    // A run has one kind after the other: memory that a rare large review leaves must be seen under
    // the usual ones.
    mix.sort_by_key(|sent| sent.percent);
    let (mut done, mut seconds) = (0.0, 0.0);
    for sent in mix {
        let body = folder.join(format!("{}.json", sent.name));
        let extent = Extent::Requests(reviews * u32::try_from(sent.percent)? / 100);
        let found = h2load(server, &body, CONNECTIONS, extent).await?;
        done += float(found.done);
        seconds += float(found.done) / found.rate;
    }
    Ok(done / seconds)
}

impl Point {
    fn raw(&self) -> Vec<String> {
        let peak = self.peak_mib.map(|peak| rounded(peak, 2));
        vec![
            self.done.to_string(),
            format!("{:.0}", self.rate),
            rounded(self.rss_mib, 2),
            peak.unwrap_or_default(),
        ]
    }

    fn cells(&self) -> Vec<String> {
        let peak = self.peak_mib.map(|peak| format!("{peak:.1} MiB"));
        vec![count(self.done), format!("{:.1} MiB", self.rss_mib), peak.unwrap_or_default()]
    }
}

/// The table has every fifth point, or all of a smoke.
fn add_results(report: &mut Report, points: &[Point], verdicts: &str) {
    let step = if points.len() > 6 { 5 } else { 1 };
    let later = points.iter().skip(if step == 1 { 2 } else { 6 }).step_by(step);
    let (first, last) = (&points[1], &points[points.len() - 1]);
    let [after_first, after_all] = [first, last].map(|point| count(point.done));
    let title = format!("{after_all} reviews through one process, {CONNECTIONS} connections");
    let rows = points[..2].iter().chain(later).map(Point::cells);
    let table = Table::new(title, &["reviews so far", "RSS", "RSS peak"], rows);
    report.table(table.note(format!("{}. {verdicts}.", mix_text())));
    let what = format!("RSS after {after_all} reviews ÷ after {after_first}");
    let budget = Budget::most(what, last.rss_mib / first.rss_mib, GROWTH_BUDGET);
    report.budget(budget.baseline(format!("{:.1} MiB", first.rss_mib)));
}
