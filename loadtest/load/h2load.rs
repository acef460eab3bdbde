//! h2load: a closed loop over kept-alive connections.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    str::FromStr,
    time::Duration,
};

use injectd_harness::{
    expect::{Outcome, failed},
    process::run_within,
};

use crate::{
    report::{count, float},
    servers::Server,
};

// h2load never ends if the server stops to answer.
const LIMIT: Duration = Duration::from_mins(5);
const JSON: &str = "content-type: application/json";
/// The share of connections that must be open and busy for a measurement with many connections.
const BUSY_SHARE: f64 = 0.99;
// Some thousands of answers, so that a p99 has dozens above it.
const MIN_SECONDS: f64 = 0.2;
/// A fast server ends a short run before enough connections are busy for long enough.
const MAX_DOUBLINGS: u32 = 4;

/// How long a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    Requests(u32),
    /// h2load never ends if a connection is not open by then: not for many connections.
    Seconds(u32),
}

/// A run of h2load.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    pub(crate) url: String,
    pub(crate) body: &'a Path,
    pub(crate) connections: u32,
    pub(crate) extent: Extent,
    /// More flags, as `--h1`.
    pub(crate) flags: &'a [&'a str],
    pub(crate) headers: &'a [&'a str],
    pub(crate) is_timed: bool,
}

/// What h2load has printed and logged.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Requests per second.
    pub(crate) rate: f64,
    /// The number of requests; all were answered with 200.
    pub(crate) done: u32,
    pub(crate) text: String,
    times: Vec<Time>,
}

/// When a request began and how long it took, in seconds.
#[derive(Clone, Copy, Debug)]
struct Time {
    begin: f64,
    took: f64,
}

/// The figures of a run; CPU is the server's per request, times are in seconds.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) rate: f64,
    pub(crate) done: u32,
    pub(crate) cpu: f64,
    pub(crate) latencies: Vec<f64>,
}

/// The figures of a run while all of its connections were open and busy.
#[derive(Debug)]
pub(crate) struct Steady {
    pub(crate) rate: f64,
    pub(crate) latencies: Vec<f64>,
}

/// Reviews of one pod over HTTP/1.1, without their times.
pub(crate) async fn h2load(
    server: &Server,
    body: &Path,
    connections: u32,
    extent: Extent,
) -> Outcome<Figures> {
    figures(server, Load::of_reviews(server, body, connections, extent)).await
}

/// The same with their times, which take some of the client's CPU.
pub(crate) async fn h2load_timed(
    server: &Server,
    body: &Path,
    connections: u32,
    extent: Extent,
) -> Outcome<Figures> {
    figures(server, Load::of_reviews(server, body, connections, extent).timed()).await
}

async fn figures(server: &Server, load: Load<'_>) -> Outcome<Figures> {
    let before = server.cpu_seconds()?;
    let found = load.run().await?;
    let cpu = (server.cpu_seconds()? - before) / float(found.done);
    let latencies = found.times.iter().map(|time| time.took).collect();
    Ok(Figures { rate: found.rate, done: found.done, cpu, latencies })
}

/// The part of a run in which each connection has a request in progress.
///
/// A run in which that part is too short is repeated with twice as many requests.
pub(crate) async fn steady(
    server: &Server,
    body: &Path,
    connections: u32,
    requests: u32,
) -> Outcome<Steady> {
    let mut seconds = 0.0;
    for doublings in 0..=MAX_DOUBLINGS {
        let extent = Extent::Requests((connections * requests) << doublings);
        let load = Load::of_reviews(server, body, connections, extent).timed();
        let times = load.run().await?.times;
        let (begin, end) = busy(&times, connections);
        seconds = end - begin;
        if seconds >= MIN_SECONDS {
            let is_within = |time: &&Time| (begin..=end).contains(&(time.begin + time.took));
            let latencies: Vec<_> = times.iter().filter(is_within).map(|time| time.took).collect();
            return Ok(Steady { rate: float(latencies.len()) / seconds, latencies });
        }
    }
    let requests = count((connections * requests) << MAX_DOUBLINGS);
    Err(failed(format!(
        "{connections} connections were busy for {seconds:.1} s of {requests} requests, less than \
         {MIN_SECONDS} s"
    )))
}

