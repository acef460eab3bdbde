//! A line of JSON for each pod, written when it is judged: memory does not grow with pods.

use std::io::{self, Write};

use injectd_command::print::{Printer, print_line};
use injectd_controllers::audit::summary::{Summary, Verdict};
use injectd_k8s::workload::Workload;
use serde::Serialize;

use super::filter::{Filter, Kind};

/// The line of a pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'p> {
    namespace: &'p str,
    pod: &'p str,
    workload: &'p Workload,
    /// When the pod was created; empty if it does not say it.
    created: &'p str,
    judgement: &'p str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'p str,
    /// The annotations whose values change other fields than their own.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tainted: &'p [&'static str],
}

/// The line of a pod that was let in while a webhook failed.
#[derive(Serialize)]
struct LetIn<'p> {
    namespace: &'p str,
    pod: &'p str,
    judgement: &'static str,
    reason: &'p str,
    webhook: &'p str,
    time: &'p str,
    user: &'p str,
}

/// Lets a summary print each verdict on stdout. Verdicts without a finding are left out if kinds of
/// findings are chosen.
pub(super) fn follow(summary: &mut Summary, kinds: Vec<Kind>) {
    summary.follow(move |verdict| {
        let Verdict { pod, judgement, finding, reason } = verdict;
        let filter = Filter(&kinds);
        let is_printed = match finding {
            Some(finding) => filter.has(finding.into()),
            None => filter.0.is_empty(),
        };
        let is_tainted = !pod.tainted.is_empty() && filter.has(Kind::Tainted);
        if !is_printed && !is_tainted {
            return Ok(());
        }
        Printer::stdout().json_line(&Line {
            namespace: &pod.workload.namespace,
            pod: &pod.name,
            workload: &pod.workload,
            created: &pod.created,
            judgement,
            reason,
            tainted: &pod.tainted,
        })
    });
}

/// Writes the pods of the audit log, and on stderr what could not be read.
pub(super) fn end(
    out: &mut Printer<impl Write>,
    summary: &Summary,
    filter: Filter<'_>,
) -> io::Result<()> {
    for it in filter.failed_open(summary) {
        let (namespace, pod, reason) = (&*it.namespace, &*it.pod, &*it.cause);
        let (webhook, time, user) = (&*it.webhook, &*it.time, &*it.user);
        let judgement = "failed-open";
        out.json_line(&LetIn { namespace, pod, judgement, reason, webhook, time, user })?;
    }
    for problem in summary.not_read() {
        print_line(&format!("not read: {problem}"));
    }
    Ok(())
}
