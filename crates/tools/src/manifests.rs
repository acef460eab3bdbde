//! Commands that change manifests: `inject` and `uninject`.
//!
//! Reads files, passes each object to the command, and writes the documents back: those that did not
//! change byte for byte, the others with an edit in place.

use std::path::PathBuf;

use injectd_cluster::causes::with_causes;
use injectd_command::{
    CommandError, counted,
    format::{self, formats},
    input,
};
use injectd_core::yaml;
use injectd_yaml::{Document, Format, ItemEditor};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::progress::Progress;

mod objects;
mod output;
mod report;
mod url;

pub(super) use self::{
    objects::{GROUPS, ITEMS, Listed, group, listed, pod_of, pod_prefix},
    report::{Action, Entry, text},
};
use self::{
    output::{File, Written},
    report::Report,
};

/// The flags of commands that change manifests.
#[derive(Debug, clap::Args)]
pub(super) struct ManifestArgs {
    /// Files or directories with manifests, or URLs; - reads stdin [default: stdin]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The same as FILE, as in kubectl; read after the others
    #[arg(short = 'f', long = "filename", value_name = "FILE", value_delimiter = ',')]
    filenames: Vec<PathBuf>,
    /// Print all manifests in this format [default: that of the input]
    #[arg(short, long, value_name = "FORMAT", value_parser = formats(["json", "yaml"]))]
    output: Option<format::Format>,
    /// Print the other objects if an object fails. Without it, no manifest is printed then
    #[arg(long)]
    keep_going: bool,
    /// Treat this result as a failure and exit with 3; may be repeated
    #[arg(long, value_name = "RESULT", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    /// File for a report in JSON: a list with an entry for each object
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Also report objects that did not change
    #[arg(long)]
    verbose: bool,
}

/// A result that counts as a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// An object was skipped
    Skipped,
    /// An object has a warning, or the input has no pods
    Warning,
}

/// What a command made of an object.
pub(super) struct Edited {
    /// The changed object; `None` if it stays as it is.
    pub(super) object: Option<Value>,
    /// What happened to it.
    pub(super) entry: Entry,
}

/// A file, and its text or why it cannot be read.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) text: Result<String, CommandError>,
}

impl ManifestArgs {
    /// The format of all manifests, if it is given.
    fn format(&self) -> Option<Format> {
        self.output
            .map(|output| if output == format::Format::Json { Format::Json } else { Format::Yaml })
    }

