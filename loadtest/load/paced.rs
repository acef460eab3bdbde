//! A review at a constant mean rate over kept-alive connections: `loadtest/paced.rs`.

use std::{path::PathBuf, process::Command, time::Duration};

use injectd_harness::{
    expect::{Outcome, about, failed},
    process::run_within,
};

use crate::{
    h2load::end_of,
    report::float,
    servers::{Binary, PACED, Server, typical},
};

/// Those that an API server keeps to a webhook.
pub(crate) const CONNECTIONS: u32 = 25;
/// More than any server can answer: a closed loop, in which the answered rate is the capacity.
pub(crate) const ENDLESS: f64 = 200_000.0;
// For the handshakes before the load, and for the last answers: each may take 10 s.
const GRACE: Duration = Duration::from_secs(30);

/// What a server is asked; each request replaces `serial` by other digits.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) review: PathBuf,
    pub(crate) serial: Option<&'static str>,
}

/// How often, for how long, and the seed of the arrivals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Requests per second.
    pub(crate) rate: f64,
    pub(crate) seconds: f64,
    pub(crate) seed: u32,
}

/// Answers per second, requests that were due but never sent, and times in seconds.
#[derive(Debug)]
pub(crate) struct Paced {
    pub(crate) rate: f64,
    pub(crate) unsent: u32,
    pub(crate) latencies: Vec<f64>,
}

impl Asked {
    /// The review of 12 KB.
    pub(crate) fn typical() -> Self {
        Self { review: typical(), serial: None }
    }

    /// The command of a client that asks this of a server.
    pub(crate) fn command(&self, client: Binary, server: &Server) -> Outcome<Command> {
        let mut command = client.command()?;
        command.arg(server.address.to_string()).arg(&self.review).args(["--path", server.path]);
        command.args(self.serial.iter().flat_map(|serial| ["--serial", *serial]));
        Ok(command)
    }
}

/// Asks a server, and waits for the end of the load.
pub(crate) async fn paced(server: &Server, asked: &Asked, pace: Pace) -> Outcome<Paced> {
    let Pace { rate, seconds, seed } = pace;
    let mut command = asked.command(PACED, server)?;
    command.args(["--rate", &rate.to_string(), "--seconds", &seconds.to_string()]);
    command.args(["--connections", &CONNECTIONS.to_string(), "--seed", &seed.to_string()]);
    let ended = run_within(Duration::from_secs_f64(seconds) + GRACE, command).await;
    let ended = about("paced", ended)?;
    if ended.code != Some(0) {
        return Err(failed(format!("paced: {}", end_of(&ended.stderr))));
    }
    let mut lines = ended.stdout.lines();
    let unsent = lines.next().and_then(|line| line.strip_prefix("unsent ")).unwrap_or_default();
    let time = |line: &str| Ok(Duration::from_nanos(line.parse()?).as_secs_f64());
    let latencies = lines.map(time).collect::<Outcome<Vec<_>>>()?;
    if latencies.is_empty() {
        return Err(failed("paced: no request fell due"));
    }
    Ok(Paced { rate: float(latencies.len()) / seconds, unsent: unsent.parse()?, latencies })
}
