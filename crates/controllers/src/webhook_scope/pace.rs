//! How often the leader writes again what others have changed. Pure: it is given the time.

use std::time::{Duration, Instant};

/// After as many repairs within [`WINDOW`] the next one waits until the window has room: another controller
/// writes the configuration, too.
const MAX_REPAIRS: usize = 10;
const WINDOW: Duration = Duration::from_mins(1);

/// The repairs of a configuration.
#[derive(Debug, Default)]
pub(super) struct Pace(Vec<Instant>);

impl Pace {
    /// A repair is written.
    pub(super) fn repaired(&mut self, now: Instant) {
        self.0.retain(|at| *at + WINDOW > now);
        self.0.push(now);
    }

    /// When the next repair may be written; `None`: now.
    pub(super) fn wait(&self, now: Instant) -> Option<Instant> {
        let full = self.0.len().checked_sub(MAX_REPAIRS)?;
        Some(self.0[full] + WINDOW).filter(|at| *at > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fight_with_another_controller_is_slow() {
        let (mut pace, begin) = (Pace::default(), Instant::now());
        for _ in 0..MAX_REPAIRS {
            assert_eq!(pace.wait(begin), None);
            pace.repaired(begin);
        }
        assert_eq!(pace.wait(begin), Some(begin + WINDOW));
        assert_eq!(pace.wait(begin + WINDOW), None);
    }
}
