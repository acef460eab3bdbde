//! `--brief`: a row for each workload, or for each group of its pods with the same verdict, in the width
//! of the terminal, and once what to do.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use injectd_command::print::{Printer, table::width};
use injectd_core::text::first_names;

use super::{items::Item, templates::Report, text::verdict};

const HEAD: [&str; 5] = ["NAMESPACE", "OBJECT", "PODS", "VERDICT", "WHY"];
/// Most objects that are named beside what to do about them.
const MAX_NAMED: usize = 5;

/// What is printed of a workload.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    namespace: String,
    object: String,
    verdict: String,
    why: String,
    /// Empty if nothing is to be done.
    advice: String,
}

/// Writes the rows.
pub(super) fn write(
    out: &mut Printer<impl Write>,
    items: &[Item<'_>],
    of_templates: &[Report],
) -> io::Result<()> {
    let mut rows = Vec::<(Row, u64)>::new();
    let mut places = BTreeMap::new();
    for (row, pods) in items.iter().map(row).chain(of_templates.iter().map(row_of_templates)) {
        let place = *places.entry(row.clone()).or_insert(rows.len());
        match rows.get_mut(place) {
            Some((_, count)) => *count += pods,
            None => rows.push((row, pods)),
        }
    }
    let cells = rows.iter().map(|(row, pods)| {
        let pods = if *pods == 0 { "-".to_owned() } else { pods.to_string() };
        let Row { namespace, object, verdict, why, .. } = row.clone();
        [namespace, object, pods, verdict, why]
    });
    out.table(Some(width()), HEAD, cells.collect())?;
    out.what_to_do(&remedies(rows.iter().map(|(row, _)| row)))
}

/// What to do, once for all objects with the same advice, in their order.
fn remedies<'r>(rows: impl Iterator<Item = &'r Row>) -> Vec<(String, String)> {
    let mut all = Vec::<(Vec<&str>, &str)>::new();
    let mut places = BTreeMap::new();
    for row in rows.filter(|row| !row.advice.is_empty()) {
        let place = *places.entry(&*row.advice).or_insert(all.len());
        match all.get_mut(place) {
            Some((objects, _)) if objects.last() == Some(&&*row.object) => {}
            Some((objects, _)) => objects.push(&row.object),
            None => all.push((vec![&row.object], &row.advice)),
        }
    }
    let named = |objects: Vec<&str>| {
        let count = objects.len();
        first_names(objects, count, MAX_NAMED)
    };
    all.into_iter().map(|(objects, advice)| (named(objects), advice.to_owned())).collect()
}

/// The row of a report on templates.
fn row_of_templates(report: &Report) -> (Row, u64) {
    let object = &report.object;
    let row = Row {
        namespace: object.namespace.clone(),
        object: format!("{}/{}", object.kind.to_lowercase(), object.name),
        verdict: report.verdict.to_owned(),
        why: report.why(),
        advice: report.advice.clone(),
    };
    (row, report.pods())
}

/// The row without the number of pods, which is 0 for what a workload would create.
fn row(item: &Item<'_>) -> (Row, u64) {
    let object = &item.report.object;
    let (kind, name) = if item.is_of_workload() {
        (&item.workload.kind, &item.workload.name)
    } else {
        (&object.kind, &object.name)
    };
    let pods = match &item.running_pods {
        Some(running) => running.total(),
        None if object.kind == "Pod" => 1 + item.equal.len() as u64,
        None => 0,
    };
    let (verdict, why) = verdict(&item.report);
    let why = why.trim_start_matches([':', ',', ' ']).to_owned();
    let why = if why.is_empty() { "-".to_owned() } else { why };
    let row = Row {
        namespace: object.namespace.clone(),
        object: format!("{}/{name}", kind.to_lowercase()),
        verdict: verdict.to_owned(),
        why,
        advice: item.report.advice.clone(),
    };
    (row, pods)
}
