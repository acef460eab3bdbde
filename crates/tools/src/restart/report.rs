//! The result of the command: a line or a JSON object per workload, and the exit code.

use std::io;

use injectd_command::{CommandError, counted, format::Format, print::Printer};
use injectd_controllers::restart::Wait;
use injectd_k8s::workload::Workload;
use serde::Serialize;

use super::effect::Effects;

/// The result for a workload.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    /// `restarted`, `rolling_out`, `stuck`, `left_out`, or the label of what it waits for.
    result: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

/// The results so far.
pub(super) struct Report {
    format: Format,
    effects: Effects,
    entries: Vec<Entry>,
    /// Workloads that were not restarted.
    left: usize,
    failed: usize,
}

impl Report {
    pub(super) fn new(format: Format, effects: Effects) -> Self {
        Self { format, effects, entries: Vec::new(), left: 0, failed: 0 }
    }

    /// A workload that is not restarted, because what that does was not asked for.
    pub(super) fn left_out(&mut self, workload: &Workload, why: &str) -> io::Result<()> {
        self.add(workload, "left_out", why.to_owned(), &format!("left out: {why}"))
    }

    pub(super) fn finished(&mut self, workload: &Workload) -> io::Result<()> {
        self.add(workload, "restarted", String::new(), "restarted")
    }

    pub(super) fn stuck(&mut self, workload: &Workload, why: &str) -> io::Result<()> {
        self.failed += 1;
        let line = format!("its rollout is stuck: {why}");
        self.add(workload, "stuck", why.to_owned(), &line)
    }

    pub(super) fn rolling_out(&mut self, workload: &Workload) -> io::Result<()> {
        self.left += 1;
        let line = "restarted, and still rolling out";
        self.add(workload, "rolling_out", line.to_owned(), line)
    }

    pub(super) fn waits(&mut self, workload: &Workload, wait: Option<&Wait>) -> io::Result<()> {
        match wait {
            Some(Wait::DryRun) => {}
            Some(Wait::Gone) => self.failed += 1,
            _ => self.left += 1,
        }
        let message = match wait {
            None => "not looked at".to_owned(),
            Some(Wait::DryRun) => match self.effects.text(workload) {
                text if text.is_empty() => "would be restarted now".to_owned(),
                text => format!("would be restarted now: {text}"),
            },
            Some(wait) => wait.to_string(),
        };
        let line = match wait {
            Some(Wait::DryRun) => message.clone(),
            _ => format!("not restarted: {message}"),
        };
        self.add(workload, wait.map_or("others", Wait::as_str), message, &line)
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    fn add(
        &mut self,
        workload: &Workload,
        result: &'static str,
        message: String,
        line: &str,
    ) -> io::Result<()> {
        if self.format == Format::Text {
            Printer::stdout().line(&format!("{workload}: {line}"))?;
        }
        let Workload { namespace, api_version, kind, name, uid } = workload.clone();
        self.entries.push(Entry { api_version, kind, namespace, name, uid, result, message });
        Ok(())
    }

    /// Prints the end of the report, and decides the exit code.
    pub(super) fn end(self) -> Result<(), CommandError> {
        #[derive(Serialize)]
        struct Document {
            workloads: Vec<Entry>,
        }
        let Self { format, entries, left, failed, .. } = self;
        if format == Format::Json {
            let document = Document { workloads: entries };
            Printer::stdout().json(&document).map_err(CommandError::output)?;
        }
        if failed > 0 {
            let text = format!("{} cannot be restarted", counted(failed, "workload"));
            return Err(CommandError::Incomplete(text));
        }
        if left > 0 {
            return Err(CommandError::Findings(format!("{} left", counted(left, "workload"))));
        }
        Ok(())
    }
}
