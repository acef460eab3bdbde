//! Errors of sidecar templates in the last hour: what a replica reports of them to the others.
//!
//! An error is a field of a template: no value of a pod. Not for metrics, which count since the start.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Time of a bucket. An error counts for an hour, and up to this time longer.
const BUCKET: Duration = Duration::from_mins(5);
/// Buckets of an hour.
const BUCKETS: usize = 12;
/// Maximum number of templates whose errors are kept; those of further ones are dropped.
// A replica reports the 100 with the most errors. More are counted, so that a template that begins
// to fail late can become one of these.
const MAX_TEMPLATES: usize = 200;
/// Maximum number of bytes of a field.
// The path of a field has keys that the author of a template chose, of any length, and all fields
// go into an annotation of one Lease.
const MAX_FIELD: usize = 256;

/// Errors of the last hour, by template. Reviews record them, and the keeper of templates reads them.
#[derive(Debug)]
pub struct RecentErrors {
    begin: Instant,
    templates: Mutex<BTreeMap<String, Errors>>,
}

/// The errors of a template.
#[derive(Debug, Default)]
struct Errors {
    /// The number of the newest bucket since the beginning.
    newest: u64,
    /// Errors by bucket, at its number modulo their count.
    counts: [u64; BUCKETS],
    /// The field of the first error of the last bucket with errors: what is reported changes seldom.
    field: String,
}

/// Errors of a template in the last hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateErrors {
    /// The key of the template.
    pub template: String,
    /// How often it denied a pod, or was left out, because an expression failed.
    pub count: u64,
    /// The field of one of the last errors.
    pub field: String,
}

impl Default for RecentErrors {
    fn default() -> Self {
        // Buckets count from here and not from the hour of the clock: a clock that is set would
        // move errors.
        Self { begin: Instant::now(), templates: Mutex::default() }
    }
}

impl RecentErrors {
    /// Records an error: the key of a template, and the field whose expression failed.
    pub fn record(&self, template: &str, field: &str) {
        self.record_at(template, field, Instant::now());
    }

    /// The errors of the last hour, by the keys of templates.
    #[must_use]
    pub fn last_hour(&self) -> Vec<TemplateErrors> {
        self.last_hour_at(Instant::now())
    }

    fn record_at(&self, template: &str, field: &str, now: Instant) {
        let bucket = self.bucket(now);
        let mut templates = self.templates.lock().unwrap_or_else(PoisonError::into_inner);
        if !templates.contains_key(template) {
            if templates.len() >= MAX_TEMPLATES {
                templates.retain(|_, errors| errors.count(bucket) > 0);
            }
            if templates.len() >= MAX_TEMPLATES {
                return;
            }
        }
        let errors = templates.entry(template.to_owned()).or_default();
        errors.turn(bucket);
        let in_bucket = &mut errors.counts[index(bucket)];
        *in_bucket += 1;
        // The Lease has the field: one that changes with each error would be written with each
        // error.
        if *in_bucket == 1 {
            field[..field.floor_char_boundary(MAX_FIELD)].clone_into(&mut errors.field);
        }
    }

    fn last_hour_at(&self, now: Instant) -> Vec<TemplateErrors> {
        let bucket = self.bucket(now);
        let mut templates = self.templates.lock().unwrap_or_else(PoisonError::into_inner);
        templates.retain(|_, errors| errors.count(bucket) > 0);
        let found = templates.iter_mut().map(|(template, errors)| TemplateErrors {
            template: template.clone(),
            count: errors.count(bucket),
            field: errors.field.clone(),
        });
        found.collect()
    }

    /// The number of the bucket of a time.
    fn bucket(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.begin).as_secs() / BUCKET.as_secs()
    }
}

impl Errors {
    /// Empties the buckets that are older than an hour.
    fn turn(&mut self, bucket: u64) {
        let passed = bucket.saturating_sub(self.newest).min(BUCKETS as u64);
        for old in 0..passed {
            self.counts[index(bucket - old)] = 0;
        }
        self.newest = self.newest.max(bucket);
    }

    fn count(&mut self, bucket: u64) -> u64 {
        self.turn(bucket);
        self.counts.iter().sum()
    }
}

/// The place of a bucket.
fn index(bucket: u64) -> usize {
    usize::try_from(bucket % BUCKETS as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(errors: &RecentErrors, minutes: u64) -> Vec<(String, u64)> {
        let found = errors.last_hour_at(errors.begin + Duration::from_mins(minutes));
        found.into_iter().map(|errors| (errors.template, errors.count)).collect()
    }

    #[test]
    fn errors_count_for_an_hour() {
        let errors = RecentErrors::default();
        for minute in [1, 2, 31] {
            let at = errors.begin + Duration::from_mins(minute);
            errors.record_at("a", &format!("spec.steps[{minute}]"), at);
        }
        let count = |count: u64| vec![("a".to_owned(), count)];
        assert_eq!([counts(&errors, 31), counts(&errors, 59)], [count(3), count(3)]);
        assert_eq!(errors.last_hour_at(errors.begin)[0].field, "spec.steps[31]");
        assert_eq!([counts(&errors, 61), counts(&errors, 89)], [count(1), count(1)]);
        assert_eq!(counts(&errors, 91), []);
        errors.record_at("a", "spec.match", errors.begin + Duration::from_mins(5000));
        assert_eq!(counts(&errors, 5001), count(1));
    }

    #[test]
    fn errors_are_bounded() {
        let errors = RecentErrors::default();
        for number in 0..2 * MAX_TEMPLATES {
            errors.record(&number.to_string(), &"é".repeat(MAX_FIELD));
        }
        let found = errors.last_hour();
        assert_eq!(found.len(), MAX_TEMPLATES);
        assert!(found.iter().all(|errors| errors.field.len() == MAX_FIELD));
        // Templates without errors make room.
        let later = errors.begin + Duration::from_hours(2);
        errors.record_at("new", "spec", later);
        assert_eq!(errors.last_hour_at(later).len(), 1);
    }
}
