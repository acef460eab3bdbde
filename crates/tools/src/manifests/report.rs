//! What happened to each object: a line on stderr, and an entry in the report of --report.

use std::{collections::HashMap, fs, path::Path};

use injectd_command::{
    CommandError,
    print::{json_report, print_line},
};
use injectd_yaml::Problem;
use serde_json::{Value, json};

use super::super::progress::Progress;

/// What a command did with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The sidecar was added.
    Injected,
    /// Only annotations were added.
    Annotated,
    /// The sidecar was removed.
    Uninjected,
    /// A pod or workload stays as it is, for a reason.
    Skipped,
    /// An object without pods stays as it is.
    Unchanged,
    /// The object cannot be used.
    Rejected,
}

/// What happened to an object.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) action: Action,
    /// As written; may be empty.
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Why it was skipped or rejected; what to know of it.
    pub(crate) message: Option<String>,
    /// Codes of the reasons for a skip.
    pub(crate) reasons: Vec<&'static str>,
    pub(crate) warnings: Vec<String>,
    /// Whether it is a pod or has a pod template.
    pub(crate) has_pods: bool,
}

/// A text in an object; empty if there is none.
pub(crate) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The entries of all objects.
pub(super) struct Report {
    verbose: bool,
    progress: Option<Progress>,
    /// Whether lines name the file.
    has_several_files: bool,
    file: String,
    line: usize,
    /// Of the document that is read.
    bytes: usize,
    /// The place in Lists, counted from 1.
    items: Vec<usize>,
    /// The key that the document has twice, until an object of it changes.
    duplicate_key: Option<Problem>,
    /// Of the files before.
    entries: Vec<Value>,
    counts: Counts,
    /// Of the file that is read: if it ends with a problem, nothing of it counts.
    pending: Pending,
}

#[derive(Debug, Default)]
struct Pending {
    entries: Vec<Value>,
    lines: Vec<Line>,
    counts: Counts,
}

/// A line on stderr.
#[derive(Debug)]
struct Line {
    /// Where the object is; empty if the line is about the one above.
    place: String,
    text: String,
    /// Whether the place is printed in any case.
    has_place: bool,
}

#[derive(Debug, Default)]
struct Counts {
    failed: usize,
    files: usize,
    skipped: usize,
    warnings: usize,
    /// Objects that injection is about.
    supported: usize,
}

impl Action {
    fn as_str(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Annotated => "annotated",
            Self::Uninjected => "uninjected",
            Self::Skipped => "skipped",
            Self::Unchanged => "unchanged",
            Self::Rejected => "rejected",
        }
    }
}

impl Entry {
    /// The entry of an object.
    pub(crate) fn of(object: &Value, kind: &str, action: Action) -> Self {
        let name = match text(object, "/metadata/name") {
            "" => text(object, "/metadata/generateName"),
            name => name,
        };
        Self {
            action,
            kind: kind.to_owned(),
            namespace: text(object, "/metadata/namespace").to_owned(),
            name: name.to_owned(),
            message: None,
            reasons: Vec::new(),
            warnings: Vec::new(),
            has_pods: false,
        }
    }

    /// The same with a message.
    pub(crate) fn because(self, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self { message: Some(message.trim_end().to_owned()), ..self }
    }

    fn line(&self) -> String {
        let or = |text: &str, other: &str| {
            if text.is_empty() { other.to_owned() } else { text.to_owned() }
        };
        let (kind, name) =
            (or(&self.kind.to_lowercase(), "(no kind)"), or(&self.name, "(no name)"));
        let message = self.message.as_ref().map(|text| format!(": {text}"));
        format!("{kind}/{name} {}{}", self.action.as_str(), message.unwrap_or_default())
    }
}

impl Line {
    /// A line about the one above.
    fn below(text: String) -> Self {
        Self { place: String::new(), text, has_place: false }
    }
}

impl Report {
    pub(super) fn new(verbose: bool, files: usize, progress: Progress) -> Self {
        Self {
            verbose,
            progress: Some(progress),
            has_several_files: files > 1,
            file: String::new(),
            line: 1,
            bytes: 0,
            items: Vec::new(),
            duplicate_key: None,
            entries: Vec::new(),
            counts: Counts::default(),
            pending: Pending::default(),
        }
    }

    /// Begins a document of so many bytes.
    pub(super) fn begin(&mut self, file: &str, line: usize, bytes: usize) {
        file.clone_into(&mut self.file);
        self.line = line;
        let before = std::mem::replace(&mut self.bytes, bytes);
        if let Some(progress) = &mut self.progress {
            progress.advance(before);
        }
    }

    /// Notes a key that the document has twice: the first object that changes has a warning.
    pub(super) fn note_duplicate(&mut self, key: Option<Problem>) {
        self.duplicate_key = key;
    }

    /// Begins an item of a List.
    pub(super) fn begin_item(&mut self, index: usize) {
        self.items.push(index + 1);
    }

