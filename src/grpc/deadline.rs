//! The deadline of a gRPC call.

use std::time::Duration;

use hyper::HeaderMap;
use tokio::time::Instant;

use crate::server::{DEFAULT_TIMEOUT, MAX_TIMEOUT};

/// The header with the timeout of a call.
const HEADER: &str = "grpc-timeout";

/// The deadline of a call, if the caller set one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let timeout = headers.get(HEADER).and_then(|value| parse(value.to_str().ok()?));
        Self(timeout.map(|timeout| Instant::now() + timeout))
    }

    /// The deadline of a request that began at `begin`.
    pub(super) fn at(self, begin: Instant) -> Instant {
        self.0.unwrap_or(begin + DEFAULT_TIMEOUT).min(begin + MAX_TIMEOUT)
    }

    /// The deadline of one request in a stream: the stream may last longer than a request.
    pub(super) fn in_stream(self, begin: Instant) -> Instant {
        self.at(begin).min(begin + DEFAULT_TIMEOUT)
    }
}

/// Up to eight digits and a unit (gRPC over HTTP/2, "Timeout").
fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number =
        // gRPC allows eight digits: more would overflow when they are multiplied.
        (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| is_number)?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_late_in_a_long_stream_has_its_time() {
        let begin = Instant::now();
        let deadline = Deadline(Some(begin + Duration::from_hours(1)));
        assert_eq!(deadline.at(begin), begin + MAX_TIMEOUT);
        let late = begin + Duration::from_mins(10);
        assert_eq!(deadline.in_stream(late), late + DEFAULT_TIMEOUT);
        let last = begin + Duration::from_hours(1) - Duration::from_secs(1);
        assert_eq!(deadline.in_stream(last), begin + Duration::from_hours(1));
    }

    #[test]
    fn timeouts_are_digits_and_a_unit() {
        for (text, milliseconds) in [
            ("1H", 3_600_000),
            ("2M", 120_000),
            ("3S", 3000),
            ("4m", 4),
            ("99999999S", 99_999_999_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(
            (parse("5u"), parse("6n")),
            (Some(Duration::from_micros(5)), Some(Duration::from_nanos(6)))
        );
        for text in ["", "S", "1", "1s", "+1S", "-1S", "1.5S", "123456789S", "1 S", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
