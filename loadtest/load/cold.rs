//! Cold paths: reviews whose template is not compiled yet, beside hot reviews.
//!
//! The first review after a start, after a reload and of a set of overrides, and a thousand sets;
//! `attacks` has random overrides beside the reviews of other clients.

use std::{fs, path::Path};

use injectd_harness::{
    expect::{Outcome, expect, expect_contains, soon},
    injectd::linkerd_folder,
};
use injectd_testkit::reviews::{TYPICAL, with_override};

use crate::{
    Run,
    client::Client,
    report::{Report, Table, count, micros, p50_p99, percentile, rounded, write_csv},
    servers::{NO_FLAGS, Server, injectd},
};

mod attacks;

const TIMEOUT: &str = "config.linkerd.io/proxy-outbound-connect-timeout";
/// The default of [`TIMEOUT`], which each reload replaces.
const VALUE: &str = "  outboundConnectTimeout: 1000ms\n";

/// The times of a kind of review.
struct Timed {
    what: String,
    seconds: Vec<f64>,
    rss_mib: Option<f64>,
    note: String,
}

pub(crate) async fn run(run: &Run, report: &mut Report) -> Outcome {
    let mut found = hot_and_new(if run.smoke { 100 } else { 1000 }).await?;
    found.extend(after_start(if run.smoke { 3 } else { 30 }).await?);
    found.extend(after_reload(if run.smoke { 2 } else { 30 }).await?);
    add_results(run, report, &found)?;
    attacks::run(run, report).await
}

/// Hot reviews, then sets of overrides: new ones, and the same again.
async fn hot_and_new(reviews: usize) -> Outcome<Vec<Timed>> {
    let server = injectd(&NO_FLAGS).await?;
    let mut client = Client::open(&server).await?;
    let plain = vec![TYPICAL; 2 * reviews];
    ask_each(&mut client, &plain[..reviews]).await?;
    let mut found = vec![Timed::of("hot", ask_each(&mut client, &plain).await?, &server)?];
    let sets: Vec<_> =
        (0..reviews).map(|index| with_override(TIMEOUT, &format!("{}ms", 1001 + index))).collect();
    let mut missed = misses(&server).await?;
    let new = format!("{} new sets of overrides", count(reviews));
    for what in [new.as_str(), "the same sets again"] {
        let mut timed = Timed::of(what, ask_each(&mut client, &sets).await?, &server)?;
        let before = missed;
        missed = misses(&server).await?;
        timed.note = format!("{} compiled", missed - before);
        found.push(timed);
    }
    found.push(Timed::of("hot, after those", ask_each(&mut client, &plain).await?, &server)?);
    server.stop().await?;
    Ok(found)
}

/// The first review of a process, and the time from its start to the answer.
async fn after_start(count: usize) -> Outcome<[Timed; 2]> {
    let (mut first, mut second, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let server = injectd(&NO_FLAGS).await?;
        let mut client = Client::open(&server).await?;
        first.push(ask(&mut client).await?);
        whole.push(server.begin.elapsed().as_secs_f64());
        second.push(ask(&mut client).await?);
        server.stop().await?;
    }
    let whole = micros(percentile(&whole, 0.5)?);
    let note = format!("answered {whole} after the process was started (p50, up to 4 ms less)");
    Ok([
        Timed::without_rss("the first after a start", first, note),
        Timed::without_rss("the second", second, String::new()),
    ])
}

