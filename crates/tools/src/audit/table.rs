//! The findings for people: a table in the width of the terminal, sums by namespace, and once what to
//! do.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use injectd_command::{
    counted,
    print::{Printer, table::width},
};
use injectd_controllers::{
    audit::{
        Finding,
        summary::{Counts, Row, Summary, TaintedRow},
    },
    restart::RolloutKind,
};
use injectd_k8s::workload::Workload;
use injectd_webhooks::injectors::Product;

use super::filter::Filter;

/// Maximum number of namespaces with a line of their own: those with the most pods.
const MAX_NAMESPACES: usize = 20;

/// Whether rows are fitted to the terminal, or have all columns in one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Fitted,
    Wide,
}

/// Writes the findings; without `is_about_pods` only those of the audit log.
pub(super) fn write(
    out: &mut Printer<impl Write>,
    summary: &Summary,
    filter: Filter<'_>,
    form: Form,
    is_about_pods: bool,
) -> io::Result<()> {
    let columns = (form == Form::Fitted).then(width);
    let rows: Vec<_> = filter.rows(summary).collect();
    if !rows.is_empty() {
        match form {
            Form::Fitted => fitted(out, &rows)?,
            Form::Wide => wide(out, &rows)?,
        }
        out.line("")?;
    }
    let failed = filter.failed_open(summary);
    if !failed.is_empty() {
        let head = ["TIME", "NAMESPACE", "POD", "WEBHOOK", "CAUSE"];
        let cells = failed.iter().map(|call| {
            [&call.time, &call.namespace, &call.pod, &call.webhook, &call.cause].map(Clone::clone)
        });
        out.table(columns, head, cells.collect())?;
        out.line("")?;
    }
    uncalled(out, summary, filter, columns)?;
    for row in filter.tainted(summary) {
        let text = tainted(&row);
        out.paragraph(
            columns,
            &format!("{} {}: {text}", row.workload.namespace, named(&row.workload)),
        )?;
    }
    for (reason, pods) in summary.unknown() {
        out.paragraph(columns, &format!("unknown: {}: {reason}", counted_pods(pods)))?;
    }
    for problem in summary.not_read() {
        out.paragraph(columns, &format!("not read: {problem}"))?;
    }
    if !is_about_pods {
        let count = summary.failed_open().len();
        let were = if count == 1 { "was" } else { "were" };
        let pods = counted(count, "pod");
        return out.line(&format!("{pods} {were} let in while a webhook failed"));
    }
    out.paragraph(columns, &counted_all(summary.counts()))
}

/// The meshes without a webhook, and those whose webhooks would not be called.
fn uncalled(
    out: &mut Printer<impl Write>,
    summary: &Summary,
    filter: Filter<'_>,
    columns: Option<usize>,
) -> io::Result<()> {
    for (product, pods) in filter.without_webhook(summary) {
        let (pods, name) = (counted_pods(pods), product.as_str());
        let (whose, lost) = match product {
            Product::Templates => ("with their mark", "get none"),
            _ => ("of its mesh", "get no sidecar"),
        };
        let text = format!(
            "there is no webhook of {name}: {pods} {whose}, and new ones {lost}. Install the webhook \
             before you restart anything."
        );
        out.paragraph(columns, &text)?;
    }
    for (product, pods) in filter.not_called(summary) {
        let (pods, name) = (counted_pods(pods), product.as_str());
        let whose = match product {
            Product::Templates => "with their mark",
            _ => "with its sidecar",
        };
        let text = format!(
            "no webhook of {name} would be called for new pods of {pods} {whose}: injectd explain says \
             why."
        );
        out.paragraph(columns, &text)?;
    }
    Ok(())
}

/// What is wrong with the pods of a workload.
pub(super) fn tainted(row: &TaintedRow) -> String {
    let pods = counted_pods(row.pods);
    let (values, names) = (row.values.join(", "), row.pod_names.join(", "));
    format!(
        "{pods} with values that change other fields ({values}): {names}; injectd explain says in which \
         templates"
    )
}

fn counted_all(counts: Counts) -> String {
    let tainted = match counts.tainted {
        0 => String::new(),
        tainted => format!("; {tainted} with values that change other fields"),
    };
    format!(
        "{}: {} meshed, {} unmeshed as they should be, {} missing, {} outdated, {} unexpected, \
         {} unknown, {} ended, {} static{tainted}",
        counted_pods(counts.total),
        counts.meshed,
        counts.unmeshed,
        counts.missing,
        counts.outdated,
        counts.unexpected,
        counts.unknown,
        counts.ended,
        counts.r#static,
    )
}

fn counted_pods(pods: u64) -> String {
    counted(usize::try_from(pods).unwrap_or(usize::MAX), "pod")
}

/// The name of a finding.
pub(super) fn name(finding: Finding) -> &'static str {
    match finding {
        Finding::Missing => "missing",
        Finding::Outdated => "outdated",
        Finding::Unexpected => "unexpected",
    }
}

