//! Expectations: the value that was expected, the value that was found, and how long to wait.

use std::{
    collections::BTreeSet,
    error::Error,
    fmt::{self, Debug, Display, Write as _},
    iter::successors,
    time::Duration,
};

use serde_json::Value;
use tokio::time::{Instant, interval, timeout_at};

/// Longer than anything here takes on a slow machine.
// A scenario that works never waits for it, so a long one costs nothing; a short one fails on a
// busy machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Between two attempts of [`eventually`].
const INTERVAL: Duration = Duration::from_millis(50);
/// Between two attempts of [`soon`].
// For what a process does at once. Its state is read from memory, without a request.
const SHORT_INTERVAL: Duration = Duration::from_millis(4);

/// Why a scenario did not pass.
#[derive(Clone)]
pub enum NotPassed {
    /// An expectation was not met.
    Failed(String),
    /// The scenario cannot run here, and the reason.
    Skipped(String),
}

impl Display for NotPassed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Failed(text) | Self::Skipped(text)) = self;
        f.write_str(text)
    }
}

/// Tests print it, so it is the text alone.
impl Debug for NotPassed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// What a scenario, or a step of one, ends with.
pub type Outcome<T = ()> = Result<T, NotPassed>;

/// Each error on the way is a failure, with its chain of causes.
impl<E: Error + 'static> From<E> for NotPassed {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        for cause in successors(error.source(), |&cause| cause.source()) {
            // Writing to a String cannot fail.
            let _ = write!(text, ": {cause}");
        }
        Self::Failed(text)
    }
}

/// A failure with its message.
#[must_use]
pub fn failed(message: impl Into<String>) -> NotPassed {
    NotPassed::Failed(message.into())
}

/// A skip with its reason.
#[must_use]
pub fn skipped(reason: impl Into<String>) -> NotPassed {
    NotPassed::Skipped(reason.into())
}

/// Puts in front of a failure what it is about.
///
/// # Errors
///
/// That of the outcome.
pub fn about<T>(what: impl Display, outcome: Outcome<T>) -> Outcome<T> {
    outcome.map_err(|why| match why {
        NotPassed::Failed(text) => failed(format!("{what}: {text}")),
        skipped @ NotPassed::Skipped(_) => skipped,
    })
}

/// Fails unless both values are equal.
///
/// # Errors
///
/// Names both values.
#[expect(clippy::needless_pass_by_value, reason = "most are literals, or moved in a comparison")]
pub fn expect<E, F>(what: impl Display, expected: E, found: F) -> Outcome
where
    E: PartialEq<F> + Debug,
    F: Debug,
{
    if expected == found {
        return Ok(());
    }
    Err(failed(format!("{what}: expected {expected:?}, found {found:?}")))
}

/// Fails unless a text contains another.
///
/// # Errors
///
/// Names both texts.
pub fn expect_contains(what: impl Display, expected: &str, found: &str) -> Outcome {
    if found.contains(expected) {
        return Ok(());
    }
    Err(failed(format!("{what}: expected {expected:?} in {found:?}")))
}

/// Fails unless a list has an item.
///
/// # Errors
///
/// Names the item and the list.
#[expect(clippy::needless_pass_by_value, reason = "most are literals, or moved in a comparison")]
pub fn expect_listed<T: PartialEq + Debug>(what: impl Display, item: T, list: &[T]) -> Outcome {
    if list.contains(&item) {
        return Ok(());
    }
    Err(failed(format!("{what}: expected {item:?} in {list:?}")))
}

/// Compares trees.
///
/// # Errors
///
/// Names the first difference alone, and its path.
pub fn expect_same(what: &str, expected: &Value, found: &Value) -> Outcome {
    match difference(expected, found, String::new()) {
        None => Ok(()),
        Some((path, expected, found)) => {
            let place = if path.is_empty() { path } else { format!(" at {path}") };
            Err(failed(format!("{what}{place}: expected {expected}, found {found}")))
        }
    }
}

fn difference<'a>(
    expected: &'a Value,
    found: &'a Value,
    path: String,
) -> Option<(String, &'a Value, &'a Value)> {
    match (expected, found) {
        (Value::Object(fields), Value::Object(others)) => {
            let keys: BTreeSet<_> = fields.keys().chain(others.keys()).collect();
            keys.into_iter()
                .find_map(|key| difference(&expected[key], &found[key], format!("{path}.{key}")))
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let mut pairs = items.iter().zip(others).enumerate();
            pairs.find_map(|(at, (item, other))| difference(item, other, format!("{path}[{at}]")))
        }
        _ if expected == found => None,
        _ => Some((path, expected, found)),
    }
}

/// Tries until an attempt does not fail, and returns its value. A skip ends the attempts.
///
/// # Errors
///
/// The failure of the last attempt once [`DEADLINE`] is over.
pub async fn eventually<T>(what: &str, attempt: impl AsyncFnMut() -> Outcome<T>) -> Outcome<T> {
    attempt_every(INTERVAL, what, attempt).await
}

/// As [`eventually`], for what happens within milliseconds, a thousand times in a scenario.
///
/// # Errors
///
/// As [`eventually`].
pub async fn soon<T>(what: &str, attempt: impl AsyncFnMut() -> Outcome<T>) -> Outcome<T> {
    attempt_every(SHORT_INTERVAL, what, attempt).await
}

async fn attempt_every<T>(
    period: Duration,
    what: &str,
    mut attempt: impl AsyncFnMut() -> Outcome<T>,
) -> Outcome<T> {
    let deadline = Instant::now() + DEADLINE;
    let mut ticks = interval(period);
    let mut last = "the first attempt did not end".to_owned();
    loop {
        ticks.tick().await;
        match timeout_at(deadline, attempt()).await {
            // The last reason is printed at the end: a timeout as the reason would be no help.
            Ok(Err(NotPassed::Failed(why))) if Instant::now() < deadline => last = why,
            Ok(Err(NotPassed::Failed(why))) => return Err(too_late(what, &why)),
            Ok(outcome) => return outcome,
            Err(_) => return Err(too_late(what, &last)),
        }
    }
}

fn too_late(what: &str, why: &str) -> NotPassed {
    failed(format!("{what}: not within {} s: {why}", DEADLINE.as_secs()))
}
