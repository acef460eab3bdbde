//! Reviews by Istio's injector beside the echo.
//!
//! The echo sends as many bytes as injectd. Cold reviews are pods whose annotation has a value that no
//! other has, so that the templates are evaluated for each. `memory` measures the share that is answered
//! from memory; `limits` long lists and nodes; `overload` more reviews than a server can answer. With
//! `$INJECTD_CORPUS`, the configuration is that of a real Istio.

use std::fs;

use injectd_harness::{expect::Outcome, istio_files::RELEASE, lab::corpus};
use injectd_testkit::reviews::{of_many_containers, with_override};
use tempfile::TempDir;

use crate::{
    Run,
    client::{Client, expect_injected},
    h2load::{Extent, h2load},
    paced::{Asked, CONNECTIONS, ENDLESS, Pace, paced},
    report::{Budget, Report, Table, count, float, grouped, median, micros, rounded, write_csv},
    servers::{NO_FLAGS, Server, echo, injectd_for_istio},
};

mod limits;
mod memory;
mod overload;

const CPU_BUDGET: f64 = 4.0;
const CPU_AIM: f64 = 2.5;
const COLD_BUDGET: f64 = 25.0;
const LARGE_BUDGET: f64 = 8.0;
/// Connections of a closed loop.
const FEW: u32 = 16;
/// The digits in a review that each request replaces by others.
const SERIAL: &str = "0000000000";

/// What the servers are asked, in files.
struct Pods {
    /// One pod of 12 KB.
    warm: Asked,
    /// One pod of twenty containers.
    large: Asked,
    /// Pods of 12 KB of which no two are alike.
    cold: Asked,
    _folder: TempDir,
}

/// A closed loop: CPU of a request in seconds, and requests per second.
#[derive(Clone, Copy)]
struct Cpu {
    cpu: f64,
    rate: f64,
}

/// The rounds of a load, each of the echo and of injectd.
struct Rounds {
    name: &'static str,
    review_bytes: usize,
    answer_bytes: usize,
    pairs: Vec<[Cpu; 2]>,
    rss_mib: f64,
}

pub(crate) async fn run(run: &Run, report: &mut Report) -> Outcome {
    let pods = Pods::new()?;
    beside_the_echo(run, report, &pods).await?;
    memory::share(run, report).await?;
    limits::variables(run, report).await?;
    limits::nodes(run, report, &pods).await?;
    overload::run(run, report, &pods).await
}

impl Pods {
    fn new() -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let [large, cold] = ["large", "cold"].map(|name| folder.path().join(name));
        fs::write(&large, of_many_containers())?;
        fs::write(&cold, with_override("sidecar.istio.io/proxyCPU", &format!("{SERIAL}m")))?;
        Ok(Self {
            warm: Asked::typical(),
            large: Asked { review: large, serial: None },
            cold: Asked { review: cold, serial: Some(SERIAL) },
            _folder: folder,
        })
    }
}

/// Asks a server for some seconds over connections that are always busy.
async fn cpu_of(server: &Server, asked: &Asked, seconds: u32) -> Outcome<Cpu> {
    if asked.serial.is_none() {
        let found = h2load(server, &asked.review, FEW, Extent::Seconds(seconds)).await?;
        return Ok(Cpu { cpu: found.cpu, rate: found.rate });
    }
    let before = server.cpu_seconds()?;
    let pace = Pace { rate: ENDLESS, seconds: seconds.into(), seed: 0 };
    let found = paced(server, asked, pace).await?;
    // Each connection opens with a review of which the time is not taken.
    let done = float(found.latencies.len()) + float(CONNECTIONS);
    Ok(Cpu { cpu: (server.cpu_seconds()? - before) / done, rate: found.rate })
}