    /// The files as they are named.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        [&self.files[..], &self.filenames[..]].concat()
    }

    /// Reads all input.
    pub(super) fn read(&self, runtime: &Runtime) -> Vec<Input> {
        let read = |path: Result<PathBuf, (PathBuf, CommandError)>| {
            let path = match path {
                Ok(path) => path,
                Err((path, error)) => {
                    return Input { name: input::name(&path), text: Err(error) };
                }
            };
            let name = input::name(&path);
            let text = if url::is_url(&name) {
                let text = runtime.block_on(url::read(&name));
                text.map_err(|error| CommandError::failed(format!("cannot read {name}"), error))
                    .and_then(|bytes| input::utf8(&name, bytes))
            } else {
                input::read_text(&path)
            };
            Input { name, text }
        };
        input::files(&self.paths()).into_iter().map(read).collect()
    }

    /// Passes each object with its kind to `edit` and prints the manifests. `done` is the result in
    /// errors: injected or uninjected.
    pub(super) fn run(
        &self,
        inputs: Vec<Input>,
        done: &str,
        edit: impl FnMut(&Value, &str) -> Result<Edited, CommandError>,
    ) -> Result<(), CommandError> {
        let length = |input: &Input| input.text.as_ref().map_or(0, String::len) as u64;
        let bytes = inputs.iter().map(length).sum();
        let report = Report::new(self.verbose, inputs.len(), Progress::of_manifests(bytes));
        let mut run = Run { edit, args: self, report };
        let mut files = Vec::with_capacity(inputs.len());
        let mut failure = None;
        for input in inputs {
            match run.file(input)? {
                Ok(file) => files.push(file),
                Err(error) if self.keep_going => {
                    run.report.print(&format!("{}; the file is left out", with_causes(&error)));
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let mut report = run.report.finish();
        if let Some(path) = &self.report {
            report.write(path)?;
        }
        if failure.is_none() && report.failed() == 0 {
            report.warn_of_nothing();
        }
        let failure = failure.or_else(|| self.failure(&report, done));
        // Nothing is printed after a failure: in `injectd inject | kubectl apply -f -` a half of
        // the manifests would be applied.
        if failure.is_none() || self.keep_going {
            output::write(files, self.format())?;
        }
        failure.map_or(Ok(()), Err)
    }

    fn failure(&self, report: &Report, done: &str) -> Option<CommandError> {
        let hint = if self.keep_going { "" } else { "; nothing is printed without --keep-going" };
        let failed = report.failed();
        if failed > 0 {
            let parts =
                counted(failed, if report.has_files() { "object or file" } else { "object" });
            return Some(CommandError::Incomplete(format!("{parts} could not be {done}{hint}")));
        }
        self.fail_on.iter().find_map(|fail_on| {
            let (count, flag, noun) = match fail_on {
                FailOn::Skipped => (report.skipped(), "skipped", "skipped object"),
                FailOn::Warning => (report.warnings(), "warning", "warning"),
            };
            let found = counted(count, noun);
            (count > 0).then(|| CommandError::Findings(format!("--fail-on {flag}: {found}{hint}")))
        })
    }
}

/// The runtime of a command that changes manifests.
pub(super) fn runtime() -> Result<Runtime, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CommandError::failed("cannot start the async runtime", error))
}

struct Run<'r, E> {
    edit: E,
    args: &'r ManifestArgs,
    report: Report,
}

/// What becomes of an object in its document.
enum Change {
    Unchanged,
    Changed(Value),
    /// The whole document, with its changes.
    Written(String),
    /// The object failed, and the others are printed.
    LeftOut,
}

