//! Parity with the recorded answers of webhooks that add sidecars: ten families, each with the example
//! of `examples/templates` that stands for it.
//!
//! `case` reads recordings, `example` fits an example to settings, `families` knows what the settings and
//! resources of a webhook mean, `meaning` is what of a pod is compared, `differences` has one function
//! for each row of `docs/differences.md`. No rule depends on the id of a case.

use std::{env, path::PathBuf};

mod answer;
mod case;
mod differences;
mod example;
mod families;
mod meaning;

use super::{compare, differences::apply, print_line, report, run::Counts};
use answer::Answer;
use case::Case;
use differences::Context;
pub(crate) use differences::ROWS;
use families::Family;

/// Runs all recorded cases, prints the counts, and fails if an answer differs that no row explains, or
/// if rows explain more than a family may have.
pub(crate) fn must_answer_as_recorded() {
    let Some(corpora) = env::var_os("INJECTD_CORPUS").filter(|path| !path.is_empty()) else {
        return print_line("sidecars: skipped, INJECTD_CORPUS is not set");
    };
    let directory = PathBuf::from(corpora).join("sidecars");
    if !directory.is_dir() {
        return print_line(&format!("sidecars: skipped, there is no {}", directory.display()));
    }
    let counts: Vec<_> = families::ALL
        .iter()
        .map(|family| {
            let cases = case::load(&directory.join(family.name));
            run(family, &cases.expect("the recordings must be readable"))
        })
        .collect();
    let mut text = String::new();
    report::write(&mut text, &counts, 20).expect("writing to a string must succeed");
    print_line(&format!("sidecars\n{text}"));
    let different = report::total(&counts).different;
    assert_eq!(different, 0, "sidecars: {different} are different, see the report above");
    for (family, counts) in families::ALL.iter().zip(&counts) {
        must_say(family, counts);
        let most = counts.cases * family.most_explained / 100;
        let explained = counts.explained;
        assert!(explained <= most, "{}: {explained} explained, at most {most}", family.name);
    }
}

/// The comment of an example says how many answers are equal, and which rows the others have.
fn must_say(family: &Family, counts: &Counts) {
    let Counts { cases, equal, rows, .. } = counts;
    let rows: Vec<_> = rows.iter().map(|(row, times)| format!("{row} ({times})")).collect();
    let expected = if equal == cases {
        format!("Of {cases} recorded answers, all are equal.")
    } else {
        let rows = rows.join(", ");
        format!(
            "Of {cases} recorded answers, {equal} are equal. The others differ on purpose: {rows}."
        )
    };
    let comment = example::comment(family.name);
    assert!(comment.contains(&expected), "{}: expected {expected:?} in {comment:?}", family.name);
}

fn run(family: &Family, cases: &[Case]) -> Counts {
    let mut counts = Counts { release: family.name.to_owned(), ..Counts::default() };
    for case in cases {
        let templates = family.templates(case);
        let recorded = case.answer.meaning();
        let context = Context { family: family.name, case };
        let rows = ROWS.iter().map(|(name, row)| {
            (*name, |expected: &Answer| row(&context, expected).map(|ours| ours.meaning()))
        });
        let (rows, expected) = apply(rows, recorded);
        let difference = match answer::of(&templates, case) {
            Ok(ours) => first_difference(&expected, &ours.meaning()),
            Err(problem) => Some(problem),
        };
        counts.add(|| case.id.clone(), rows, difference);
    }
    counts
}

fn first_difference(expected: &Answer, ours: &Answer) -> Option<String> {
    match (expected, ours) {
        (Answer::Pod(expected), Answer::Pod(ours)) => compare::values("", expected, ours),
        (Answer::Denied(_), Answer::Denied(message)) => {
            message.is_empty().then(|| "a denial has no message".to_owned())
        }
        (Answer::Pod(_), Answer::Denied(message)) => Some(format!("denied: {message}")),
        (Answer::Denied(_), Answer::Pod(_)) => Some("a pod, expected a denial".to_owned()),
    }
}