async fn beside_the_echo(run: &Run, report: &mut Report, pods: &Pods) -> Outcome {
    let ours = injectd_for_istio(&NO_FLAGS).await?;
    let mut all = Vec::new();
    for (name, asked) in [("warm", &pods.warm), ("large", &pods.large), ("cold", &pods.cold)] {
        all.push(rounds(run, &ours, name, asked).await?);
    }
    ours.stop().await?;
    let rows: Vec<_> = all.iter().map(Rounds::row).collect::<Outcome<_>>()?;
    let columns = [
        "reviews",
        "bytes",
        "bytes of the answer",
        "echo CPU",
        "injectd CPU",
        "CPU ÷ echo",
        "injectd /s",
        "RSS after",
    ];
    let note = format!(
        "Configuration: {}. Medians of the rounds, each of the echo and of injectd. Warm: one pod of \
         12 KB. Large: one pod of twenty containers. Cold: pods of 12 KB of which no two have the same \
         annotation.",
        configuration()
    );
    let title = "Istio: CPU beside an echo that sends as many bytes";
    report.table(Table::new(title, &columns, rows).note(note));
    add_budgets(report, &all)?;
    let Some(out) = &run.out else { return Ok(()) };
    let raw: Vec<_> = all.iter().flat_map(Rounds::raw).collect();
    let columns = ["reviews", "round", "echo_cpu_us", "injectd_cpu_us"];
    write_csv(&out.join("istio.csv"), &columns, &raw)
}

async fn rounds(run: &Run, ours: &Server, name: &'static str, asked: &Asked) -> Outcome<Rounds> {
    let (rounds, seconds) = if run.smoke { (1, 1) } else { (7, 2) };
    let review = fs::read(&asked.review)?;
    let answer = Client::open(ours).await?.ask(&review).await?;
    expect_injected(&answer)?;
    let base = echo(&asked.review, Some(answer.body.len())).await?;
    let mut pairs = Vec::new();
    for index in 0..=rounds {
        let pair = [cpu_of(&base, asked, seconds).await?, cpu_of(ours, asked, seconds).await?];
        // The first warms up.
        if index > 0 || run.smoke {
            pairs.push(pair);
        }
    }
    base.stop().await?;
    let (answer_bytes, rss_mib) = (answer.body.len(), ours.rss_mib()?);
    Ok(Rounds { name, review_bytes: review.len(), answer_bytes, pairs, rss_mib })
}

impl Rounds {
    fn ratio(&self) -> Outcome<f64> {
        median(self.pairs.iter().map(|[echo, ours]| ours.cpu / echo.cpu))
    }

    fn row(&self) -> Outcome<Vec<String>> {
        let [echo, ours] =
            [0, 1].map(|which| median(self.pairs.iter().map(|pair| pair[which].cpu)));
        let rate = median(self.pairs.iter().map(|[_, ours]| ours.rate))?;
        Ok(vec![
            self.name.to_owned(),
            count(self.review_bytes),
            count(self.answer_bytes),
            micros(echo?),
            micros(ours?),
            format!("{:.2}", self.ratio()?),
            grouped(rate, 0),
            format!("{:.0} MiB", self.rss_mib),
        ])
    }

    fn raw(&self) -> Vec<Vec<String>> {
        let row = |(index, pair): (usize, &[Cpu; 2])| {
            let [echo, ours] = pair.map(|measured| rounded(measured.cpu * 1e6, 1));
            vec![self.name.to_owned(), index.to_string(), echo, ours]
        };
        (1..).zip(&self.pairs).map(row).collect()
    }
}

fn add_budgets(report: &mut Report, all: &[Rounds]) -> Outcome {
    let of_echo = format!("echo = 1; {}", configuration());
    for (what, name, budget) in [
        ("Istio: CPU per injected 12 KB pod, memory warm ÷ echo", "warm", CPU_BUDGET),
        ("the same, aim", "warm", CPU_AIM),
        ("Istio: CPU per 12 KB pod of which no two are alike ÷ echo", "cold", COLD_BUDGET),
        ("Istio: CPU per pod of 68 KB and 20 containers ÷ echo", "large", LARGE_BUDGET),
    ] {
        if let Some(rounds) = all.iter().find(|rounds| rounds.name == name) {
            report.budget(Budget::most(what, rounds.ratio()?, budget).baseline(&of_echo));
        }
    }
    Ok(())
}

fn configuration() -> String {
    match corpus() {
        Ok(_) => format!("Istio {RELEASE}"),
        Err(_) => "small ($INJECTD_CORPUS is not set)".to_owned(),
    }
}
