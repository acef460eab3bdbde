//! The findings as a table, as JSON, or as XML of `JUnit`.

use std::io::{self, Write};

use serde_json::json;

use super::{
    super::print::{Printer, shown, xml},
    Finding,
};
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
    out: &mut Printer<impl Write>,
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

fn json(out: &mut Printer<impl Write>, summary: &Summary) -> io::Result<()> {
    let unknown = summary.unknown().map(|(reason, pods)| json!({"reason": reason, "pods": pods}));
    let without_webhook = summary.without_webhook().iter();
    let without_webhook = without_webhook.map(|(mesh, pods)| json!({"mesh": mesh, "pods": pods}));
    let audit = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "pods": summary.counts(),
        "workloads": summary.rows().collect::<Vec<_>>(),
        "withoutWebhook": without_webhook.collect::<Vec<_>>(),
        "failedOpen": summary.failed_open(),
        "unknown": unknown.collect::<Vec<_>>(),
        "notRead": summary.not_read(),
    });
    out.json(&audit)
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

fn table(out: &mut Printer<impl Write>, summary: &Summary, is_about_pods: bool) -> io::Result<()> {
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
        out.line("")?;
    }
    let failed = summary.failed_open();
    if !failed.is_empty() {
        let head = ["TIME", "NAMESPACE", "POD", "WEBHOOK", "CAUSE"].map(str::to_owned);
        let rows = failed
            .iter()
            .map(|it| [&it.time, &it.namespace, &it.pod, &it.webhook, &it.cause].map(Clone::clone));
        columns(out, head, rows.collect())?;
        out.line("")?;
    }
    for (product, pods) in summary.without_webhook() {
        let name = product.as_str();
        out.line(&format!(
            "no webhook of {name} is there: {pods} pods have its sidecar or ask for it, and new ones \
             get none; install it before you restart anything"
        ))?;
    }
    for (reason, pods) in summary.unknown() {
        out.line(&format!("unknown: {pods} pods: {reason}"))?;
    }
    for problem in summary.not_read() {
        out.line(&format!("not read: {problem}"))?;
    }
    if !is_about_pods {
        return out.line(&format!("{} pods were let in while a webhook failed", failed.len()));
    }
    let counts = summary.counts();
    out.line(&format!(
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
    ))
}

fn columns<const N: usize>(
    out: &mut Printer<impl Write>,
    head: [String; N],
    mut rows: Vec<[String; N]>,
) -> io::Result<()> {
    rows.insert(0, head);
    for cell in rows.iter_mut().flatten() {
        *cell = shown(cell).into_owned();
    }
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
        out.line(&line)?;
    }
    Ok(())
}

/// A test case for each finding, and one for the pods that have none.
fn junit(out: &mut Printer<impl Write>, summary: &Summary) -> io::Result<()> {
    let rows: Vec<_> = summary.rows().collect();
    let failed = summary.failed_open();
    let without_webhook = summary.without_webhook();
    let failures = rows.len() + failed.len() + without_webhook.len();
    out.xml_line(r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    out.xml_line("<testsuites>")?;
    out.xml_line(&format!(
        r#"  <testsuite name="injectd audit" tests="{}" failures="{failures}">"#,
        failures + 1
    ))?;
    let counts = summary.counts();
    out.xml_line(&format!(
        r#"    <testcase classname="pods" name="{} of {} pods are as they should be, {} are unknown"/>"#,
        counts.meshed + counts.unmeshed,
        counts.total,
        counts.unknown
    ))?;
    for row in rows {
        let case = (row.workload.namespace.as_str(), workload(&row));
        let message = format!("{} of {} pods: {}", row.pods, row.total, row.reason);
        write_case(out, case, (name(row.finding), &message, &row.remedy))?;
    }
    for (product, pods) in without_webhook {
        let case = ("webhooks", product.as_str().to_owned());
        let message = format!("{pods} pods are of a mesh without a webhook");
        write_case(out, case, ("no-webhook", &message, "install it before you restart anything"))?;
    }
    for it in failed {
        let case = (it.namespace.as_str(), format!("pod/{}", it.pod));
        let message = format!("{}: {} failed: {}", it.time, it.webhook, it.cause);
        write_case(out, case, ("failed-open", &message, ""))?;
    }
    out.xml_line("  </testsuite>")?;
    out.xml_line("</testsuites>")
}

fn write_case(
    out: &mut Printer<impl Write>,
    (class, case): (&str, String),
    (kind, message, remedy): (&str, &str, &str),
) -> io::Result<()> {
    let (class, case, message, remedy) = (xml(class), xml(&case), xml(message), xml(remedy));
    out.xml_line(&format!(r#"    <testcase classname="{class}" name="{case}">"#))?;
    out.xml_line(&format!(
        r#"      <failure type="{kind}" message="{message}">{remedy}</failure>"#
    ))?;
    out.xml_line("    </testcase>")
}
