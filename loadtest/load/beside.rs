//! Reviews beside an echo that sends as many bytes.

use std::{fs, path::Path};

use injectd_harness::expect::Outcome;

use crate::{
    Run,
    client::{Client, expect_injected},
    h2load::{Extent, h2load},
    paced::{Asked, CONNECTIONS, ENDLESS, Pace, paced},
    report::{Table, count, float, grouped, median, micros, rounded, write_csv},
    servers::{Server, echo},
};

/// Connections of a closed loop.
pub(crate) const FEW: u32 = 16;
/// The digits in a review that each request replaces by others.
pub(crate) const SERIAL: &str = "0000000000";

/// How many reviews a server is asked for.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// As many as it answers: connections are always busy.
    Busy,
    /// So many per second.
    Steady(f64),
}

/// Reviews of one kind.
#[derive(Clone, Copy)]
pub(crate) struct Reviews<'a> {
    pub(crate) name: &'static str,
    pub(crate) asked: &'a Asked,
    pub(crate) load: Load,
}

/// CPU of a request in seconds, and requests per second.
#[derive(Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) cpu: f64,
    pub(crate) rate: f64,
}

/// The rounds of a load, each of the echo and of injectd.
pub(crate) struct Rounds {
    pub(crate) name: &'static str,
    review_bytes: usize,
    answer_bytes: usize,
    pairs: Vec<[Cpu; 2]>,
    rss_mib: f64,
}

/// Asks a server for some seconds over connections that are always busy.
pub(crate) async fn cpu_of(server: &Server, asked: &Asked, seconds: u32) -> Outcome<Cpu> {
    if asked.serial.is_none() {
        let found = h2load(server, &asked.review, FEW, Extent::Seconds(seconds)).await?;
        return Ok(Cpu { cpu: found.cpu, rate: found.rate });
    }
    paced_cpu(server, asked, Pace { rate: ENDLESS, seconds: seconds.into(), seed: 0 }).await
}

async fn paced_cpu(server: &Server, asked: &Asked, pace: Pace) -> Outcome<Cpu> {
    let before = server.cpu_seconds()?;
    let found = paced(server, asked, pace).await?;
    // Each connection opens with a review of which the time is not taken.
    let done = float(found.latencies.len()) + float(CONNECTIONS);
    Ok(Cpu { cpu: (server.cpu_seconds()? - before) / done, rate: found.rate })
}

pub(crate) async fn rounds(
    run: &Run,
    ours: &Server,
    Reviews { name, asked, load }: Reviews<'_>,
) -> Outcome<Rounds> {
    let (rounds, seconds) = if run.smoke { (1, 1) } else { (7, 2) };
    let cpu = async |server| match load {
        Load::Busy => cpu_of(server, asked, seconds).await,
        Load::Steady(rate) => {
            paced_cpu(server, asked, Pace { rate, seconds: seconds.into(), seed: 0 }).await
        }
    };
    let review = fs::read(&asked.review)?;
    let answer = Client::open(ours).await?.ask(&review).await?;
    expect_injected(&answer)?;
    let base = echo(&asked.review, Some(answer.body.len())).await?;
    let mut pairs = Vec::new();
    for index in 0..=rounds {
        let pair = [cpu(&base).await?, cpu(ours).await?];
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
    pub(crate) fn ratio(&self) -> Outcome<f64> {
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

/// A row for each load.
pub(crate) fn table(title: &str, all: &[Rounds]) -> Outcome<Table> {
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
    Ok(Table::new(title, &columns, rows))
}

/// Writes the figures of each round.
pub(crate) fn write(all: &[Rounds], path: &Path) -> Outcome {
    let raw: Vec<_> = all.iter().flat_map(Rounds::raw).collect();
    write_csv(path, &["reviews", "round", "echo_cpu_us", "injectd_cpu_us"], &raw)
}
