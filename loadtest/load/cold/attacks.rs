//! Reviews at a constant rate while two attackers send overrides that are never repeated.

use std::{
    iter,
    time::{Duration, Instant},
};

use injectd_harness::expect::Outcome;
use injectd_testkit::{generator::random::Random, reviews::with_override};
use tokio::task::JoinSet;

use super::{TIMEOUT, misses};
use crate::{
    Run,
    client::Client,
    h2load::{Extent, h2load},
    paced::{Asked, Pace, paced},
    report::{Report, Table, float, grouped, micros, p50_p99},
    servers::{NO_FLAGS, Server, injectd, typical},
};

const PORTS: &str = "config.linkerd.io/skip-outbound-ports";
/// Makes a key of overrides above 4 KiB, whose template is compiled but not cached.
const LONG_VALUE_PORTS: usize = 900;
// Each waits for its answers, so two keep both cores of the measuring machine asked.
const ATTACKERS: u64 = 2;

/// Makes an annotation and its value.
type Make = fn(&mut Random) -> (&'static str, String);

const ATTACKS: [(&str, Option<Make>); 4] = [
    ("none", None),
    ("short values", Some(|random| (TIMEOUT, format!("{}ms", 1 + random.below(1 << 40))))),
    (
        "values above 4 KiB",
        Some(|random| {
            let ports = iter::repeat_with(|| random.between(1, 65_535).to_string());
            (PORTS, ports.take(LONG_VALUE_PORTS).collect::<Vec<_>>().join(","))
        }),
    ),
    // Not a duration: answered with a warning, or denied.
    ("invalid values", Some(|random| (TIMEOUT, format!("{:x} soon", random.below(1 << 40))))),
];

const COLUMNS: [&str; 12] = [
    "attack",
    "its reviews /s",
    "CPU each",
    "p50",
    "p99",
    "compiled",
    "cached after",
    "other clients: /s",
    "p50",
    "p99",
    "RSS",
    "RSS peak",
];

pub(super) async fn run(run: &Run, report: &mut Report) -> Outcome {
    let seconds = if run.smoke { 0.5 } else { 15.0 };
    let server = injectd(&NO_FLAGS).await?;
    let rate = h2load(&server, &typical(), 16, Extent::Seconds(1)).await?.rate / 10.0;
    server.stop().await?;
    let mut rows = Vec::new();
    for (name, make) in ATTACKS {
        let server = injectd(&NO_FLAGS).await?;
        let cells = attacked(&server, rate, seconds, make).await?;
        rows.push([vec![name.to_owned()], cells].concat());
        server.stop().await?;
    }
    let title = "Overrides that are never repeated, from two attackers in closed loops";
    let note = "The other clients send the 12 KB review without overrides at a tenth of the peak, over \
                25 connections.";
    report.table(Table::new(title, &COLUMNS, rows).note(note));
    Ok(())
}

/// The figures of an attack, and those of the other clients.
async fn attacked(
    server: &Server,
    rate: f64,
    seconds: f64,
    make: Option<Make>,
) -> Outcome<Vec<String>> {
    let typical = Asked::typical();
    let others = |seconds| paced(server, &typical, Pace { rate, seconds, seed: 0 });
    let before = server.cpu_seconds()?;
    let alone = others(seconds / 5.0).await?;
    let each = (server.cpu_seconds()? - before) / float(alone.latencies.len());
    let (missed, before) = (misses(server).await?, server.cpu_seconds()?);
    let (others, times) = tokio::try_join!(others(seconds), attack(server, make, seconds))?;
    let cpu = server.cpu_seconds()? - before - each * float(others.latencies.len());
    let kept = server.metric("injectd_cache_entries", &[("cache", "templates")]).await?;
    let compiled = misses(server).await? - missed;
    let mut row = vec![String::new(); 4];
    if !times.is_empty() {
        let [p50, p99] = p50_p99(&times)?;
        let done = float(times.len());
        row = vec![grouped(done / seconds, 0), micros(cpu / done), p50, p99];
    }
    let [p50, p99] = p50_p99(&others.latencies)?;
    let [rss, peak] =
        [server.rss_mib()?, server.peak_rss_mib()?].map(|mib| format!("{mib:.0} MiB"));
    let rate = grouped(others.rate, 0);
    row.extend([compiled.to_string(), kept.to_string(), rate, p50, p99, rss, peak]);
    Ok(row)
}

/// The times of the reviews of all attackers.
async fn attack(server: &Server, make: Option<Make>, seconds: f64) -> Outcome<Vec<f64>> {
    let mut attackers = JoinSet::new();
    for seed in 0..ATTACKERS {
        if let Some(make) = make {
            let client = Client::open(server).await?;
            attackers.spawn(attacker(client, Random::new(seed), make, seconds));
        }
    }
    let mut times = Vec::new();
    while let Some(found) = attackers.join_next().await {
        times.extend(found??);
    }
    Ok(times)
}

async fn attacker(
    mut client: Client,
    mut random: Random,
    make: Make,
    seconds: f64,
) -> Outcome<Vec<f64>> {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut times = Vec::new();
    while Instant::now() < end {
        let (key, value) = make(&mut random);
        times.push(client.ask(&with_override(key, &value)).await?.seconds);
    }
    Ok(times)
}
