//! Until when an answer is waited for.

use std::time::{Duration, Instant};

use crate::go::duration;

/// What the API server gives a webhook that does not say how long it takes.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest it gives any (`timeoutSeconds`).
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// Left for the way back.
const WAY_BACK: Duration = Duration::from_secs(1);

/// The end of a request's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// The time that the query's `timeout` gives, less a second, but at least half of it.
    pub(super) fn of(query: Option<&str>, begin: Instant) -> Self {
        let pairs = query.unwrap_or_default().split('&');
        let timeout = pairs
            .filter_map(|pair| pair.strip_prefix("timeout="))
            .find_map(duration::parse)
            .and_then(|nanoseconds| u64::try_from(nanoseconds).ok().filter(|&it| it > 0))
            .map_or(DEFAULT_TIMEOUT, Duration::from_nanos)
            .min(MAX_TIMEOUT);
        Self(begin + timeout.saturating_sub(WAY_BACK).max(timeout / 2))
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
    fn a_second_is_left_for_the_way_back_but_half_of_the_time_at_least() {
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
