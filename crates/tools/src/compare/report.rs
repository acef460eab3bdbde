//! The report of a comparison: counts, groups of differences, and the exit code.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use injectd_command::{CommandError, counted, print::Printer};
use serde_json::{Value, json};

use super::{super::stream::Errors, meaning::Difference, missing::Missing};

/// The format of the report.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum Format {
    Table,
    Json,
}

/// The result for one review or audit event.
pub(super) enum Compared {
    Same,
    Differs(Differing),
    /// An audit event without an answer of the injector.
    Ignored,
    FailedOpen,
    Unreadable(String),
}

/// A review with two answers.
pub(super) struct Differing {
    /// Kind, namespace and name of the object.
    pub(super) object: String,
    pub(super) differences: Vec<Difference>,
    /// The injectors' reasons for a skip, if known.
    pub(super) reasons: Reasons,
    /// Objects that our answer depends on and that --objects does not contain.
    pub(super) missing: Vec<Missing>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Reasons {
    pub(super) theirs: Option<String>,
    pub(super) ours: Option<String>,
}

/// The results so far.
#[derive(Default)]
pub(super) struct Report {
    compared: usize,
    same: usize,
    ignored: usize,
    failed_open: usize,
    unreadable: Errors,
    groups: BTreeMap<Key, DifferenceGroup>,
}

/// Severity, place and row of a difference.
type Key = (Class, String, Option<&'static str>);

/// The severity of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// A row of docs/differences.md explains it.
    Documented,
    /// An object is missing in --objects, so that our answer may be wrong.
    Uncertain,
    Finding,
}

/// The reviews that differ at one place.
struct DifferenceGroup {
    reviews: usize,
    example: Example,
}

/// The first review of a group.
struct Example {
    review: String,
    difference: Difference,
    reasons: Reasons,
    missing: Option<String>,
}

impl Report {
    /// Adds a result. Returns a line for stderr, if there is one.
    pub(super) fn add(&mut self, place: &str, compared: Compared) -> Option<String> {
        match compared {
            Compared::Ignored => self.ignored += 1,
            Compared::FailedOpen => self.failed_open += 1,
            Compared::Unreadable(problem) => {
                return self.unreadable.add().then(|| format!("{place}: {problem}"));
            }
            Compared::Same => {
                self.compared += 1;
                self.same += 1;
            }
            Compared::Differs(differing) => {
                self.compared += 1;
                self.add_differing(place, differing);
            }
        }
        None
    }

    fn add_differing(&mut self, place: &str, differing: Differing) {
        let Differing { object, differences, reasons, missing } = differing;
        for difference in differences {
            let missing = missing_for(&difference.place, &missing);
            let class = match (&difference.row, &missing) {
                (Some(_), _) => Class::Documented,
                (None, Some(_)) => Class::Uncertain,
                (None, None) => Class::Finding,
            };
            // Without the values: one cause gives thousands of reviews with values of their own.
            let key = (class, difference.place.clone(), difference.row);
            let new = || DifferenceGroup {
                reviews: 0,
                example: Example {
                    review: format!("{place} {object}"),
                    difference,
                    reasons: reasons.clone(),
                    missing,
                },
            };
            self.groups.entry(key).or_insert_with(new).reviews += 1;
        }
    }

    fn count(&self, class: Class) -> usize {
        self.groups.keys().filter(|(found, ..)| *found == class).count()
    }

    pub(super) fn print(&self, format: Format) -> io::Result<()> {
        let mut out = Printer::stdout();
        let Self { compared, same, ignored, .. } = self;
        if let Format::Json = format {
            let groups: Vec<_> = self.groups.values().map(DifferenceGroup::as_json).collect();
            let report = json!({"compared": compared, "same": same, "ignored": ignored,
                "failedOpen": self.failed_open, "unreadable": self.unreadable.count,
                "differences": groups});
            return out.json_line(&report);
        }
        let ignored = match ignored {
            0 => String::new(),
            _ => format!(" ({} ignored)", counted(*ignored, "unrelated audit event")),
        };
        let compared = counted(*compared, "review");
        out.line(&format!("compared {compared}: {same} identical{ignored}"))?;
        if self.failed_open > 0 {
            let objects = counted(self.failed_open, "object");
            out.line(&format!("{objects} admitted without an answer: the webhook failed open"))?;
        }
        for ((class, ..), group) in &self.groups {
            group.print(*class, &mut out)?;
        }
        Ok(())
    }

