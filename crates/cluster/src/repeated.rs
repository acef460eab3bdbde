//! When a problem that stays is logged again.

use std::time::Duration;

use tokio::time::Instant;

/// A problem that stays is logged again after this time, then after twice as long each.
const FIRST: Duration = Duration::from_mins(1);
/// But at least this often: whoever reads only the last hours of a log must find it.
const LONGEST: Duration = Duration::from_hours(1);

/// A problem that may come up at each attempt.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    /// When it is logged next, and the pause before that; `None` while there is no problem.
    next: Option<(Instant, Duration)>,
}

impl Repeated {
    /// Whether the problem is to be logged, since it came up now.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let pause = match self.next {
            Some((at, _)) if now < at => return false,
            Some((_, pause)) => (2 * pause).min(LONGEST),
            None => FIRST,
        };
        self.next = Some((now + pause, pause));
        true
    }

    /// An attempt worked. Whether there was a problem before.
    pub(crate) fn end(&mut self) -> bool {
        self.next.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_that_stays_is_logged_more_and_more_seldom() {
        let (mut problem, begin) = (Repeated::default(), Instant::now());
        let mut logged = Vec::new();
        for second in (0..4 * 3600).step_by(2) {
            if problem.is_due(begin + Duration::from_secs(second)) {
                logged.push(second / 60);
            }
        }
        assert_eq!(logged, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    }

    #[test]
    fn a_problem_that_comes_back_is_logged_at_once() {
        let (mut problem, now) = (Repeated::default(), Instant::now());
        assert!(!problem.end());
        assert!(problem.is_due(now));
        assert!(problem.end());
        assert!(problem.is_due(now));
    }
}