/// Kind and name of a workload.
pub(super) fn named(workload: &Workload) -> String {
    format!("{}/{}", workload.kind.to_lowercase(), workload.name)
}

fn cells(row: &Row) -> [String; 5] {
    let pods = format!("{}/{}", row.pods, row.total);
    let namespace = row.workload.namespace.clone();
    [namespace, named(&row.workload), pods, name(row.finding).to_owned(), row.reason.clone()]
}

fn wide(out: &mut Printer<impl Write>, rows: &[Row]) -> io::Result<()> {
    let head = ["NAMESPACE", "WORKLOAD", "PODS", "FINDING", "WHY", "WHAT TO DO"];
    let cells = rows.iter().map(|row| {
        let [namespace, workload, pods, finding, why] = cells(row);
        [namespace, workload, pods, finding, why, row.remedy.clone()]
    });
    out.table(None, head, cells.collect())
}

fn fitted(out: &mut Printer<impl Write>, rows: &[Row]) -> io::Result<()> {
    let head = ["NAMESPACE", "WORKLOAD", "PODS", "FINDING", "WHY"];
    out.table(Some(width()), head, rows.iter().map(cells).collect())?;
    by_namespace(out, rows)?;
    out.what_to_do(&remedies(rows))
}

/// Pods of each namespace, if there are several.
fn by_namespace(out: &mut Printer<impl Write>, rows: &[Row]) -> io::Result<()> {
    const FINDINGS: [Finding; 3] = [Finding::Missing, Finding::Outdated, Finding::Unexpected];
    let mut sums = BTreeMap::<&str, (u64, [u64; FINDINGS.len()])>::new();
    for row in rows {
        let (workloads, pods) = sums.entry(&row.workload.namespace).or_default();
        *workloads += 1;
        for (finding, sum) in FINDINGS.iter().zip(pods) {
            *sum += if row.finding == *finding { row.pods } else { 0 };
        }
    }
    if sums.len() < 2 {
        return Ok(());
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    // The sort is stable: equal ones stay in the order of their names.
    sums.sort_by_key(|(_, (_, pods))| std::cmp::Reverse(pods.iter().sum::<u64>()));
    let left = sums.len().saturating_sub(MAX_NAMESPACES);
    sums.truncate(MAX_NAMESPACES);
    let cells =
        sums.into_iter().map(|(namespace, (workloads, [missing, outdated, unexpected]))| {
            let counts = [workloads, missing, outdated, unexpected].map(|count| count.to_string());
            let [workloads, missing, outdated, unexpected] = counts;
            [namespace.to_owned(), workloads, missing, outdated, unexpected]
        });
    let head = ["NAMESPACE", "ROWS", "MISSING", "OUTDATED", "UNEXPECTED"];
    out.line("")?;
    out.table(None, head, cells.collect())?;
    if left > 0 {
        out.line(&format!("and {}", counted(left, "further namespace")))?;
    }
    Ok(())
}

/// What to do, once for all rows: the findings, and the text.
fn remedies(rows: &[Row]) -> Vec<(String, String)> {
    let is_rollout = |row: &&Row| RolloutKind::of(&row.workload).is_some();
    let loses = |row: &&Row| row.finding == Finding::Unexpected;
    let names = |rows: &[&Row]| {
        let names: BTreeSet<_> = rows.iter().map(|row| name(row.finding)).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    let (unexpected, repaired): (Vec<_>, Vec<_>) = rows.iter().partition(loses);
    let (repaired, uncalled): (Vec<_>, Vec<_>) =
        repaired.into_iter().partition(|row| row.restart_cures);
    let (rollouts, by_hand): (Vec<_>, Vec<_>) = repaired.into_iter().partition(is_rollout);
    let mut all = Vec::new();
    if !uncalled.is_empty() {
        let text = "No webhook would be called for new pods: injectd explain says why. Restart nothing \
                    before that is mended.";
        all.push((names(&uncalled), text.to_owned()));
    }
    if !rollouts.is_empty() {
        let text = "Restart the workloads. injectd audit -o json | injectd restart -f - prints what \
                    that would do; with --yes it restarts them, a few at a time.";
        all.push((names(&rollouts), text.to_owned()));
    }
    if !by_hand.is_empty() {
        let kinds: BTreeSet<_> =
            by_hand.iter().map(|row| row.workload.kind.to_lowercase()).collect();
        let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!("By hand ({kinds}): -o wide has a line for each.");
        all.push((names(&by_hand), text));
    }
    if !unexpected.is_empty() {
        let text = "injectd explain says why the pods would get no sidecar now. They lose it when \
                    they are created anew; injectd restart -f - leaves them out without --include \
                    unexpected.";
        all.push((names(&unexpected), text.to_owned()));
    }
    all
}