/// Begin and end of the time in which nearly all connections had a request in progress.
fn busy(times: &[Time], connections: u32) -> (f64, f64) {
    let sorted = |of: fn(&Time) -> f64| {
        let mut all: Vec<_> = times.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (starts, ends) =
        (sorted(|request| request.begin), sorted(|request| request.begin + request.took));
    let is_busy = |&(index, &start): &(usize, &f64)| {
        let ended = ends.partition_point(|&end| end <= start);
        float(index.saturating_sub(ended)) >= BUSY_SHARE * f64::from(connections)
    };
    let mut found = (1..).zip(&starts).filter(is_busy).map(|(_, &start)| start);
    let first = found.next().unwrap_or(0.0);
    (first, found.last().unwrap_or(first))
}

impl<'a> Load<'a> {
    /// Of reviews of one pod over HTTP/1.1.
    pub(crate) fn of_reviews(
        server: &Server,
        body: &'a Path,
        connections: u32,
        extent: Extent,
    ) -> Self {
        let url = server.review_url();
        let (flags, headers) = (&["--h1"], &[JSON]);
        Self { url, body, connections, extent, flags, headers, is_timed: false }
    }

    /// Of calls of the gRPC server, whose statuses are in trailers that h2load does not check.
    pub(crate) fn of_calls(
        server: &Server,
        body: &'a Path,
        connections: u32,
        extent: Extent,
    ) -> Outcome<Self> {
        let grpc = server.grpc.ok_or_else(|| failed("the server has no gRPC"))?;
        let url = format!("https://{grpc}/injectd.v1.Injector/Inject");
        let headers = &["content-type: application/grpc", "te: trailers"];
        Ok(Self { url, body, connections, extent, flags: &[], headers, is_timed: false })
    }

    /// With the times of the requests.
    pub(crate) fn timed(self) -> Self {
        Self { is_timed: true, ..self }
    }

    /// Runs h2load; fails unless all requests were answered with 200.
    pub(crate) async fn run(&self) -> Outcome<Loaded> {
        let log = tempfile::NamedTempFile::new()?;
        let mut command = Command::new("h2load");
        command.args(["-t", "1", "-c", &self.connections.to_string()]).stdin(Stdio::null());
        match self.extent {
            Extent::Requests(requests) => command.arg("-n").arg(requests.to_string()),
            Extent::Seconds(seconds) => command.arg("-D").arg(seconds.to_string()),
        };
        command.args(self.flags).arg("-d").arg(self.body);
        if self.is_timed {
            command.arg("--log-file").arg(log.path());
        }
        command.args(self.headers.iter().flat_map(|header| ["-H", *header])).arg(&self.url);
        let ended = run_within(LIMIT, command).await?;
        let text = &ended.stdout;
        match (ended.code, read(text)) {
            (Some(0), Some((rate, done))) => {
                Ok(Loaded { rate, done, text: ended.stdout, times: read_log(log.path())? })
            }
            _ => Err(failed(format!("h2load: {}{}", end_of(text), end_of(&ended.stderr)))),
        }
    }
}

/// The rate and the number of the requests, if there are some and all were answered with 200.
fn read(text: &str) -> Option<(f64, u32)> {
    let line = |begin: &str| text.lines().find(|line| line.starts_with(begin));
    let requests = line("requests: ")?;
    let [done, failed, errored, timeout] =
        ["done", "failed", "errored", "timeout"].map(|what| number::<u32>(requests, what));
    let (rate, done) = (number(line("finished in ")?, "req/s")?, done?);
    let good: u32 = number(line("status codes: ")?, "2xx")?;
    let is_good = done > 0 && good >= done && [failed, errored, timeout] == [Some(0); 3];
    is_good.then_some((rate, done))
}

/// What is in front of this word in a list with commas.
fn number<T: FromStr>(line: &str, what: &str) -> Option<T> {
    let before = line.split(',').find_map(|item| item.trim_end().strip_suffix(what))?;
    before.split_whitespace().next_back()?.parse().ok()
}

/// Each line has the begin and the duration of a request in µs, and its status between them.
fn read_log(path: &Path) -> Outcome<Vec<Time>> {
    let seconds = |text: &str| Outcome::Ok(Duration::from_micros(text.parse()?).as_secs_f64());
    let time = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
        [begin, _, took] => Ok(Time { begin: seconds(begin)?, took: seconds(took)? }),
        _ => Err(failed(format!("h2load logged {line:?}"))),
    };
    fs::read_to_string(path)?.lines().map(time).collect()
}

/// The last 300 characters of an output.
pub(crate) fn end_of(text: &str) -> String {
    let mut end: Vec<_> = text.chars().rev().take(300).collect();
    end.reverse();
    end.into_iter().collect()
}
