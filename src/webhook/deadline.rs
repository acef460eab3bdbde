//! The deadline of a review.

use std::time::{Duration, Instant};

use injectd_gocompat::duration;

use crate::server::{DEFAULT_TIMEOUT, MAX_TIMEOUT};

/// Time reserved for the response to reach the API server.
// An answer on its way when the timeout ends is a failed webhook to the API server.
const RESPONSE_RESERVE: Duration = Duration::from_secs(1);

/// The time by which a request must be answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// The query's `timeout` less a second, but at least half of it.
    pub(super) fn of(query: Option<&str>, begin: Instant) -> Self {
        let pairs = query.unwrap_or_default().split('&');
        let timeout = pairs
            .filter_map(|pair| pair.strip_prefix("timeout="))
            .find_map(duration::parse)
            .and_then(|nanoseconds| u64::try_from(nanoseconds).ok())
            // Kubernetes allows no timeout below a second: zero is of another client, which does
            // not mean it.
            .filter(|&nanoseconds| nanoseconds > 0)
            .map_or(DEFAULT_TIMEOUT, Duration::from_nanos)
            .min(MAX_TIMEOUT);
        Self(begin + timeout.saturating_sub(RESPONSE_RESERVE).max(timeout / 2))
    }

    pub(super) fn at(self) -> tokio::time::Instant {
        self.0.into()
    }

    pub(super) fn rest(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub(super) fn is_over(self) -> bool {
        self.rest().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_reserved_for_the_response_but_at_most_half_of_the_time() {
        let begin = Instant::now();
        for (query, milliseconds) in [
            (None, 9000),
            (Some("timeout=10s"), 9000),
            (Some("a=b&timeout=2s"), 1000),
            (Some("timeout=1s"), 500),
            (Some("timeout=0s"), 9000),
            (Some("timeout=1h"), 29_000),
            (Some("timeout=soon"), 9000),
            (Some("timeout=-5s"), 9000),
        ] {
            let Deadline(end) = Deadline::of(query, begin);
            assert_eq!(end - begin, Duration::from_millis(milliseconds), "{query:?}");
        }
    }
}
