//! Where the time of a review goes, beside the echo's: perf's samples by part of the program.
//!
//! Both answer the 12 KB review in turn under h2load. The parts add up to the CPU of a request, which is
//! measured without perf. Needs perf with access to the kernel.

use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};

use injectd_harness::{
    expect::{Outcome, failed},
    process::{Ended, run_within},
};

use crate::{
    h2load::{Extent, end_of, h2load},
    report::say,
    servers::{NO_FLAGS, Server, echo, injectd, typical},
};

// As in `rounds`, whose CPU this splits.
const CONNECTIONS: u32 = 16;
// No divisor or multiple of the kernel's ticks: work that repeats with them would be sampled always
// or never.
const SAMPLES_A_SECOND: &str = "1999";
/// Longer than perf takes beside the load that it records.
const GRACE: Duration = Duration::from_mins(1);
const KERNEL: &str = "kernel";
const OTHER: &str = "the rest";
/// Texts of symbols, by part; the first that a symbol has names its part. `^` is the begin of a symbol,
/// or of the type in its `<`.
const PARTS: [(&str, &[&str]); 11] = [
    ("TLS", &["aes", "gcm", "ghash", "AEAD", "rustls", "EVP", "aws_lc", "CRYPTO_"]),
    (
        "decode",
        &[
            "injectd::json::scan",
            "injectd::json::reader",
            "injectd::review::decode",
            "injectd::review::Review",
            "injectd::review::Group",
            "injectd::pod::",
            "memchr::",
            "utf8",
        ],
    ),
    (
        "decide, render, encode",
        &[
            "injectd::linkerd",
            "injectd::patch",
            "injectd::injector",
            "injectd::review",
            "injectd::outcome",
            "injectd::namespaces",
            "injectd::json",
            "base64",
        ],
    ),
    ("log", &["tracing", "injectd_telemetry::log", "injectd::observer", "core::fmt"]),
    ("metrics", &["^metrics", "injectd_telemetry::metrics"]),
    ("timers and clock", &["clock_gettime", "^time::", "::time::", "timeout", "Timespec"]),
    (
        "allocator",
        &[
            "malloc",
            "cfree",
            "_int_free",
            "alloc::alloc",
            "rust_alloc",
            "rust_dealloc",
            "rust_realloc",
            "tcache",
            "unlink_chunk",
        ],
    ),
    ("copies", &["^memcpy", "^memmove", "^memset", "^memcmp"]),
    ("HTTP", &["hyper", "http", "bytes::"]),
    ("tasks", &["tokio"]),
    ("the server", &["injectd::", "injectd_cluster::", "injectd_profiles::"]),
];

/// CPU of a request in µs, of all and by part.
struct Cpu {
    whole: f64,
    parts: BTreeMap<&'static str, f64>,
}

pub(crate) async fn run(seconds: u32) -> Outcome {
    let of_echo = cpu_of(&echo(&typical(), None).await?, seconds).await?;
    let ours = cpu_of(&injectd(&NO_FLAGS).await?, seconds).await?;
    say(&format!("{:<24} {:>8} {:>8} {:>8}", "CPU µs of a request", "injectd", "echo", "more"));
    for part in [KERNEL].into_iter().chain(PARTS.map(|(name, _)| name)).chain([OTHER]) {
        let [mine, its] = [&ours, &of_echo].map(|cpu| cpu.parts.get(part).copied().unwrap_or(0.0));
        say(&format!("{part:<24} {mine:8.1} {its:8.1} {:8.1}", mine - its));
    }
    let (mine, its) = (ours.whole, of_echo.whole);
    let (more, ratio) = (mine - its, mine / its);
    say(&format!("{:<24} {mine:8.1} {its:8.1} {more:8.1}   ratio {ratio:.2}", "all"));
    Ok(())
}

async fn cpu_of(server: &Server, seconds: u32) -> Outcome<Cpu> {
    let load = async |extent| h2load(server, &typical(), CONNECTIONS, extent).await;
    load(Extent::Requests(3000)).await?;
    let whole = load(Extent::Seconds(seconds)).await?.cpu * 1e6;
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("perf.data");
    let recording = record(server, &data, seconds + 1);
    tokio::try_join!(recording, load(Extent::Seconds(seconds + 1)))?;
    let mut report = Command::new("perf");
    report.args(["report", "--no-children", "--stdio", "--percent-limit", "0", "-i"]).arg(&data);
    let text = perf(report, GRACE).await?.stdout;
    let mut shares = BTreeMap::new();
    for (share, part) in text.lines().filter_map(sample) {
        *shares.entry(part).or_insert(0.0) += share;
    }
    if !shares.contains_key(KERNEL) {
        return Err(failed(
            "perf has no samples of the kernel: set sysctl kernel.perf_event_paranoid=1, or run as root",
        ));
    }
    let all: f64 = shares.values().sum();
    let parts = shares.into_iter().map(|(part, share)| (part, whole * share / all)).collect();
    Ok(Cpu { whole, parts })
}

async fn record(server: &Server, data: &Path, seconds: u32) -> Outcome<Ended> {
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-e", "cpu-clock", "-F", SAMPLES_A_SECOND, "-o"]).arg(data);
    command.args(["-p", &server.pid().to_string(), "--", "sleep", &seconds.to_string()]);
    perf(command, Duration::from_secs(seconds.into()) + GRACE).await
}

async fn perf(command: Command, limit: Duration) -> Outcome<Ended> {
    let ended = run_within(limit, command).await;
    let ended = ended.map_err(|why| failed(format!("{why}; perf is in the package linux-perf")))?;
    match ended.code {
        Some(0) => Ok(ended),
        _ => Err(failed(format!("perf: {}", end_of(&ended.stderr)))),
    }
}

/// The share of a line `12.34%  injectd  injectd  [.] SYMBOL`, in percent, and its part.
fn sample(line: &str) -> Option<(f64, &'static str)> {
    let (percent, rest) = line.trim_start().split_once('%')?;
    let share = percent.parse().ok()?;
    if rest.contains(" [k] ") {
        return Some((share, KERNEL));
    }
    Some((share, part_of(rest.split_once(" [.] ")?.1.trim())))
}

fn part_of(symbol: &str) -> &'static str {
    let begin = symbol.trim_start_matches(['<', '_']);
    let has = |text: &&str| match text.strip_prefix('^') {
        Some(text) => begin.starts_with(text),
        None => symbol.contains(*text),
    };
    PARTS.iter().find(|(_, texts)| texts.iter().any(has)).map_or(OTHER, |(name, _)| name)
}
