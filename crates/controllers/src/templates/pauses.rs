//! Writes that wait: what was just written is not written again until the watches have it, and what failed is
//! not tried at once.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::write::Write;

/// How long a watch may need to have a write.
// Plans know objects by the watch: until it has a write, the same one would be planned again.
const SEEN: Duration = Duration::from_secs(5);
/// The first and the longest pause after a failure.
const FIRST: Duration = Duration::from_secs(2);
// A write that the API server refuses for good costs one request in this time.
const LONGEST: Duration = Duration::from_mins(2);

/// Writes that wait, by their objects.
#[derive(Debug, Default)]
pub(super) struct Pauses(BTreeMap<String, Pause>);

#[derive(Debug)]
struct Pause {
    /// The version that the write was for. A newer one need not wait, unless writes fail.
    version: String,
    until: Instant,
    /// The pause after the last failure.
    failed: Option<Duration>,
}

impl Pauses {
    /// Whether a write may be done now.
    pub(super) fn may(&self, write: &Write, now: Instant) -> bool {
        self.0.get(&write.object()).is_none_or(|pause| {
            let is_new = pause.failed.is_none() && pause.version != write.version();
            is_new || now >= pause.until
        })
    }

    /// A write was done, or another one was faster.
    pub(super) fn wrote(&mut self, write: &Write, now: Instant) {
        let version = write.version().to_owned();
        self.0.insert(write.object(), Pause { version, until: now + SEEN, failed: None });
    }

    /// A write failed.
    pub(super) fn failed(&mut self, write: &Write, now: Instant) {
        let before = self.0.get(&write.object()).and_then(|pause| pause.failed);
        let pause = before.map_or(FIRST, |before| (2 * before).min(LONGEST));
        let version = write.version().to_owned();
        let pause = Pause { version, until: now + pause, failed: Some(pause) };
        self.0.insert(write.object(), pause);
    }

    /// When the next of these writes may be done.
    pub(super) fn next(&mut self, writes: &[Write], now: Instant) -> Option<Instant> {
        // What is due no more needs no pause.
        let waiting: BTreeMap<_, _> = writes.iter().map(|write| (write.object(), write)).collect();
        self.0.retain(|object, pause| waiting.contains_key(object) || now < pause.until);
        let of = |write: &Write| self.0.get(&write.object()).map(|pause| pause.until);
        writes.iter().filter_map(of).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::templates::write::Found;

    fn write(version: &str) -> Write {
        let of = Found { name: "a".into(), resource_version: version.into(), ..Found::default() };
        Write::DeleteRevision(of)
    }

    #[test]
    fn a_write_waits_until_its_object_is_seen_again() {
        let (mut pauses, now) = (Pauses::default(), Instant::now());
        assert!(pauses.may(&write("1"), now));
        pauses.wrote(&write("1"), now);
        assert!(!pauses.may(&write("1"), now) && pauses.may(&write("2"), now));
        assert!(pauses.may(&write("1"), now + SEEN));
    }

    #[test]
    fn a_write_that_fails_waits_longer_each_time() {
        let (mut pauses, mut now) = (Pauses::default(), Instant::now());
        let mut waits = Vec::new();
        for version in 0..9 {
            let write = write(&version.to_string());
            pauses.failed(&write, now);
            assert!(!pauses.may(&write, now));
            let next = pauses.next(std::slice::from_ref(&write), now).expect("a pause");
            waits.push((next - now).as_secs());
            now = next;
            assert!(pauses.may(&write, now));
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 120, 120, 120]);
        assert_eq!(pauses.next(&[], now), None);
    }
}