impl<E: FnMut(&Value, &str) -> Result<Edited, CommandError>> Run<'_, E> {
    /// The inner error is that of a file that cannot be used.
    fn file(&mut self, input: Input) -> Result<Result<File, CommandError>, CommandError> {
        let Input { name, text } = input;
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                self.report.leave_out(&name, None, &with_causes(&error));
                return Ok(Err(error));
            }
        };
        let mut documents = Vec::new();
        for document in yaml::stream(&text) {
            match document {
                Ok(document) => documents.push(self.document(&name, &text, document)?),
                Err(problem) => {
                    self.report.leave_out(&name, Some(problem.line), &problem.message);
                    return Ok(Err(CommandError::failed(name, problem)));
                }
            }
        }
        self.report.end_file();
        Ok(Ok(File { text, documents }))
    }

    fn document(
        &mut self,
        file: &str,
        text: &str,
        document: Document,
    ) -> Result<Written, CommandError> {
        let Document { place, line, format, value, duplicate_key } = document;
        self.report.begin(file, line, place.len());
        self.report.note_duplicate(duplicate_key);
        let text = &text[place.clone()];
        let forced = self.forced(format);
        let change = match listed(&value) {
            Some(listed) if forced.is_none() => self.change_list(text, format, &value, listed)?,
            _ => self.change(&value, "")?,
        };
        let text = match change {
            Change::LeftOut => Some(String::new()),
            // Comments, as JSON.
            Change::Unchanged if value.is_null() => forced.map(|_| String::new()),
            Change::Unchanged => forced.map(|forced| as_text(forced, &value)),
            Change::Written(text) => Some(text),
            Change::Changed(after) => Some(match forced {
                Some(forced) => as_text(forced, &after),
                None => injectd_yaml::edit(text, format, &value, &after).unwrap_or_else(|| {
                    self.report.rewritten();
                    injectd_yaml::rewrite(text, format, &after)
                }),
            }),
        };
        Ok(Written { place, format: forced.unwrap_or(format), text })
    }

    /// Changes the items of a List one after another in its text. If that does not work, all of
    /// them are changed first.
    fn change_list(
        &mut self,
        text: &str,
        format: Format,
        list: &Value,
        listed: Listed<'_>,
    ) -> Result<Change, CommandError> {
        let Listed { items, item_kind } = listed;
        let Some(mut editor) = ItemEditor::new(text, format, ITEMS) else {
            return Ok(changed_list(list, items, self.change_items(items, item_kind)?));
        };
        let mut is_changed = false;
        for (index, item) in items.iter().enumerate() {
            let change = self.change_item(index, item, item_kind)?;
            match &change {
                Change::Unchanged => {}
                Change::Changed(after) if editor.edit(index, item, after) => is_changed = true,
                _ => {
                    let before = (0..index).map(|index| editor.changed(index));
                    let before =
                        before.map(|after| after.map_or(Change::Unchanged, Change::Changed));
                    let mut changes: Vec<Change> = before.collect();
                    changes.push(change);
                    for (index, item) in items.iter().enumerate().skip(index + 1) {
                        changes.push(self.change_item(index, item, item_kind)?);
                    }
                    return Ok(changed_list(list, items, changes));
                }
            }
        }
        Ok(if is_changed { Change::Written(editor.finish()) } else { Change::Unchanged })
    }

    fn change_items(
        &mut self,
        items: &[Value],
        item_kind: &str,
    ) -> Result<Vec<Change>, CommandError> {
        let items = items.iter().enumerate();
        items.map(|(index, item)| self.change_item(index, item, item_kind)).collect()
    }

    fn change_item(
        &mut self,
        index: usize,
        item: &Value,
        item_kind: &str,
    ) -> Result<Change, CommandError> {
        self.report.begin_item(index);
        let change = self.change(item, item_kind);
        self.report.end_item();
        change
    }

    /// The format of --output, if it is not that of the document.
    fn forced(&self, format: Format) -> Option<Format> {
        self.args.format().filter(|output| *output != format)
    }

    /// Changes an object, or the items of a List. Items of a `PodList` may have no kind: their kind
    /// is then `listed_kind`.
    fn change(&mut self, object: &Value, listed_kind: &str) -> Result<Change, CommandError> {
        if object.is_null() && !self.report.is_in_list() {
            return Ok(Change::Unchanged);
        }
        if !object.is_object() {
            self.report
                .add(&Entry::of(object, listed_kind, Action::Rejected).because("not an object"));
            return Ok(Change::LeftOut);
        }
        if let Some(Listed { items, item_kind }) = listed(object) {
            return Ok(changed_list(object, items, self.change_items(items, item_kind)?));
        }
        let kind = match object.get("kind").and_then(Value::as_str) {
            None | Some("") => listed_kind,
            Some(kind) => kind,
        };
        let Edited { object, entry } = (self.edit)(object, kind)?;
        let failed = entry.action == Action::Rejected;
        self.report.add(&entry);
        Ok(match object {
            _ if failed && self.args.keep_going => Change::LeftOut,
            Some(object) if !failed => Change::Changed(object),
            _ => Change::Unchanged,
        })
    }
}

/// The List with its items changed.
fn changed_list(list: &Value, items: &[Value], changes: Vec<Change>) -> Change {
    if changes.iter().all(|change| matches!(change, Change::Unchanged)) {
        return Change::Unchanged;
    }
    let items = items.iter().zip(changes).filter_map(|(item, change)| match change {
        Change::Changed(item) => Some(item),
        Change::LeftOut => None,
        Change::Unchanged | Change::Written(_) => Some(item.clone()),
    });
    let items = Value::Array(items.collect());
    let others = list.as_object().into_iter().flatten().filter(|(key, _)| *key != ITEMS);
    let mut list: serde_json::Map<_, _> =
        others.map(|(key, value)| (key.clone(), value.clone())).collect();
    list.insert(ITEMS.to_owned(), items);
    Change::Changed(Value::Object(list))
}

fn as_text(format: Format, value: &Value) -> String {
    injectd_yaml::rewrite("", format, value)
}
