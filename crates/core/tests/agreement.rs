//! Compares the fast core with the slow reference, and checks properties of every answer.
//!
//! `INJECTD_AGREEMENT_CASES` (default 2,000) is the number of cases, `INJECTD_AGREEMENT_SEED`
//! (default 1) the first seed. A failing case prints its seed.

#![expect(
    clippy::disallowed_types,
    reason = "the reference and the reviews are trees, slow and obvious"
)]

use std::io::Write;
use std::time::Instant;

use proptest::test_runner::TestCaseError;
use proptest::test_runner::{Config as ProptestConfig, FileFailurePersistence, TestRunner};
use serde_json::Value;

use injectd_testkit::generator::agreement::{self, REVIEWS_PER_CONFIG, caught};
use injectd_testkit::generator::configs::Config;
use injectd_testkit::generator::json_text::Style;
use injectd_testkit::generator::random::Random;
use injectd_testkit::generator::subjects::{Answered, Subjects};
use injectd_testkit::generator::{minimise, mutations, patches, small};

/// Number of configurations for each property.
const CONFIGS_PER_PROPERTY: u64 = 25;

/// A number from an environment variable.
fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var_os(name);
    let text = text.as_ref().and_then(|text| text.to_str());
    text.map_or(default, |text| text.parse().expect("the variable must be a number"))
}

#[test]
fn core_agrees_with_reference() {
    let start = Instant::now();
    let seed = number("INJECTD_AGREEMENT_SEED", 1);
    let count = agreement::run(seed, number("INJECTD_AGREEMENT_CASES", 2_000));
    let line = count.line(seed, start);
    writeln!(std::io::stdout(), "{line}").expect("stdout must be writable");
    let reports: Vec<_> = count.disagreements.iter().map(minimise::report).collect();
    assert!(reports.is_empty(), "{line}\n\n{}", reports.join("\n"));
}

#[test]
fn small_cases_agree() {
    let persistence = FileFailurePersistence::WithSource("regressions");
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 256,
        failure_persistence: Some(Box::new(persistence)),
        source_file: Some(file!()),
        ..ProptestConfig::default()
    });
    let result = runner.run(&small::strategy(), |case| {
        let compared = agreement::compare(&case.subjects(), &case.review(), Style::Compact);
        compared.map(|_| ()).map_err(TestCaseError::fail)
    });
    result.expect("small cases must agree");
}

/// A review under its configuration, and the product's answer to it.
struct Trial<'t> {
    subjects: &'t Subjects,
    review: &'t Value,
    style: Style,
    answered: Answered,
    random: Random,
}

impl Trial<'_> {
    /// The product's answer to another review.
    fn answer(&self, review: &Value, style: Style) -> Result<Answered, String> {
        self.subjects.product(&style.write(review), review)
    }

    /// The effective kind: the object's own, else the request's.
    fn kind(&self) -> &str {
        let request = &self.review["request"];
        let own = request["object"]["kind"].as_str().filter(|kind| !kind.is_empty());
        own.or(request["kind"]["kind"].as_str()).unwrap_or_default()
    }
}