    /// The result that decides the exit code.
    ///
    /// # Errors
    /// There are unexplained differences, or the comparison is incomplete.
    pub(super) fn result(&self, webhook: &str) -> Result<(), CommandError> {
        let (findings, uncertain) = (self.count(Class::Finding), self.count(Class::Uncertain));
        let mut problems = Vec::new();
        if findings > 0 {
            let found = counted(findings, "difference");
            problems.push(format!("{found} not documented in docs/differences.md"));
        }
        if uncertain > 0 {
            problems.push(format!(
                "{} that may come from objects missing in --objects: add the namespaces and \
                 owners to that file",
                counted(uncertain, "difference")
            ));
        }
        if self.unreadable.count > 0 {
            let documents = counted(self.unreadable.count, "document");
            let hint = self.unreadable.hint();
            problems.push(format!("{documents} could not be compared{hint}"));
        }
        if self.compared == 0 {
            problems.push(format!(
                "nothing was compared: the input contains no review and no audit event with an \
                 answer of {webhook}; pass reviews with --url or --answers, or an audit log of \
                 level RequestResponse"
            ));
        }
        match (problems.join("; "), findings) {
            (problems, _) if problems.is_empty() => Ok(()),
            (problems, 0) => Err(CommandError::Incomplete(problems)),
            (problems, _) => Err(CommandError::Findings(problems)),
        }
    }
}

impl DifferenceGroup {
    fn print(&self, class: Class, out: &mut Printer<impl Write>) -> io::Result<()> {
        let Example { review, difference, reasons, missing } = &self.example;
        let Difference { place, theirs, ours, row } = difference;
        let title = match (class, row) {
            (Class::Documented, Some(row)) => format!("documented difference ({row})"),
            (Class::Documented, None) => "documented difference".to_owned(),
            (Class::Uncertain, _) => "may come from objects missing in --objects".to_owned(),
            (Class::Finding, _) => "DIFFERS".to_owned(),
        };
        out.line("")?;
        out.line(&format!("{title}: {place}, in {}", counted(self.reviews, "review")))?;
        out.line(&format!("  theirs  {}", shortened(theirs, reasons.theirs.as_deref())))?;
        out.line(&format!("  ours    {}", shortened(ours, reasons.ours.as_deref())))?;
        out.line(&format!("  in      {review}"))?;
        match missing {
            Some(missing) if class == Class::Uncertain => out.line(&format!("  missing {missing}")),
            _ => Ok(()),
        }
    }

    fn as_json(&self) -> Value {
        let Example { review, difference, reasons, missing } = &self.example;
        let Difference { place, theirs, ours, row } = difference;
        json!({"place": place, "row": row, "reviews": self.reviews, "example": {
            "review": review, "theirs": theirs, "theirReason": reasons.theirs, "ours": ours,
            "ourReason": reasons.ours, "missing": missing}})
    }
}

/// The missing objects that can cause a difference at `place`.
fn missing_for(place: &str, missing: &[Missing]) -> Option<String> {
    let objects: Vec<_> = missing
        .iter()
        .filter(|missing| missing.may_change(place))
        .map(|missing| missing.object.as_str())
        .collect();
    (!objects.is_empty()).then(|| objects.join(", "))
}

/// A value for the table, shortened, with its reason. JSON output has the full value.
fn shortened(value: &str, reason: Option<&str>) -> String {
    // Two lines of a terminal: the beginning of a value shows what it is.
    const SHOWN_CHARS: usize = 160;
    let value = match value.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None if value.is_empty() => "nothing".to_owned(),
        None => value.to_owned(),
    };
    match reason {
        Some(reason) => format!("{value} ({reason})"),
        None => value,
    }
}
