//! Bursts: new TLS connections beside 25 kept ones, and a thousand at once.
//!
//! An API server keeps 25 idle connections to a webhook; each review beyond them opens a new one.

use std::time::{Duration, Instant};

use injectd_harness::expect::Outcome;
use injectd_testkit::reviews::TYPICAL;
use tokio::time::{sleep, sleep_until};

use crate::{
    Run,
    client::{ask, endpoint},
    h2load::{Extent, h2load},
    paced::{Asked, CONNECTIONS, Pace, paced},
    report::{Report, Table, float, grouped, micros, p50_p99},
    servers::{NO_FLAGS, Server, TIMEOUT_SECONDS, injectd, typical},
};

mod thousand;

/// Connections at the peak.
// Enough to keep two cores busy; more connections only make a queue.
const FEW: u32 = 16;
/// New connections of each of two clients.
const NEW_PER_SECOND: u32 = 75;
/// The kinds of new connections: their names beside kept ones and alone, and whether they use tickets.
const KINDS: [Kind; 2] = [
    Kind { alone: "full handshake", beside: "new, full handshakes", with_tickets: false },
    Kind { alone: "resumed by ticket", beside: "new, resumed by ticket", with_tickets: true },
];

struct Kind {
    alone: &'static str,
    beside: &'static str,
    with_tickets: bool,
}

/// A new connection, with its handshake and a review.
#[derive(Debug)]
struct Opened {
    seconds: f64,
    is_resumed: bool,
}

pub(crate) async fn run(run: &Run, report: &mut Report) -> Outcome {
    let server = injectd(&NO_FLAGS).await?;
    h2load(&server, &typical(), FEW, Extent::Requests(2000)).await?;
    cost_of_connections(report, &server, if run.smoke { 100 } else { 1500 }).await?;
    beside_kept_connections(run, report, &server).await?;
    drop(server);
    // Memory is measured in a process that has served nothing else.
    thousand::run(run, report, &injectd(&NO_FLAGS).await?).await
}

// --- the cost of a connection ---

/// CPU of the server for a connection with one review, minus that of a review.
async fn cost_of_connections(report: &mut Report, server: &Server, times: u32) -> Outcome {
    let mut kept = f64::INFINITY;
    for _ in 0..3 {
        // The least of three, because it is subtracted: other work on the machine must not make
        // handshakes look cheap.
        kept = kept.min(h2load(server, &typical(), 1, Extent::Requests(times)).await?.cpu);
    }
    let (mut rows, mut costs) = (Vec::new(), Vec::new());
    for Kind { alone, with_tickets, .. } in KINDS {
        let before = server.cpu_seconds()?;
        let opened = open_each(server, with_tickets, Limit::Times(times)).await?;
        let cost = (server.cpu_seconds()? - before) / float(times) - kept;
        let resumed = opened.iter().filter(|connection| connection.is_resumed).count();
        let mut row = vec![alone.to_owned(), times.to_string(), resumed.to_string(), micros(cost)];
        row.push(format!("{:.1}", cost / kept));
        row.extend(p50_p99(&seconds_of(&opened))?);
        rows.push(row);
        costs.push(cost);
    }
    let share = 1.0 - costs[1] / costs[0];
    report.facts.insert("ticket_saves_share".into(), share);
    let columns =
        ["connection", "opened", "resumed", "CPU", "CPU ÷ review", "p50 to the answer", "p99"];
    let title = "CPU of the server for a new connection, without its review";
    report.table(Table::new(title, &columns, rows).note(format!(
        "A review over a kept connection takes {} of CPU, one at a time. A ticket saves {}, {:.0}% of \
         a connection.",
        micros(kept),
        micros(costs[0] - costs[1]),
        share * 100.0
    )));
    Ok(())
}

fn seconds_of(opened: &[Opened]) -> Vec<f64> {
    opened.iter().map(|connection| connection.seconds).collect()
}

/// How many connections a client opens.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// One as soon as the last is closed.
    Times(u32),
    /// At [`NEW_PER_SECOND`].
    Seconds(u32),
}

/// Opens connections, each for one review.
async fn open_each(server: &Server, with_tickets: bool, limit: Limit) -> Outcome<Vec<Opened>> {
    let endpoint = endpoint(server, with_tickets)?;
    let request = endpoint.post_to(server.path, TYPICAL.as_bytes(), TIMEOUT_SECONDS);
    let (times, interval) = match limit {
        Limit::Times(times) => (times, Duration::ZERO),
        Limit::Seconds(seconds) => {
            (seconds * NEW_PER_SECOND, Duration::from_secs(1) / NEW_PER_SECOND)
        }
    };
    let (start, mut opened) = (Instant::now(), Vec::new());
    for index in 0..times {
        sleep_until((start + interval * index).into()).await;
        let begin = Instant::now();
        let mut connection = endpoint.connect().await?;
        ask(&mut connection, &request).await?;
        let seconds = begin.elapsed().as_secs_f64();
        opened.push(Opened { seconds, is_resumed: connection.is_resumed() });
    }
    Ok(opened)
}

// --- beside kept connections ---

/// Times of reviews over kept connections while others open new ones.
async fn beside_kept_connections(run: &Run, report: &mut Report, server: &Server) -> Outcome {
    let (seconds, crowd) = if run.smoke { (1, 50) } else { (5, 200) };
    let peak = h2load(server, &typical(), CONNECTIONS, Extent::Seconds(1)).await?.rate;
    let (asked, rate) = (Asked::typical(), peak / 4.0);
    let load = || paced(server, &asked, Pace { rate, seconds: f64::from(seconds), seed: 0 });
    let row = |what: String, kept: &[f64], others: [String; 3]| {
        Outcome::Ok([what].into_iter().chain(p50_p99(kept)?).chain(others).collect::<Vec<_>>())
    };
    let mut rows = vec![row("none".into(), &load().await?.latencies, <[String; 3]>::default())?];
    for Kind { beside, with_tickets, .. } in KINDS {
        let open = || open_each(server, with_tickets, Limit::Seconds(seconds));
        let (kept, some, more) = tokio::try_join!(load(), open(), open())?;
        let opened = [seconds_of(&some), seconds_of(&more)].concat();
        let [p50, p99] = p50_p99(&opened)?;
        let rate = format!("{:.0}", float(opened.len()) / f64::from(seconds));
        rows.push(row(beside.into(), &kept.latencies, [rate, p50, p99])?);
    }
    let crowded = async {
        sleep(Duration::from_secs(seconds.into()) / 3).await;
        let begin = Instant::now();
        h2load(server, &typical(), crowd, Extent::Requests(crowd)).await?;
        Outcome::Ok(begin.elapsed().as_secs_f64())
    };
    let (kept, took) = tokio::try_join!(load(), crowded)?;
    let what = format!("{crowd} new at once, all answered after {}", micros(took));
    rows.push(row(what, &kept.latencies, <[String; 3]>::default())?);
    let columns =
        ["other connections", "kept: p50", "p99", "new /s", "new, with handshake: p50", "p99"];
    let rate = grouped(rate, 0);
    let title = format!("25 kept connections at {rate} reviews/s (a quarter of the peak)");
    report.table(Table::new(title, &columns, rows));
    Ok(())
}
