//! Since when a `caBundle` is wrong, and when it may be written. Pure: it is given the time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// After as many repairs of a configuration within [`WINDOW`] the next one waits until the window
/// has room: another controller writes it, too.
const MAX_REPAIRS: usize = 60;
// A repair each second is little work for an API server, and makes the other controller visible.
const WINDOW: Duration = Duration::from_mins(1);

/// The webhook configurations, by name.
#[derive(Debug, Default)]
pub(super) struct Repairs(BTreeMap<String, Repair>);

#[derive(Debug, Default)]
struct Repair {
    /// Whether it verified the served certificate at any time.
    was_right: bool,
    wrong_since: Option<Instant>,
    /// Repairs within the window, the oldest first.
    recent: Vec<Instant>,
    /// A write failed, and is tried again then.
    again: Option<Instant>,
}

impl Repairs {
    /// Takes note of a configuration as it is now.
    pub(super) fn see(&mut self, name: &str, is_right: bool, now: Instant) {
        let repair = self.0.entry(name.to_owned()).or_default();
        if is_right {
            repair.was_right = true;
            repair.wrong_since = None;
        } else if repair.was_right {
            repair.wrong_since.get_or_insert(now);
        }
    }

    /// A configuration was written. Returns for how long it was wrong, if others had changed it.
    pub(super) fn wrote(&mut self, name: &str, now: Instant) -> Option<Duration> {
        let repair = self.0.entry(name.to_owned()).or_default();
        repair.again = None;
        let since = repair.wrong_since.take()?;
        repair.recent.retain(|at| *at + WINDOW > now);
        repair.recent.push(now);
        Some(now.saturating_duration_since(since))
    }

    /// A write failed, and is tried again after some time.
    pub(super) fn failed(&mut self, name: &str, now: Instant, wait: Duration) {
        self.0.entry(name.to_owned()).or_default().again = Some(now + wait);
    }

    /// Whether a configuration may be written now.
    pub(super) fn may_write(&self, name: &str, now: Instant) -> bool {
        self.0.get(name).and_then(Repair::next).is_none_or(|next| next <= now)
    }

    /// When the next configuration may be written that may not be now.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.0.values().filter_map(Repair::next).filter(|next| *next > now).min()
    }
}

impl Repair {
    fn next(&self) -> Option<Instant> {
        let full = self.recent.len().checked_sub(MAX_REPAIRS);
        let room = full.map(|index| self.recent[index] + WINDOW);
        self.again.into_iter().chain(room).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_right_before_is_a_repair() {
        let (mut repairs, begin) = (Repairs::default(), Instant::now());
        repairs.see("a", false, begin);
        assert_eq!(repairs.wrote("a", begin), None, "a new configuration");
        repairs.see("a", true, begin);
        repairs.see("a", false, begin + Duration::from_secs(1));
        repairs.see("a", false, begin + Duration::from_secs(2));
        let window = repairs.wrote("a", begin + Duration::from_secs(3));
        assert_eq!(window, Some(Duration::from_secs(2)));
        assert_eq!(repairs.wrote("a", begin), None, "it was counted");
    }

    #[test]
    fn a_fight_with_another_controller_is_slow() {
        let (mut repairs, begin) = (Repairs::default(), Instant::now());
        for _ in 0..MAX_REPAIRS {
            assert!(repairs.may_write("a", begin));
            repairs.see("a", true, begin);
            repairs.see("a", false, begin);
            repairs.wrote("a", begin);
        }
        assert!(!repairs.may_write("a", begin) && repairs.may_write("b", begin));
        assert_eq!(repairs.next(begin), Some(begin + WINDOW));
        assert!(repairs.may_write("a", begin + WINDOW));
    }

    #[test]
    fn a_failed_write_waits_alone() {
        let (mut repairs, begin) = (Repairs::default(), Instant::now());
        repairs.failed("a", begin, Duration::from_secs(2));
        assert!(!repairs.may_write("a", begin) && repairs.may_write("b", begin));
        assert!(repairs.may_write("a", begin + Duration::from_secs(2)));
    }
}
