//! The findings as a table, as JSON, or as XML of `JUnit`.

use std::io::{self, Write};

use quick_xml::escape::escape;
use serde_json::json;

use super::Finding;
use crate::audit::summary::{Row, Summary};

/// What programs read: version and kind.
const API_VERSION: &str = "injectd.dev/v1";
const KIND: &str = "Audit";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    Table,
    Json,
    Junit,
}

/// Writes the findings; without `is_about_pods` only those of the audit log.
pub(super) fn write(
    out: &mut impl Write,
    summary: &Summary,
    format: Format,
    is_about_pods: bool,
) -> io::Result<()> {
    match format {
        Format::Table => table(out, summary, is_about_pods),
        Format::Json => json(out, summary),
        Format::Junit => junit(out, summary),
    }
}

fn json(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let unknown = summary.unknown().map(|(reason, pods)| json!({"reason": reason, "pods": pods}));
    let audit = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "pods": summary.counts(),
        "workloads": summary.rows().collect::<Vec<_>>(),
        "failedOpen": summary.failed_open(),
        "unknown": unknown.collect::<Vec<_>>(),
        "notRead": summary.not_read(),
    });
    serde_json::to_writer_pretty(&mut *out, &audit)?;
    writeln!(out)
}

fn name(finding: Finding) -> &'static str {
    match finding {
        Finding::Missing => "missing",
        Finding::Outdated => "outdated",
        Finding::Unexpected => "unexpected",
    }
}

fn workload(row: &Row) -> String {
    format!("{}/{}", row.workload.kind.to_lowercase(), row.workload.name)
}

fn table(out: &mut impl Write, summary: &Summary, is_about_pods: bool) -> io::Result<()> {
    let head = ["NAMESPACE", "WORKLOAD", "PODS", "FINDING", "WHY", "WHAT TO DO"].map(str::to_owned);
    let rows = summary.rows().map(|row| {
        let pods = format!("{}/{}", row.pods, row.total);
        let name = name(row.finding).to_owned();
        let workload = workload(&row);
        [row.workload.namespace, workload, pods, name, row.reason, row.remedy]
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        columns(out, head, rows)?;
        writeln!(out)?;
    }
    let failed = summary.failed_open();
    if !failed.is_empty() {
        let head = ["TIME", "NAMESPACE", "POD", "WEBHOOK", "CAUSE"].map(str::to_owned);
        let rows = failed
            .iter()
            .map(|it| [&it.time, &it.namespace, &it.pod, &it.webhook, &it.cause].map(Clone::clone));
        columns(out, head, rows.collect())?;
        writeln!(out)?;
    }
    for (reason, pods) in summary.unknown() {
        writeln!(out, "unknown: {pods} pods: {reason}")?;
    }
    for problem in summary.not_read() {
        writeln!(out, "not read: {problem}")?;
    }
    if !is_about_pods {
        return writeln!(out, "{} pods were let in while a webhook failed", failed.len());
    }
    let counts = summary.counts();
    writeln!(
        out,
        "{} pods: {} meshed, {} unmeshed as they should be, {} missing, {} outdated, {} unexpected, \
         {} unknown, {} ended, {} static",
        counts.total,
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

fn columns<const N: usize>(
    out: &mut impl Write,
    head: [String; N],
    mut rows: Vec<[String; N]>,
) -> io::Result<()> {
    rows.insert(0, head);
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(console::measure_text_width(cell));
        }
    }
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate();
        let line = cells.fold(String::new(), |line, (index, (cell, width))| {
            let pad =
                if index + 1 == N { 0 } else { width - console::measure_text_width(cell) + 2 };
            line + cell + &" ".repeat(pad)
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// A test case for each finding, and one for the pods that have none.
fn junit(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let rows: Vec<_> = summary.rows().collect();
    let failed = summary.failed_open();
    let failures = rows.len() + failed.len();
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(out, "<testsuites>")?;
    let skipped = summary.counts().unknown;
    writeln!(
        out,
        r#"  <testsuite name="injectd audit" tests="{}" failures="{failures}">"#,
        failures + 1
    )?;
    let right = summary.counts();
    writeln!(
        out,
        r#"    <testcase classname="pods" name="{} of {} pods are as they should be, {skipped} are unknown"/>"#,
        right.meshed + right.unmeshed,
        right.total
    )?;
    for row in rows {
        let case = (row.workload.namespace.as_str(), workload(&row));
        let message = format!("{} of {} pods: {}", row.pods, row.total, row.reason);
        write_case(out, case, (name(row.finding), &message, &row.remedy))?;
    }
    for it in failed {
        let case = (it.namespace.as_str(), format!("pod/{}", it.pod));
        let message = format!("{}: {} failed: {}", it.time, it.webhook, it.cause);
        write_case(out, case, ("failed-open", &message, ""))?;
    }
    writeln!(out, "  </testsuite>")?;
    writeln!(out, "</testsuites>")
}

fn write_case(
    out: &mut impl Write,
    (class, case): (&str, String),
    (kind, message, remedy): (&str, &str, &str),
) -> io::Result<()> {
    let (class, case, message) = (escape(class), escape(&case), escape(message));
    writeln!(out, r#"    <testcase classname="{class}" name="{case}">"#)?;
    let remedy = escape(remedy);
    writeln!(out, r#"      <failure type="{kind}" message="{message}">{remedy}</failure>"#)?;
    writeln!(out, "    </testcase>")
}
