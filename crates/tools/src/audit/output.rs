//! The findings as tables, as JSON, as lines of JSON, or as XML of `JUnit`.

use std::io::{self, Write};

use injectd_command::print::{Printer, xml};
use injectd_controllers::audit::summary::Summary;
use serde_json::json;

use super::{
    filter::Filter,
    pods,
    table::{self, Form, name, named},
};

/// What programs read: version and kind.
const API_VERSION: &str = "injectd.dev/v1";
const KIND: &str = "Audit";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// In the width of the terminal, with what to do once
    Table,
    /// Each finding in one line, with what to do
    Wide,
    /// The findings, and up to five pods of each
    Json,
    /// A line of JSON for each pod, with or without a finding
    Jsonl,
    /// XML for CI systems
    Junit,
}

/// Writes the findings; without `is_about_pods` only those of the audit log.
pub(super) fn write(
    out: &mut Printer<impl Write>,
    summary: &Summary,
    filter: Filter<'_>,
    format: Format,
    is_about_pods: bool,
) -> io::Result<()> {
    match format {
        Format::Table => table::write(out, summary, filter, Form::Fitted, is_about_pods),
        Format::Wide => table::write(out, summary, filter, Form::Wide, is_about_pods),
        Format::Json => json(out, summary, filter),
        // Its lines are written while pods are judged.
        Format::Jsonl => pods::end(out, summary, filter),
        Format::Junit => junit(out, summary, filter),
    }
}

fn json(out: &mut Printer<impl Write>, summary: &Summary, filter: Filter<'_>) -> io::Result<()> {
    let unknown = summary.unknown().map(|(reason, pods)| json!({"reason": reason, "pods": pods}));
    let meshes = |all: Vec<_>| {
        let meshes = all.into_iter().map(|(mesh, pods)| json!({"mesh": mesh, "pods": pods}));
        meshes.collect::<Vec<_>>()
    };
    let audit = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "pods": summary.counts(),
        "workloads": filter.rows(summary).collect::<Vec<_>>(),
        "withoutWebhook": meshes(filter.without_webhook(summary)),
        "notCalled": meshes(filter.not_called(summary)),
        "failedOpen": filter.failed_open(summary),
        "tainted": filter.tainted(summary),
        "unknown": unknown.collect::<Vec<_>>(),
        "notRead": summary.not_read(),
    });
    out.json(&audit)
}

/// A test case for each finding, and one for the pods that have none.
fn junit(out: &mut Printer<impl Write>, summary: &Summary, filter: Filter<'_>) -> io::Result<()> {
    let rows: Vec<_> = filter.rows(summary).collect();
    let failed = filter.failed_open(summary);
    let without_webhook = filter.without_webhook(summary);
    let not_called = filter.not_called(summary);
    let tainted = filter.tainted(summary);
    let of_webhooks = failed.len() + without_webhook.len() + not_called.len();
    let failures = rows.len() + of_webhooks + tainted.len();
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
        let message = format!("{} of {} pods: {}", row.pods, row.total, row.reason);
        let failure = Failure { kind: name(row.finding), message: &message, remedy: &row.remedy };
        write_case(out, &row.workload.namespace, &named(&row.workload), failure)?;
    }
    for (product, pods) in without_webhook {
        let message = format!("pods of a mesh without a webhook: {pods}");
        let remedy = "install it before you restart anything";
        let failure = Failure { kind: "no-webhook", message: &message, remedy };
        write_case(out, "webhooks", product.as_str(), failure)?;
    }
    for (product, pods) in not_called {
        let message = format!("pods whose webhook would not be called for new ones: {pods}");
        let remedy = "injectd explain says why";
        let failure = Failure { kind: "no-webhook", message: &message, remedy };
        write_case(out, "webhooks", product.as_str(), failure)?;
    }
    for call in failed {
        let message = format!("{}: {} failed: {}", call.time, call.webhook, call.cause);
        let failure = Failure { kind: "failed-open", message: &message, remedy: "" };
        write_case(out, &call.namespace, &format!("pod/{}", call.pod), failure)?;
    }
    for row in tainted {
        let message = table::tainted(&row);
        let failure = Failure { kind: "tainted", message: &message, remedy: "correct the values" };
        write_case(out, &row.workload.namespace, &named(&row.workload), failure)?;
    }
    out.xml_line("  </testsuite>")?;
    out.xml_line("</testsuites>")
}

/// The failure of a test case.
#[derive(Debug, Clone, Copy)]
struct Failure<'f> {
    kind: &'static str,
    message: &'f str,
    remedy: &'f str,
}

fn write_case(
    out: &mut Printer<impl Write>,
    class: &str,
    case: &str,
    failure: Failure<'_>,
) -> io::Result<()> {
    let Failure { kind, message, remedy } = failure;
    let [class, case, message, remedy] = [class, case, message, remedy].map(xml);
    out.xml_line(&format!(r#"    <testcase classname="{class}" name="{case}">"#))?;
    out.xml_line(&format!(
        r#"      <failure type="{kind}" message="{message}">{remedy}</failure>"#
    ))?;
    out.xml_line("    </testcase>")
}
