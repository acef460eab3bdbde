//! Compares the product with the reference case by case, on several threads.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;

use super::configs::Config;
use super::json_text::Style;
use super::subjects::{Seen, Subjects};

/// Number of reviews that share a configuration, and the product's compiled templates.
// A configuration takes longer to read than a review, and templates that are compiled once must
// serve several pods.
pub const REVIEWS_PER_CONFIG: u64 = 16;

/// Maximum number of reported disagreements, after which the search ends.
// A bug disagrees in many cases, and each one takes thousands of tries to be made small.
const MAX_REPORTED: usize = 5;

/// A case in which the product and the reference disagree.
pub struct Disagreement {
    /// The configuration.
    pub config: Config,
    /// The review and its JSON style; `None` if they disagree about the configuration.
    pub review: Option<(Value, Style)>,
    /// The difference.
    pub what: String,
}

/// The result of a run.
#[derive(Default)]
pub struct Count {
    /// Number of reviews and rejected configurations.
    pub cases: u64,
    /// Number of cases by verdict.
    pub verdicts: BTreeMap<&'static str, u64>,
    /// The disagreements.
    pub disagreements: Vec<Disagreement>,
}

/// Compares this many cases, from the first seed on.
pub fn run(first_seed: u64, cases: u64) -> Count {
    let next = AtomicU64::new(first_seed);
    let total = Mutex::new(Count::default());
    let locked = || total.lock().unwrap_or_else(PoisonError::into_inner);
    let is_enough =
        |count: &Count| count.cases >= cases || count.disagreements.len() >= MAX_REPORTED;
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !is_enough(&locked()) {
                    let count = compare_config(next.fetch_add(1, Ordering::Relaxed));
                    locked().add(count);
                }
            });
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Count {
    fn add(&mut self, other: Self) {
        self.cases += other.cases;
        for (verdict, times) in other.verdicts {
            *self.verdicts.entry(verdict).or_default() += times;
        }
        self.disagreements.extend(other.disagreements);
    }

    fn add_case(&mut self, verdict: &'static str) {
        self.cases += 1;
        *self.verdicts.entry(verdict).or_default() += 1;
    }

    /// A summary in one line.
    pub fn line(&self, seed: u64, since: Instant) -> String {
        let verdicts = self.verdicts.iter();
        let verdicts: Vec<_> =
            verdicts.map(|(verdict, times)| format!("{times} {verdict}")).collect();
        format!(
            "agreement: seed {seed}, {} cases ({}), {:.1} s, {} disagreements",
            self.cases,
            verdicts.join(", "),
            since.elapsed().as_secs_f64(),
            self.disagreements.len(),
        )
    }
}

/// Compares the reviews of one seed's configuration, up to the first disagreement.
fn compare_config(seed: u64) -> Count {
    let mut count = Count::default();
    let config = Config::of(seed);
    let disagree = |what: String, review: Option<(Value, Style)>| Disagreement {
        config: config.clone(),
        review,
        what,
    };
    let subjects = match caught(|| Subjects::of(config.clone())) {
        Ok(subjects) => subjects,
        Err(panic) => {
            count.disagreements.push(disagree(panic, None));
            return count;
        }
    };
    if subjects.left_out {
        count.add_case("left out");
        return count;
    }
    match subjects.agree_to_serve() {
        Ok(true) => {}
        Ok(false) => {
            count.add_case("rejected");
            return count;
        }
        Err(what) => {
            count.disagreements.push(disagree(what, None));
            return count;
        }
    }
    for number in 0..REVIEWS_PER_CONFIG {
        let (review, style) = config.review(number);
        match compare(&subjects, &review, style) {
            Ok(verdict) => count.add_case(verdict),
            Err(what) => {
                let what = format!("review {number}: {what}");
                count.disagreements.push(disagree(what, Some((review, style))));
                return count;
            }
        }
    }
    count
}

/// The verdict of both, or the difference. Both must have accepted the configuration.
pub fn compare(subjects: &Subjects, review: &Value, style: Style) -> Result<&'static str, String> {
    let body = style.write(review);
    let product = caught(|| subjects.product(&body, review))??.seen;
    let reference = caught(|| subjects.reference(review))?;
    if product == reference { Ok(product.verdict) } else { Err(difference(&product, &reference)) }
}

/// Turns a panic into an error.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panic: {}", text.unwrap_or("no message"))
    })
}

/// The first difference between two answers.
fn difference(product: &Seen, reference: &Seen) -> String {
    let (one, other) = (&product.verdict, &reference.verdict);
    if one != other {
        return format!("verdict: product {one}, reference {other}");
    }
    let (one, other) = (&product.reasons, &reference.reasons);
    if one != other {
        return format!("reasons: product {one:?}, reference {other:?}");
    }
    let (one, other) = (&product.event, &reference.event);
    if one != other {
        return format!("event: product {one:?}, reference {other:?}");
    }
    let empty = Vec::new();
    let one = product.patch.as_ref().unwrap_or(&empty);
    let other = reference.patch.as_ref().unwrap_or(&empty);
    for (at, (one, other)) in one.iter().zip(other).enumerate() {
        if one != other {
            let mut found = Vec::new();
            leaves("", one, other, &mut found);
            found.truncate(8);
            let path = &other["path"];
            return format!("operation {at} ({path}):\n  {}", found.join("\n  "));
        }
    }
    let paths =
        |patch: &[Value]| -> Vec<Value> { patch.iter().map(|op| op["path"].clone()).collect() };
    format!("operations: product {:?}, reference {:?}", paths(one), paths(other))
}

/// The places where two trees differ, with both values.
fn leaves(at: &str, product: &Value, reference: &Value, found: &mut Vec<String>) {
    match (product, reference) {
        (Value::Object(one), Value::Object(other)) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(added) {
                leaves(&format!("{at}/{key}"), &product[key], &reference[key], found);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for number in 0..one.len().max(other.len()) {
                leaves(&format!("{at}/{number}"), &product[number], &reference[number], found);
            }
        }
        _ if product == reference => {}
        _ => found.push(format!("{at}: product {product}, reference {reference}")),
    }
}
