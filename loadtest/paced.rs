//! Requests at a constant mean rate over kept-alive connections, whatever the answers take.
//!
//! They fall due at random (Poisson) on each connection by itself, as those of callers who do not
//! know of each other. What falls due while its connection is busy waits, and its time counts from
//! then, so a server that stalls is not asked less; that this process was woken late does not count.
//! Prints how many were due but never sent, and the times of the others in nanoseconds.
//!
//! With `--serial`, no two requests have the same body, not even those of another run.

use std::{
    io::{self, BufWriter, Read as _, Write as _},
    net::TcpStream,
    num::NonZeroU64,
    sync::{Arc, Barrier, OnceLock},
    thread,
    time::{Duration, Instant},
};

use clap::{Parser, value_parser};
use injectd_tls::AnyCertificate;
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};

use asked::{Asked, Request, Result, positive};

mod asked;

// A webhook's default timeout.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Ask a webhook at a constant mean rate
#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    asked: Asked,
    /// Requests per second in all
    #[arg(long, value_name = "N", value_parser = positive)]
    rate: f64,
    /// How long requests fall due
    #[arg(long, value_name = "N", value_parser = positive)]
    seconds: f64,
    /// Connections, each kept alive
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = value_parser!(u32).range(1..))]
    connections: u32,
    /// Other arrivals for another seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u32,
}

/// What came of the requests of a connection.
#[derive(Debug, Default)]
struct Found {
    unsent: u64,
    times: Vec<Duration>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let request = Request::new(&args.asked)?;
    let config = Arc::new(AnyCertificate::client_config());
    let rate = args.rate / f64::from(args.connections);
    let duration = Duration::from_secs_f64(args.seconds);
    let start = Arc::new((Barrier::new(args.connections as usize), OnceLock::new()));
    let callers: Vec<_> = (0..args.connections)
        .map(|index| {
            let config = Arc::clone(&config);
            let (addr, start) = (args.asked.addr.clone(), Arc::clone(&start));
            let mut request = request.clone();
            let seed = u64::from(args.seed) << 32 | u64::from(index);
            thread::spawn(move || -> Result<Found> {
                let opened = Connection::open(&addr, config).and_then(|mut connection| {
                    connection.ask(request.next())?;
                    Ok(connection)
                });
                // All begin together, when the last is open and warm.
                let (barrier, begin) = &*start;
                barrier.wait();
                let mut connection = opened?;
                let begin = *begin.get_or_init(Instant::now);
                run(
                    &mut connection,
                    &mut request,
                    Arrivals::new(seed, rate, begin),
                    begin + duration,
                )
            })
        })
        .collect();
    let mut all = Found::default();
    for caller in callers {
        let found = caller.join().map_err(|_| "a connection's thread panicked")??;
        all.unsent += found.unsent;
        all.times.extend(found.times);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "unsent {}", all.unsent)?;
    all.times.iter().try_for_each(|time| writeln!(out, "{}", time.as_nanos()))?;
    Ok(out.flush()?)
}

/// Sends what falls due before `end`, one after the other.
fn run(
    connection: &mut Connection,
    request: &mut Request,
    arrivals: Arrivals,
    end: Instant,
) -> Result<Found> {
    // A wait ends when it is over, not 50 µs later.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let mut found = Found::default();
    let mut free = arrivals.last;
    for due in arrivals.take_while(|&due| due < end) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let begin = Instant::now();
        if begin < end {
            connection.ask(request.next())?;
            // As if it had been sent as soon as it was due and the connection free.
            free = free.max(due) + begin.elapsed();
            // Counted from when the request was due. Counted from when it was sent, a slow answer
            // would hide the wait of those behind it.
            found.times.push(free - due);
        } else {
            found.unsent += 1;
        }
    }
    Ok(found)
}

/// When requests fall due.
struct Arrivals {
    random: fastrand::Rng,
    rate: f64,
    last: Instant,
}

impl Arrivals {
    fn new(seed: u64, rate: f64, begin: Instant) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), rate, last: begin }
    }
}

impl Iterator for Arrivals {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        let gap = -(1.0 - self.random.f64()).ln() / self.rate;
        self.last += Duration::from_secs_f64(gap);
        Some(self.last)
    }
}

/// A kept-alive HTTP/1.1 connection with one request at a time.
struct Connection {
    stream: StreamOwned<ClientConnection, TcpStream>,
    answer: Vec<u8>,
}

impl Connection {
    fn open(addr: &str, config: Arc<ClientConfig>) -> Result<Self> {
        let plain = TcpStream::connect(addr)
            .map_err(|error| format!("cannot connect to {addr}: {error}"))?;
        plain.set_nodelay(true)?;
        plain.set_read_timeout(Some(READ_TIMEOUT))?;
        let tls = ClientConnection::new(config, ServerName::try_from("localhost")?)?;
        Ok(Self { stream: StreamOwned::new(tls, plain), answer: vec![0; 1 << 17] })
    }

    /// Sends a request and reads its answer, which must be 200.
    fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request)?;
        self.stream.flush()?;
        let (mut read, mut expected) = (0, usize::MAX);
        while read < expected {
            let room = self.answer.get_mut(read..).filter(|room| !room.is_empty());
            let more = self.stream.read(room.ok_or("an answer is too long")?)?;
            if more == 0 {
                return Err("the server closed the connection".into());
            }
            read += more;
            if expected == usize::MAX
                && let Some(len) = answer_len(&self.answer[..read])?
            {
                expected = len;
            }
        }
        Ok(())
    }
}

/// Length of an answer in bytes once its head is there.
fn answer_len(begin: &[u8]) -> Result<Option<usize>> {
    let Some(head) = begin.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&begin[..head])?.to_ascii_lowercase();
    if !text.starts_with("http/1.1 200") {
        return Err(format!("an answer begins with {:?}", text.lines().next()).into());
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    Ok(Some(head + 4 + length.ok_or("an answer has no length")?.parse::<usize>()?))
}