/// Checks a property on the reviews of some configurations. `skip` gives each test its own seeds.
fn must_hold(skip: u64, property: impl Fn(&mut Trial<'_>) -> Result<(), String>) {
    let first = number("INJECTD_AGREEMENT_SEED", 1).wrapping_add(skip << 32);
    for seed in first..first + CONFIGS_PER_PROPERTY {
        let subjects = Subjects::of(Config::of(seed));
        if subjects.injector.is_err() {
            continue;
        }
        for number in 0..REVIEWS_PER_CONFIG {
            let (review, style) = subjects.config.review(number);
            let result = caught(|| {
                let answered = subjects.product(&style.write(&review), &review)?;
                property(&mut Trial {
                    subjects: &subjects,
                    review: &review,
                    style,
                    answered,
                    random: Random::new(seed ^ number),
                })
            });
            if let Err(what) = result.and_then(|result| result) {
                panic!(
                    "seed {seed}, review {number}: {what}\n{review}\n{}",
                    subjects.config.yaml()
                );
            }
        }
    }
}

fn must_equal(one: &Answered, other: &Answered) -> Result<(), String> {
    if one.body == other.body {
        return Ok(());
    }
    let text = |answered: &Answered| String::from_utf8_lossy(&answered.body).into_owned();
    Err(format!("{}\n!=\n{}", text(one), text(other)))
}

/// Checks that two answers are equal, except for the position of a read error in the text.
fn must_mean_the_same(one: &Answered, other: &Answered) -> Result<(), String> {
    if one.seen.verdict == "denied" && one.seen == other.seen {
        return Ok(());
    }
    must_equal(one, other)
}

#[test]
fn the_same_review_twice_gives_the_same_bytes() {
    must_hold(1, |trial| {
        must_equal(&trial.answered, &trial.answer(trial.review, trial.style)?)?;
        let anew = Subjects::of(trial.subjects.config.clone());
        let body = trial.style.write(trial.review);
        must_equal(&trial.answered, &anew.product(&body, trial.review)?)
    });
}

#[test]
fn the_order_of_keys_and_unknown_fields_do_not_matter() {
    must_hold(2, |trial| {
        let mut other = trial.review.clone();
        mutations::add_unknown_fields(&mut other, &mut trial.random);
        mutations::shuffle(&mut other, &mut trial.random);
        let answered = trial.answer(&other, Style::Compact)?;
        must_mean_the_same(&trial.answered, &answered).map_err(|what| format!("{what}\n{other}"))
    });
}

#[test]
fn managed_fields_do_not_matter() {
    must_hold(3, |trial| {
        let mut other = trial.review.clone();
        mutations::add_managed_fields(&mut other, &mut trial.random);
        let bare = mutations::without_managed_fields(&other);
        let answered = trial.answer(&bare, Style::Spaced)?;
        must_mean_the_same(&trial.answer(&other, Style::Compact)?, &answered)
    });
}

#[test]
fn a_patch_applies_and_touches_only_what_it_may() {
    must_hold(4, |trial| {
        let object = &trial.review["request"]["object"];
        let kind = trial.kind();
        let Some(patch) = &trial.answered.seen.patch else {
            return Ok(());
        };
        let is_annotated = trial.answered.seen.verdict == "annotated";
        let kind = if is_annotated { "pod" } else { kind };
        if !patches::can_be_patched(object, kind) {
            return Ok(());
        }
        let patched = patches::applied(object, patch)?;
        let changed = patches::changed_elsewhere(object, &patched, kind, patch);
        changed.map_or(Ok(()), Err)
    });
}

#[test]
fn an_injected_pod_is_skipped() {
    must_hold(5, |trial| {
        let object = &trial.review["request"]["object"];
        let Some(patch) = &trial.answered.seen.patch else {
            return Ok(());
        };
        let injected = trial.answered.seen.verdict == "injected";
        if !injected || !patches::can_be_patched(object, trial.kind()) {
            return Ok(());
        }
        let mut again = trial.review.clone();
        again["request"]["object"] = patches::applied(object, patch)?;
        let pod = again["request"]["object"].pointer(patches::prefix(trial.kind()));
        let pod = pod.ok_or("the pod is gone")?;
        let in_init = pod["spec"]["initContainers"].as_array().into_iter().flatten();
        let names: Vec<_> = in_init.filter_map(|container| container["name"].as_str()).collect();
        // Before 24.5.1, a native proxy beside the network validator is not found.
        if !trial.subjects.release.since((24, 5, 1))
            && names.contains(&"linkerd-network-validator")
            && names.contains(&"linkerd-proxy")
        {
            return Ok(());
        }
        let answered = trial.answer(&again, Style::Compact)?;
        let left_alone = answered.all_reasons.contains(&"sidecar_already_exists")
            && answered.seen.verdict != "injected";
        left_alone.then_some(()).ok_or_else(|| format!("{:?}", answered.seen))
    });
}

#[test]
fn every_answer_is_a_valid_review() {
    must_hold(6, |trial| {
        let uid = trial.review.pointer("/request/uid").and_then(Value::as_str);
        let Some(uid) = uid.filter(|uid| !uid.is_empty()) else {
            let refused = trial.answered.seen.verdict == "not a review";
            return refused.then_some(()).ok_or_else(|| "it was answered".to_owned());
        };
        if trial.answered.seen.verdict == "not a review" {
            return Ok(());
        }
        let answer: Value =
            serde_json::from_slice(&trial.answered.body).map_err(|error| error.to_string())?;
        let patch = trial.answered.seen.patch.iter().flatten();
        let adds = patch.into_iter().all(|operation| operation["op"] == "add");
        let sound = answer["response"]["uid"] == uid && adds;
        sound.then_some(()).ok_or_else(|| answer.to_string())
    });
}
