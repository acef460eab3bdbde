//! The k6 scripts, on the echo and on injectd in turn: a mix of sizes and verdicts, all checked.

use std::path::Path;

use injectd_harness::expect::Outcome;
use injectd_testkit::reviews::MIX;
use serde_json::Value;

use crate::{
    Run,
    k6::{Script, time},
    report::{Report, Table, count, grouped},
    reviews,
    servers::{NO_FLAGS, Server, echo, injectd, injectd_for_all_meshes, typical},
};

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

/// The meshes of `k6/meshes.js`, which are its scenarios.
const MESHES: [&str; 3] = ["linkerd", "istio", "templates"];

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
    report.table(of_all_meshes(seconds, out).await?);
    Ok(())
}

/// One process that serves all meshes, each with callers of its own.
async fn of_all_meshes(seconds: u32, out: &Path) -> Outcome<Table> {
    let scratch = tempfile::tempdir()?;
    let bodies = scratch.path();
    reviews::write(bodies, &reviews::of_all_meshes())?;
    let server = injectd_for_all_meshes().await?;
    let script =
        Script { name: "meshes", server: &server, is_echo: false, bodies, seconds, rate: None };
    let found = script.run(&out.join("k6-meshes-injectd.json")).await?;
    let rows = MESHES.map(|mesh| {
        let of = format!("{{scenario:{mesh}}}");
        vec![mesh.to_owned(), time(&found, &of, "med"), time(&found, &of, "p(99)")]
    });
    let title = "k6: all meshes of one process, each answer checked";
    Ok(Table::new(title, &["mesh", "p50", "p99"], rows.to_vec()).note(format!(
        "{} reviews of eight callers for each mesh: injected from memory and evaluated, skipped, of three sizes.",
        count(found["reviews"].as_u64().unwrap_or(0))
    )))
}

impl Load<'_> {
    /// Runs k6, with its figures into this folder.
    async fn row(&self, out: &Path) -> Outcome<Vec<String>> {
        let rate = self.rate.map(|rate| format!("-{rate}")).unwrap_or_default();
        let name = if self.rate.is_some() { "arrival" } else { "closed" };
        let script = Script {
            name,
            server: self.server,
            is_echo: self.name == "echo",
            bodies: self.bodies,
            seconds: self.seconds,
            rate: self.rate,
        };
        let file = out.join(format!("k6-{name}{rate}-{}.json", self.name));
        Ok(self.cells(&script.run(&file).await?))
    }

    fn cells(&self, found: &Value) -> Vec<String> {
        let [passes, fails] = ["passes", "fails"].map(|result| found["checks"][result].as_u64());
        let (passes, fails) = (passes.unwrap_or(0), fails.unwrap_or(0));
        let time = |of: &str, figure: &str| time(found, of, figure);
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

/// The shares of the mix.
pub(crate) fn mix_text() -> String {
    let shares = MIX.map(|sent| format!("{} % {}", sent.percent, sent.name));
    shares.join(", ")
}
