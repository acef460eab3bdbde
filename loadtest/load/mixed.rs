//! The k6 scripts, on the echo and on injectd in turn: a mix of sizes and verdicts, all checked.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use injectd_harness::{
    expect::{Outcome, failed},
    lab::{root, variable},
    process::run_within,
};
use injectd_testkit::reviews::MIX;
use serde_json::Value;

use crate::{
    Run,
    h2load::end_of,
    report::{Report, Table, count, grouped, micros, say},
    reviews,
    servers::{NO_FLAGS, Server, echo, injectd, typical},
};

const LIMIT: Duration = Duration::from_mins(2);
/// The exit code of k6 if a threshold is crossed.
const CROSSED: i32 = 99;
/// Reviews per second; a smoke has the first.
const RATES: [u32; 3] = [500, 1000, 2000];
const COLUMNS: [&str; 11] = [
    "load",
    "server",
    "reviews",
    "/s",
    "dropped",
    "p50",
    "p99",
    "p50 of 3.4 KB",
    "12 KB",
    "68 KB",
    "checks passed",
];

/// A run of a script, with a rate if the script has one.
struct Load<'a> {
    rate: Option<u32>,
    name: &'static str,
    server: &'a Server,
    bodies: &'a Path,
    seconds: u32,
}

pub(crate) async fn run(run: &Run, report: &mut Report) -> Outcome {
    let (rates, seconds) = if run.smoke { (&RATES[..1], 1) } else { (&RATES[..], 8) };
    let scratch = tempfile::tempdir()?;
    let (bodies, out) = (scratch.path(), run.out.as_deref().unwrap_or(scratch.path()));
    let (base, ours) = (echo(&typical(), None).await?, injectd(&NO_FLAGS).await?);
    reviews::write(bodies, &MIX)?;
    let mut rows = Vec::new();
    for rate in [None].into_iter().chain(rates.iter().copied().map(Some)) {
        for (name, server) in [("echo", &base), ("injectd", &ours)] {
            rows.push(Load { rate, name, server, bodies, seconds }.row(out).await?);
        }
    }
    let table = Table::new("k6: a mix of sizes and verdicts, each answer checked", &COLUMNS, rows);
    report.table(table.note(format!(
        "{}. Closed: 25 callers. Dropped: not started in time. The times are k6's own, and k6 takes \
         most of the cores: only the difference between the servers has a meaning.",
        mix_text()
    )));
    Ok(())
}

impl Load<'_> {
    /// Runs k6, with its figures into this folder.
    async fn row(&self, out: &Path) -> Outcome<Vec<String>> {
        let rate = self.rate.map(|rate| format!("-{rate}")).unwrap_or_default();
        let what = format!("k6-{}{rate}-{}", self.script(), self.name);
        let file = out.join(format!("{what}.json"));
        self.run(&file).await?;
        let found: Value = serde_json::from_slice(&fs::read(&file)?)?;
        match found["checks"]["fails"].as_u64() {
            Some(0) => Ok(self.cells(&found)),
            Some(fails) => Err(failed(format!("{what}: {fails} checks failed"))),
            None => Err(failed(format!("{what}: k6 wrote no number of failed checks"))),
        }
    }

    fn script(&self) -> &'static str {
        if self.rate.is_some() { "arrival" } else { "closed" }
    }

    async fn run(&self, file: &Path) -> Outcome {
        let Self { rate, name, server, bodies, seconds } = self;
        let mut k6 = Command::new(k6());
        k6.args(["run", "--quiet", "--no-color", "--no-usage-report", "--address", ""]);
        let mut set = |name: &str, value: &str| {
            k6.args(["--env", &format!("{name}={value}")]);
        };
        set("TARGET", &format!("https://{}", server.address));
        set("BODIES", &bodies.to_string_lossy());
        set("SECONDS", &seconds.to_string());
        set("OUT", &file.to_string_lossy());
        if let Some(rate) = rate {
            set("RATE", &rate.to_string());
        }
        if *name == "echo" {
            set("ECHO", "1");
        }
        k6.arg(root().join(format!("loadtest/k6/{}.js", self.script())));
        let ended = run_within(LIMIT, k6).await?;
        match ended.code {
            Some(0) => Ok(()),
            Some(CROSSED) => {
                say(&format!("k6: a threshold of {}.js was crossed", self.script()));
                Ok(())
            }
            _ => Err(failed(format!("k6: {}", end_of(&ended.stderr)))),
        }
    }

    fn cells(&self, found: &Value) -> Vec<String> {
        let [passes, fails] = ["passes", "fails"].map(|result| found["checks"][result].as_u64());
        let (passes, fails) = (passes.unwrap_or(0), fails.unwrap_or(0));
        let time = |of: &str, figure: &str| {
            let name = format!("http_req_duration{of}");
            let time = found["milliseconds"][name][figure].as_f64();
            time.map(|time| micros(time / 1e3)).unwrap_or_default()
        };
        let sizes = ["{name:small}", "{name:typical}", "{name:large}"];
        let load = self.rate.map_or("closed".to_owned(), |rate| format!("{} /s", count(rate)));
        let mut cells = vec![
            load,
            self.name.to_owned(),
            count(found["reviews"].as_u64().unwrap_or(0)),
            grouped(found["per_second"].as_f64().unwrap_or(0.0), 0),
            found["dropped"].to_string(),
            time("", "med"),
            time("", "p(99)"),
        ];
        cells.extend(sizes.map(|size| time(size, "med")));
        cells.push(format!("{} of {}", count(passes), count(passes + fails)));
        cells
    }
}

/// The program in `$K6`, or that in `$PATH`.
pub(crate) fn k6() -> PathBuf {
    variable("K6").unwrap_or_else(|| "k6".into()).into()
}

/// The shares of the mix.
pub(crate) fn mix_text() -> String {
    let shares = MIX.map(|sent| format!("{} % {}", sent.percent, sent.name));
    shares.join(", ")
}
