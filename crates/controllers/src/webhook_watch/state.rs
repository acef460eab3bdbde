//! The state of a webhook configuration, and when a change of it is reported. Pure: it is given the
//! time.

use std::time::{Duration, Instant};

use super::selection::{SELECTORS_ANNOTATION, Seen, Webhooks, difference};

/// A change is reported once it has lasted: a configuration that is replaced is gone for a moment.
const SETTLE: Duration = Duration::from_secs(3);
/// Maximum number of reports about a configuration within [`WINDOW`]: others may write it all the time.
const MAX_REPORTS: usize = 5;
const WINDOW: Duration = Duration::from_mins(5);

/// A configuration.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    /// What its webhooks selected when they were first seen.
    first: Option<Webhooks>,
    state: State,
    /// Since when it is in the state.
    since: Option<Instant>,
    reported: State,
    /// Reports within the window, the oldest first.
    recent: Vec<Instant>,
}

/// A state; before the first look all is taken to be right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum State {
    #[default]
    Right,
    Gone,
    /// It exists, and its webhooks lead to other Services.
    LeadsElsewhere,
    /// The difference.
    Changed(String),
}

/// What is logged and recorded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) is_problem: bool,
    /// That of the event.
    pub(super) reason: &'static str,
    /// What follows the name of the configuration.
    pub(super) text: String,
}

impl Configuration {
    /// Takes note of the configuration as it is now; `None` if it does not exist.
    pub(super) fn see(&mut self, found: Option<Seen>, now: Instant) {
        let state = match found {
            None => State::Gone,
            Some(found) if found.webhooks.is_empty() => State::LeadsElsewhere,
            Some(found) => self.compare(found),
        };
        if state != self.state {
            self.state = state;
            self.since = Some(now);
        }
    }

    fn compare(&mut self, Seen { webhooks, expected }: Seen) -> State {
        let first = self.first.get_or_insert_with(|| webhooks.clone());
        let expected = match &expected {
            None => first,
            Some(Ok(expected)) => expected,
            Some(Err(error)) => {
                let text = format!("its annotation {SELECTORS_ANNOTATION} is not valid: {error}");
                return State::Changed(text);
            }
        };
        difference(expected, &webhooks).map_or(State::Right, State::Changed)
    }

    /// Whether it exists and leads to the Service.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.state, State::Right | State::Changed(_))
    }

    /// Whether it selects something else than it should.
    pub(super) fn is_changed(&self) -> bool {
        matches!(self.state, State::Changed(_))
    }

    /// When the next report is due; `None` if there is nothing to report.
    pub(super) fn due(&self) -> Option<Instant> {
        let since = self.since.filter(|_| self.state != self.reported)?;
        let full = self.recent.len().checked_sub(MAX_REPORTS);
        let room = full.map(|index| self.recent[index] + WINDOW);
        room.into_iter().chain([since + SETTLE]).max()
    }

    /// What is to be reported now, once.
    pub(super) fn report(&mut self, now: Instant) -> Option<Report> {
        self.due().filter(|due| *due <= now)?;
        self.reported = self.state.clone();
        self.recent.retain(|at| *at + WINDOW > now);
        self.recent.push(now);
        Some(self.state.report())
    }
}

impl State {
    fn report(&self) -> Report {
        const LOSS: &str = "new pods get no sidecar from it";
        let (reason, text) = match self {
            Self::Right => {
                let text = "is there and selects what it should".to_owned();
                return Report { is_problem: false, reason: "WebhookRestored", text };
            }
            Self::Gone => ("WebhookGone", format!("does not exist: {LOSS}; create it anew")),
            Self::LeadsElsewhere => (
                "WebhookGone",
                format!("has no webhook that leads to this Service: {LOSS}; correct clientConfig"),
            ),
            Self::Changed(text) => {
                ("WebhookSelectorsChanged", format!("selects other objects than it should: {text}"))
            }
        };
        Report { is_problem: true, reason, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(names: &[&str]) -> Seen {
        let webhooks = names.iter().map(|name| ((*name).to_owned(), <_>::default())).collect();
        Seen { webhooks, expected: None }
    }

    fn reason(it: &mut Configuration, now: Instant) -> Option<&'static str> {
        it.report(now).map(|report| report.reason)
    }

    #[test]
    fn a_deletion_is_reported_once_it_has_lasted() {
        let (mut it, begin) = (Configuration::default(), Instant::now());
        it.see(Some(seen(&["a"])), begin);
        assert_eq!((it.due(), it.is_there()), (None, true), "right at the start");
        it.see(None, begin);
        assert!(!it.is_there());
        assert_eq!((it.due(), reason(&mut it, begin)), (Some(begin + SETTLE), None));
        assert_eq!(reason(&mut it, begin + SETTLE), Some("WebhookGone"));
        assert_eq!(reason(&mut it, begin + WINDOW), None, "once");
        it.see(None, begin + WINDOW);
        assert_eq!(it.due(), None, "listed again");
        it.see(Some(seen(&["a"])), begin + WINDOW);
        assert_eq!(reason(&mut it, begin + WINDOW + SETTLE), Some("WebhookRestored"));
    }

    #[test]
    fn a_configuration_that_is_replaced_at_once_is_no_report() {
        let (mut it, begin) = (Configuration::default(), Instant::now());
        it.see(None, begin);
        it.see(Some(seen(&["a"])), begin + SETTLE / 2);
        assert_eq!(it.due(), None);
    }

    #[test]
    fn reports_are_bounded() {
        let (mut it, begin) = (Configuration::default(), Instant::now());
        let mut reports = 0;
        let (steps, step) = (1000, SETTLE);
        for index in 0..steps {
            let now = begin + step * index;
            it.see((index % 4 >= 2).then(|| seen(&["a"])), now);
            reports += u32::from(it.report(now).is_some());
        }
        let windows = 1 + (step * steps).as_secs() / WINDOW.as_secs();
        let most = windows * MAX_REPORTS as u64;
        assert!(reports > 1 && u64::from(reports) <= most, "{reports} of {most}");
    }

    #[test]
    fn what_was_seen_first_is_expected_without_the_annotation() {
        let (mut it, begin) = (Configuration::default(), Instant::now());
        it.see(Some(seen(&["a"])), begin);
        it.see(Some(seen(&["a", "b"])), begin);
        assert!(it.is_there() && it.is_changed());
        // Also after it was created anew.
        it.see(None, begin);
        assert!(!it.is_changed());
        it.see(Some(seen(&["b"])), begin);
        assert!(it.is_changed());
        it.see(Some(seen(&["a"])), begin);
        assert!(!it.is_changed());
    }

    #[test]
    fn the_annotation_wins_over_what_was_seen_first() {
        let (mut it, begin) = (Configuration::default(), Instant::now());
        let with = |names: &[&str], expected| Seen { expected, ..seen(names) };
        let of = |names: &[&str]| Some(Ok(seen(names).webhooks));
        // Also at the first look: a restart accepts nothing.
        it.see(Some(with(&["a"], of(&["a", "b"]))), begin);
        assert!(it.is_changed());
        it.see(Some(with(&["a"], of(&["a"]))), begin);
        assert!(!it.is_changed());
        it.see(Some(with(&["a"], Some(Err("wrong".to_owned())))), begin);
        assert!(it.is_changed());
        it.see(Some(with(&[], of(&["a"]))), begin);
        assert_eq!((it.is_there(), it.is_changed()), (false, false));
    }
}
