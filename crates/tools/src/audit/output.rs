//! The findings as tables, as JSON, as lines of JSON, or as XML of `JUnit`.

use std::io::{self, Write};

use injectd_command::{
    junit::{self, Case, Failure},
    print::Printer,
};
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
    let counts = summary.counts();
    let pods = format!(
        "{} of {} pods are as they should be, {} are unknown",
        counts.meshed + counts.unmeshed,
        counts.total,
        counts.unknown
    );
    let mut cases = vec![Case { class: "pods".to_owned(), name: pods, failure: None }];
    let mut add = |class: &str, name: &str, failure| {
        cases.push(Case { class: class.to_owned(), name: name.to_owned(), failure: Some(failure) });
    };
    for row in filter.rows(summary) {
        let message = format!("{} of {} pods: {}", row.pods, row.total, row.reason);
        let failure = failure(name(row.finding), message, &row.remedy);
        add(&row.workload.namespace, &named(&row.workload), failure);
    }
    for (product, pods) in filter.without_webhook(summary) {
        let message = format!("pods of a mesh without a webhook: {pods}");
        let remedy = "install the webhook before you restart anything";
        add("webhooks", product.as_str(), failure("no-webhook", message, remedy));
    }
    for (product, pods) in filter.not_called(summary) {
        let message = format!("pods whose webhook would not be called for new ones: {pods}");
        let remedy = "injectd explain says why";
        add("webhooks", product.as_str(), failure("no-webhook", message, remedy));
    }
    for call in filter.failed_open(summary) {
        let message = format!("{}: {} failed: {}", call.time, call.webhook, call.cause);
        let pod = format!("pod/{}", call.pod);
        add(&call.namespace, &pod, failure("failed-open", message, ""));
    }
    for row in filter.tainted(summary) {
        let failure = failure("tainted", table::tainted(&row), "correct the values");
        add(&row.workload.namespace, &named(&row.workload), failure);
    }
    junit::write(out, "injectd audit", &cases)
}

fn failure(kind: &'static str, message: String, remedy: &str) -> Failure {
    Failure { kind, message, text: remedy.to_owned() }
}
