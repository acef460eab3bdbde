//! Recorded answers of real injectors (`$INJECTD_CORPUS/istio`), as far as they can be checked
//! without templates: what came after the templates is undone in the recorded pod, and done again.

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]
#![expect(clippy::disallowed_types, reason = "recorded pods are trees")]

mod case;
mod comparison;
mod settings;
mod undo;

use std::{collections::BTreeMap, env, path::Path};

use injectd_istio::{
    budget::Budget,
    patch::{Operation, encode, patch},
    process::{Facts, process},
    reapply::reapply,
    release::Release,
};
use serde_json::Value;

use case::Case;
use comparison::comparable;
use settings::Settings;

const RELEASES: [(&str, (u16, u16)); 7] = [
    ("1.19.10", (19, 10)),
    ("1.22.8", (22, 8)),
    ("1.24.6", (24, 6)),
    ("1.26.8", (26, 8)),
    ("1.28.10", (28, 10)),
    ("1.30.3", (30, 3)),
    ("master", (31, 0)),
];

/// What a denial by the steps begins with.
const DENIAL: &str = "failed to process pod: ";

#[derive(Default)]
struct Counts {
    equal: BTreeMap<&'static str, usize>,
    left_out: BTreeMap<&'static str, Vec<String>>,
    different: usize,
    operations: [usize; 2],
}

#[test]
fn recorded_pods_are_reached_from_what_the_templates_left() {
    let Some(corpus) = env::var_os("INJECTD_CORPUS").filter(|it| !it.is_empty()) else {
        return println!("skipped: INJECTD_CORPUS is not set");
    };
    let mut different = 0;
    for (name, (minor, patch)) in RELEASES {
        let directory = Path::new(&corpus).join("istio").join(name);
        let settings = Settings::load(&directory, Release::new(minor, patch));
        let mut counts = Counts::default();
        for case in case::load(&directory) {
            match reason_to_leave_out(&case) {
                Some(reason) => counts.left_out.entry(reason).or_default().push(case.id.clone()),
                None => check(&case, &settings, &mut counts),
            }
        }
        println!("{name}: equal {:?}, different {}", counts.equal, counts.different);
        for (reason, cases) in &counts.left_out {
            let some: Vec<_> = cases.iter().take(14).map(String::as_str).collect();
            println!("  left out: {} {reason}: {} …", cases.len(), some.join(" "));
        }
        let [upstream, ours] = counts.operations;
        println!("  operations: {upstream} recorded, {ours} ours");
        different += counts.different;
    }
    assert_eq!(different, 0);
}

fn reason_to_leave_out(case: &Case) -> Option<&'static str> {
    match case {
        case if case.unstable => Some("the recorded answer is one of several"),
        case if case.denial.starts_with(DENIAL) => None,
        case if case.verdict != "injected" => Some("not injected"),
        case if case.writes_users_fields() => Some("templates that write what the steps write"),
        case if case.injected.is_none() => Some("the recorded patch does not apply"),
        _ => None,
    }
}

fn check(case: &Case, settings: &Settings, counts: &mut Counts) {
    let facts = settings.of(case);
    let Some(recorded) = case.injected.as_ref().filter(|_| case.verdict == "injected") else {
        let error = process(&mut case.object.clone(), &Value::Null, &facts.facts()).unwrap_err();
        assert_eq!(format!("{DENIAL}{error}"), case.denial, "{}", case.id);
        *counts.equal.entry("denied").or_default() += 1;
        return;
    };
    let rendered = undo::rendered(recorded);
    let mut pod = undo::processed(case, recorded, &facts.facts());
    let result = process(&mut pod, &rendered, &facts.facts());
    let processed = result.map_err(|error| error.to_string()).map(|_| pod);
    compare("processed", case, processed, counts);
    if settings.drops_ids(case) {
        let reason = "re-applied only: ids that OpenShift drops before";
        counts.left_out.entry(reason).or_default().push(case.id.clone());
    } else if case.declares_injected() {
        compare("re-applied", case, reapplied(case, recorded, &facts.facts()), counts);
    }
    let operations = patch(&case.object, recorded);
    let rewritten =
        operations.iter().find(|operation| rewrites_unchanged(operation, &case.object, recorded));
    assert_eq!(rewritten, None, "{}", case.id);
    counts.operations[0] += case.operations;
    counts.operations[1] += operations.len();
    let operations: json_patch::Patch = serde_json::from_slice(&encode(&operations)).unwrap();
    let mut patched = case.object.clone();
    json_patch::patch(&mut patched, &operations).unwrap();
    assert_eq!(&patched, recorded, "{}", case.id);
    *counts.equal.entry("patched").or_default() += 1;
}

/// Whether an element that did not change is written again, although the elements that did not
/// change keep their order.
fn rewrites_unchanged(operation: &Operation<'_>, original: &Value, injected: &Value) -> bool {
    let (Operation::Add(path, value) | Operation::Replace(path, value)) = operation else {
        return false;
    };
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let list = |pod: &Value| pod.pointer(parent).and_then(Value::as_array).cloned();
    let (Some(old), Some(new)) = (list(original), list(injected)) else { return false };
    let places: Vec<_> =
        old.iter().filter_map(|element| new.iter().position(|other| other == element)).collect();
    places.is_sorted() && old.contains(value)
}

/// Re-applies the user's containers and does the steps after that.
fn reapplied(case: &Case, recorded: &Value, facts: &Facts<'_>) -> Result<Value, String> {
    let rendered = undo::rendered(recorded);
    let mut pod = undo::reapplied(case, &undo::processed(case, recorded, facts));
    let budget = Budget::of(&case.object, &|| false);
    reapply(&mut pod, &rendered, &case.object, facts, &budget)
        .map_err(|error| error.to_string())?;
    process(&mut pod, &rendered, facts).map_err(|error| error.to_string())?;
    Ok(pod)
}

fn compare(step: &'static str, case: &Case, ours: Result<Value, String>, counts: &mut Counts) {
    let theirs = case.injected.as_ref().map(comparable);
    let ours = ours.map(|pod| comparable(&pod));
    if ours.as_ref().ok() == theirs.as_ref() {
        *counts.equal.entry(step).or_default() += 1;
        return;
    }
    counts.different += 1;
    println!("{} {} {} ({}):", step, case.id, case.family, case.config);
    match (ours, theirs) {
        (Ok(ours), Some(theirs)) => {
            println!("  {}", String::from_utf8_lossy(&encode(&patch(&theirs, &ours))));
        }
        (ours, _) => println!("  {ours:?}"),
    }
}
