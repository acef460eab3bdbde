//! `--brief`: a line for each workload, or for each group of its pods with the same verdict.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use super::{items::Item, text::verdict};
use crate::cli::print::Printer;

const HEAD: [&str; 6] = ["NAMESPACE", "OBJECT", "PODS", "VERDICT", "WHY", "WHAT TO DO"];

/// Writes the lines.
pub(super) fn write(out: &mut Printer<impl Write>, items: &[Item<'_>]) -> io::Result<()> {
    let mut rows = Vec::<([String; 5], u64)>::new();
    let mut places = BTreeMap::new();
    for item in items {
        let (cells, pods) = cells(item);
        let place = *places.entry(cells.clone()).or_insert(rows.len());
        match rows.get_mut(place) {
            Some((_, count)) => *count += pods,
            None => rows.push((cells, pods)),
        }
    }
    let rows = rows.into_iter().map(|([namespace, object, verdict, why, remedy], pods)| {
        let pods = if pods == 0 { "-".to_owned() } else { pods.to_string() };
        [namespace, object, pods, verdict, why, remedy]
    });
    out.table(None, HEAD, rows.collect())
}

/// The cells without the number of pods, which is 0 for what a workload would create.
fn cells(item: &Item<'_>) -> ([String; 5], u64) {
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
    let object_name = format!("{}/{name}", kind.to_lowercase());
    let remedy = in_short(&item.report.advice);
    ([object.namespace.clone(), object_name, verdict.to_owned(), why, remedy], pods)
}

/// The first sentence of an advice.
fn in_short(advice: &str) -> String {
    let first = advice.split(". ").next().unwrap_or_default().trim_end_matches('.');
    if first.is_empty() { "-".to_owned() } else { first.to_owned() }
}
