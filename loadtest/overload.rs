//! More reviews than a server can answer, from clients that do not wait for answers.
//!
//! Requests fall due at a constant rate, and a client gives up on a request ten seconds after it fell
//! due. It does not send a request without a free connection or stream. Prints how many requests ended
//! in which way; those in progress at the end have no outcome. Unlike `paced`, it takes refusals, knows
//! HTTP/2, and its times are not exact.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use clap::Parser;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Response,
    body::{Bytes, Incoming},
    client::conn::{http1, http2},
    header::{CONTENT_TYPE, HOST, RETRY_AFTER},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use injectd_tls::AnyCertificate;
use rustls::pki_types::ServerName;
use tokio::{
    net::TcpStream,
    sync::Barrier,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use asked::{Asked, Request, Result, positive};

mod asked;

/// A webhook's default timeout.
const GIVES_UP: Duration = Duration::from_secs(10);
/// The streams of a connection that are used at once; the server may allow fewer.
const STREAMS: usize = 100;
/// A server that accepts connections and answers no handshake keeps the others waiting for so long.
// All begin together, so one connection that never opens would hold up the whole load.
const OPENS: Duration = Duration::from_secs(10);
/// After a connection that was refused.
const PAUSE: Duration = Duration::from_millis(2);
const PATCH: &[u8] = br#""patch":""#;

/// Ask a webhook more than it can answer
#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    asked: Asked,
    /// Requests per second in all [default: each as soon as another is answered]
    #[arg(long, value_name = "N", value_parser = positive)]
    rate: Option<f64>,
    /// How long requests fall due
    #[arg(long, value_name = "N", value_parser = positive)]
    seconds: f64,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 25)]
    connections: u32,
    /// HTTP/2, with up to a hundred requests at once over each connection
    #[arg(long)]
    http2: bool,
}

/// What all connections share.
struct Load {
    args: Args,
    tls: TlsConnector,
    /// All begin together, when the last connection is open.
    are_open: Barrier,
    begin: OnceLock<Instant>,
    /// The number of the next request.
    next: AtomicU32,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

/// One connection, or one of its streams.
enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let request = Request::new(&args.asked)?;
    let mut config = AnyCertificate::client_config();
    if args.http2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    let load = Arc::new(Load {
        tls: TlsConnector::from(Arc::new(config)),
        are_open: Barrier::new(args.connections.try_into()?),
        begin: OnceLock::new(),
        next: AtomicU32::new(0),
        counts: Mutex::default(),
        args,
    });
    let mut connections = JoinSet::new();
    for _ in 0..load.args.connections {
        connections.spawn(connection(Arc::clone(&load), request.clone()));
    }
    connections.join_all().await;
    if let Some(rate) = load.args.rate {
        writeln(&format!("offered {:.0}", rate * load.args.seconds));
    }
    let counts = load.counts.lock().unwrap_or_else(PoisonError::into_inner);
    counts.iter().for_each(|(what, count)| writeln(&format!("{what} {count}")));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result of a program")]
fn writeln(line: &str) {
    println!("{line}");
}

/// A connection, and others in its place, until the time is over.
async fn connection(load: Arc<Load>, request: Request) {
    let mut stream = Box::pin(load.open()).await;
    load.are_open.wait().await;
    while Instant::now() < load.until() {
        let ended = match stream {
            Ok(stream) => timeout_at(load.until(), Box::pin(once(&load, &request, stream))).await,
            Err(why) => Ok(Err(why)),
        };
        // At the end it is this client that closes.
        if ended.is_ok() {
            load.count("connections refused or ended");
            // A closed loop of connects would measure the client: it takes the cores that it shares
            // with the server.
            sleep(PAUSE).await;
        }
        stream = Box::pin(load.open()).await;
    }
}

async fn once(load: &Arc<Load>, request: &Request, stream: TlsStream<TcpStream>) -> Result<()> {
    let (io, mut tasks) = (TokioIo::new(stream), JoinSet::new());
    if load.args.http2 {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
        for _ in 0..STREAMS {
            let sender = Sender::Http2(sender.clone());
            tasks.spawn(ask_all(Arc::clone(load), request.clone(), sender));
        }
        drop(sender);
        connection.await?;
    } else {
        let (sender, connection) = http1::handshake(io).await?;
        tasks.spawn(ask_all(Arc::clone(load), request.clone(), Sender::Http1(sender)));
        connection.await?;
    }
    tasks.join_all().await;
    Ok(())
}

/// One request after the other, while the connection is open.
async fn ask_all(load: Arc<Load>, mut request: Request, mut sender: Sender) {
    while let Some(due) = load.due().await {
        let body = Bytes::copy_from_slice(review_of(request.next()));
        match timeout_at(due + GIVES_UP, load.ask(&mut sender, body)).await {
            Ok(Ok(outcome)) => load.count(outcome),
            Ok(Err(_)) if sender.is_closed() => return load.count("ended with the connection"),
            Ok(Err(_)) => load.count("reset"),
            Err(_) => {
                load.count("late");
                // Over HTTP/1.1 the next request would wait for this answer.
                if matches!(sender, Sender::Http1(_)) {
                    return;
                }
            }
        }
    }
}

/// What follows the head of a request of HTTP/1.1.
fn review_of(request: &[u8]) -> &[u8] {
    let head = request.windows(4).position(|window| window == b"\r\n\r\n");
    &request[head.map_or(0, |at| at + 4)..]
}

impl Load {
    async fn open(&self) -> Result<TlsStream<TcpStream>> {
        let open = async {
            let stream = TcpStream::connect(&self.args.asked.addr).await?;
            stream.set_nodelay(true)?;
            Ok(self.tls.connect(ServerName::try_from("localhost")?, stream).await?)
        };
        timeout(OPENS, open).await?
    }

    fn begin(&self) -> Instant {
        *self.begin.get_or_init(Instant::now)
    }

    fn until(&self) -> Instant {
        self.begin() + Duration::from_secs_f64(self.args.seconds)
    }

    /// When the next request falls due, which has come; `None` once the time is over.
    async fn due(&self) -> Option<Instant> {
        loop {
            let Some(rate) = self.args.rate else {
                return Some(Instant::now()).filter(|&now| now < self.until());
            };
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let due = self.begin() + Duration::from_secs_f64(f64::from(number) / rate);
            if due >= self.until() {
                return None;
            }
            sleep_until(due).await;
            if due.elapsed() < GIVES_UP {
                return Some(due);
            }
            self.count("unsent");
        }
    }

    async fn ask(&self, sender: &mut Sender, body: Bytes) -> Result<&'static str> {
        let asked = &self.args.asked;
        let uri = if self.args.http2 {
            format!("https://localhost{}?timeout=10s", asked.path)
        } else {
            format!("{}?timeout=10s", asked.path)
        };
        let mut request = hyper::Request::post(uri).header(CONTENT_TYPE, "application/json");
        if !self.args.http2 {
            request = request.header(HOST, &asked.addr);
        }
        let (head, body) = sender.ask(request.body(Full::new(body))?).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        let has_patch = || body.windows(PATCH.len()).any(|window| window == PATCH);
        Ok(match head.status.as_u16() {
            200 if has_patch() => "right",
            503 if head.headers.contains_key(RETRY_AFTER) => "refused",
            _ => "otherwise",
        })
    }

    fn count(&self, what: &'static str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(what).or_default() += 1;
    }
}

impl Sender {
    async fn ask(&mut self, request: hyper::Request<Full<Bytes>>) -> Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                Ok(sender.send_request(request).await?)
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                Ok(sender.send_request(request).await?)
            }
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }
}
