//! What the clients of the load test ask a webhook: one review, or reviews of which no two are alike.

use std::{
    error::Error,
    fs,
    ops::Range,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use clap::Args;

/// Digits of a serial number.
// A time in microseconds has 16 today, and a number of 18 fits into 64 bits.
const MAX_DIGITS: usize = 18;

pub(crate) type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// A webhook, and the review that it is asked
#[derive(Debug, Args)]
pub(crate) struct Asked {
    /// Address of the webhook
    pub(crate) addr: String,
    /// File of one `AdmissionReview`
    #[arg(value_name = "FILE")]
    review: PathBuf,
    /// Path of the webhook
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(crate) path: String,
    /// Text of the review, of up to 18 bytes, that each request replaces by other digits
    #[arg(long, value_name = "TEXT")]
    serial: Option<String>,
}

/// The bytes of a request of HTTP/1.1, and which of them are its serial number.
#[derive(Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    serial: Range<usize>,
    last: Arc<AtomicU64>,
}

impl Request {
    /// A request as the API server sends it.
    pub(crate) fn new(asked: &Asked) -> Result<Self> {
        let review = fs::read(&asked.review)
            .map_err(|error| format!("cannot read {}: {error}", asked.review.display()))?;
        let head = format!(
            "POST {}?timeout=10s HTTP/1.1\r\nHost: {}\r\nUser-Agent: kube-apiserver-admission\r\n\
             Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            asked.path,
            asked.addr,
            review.len()
        );
        let serial = match &asked.serial {
            Some(text) => {
                let at =
                    review.windows(text.len().max(1)).position(|window| window == text.as_bytes());
                let at = at.filter(|_| text.len() <= MAX_DIGITS);
                let at = head.len() + at.ok_or("--serial is not in the review, or is too long")?;
                at..at + text.len()
            }
            None => 0..0,
        };
        // Not the numbers of another run.
        let now = u64::try_from(SystemTime::UNIX_EPOCH.elapsed()?.as_micros())?;
        let (bytes, last) = ([head.as_bytes(), &review].concat(), Arc::new(AtomicU64::new(now)));
        Ok(Self { bytes, serial, last })
    }

    /// The request with the next number.
    pub(crate) fn next(&mut self) -> &[u8] {
        let digits = self.serial.len();
        if digits > 0 {
            // Only the numbers must differ; they order nothing.
            let number = self.last.fetch_add(1, Ordering::Relaxed);
            let text = format!("{number:0MAX_DIGITS$}");
            let text = &text.as_bytes()[text.len() - digits..];
            self.bytes[self.serial.clone()].copy_from_slice(text);
        }
        &self.bytes
    }
}

pub(crate) fn positive(text: &str) -> Result<f64, &'static str> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or("expected a number above 0")
}