/// The first review after a reload of the values.
async fn after_reload(count: u64) -> Outcome<[Timed; 2]> {
    let text = fs::read_to_string(linkerd_folder().join("values/default.yaml"))?;
    expect_contains("the default values", VALUE, &text)?;
    let folder = tempfile::tempdir()?;
    let values = folder.path().join("values.yaml");
    fs::write(&values, &text)?;
    let flags = ["--values", &values.to_string_lossy(), "--reload-interval", "20ms"];
    let server = injectd(&flags).await?;
    let mut client = Client::open(&server).await?;
    ask(&mut client).await?;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for index in 1..=count {
        let value = VALUE.replace("1000", &(1000 + index).to_string());
        replace(&values, &text.replace(VALUE, &value))?;
        soon(&format!("reload {index}"), async || {
            let labels = [("what", "config"), ("result", "applied")];
            let reloads = server.metric("injectd_reloads_total", &labels).await?;
            expect("reloads", index, reloads)
        })
        .await?;
        first.push(ask(&mut client).await?);
        second.push(ask(&mut client).await?);
    }
    let found = [
        Timed::of("the first after a reload of the values", first, &server)?,
        Timed::of("the second", second, &server)?,
    ];
    server.stop().await?;
    Ok(found)
}

/// Replaces a file atomically.
fn replace(path: &Path, text: &str) -> Outcome {
    let other = path.with_extension("new");
    fs::write(&other, text)?;
    Ok(fs::rename(other, path)?)
}

async fn ask(client: &mut Client) -> Outcome<f64> {
    Ok(client.ask(TYPICAL.as_bytes()).await?.seconds)
}

async fn ask_each(client: &mut Client, reviews: &[impl AsRef<[u8]>]) -> Outcome<Vec<f64>> {
    let mut times = Vec::with_capacity(reviews.len());
    for review in reviews {
        times.push(client.ask(review.as_ref()).await?.seconds);
    }
    Ok(times)
}

/// The templates that were compiled so far.
async fn misses(server: &Server) -> Outcome<u64> {
    server.metric("injectd_cache_misses_total", &[("cache", "templates")]).await
}

impl Timed {
    fn of(what: &str, seconds: Vec<f64>, server: &Server) -> Outcome<Self> {
        let rss_mib = Some(server.rss_mib()?);
        Ok(Self { what: what.to_owned(), seconds, rss_mib, note: String::new() })
    }

    fn without_rss(what: &str, seconds: Vec<f64>, note: String) -> Self {
        Self { what: what.to_owned(), seconds, rss_mib: None, note }
    }

    fn row(&self, hot: f64) -> Outcome<Vec<String>> {
        let [p50, p99] = p50_p99(&self.seconds)?;
        let ratio = format!("{:.1}", percentile(&self.seconds, 0.5)? / hot);
        let rss = self.rss_mib.map(|rss| format!("{rss:.0} MiB")).unwrap_or_default();
        let count = self.seconds.len().to_string();
        Ok(vec![self.what.clone(), count, p50, p99, ratio, rss, self.note.clone()])
    }

    fn raw(&self) -> Outcome<Vec<String>> {
        let [p50, p99] = [0.5, 0.99].map(|share| percentile(&self.seconds, share));
        let [p50, p99] = [p50?, p99?].map(|seconds| format!("{:.0}", seconds * 1e6));
        let rss = self.rss_mib.map(|rss| rounded(rss, 1)).unwrap_or_default();
        Ok(vec![self.what.clone(), self.seconds.len().to_string(), p50, p99, rss])
    }
}

/// The times of all kinds; those of hot reviews come first.
fn add_results(run: &Run, report: &mut Report, found: &[Timed]) -> Outcome {
    let hot = percentile(&found[0].seconds, 0.5)?;
    let rows: Vec<_> = found.iter().map(|timed| timed.row(hot)).collect::<Outcome<_>>()?;
    let columns = ["review", "times", "p50", "p99", "p50 ÷ hot", "RSS after", ""];
    let title = "Cold reviews of 12 KB, one connection, one at a time";
    let note = "Times do not include the connection and its handshake.";
    report.table(Table::new(title, &columns, rows).note(note));
    let Some(out) = &run.out else { return Ok(()) };
    let raw: Vec<_> = found.iter().map(Timed::raw).collect::<Outcome<_>>()?;
    let columns = ["review", "times", "p50_us", "p99_us", "rss_mib"];
    write_csv(&out.join("cold.csv"), &columns, &raw)
}