    /// Ends an item of a List.
    pub(super) fn end_item(&mut self) {
        self.items.pop();
    }

    /// Whether an item of a List is reported.
    pub(super) fn is_in_list(&self) -> bool {
        !self.items.is_empty()
    }

    fn place(&self) -> String {
        let items = self.items.iter().map(|item| format!("item {item}: "));
        format!("{}:{}: {}", self.file, self.line, items.collect::<String>())
    }

    /// Reports an object of the document.
    pub(super) fn add(&mut self, entry: &Entry) {
        if let Some(progress) = &mut self.progress {
            progress.add();
            progress.draw();
        }
        let is_failure = entry.action == Action::Rejected;
        let counts = &mut self.pending.counts;
        counts.failed += usize::from(is_failure);
        counts.skipped += usize::from(entry.action == Action::Skipped);
        let is_changed = !matches!(entry.action, Action::Unchanged | Action::Skipped);
        let duplicate = self.duplicate_key.take_if(|_| is_changed && !is_failure);
        let duplicate = duplicate.map(|problem| format!("{problem}; the last one counts"));
        let warnings: Vec<_> = entry.warnings.iter().cloned().chain(duplicate).collect();
        counts.warnings += warnings.len();
        counts.supported += usize::from(entry.has_pods || is_changed);
        let is_silent = entry.action == Action::Unchanged && entry.message.is_none();
        if self.verbose || !is_silent {
            let line = Line { place: self.place(), text: entry.line(), has_place: is_failure };
            self.pending.lines.push(line);
        }
        for warning in &warnings {
            self.pending.lines.push(Line::below(format!("  warning: {warning}")));
        }
        self.pending.entries.push(json!({
            "file": self.file,
            "line": self.line,
            "items": self.items,
            "kind": entry.kind,
            "namespace": entry.namespace,
            "name": entry.name,
            "result": entry.action.as_str(),
            "message": entry.message,
            "reasons": entry.reasons,
            "warnings": warnings,
        }));
    }

    /// Reports that the document was written anew.
    pub(super) fn rewritten(&mut self) {
        let note = format!(
            "note: {}:{}: an anchor or an unusual form is in the way of an edit in place; the document \
             is rewritten, without the comments in it",
            self.file, self.line
        );
        self.pending.lines.push(Line::below(note));
    }

    /// Ends a file: reports its objects. Lines name the place where they are if there are several
    /// files, or if others read the same.
    pub(super) fn end_file(&mut self) {
        let Pending { entries, lines, counts } = std::mem::take(&mut self.pending);
        let mut same: HashMap<&str, usize> = HashMap::new();
        for line in &lines {
            *same.entry(&line.text).or_default() += 1;
        }
        for Line { place, text, has_place } in &lines {
            let is_clear = !has_place && !self.has_several_files && same[&**text] == 1;
            let place = if is_clear { "" } else { place };
            self.print(&format!("{place}{text}"));
        }
        self.entries.extend(entries);
        self.counts.failed += counts.failed;
        self.counts.skipped += counts.skipped;
        self.counts.warnings += counts.warnings;
        self.counts.supported += counts.supported;
    }

    /// Ends a file that cannot be used; `line` is the place of its problem.
    pub(super) fn leave_out(&mut self, file: &str, line: Option<usize>, problem: &str) {
        self.pending = Pending::default();
        self.counts.failed += 1;
        self.counts.files += 1;
        self.entries.push(json!({
            "file": file,
            "line": line,
            "items": [],
            "kind": "",
            "namespace": "",
            "name": "",
            "result": "rejected",
            "message": problem,
            "reasons": [],
            "warnings": [],
        }));
    }

    /// Ends the progress bar.
    pub(super) fn finish(mut self) -> Self {
        self.progress = None;
        self
    }

    /// Warns if there is nothing to inject.
    pub(super) fn warn_of_nothing(&mut self) {
        if self.entries.is_empty() {
            self.print("note: the input contains no objects");
        } else if self.counts.supported == 0 {
            self.counts.warnings += 1;
            self.print("warning: no supported objects found: the input has no pods");
        }
    }

    /// Writes the report as JSON.
    pub(super) fn write(&self, path: &Path) -> Result<(), CommandError> {
        let text = json_report(&self.entries).expect("a tree must be JSON");
        fs::write(path, text).map_err(|error| {
            CommandError::failed(format!("cannot write --report {}", path.display()), error)
        })
    }

    /// Whether files cannot be used.
    pub(super) fn has_files(&self) -> bool {
        self.counts.files > 0
    }

    /// Objects and files that cannot be used.
    pub(super) fn failed(&self) -> usize {
        self.counts.failed
    }

    pub(super) fn skipped(&self) -> usize {
        self.counts.skipped
    }

    pub(super) fn warnings(&self) -> usize {
        self.counts.warnings
    }

    /// Prints a line above the progress bar.
    pub(super) fn print(&self, line: &str) {
        match &self.progress {
            Some(progress) => progress.print_line(line),
            None => print_line(line),
        }
    }
}
