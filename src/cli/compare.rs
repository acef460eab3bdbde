//! `injectd compare`: the same reviews through another injector, every difference in meaning.

#![expect(clippy::disallowed_types, reason = "compares answers after the fact")]

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use self::{
    audit::{AuditLog, Event, Recorded},
    meaning::{Difference, Meaning, differences},
    other::Other,
};
use super::{
    CommandError,
    config::{Bundle, ConfigArgs},
    input, note,
    stream::Reviews,
};
use crate::injector::Injector;

mod audit;
mod meaning;
mod other;

/// Compare with another injector: its URL, its recorded answers, or an API server's audit log
///
/// The input is a stream of admission reviews, or an audit log (level `RequestResponse` for pods),
/// which holds the other injector's patches itself. A request that was denied leaves no object in
/// an audit log, so that it shows no difference in denials. Differences that are meant
/// (docs/differences.md) are named; any other ends with exit code 3.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of reviews or audit events; - is stdin [default: stdin]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The other injector's address: https://HOST:PORT/
    #[arg(long, conflicts_with = "answers")]
    url: Option<String>,
    /// Certificates to trust at --url, PEM [default: any certificate will do]
    #[arg(long, value_name = "FILE", requires = "url")]
    ca: Option<PathBuf>,
    /// The other injector's answers, one `AdmissionReview` per line; matched by uid, in an audit
    /// log the event's auditID
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// The other injector's webhook, by its name in the audit log
    #[arg(long, value_name = "NAME", default_value = audit::DEFAULT_WEBHOOK)]
    webhook: String,
    /// How to print what was found
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Table,
    Json,
}

/// Where the other injector's answers come from.
enum Theirs {
    Url(Box<Other>),
    Recorded(HashMap<String, Vec<u8>>),
    AuditLog,
}

/// Two injectors, and what is compared.
struct Comparison {
    injector: Injector,
    theirs: Theirs,
    audit_log: AuditLog,
    report: Report,
}

/// What was found so far.
#[derive(Default)]
struct Report {
    compared: usize,
    same: usize,
    passed_over: usize,
    failed_open: usize,
    unreadable: usize,
    causes: BTreeMap<(bool, String), Cause>,
}

/// Reviews that differ at one place.
struct Cause {
    row: Option<&'static str>,
    reviews: usize,
    example: (String, Difference),
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let mut comparison = Comparison {
        injector: args.config.standalone_injector(&[], Bundle::Anything)?,
        theirs: args.theirs()?,
        audit_log: AuditLog::new(&args.webhook),
        report: Report::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::failed("cannot start", error))?;
    for path in input::files(&args.files)? {
        runtime.block_on(comparison.compare_file(&path))?;
    }
    comparison.report.print(args.output).map_err(CommandError::output)?;
    comparison.audit_log.result().map_err(CommandError::Incomplete)?;
    comparison.report.result()
}

impl Args {
    fn theirs(&self) -> Result<Theirs, CommandError> {
        if let Some(url) = &self.url {
            let ca = self.ca.as_deref().map(input::read).transpose()?;
            let other = Other::new(url, ca.as_deref())
                .map_err(|error| CommandError::Usage(format!("--url {url}: {error}")))?;
            return Ok(Theirs::Url(Box::new(other)));
        }
        let Some(path) = &self.answers else { return Ok(Theirs::AuditLog) };
        let failed =
            |error| CommandError::failed(format!("cannot read {}", input::name(path)), error);
        let mut recorded = HashMap::new();
        let mut answers = Reviews::new(input::open(path)?);
        while let Some(line) = answers.next().map_err(failed)? {
            let answer: Value = serde_json::from_slice(&answers.text).unwrap_or_default();
            let Some(uid) = answer["response"]["uid"].as_str() else {
                note(&format!(
                    "{}: line {line}: no AdmissionReview with a response",
                    input::name(path)
                ));
                continue;
            };
            recorded.insert(uid.to_owned(), answers.text.clone());
        }
        Ok(Theirs::Recorded(recorded))
    }
}

/// What became of a review.
enum Compared {
    Same,
    Differs(String, Vec<Difference>),
    PassedOver,
    FailedOpen,
    Unreadable(String),
}

impl Comparison {
    async fn compare_file(&mut self, path: &Path) -> Result<(), CommandError> {
        let failed =
            |error| CommandError::failed(format!("cannot read {}", input::name(path)), error);
        let mut reviews = Reviews::new(input::open(path)?);
        while let Some(line) = reviews.next().map_err(failed)? {
            let place = format!("{}:{line}", input::name(path));
            let Ok(document) = serde_json::from_slice(&reviews.text) else {
                self.report.add(&place, Compared::Unreadable("not JSON".to_owned()));
                continue;
            };
            let Some(events) = audit::events(&document) else {
                let compared = self.compare(&reviews.text, &document, None).await?;
                self.report.add(&place, compared);
                continue;
            };
            for event in events {
                let compared = self.compare_event(event).await?;
                self.report.add(&place, compared);
            }
        }
        Ok(())
    }

    async fn compare_event(&mut self, event: &Value) -> Result<Compared, CommandError> {
        match self.audit_log.read(event) {
            Ok(Event::Answered(Recorded { review, patch })) => {
                let logged = Meaning::Allowed(patch);
                self.compare(review.to_string().as_bytes(), &review, Some(logged)).await
            }
            Ok(Event::FailedOpen) => Ok(Compared::FailedOpen),
            Ok(Event::PassedOver) => Ok(Compared::PassedOver),
            Err(why) => Ok(Compared::Unreadable(why)),
        }
    }

    /// Compares the answers to a review: its text, the same as a tree, and what the log tells.
    async fn compare(
        &mut self,
        text: &[u8],
        review: &Value,
        logged: Option<Meaning>,
    ) -> Result<Compared, CommandError> {
        let theirs = match (&mut self.theirs, logged) {
            (Theirs::Url(other), _) => match other.review(text.to_vec()).await {
                Ok(answer) => Meaning::of(&answer),
                Err(error @ (other::OtherError::Connect(_) | other::OtherError::Timeout)) => {
                    return Err(CommandError::failed("--url", error));
                }
                Err(_) => Meaning::NoAnswer,
            },
            (Theirs::Recorded(answers), _) => {
                let uid = review["request"]["uid"].as_str().unwrap_or_default();
                let Some(answer) = answers.get(uid) else {
                    return Ok(Compared::Unreadable(format!("--answers has none for uid {uid}")));
                };
                Meaning::of(answer)
            }
            (Theirs::AuditLog, Some(logged)) => logged,
            (Theirs::AuditLog, None) => {
                let text =
                    "reviews need another injector's --url or --answers; an audit log does not";
                return Err(CommandError::Usage(text.to_owned()));
            }
        };
        let (name, ours, has_object) = match self.injector.review(text).await {
            Ok(answer) => {
                let outcome = &answer.outcome;
                let name =
                    format!("{} {}/{}", outcome.kind.as_str(), &*outcome.namespace, &*outcome.name);
                (name, Meaning::of(&answer.body), !review["request"]["object"].is_null())
            }
            Err(_) => ("no review".to_owned(), Meaning::NoAnswer, true),
        };
        let found = differences(&theirs, &ours, has_object);
        Ok(if found.is_empty() { Compared::Same } else { Compared::Differs(name, found) })
    }
}

impl Report {
    fn add(&mut self, place: &str, compared: Compared) {
        match compared {
            Compared::PassedOver => self.passed_over += 1,
            Compared::FailedOpen => self.failed_open += 1,
            Compared::Unreadable(why) => {
                self.unreadable += 1;
                note(&format!("{place}: {why}"));
            }
            Compared::Same => {
                self.compared += 1;
                self.same += 1;
            }
            Compared::Differs(name, found) => {
                self.compared += 1;
                for difference in found {
                    let key = (difference.row.is_some(), difference.place.clone());
                    let new = || Cause {
                        row: difference.row,
                        reviews: 0,
                        example: (format!("{place} {name}"), difference),
                    };
                    self.causes.entry(key).or_insert_with(new).reviews += 1;
                }
            }
        }
    }

    fn unexplained(&self) -> usize {
        self.causes.values().filter(|cause| cause.row.is_none()).count()
    }

    fn print(&self, format: Format) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if let Format::Json = format {
            let causes: Vec<_> = self.causes.values().map(Cause::as_json).collect();
            return writeln!(
                out,
                "{}",
                json!({"compared": self.compared, "same": self.same, "passedOver": self.passed_over,
                    "failedOpen": self.failed_open, "unreadable": self.unreadable, "differences": causes})
            );
        }
        let Self { compared, same, passed_over, .. } = self;
        writeln!(out, "{compared} reviews compared, {same} the same, {passed_over} passed over")?;
        if self.failed_open > 0 {
            writeln!(out, "{} objects let in while the webhook failed", self.failed_open)?;
        }
        for (is_meant, title) in [(true, "differs as meant"), (false, "DIFFERS")] {
            for cause in self.causes.values().filter(|cause| cause.row.is_some() == is_meant) {
                let row = cause.row.map(|row| format!(" ({row})")).unwrap_or_default();
                let (review, Difference { place, theirs, ours, .. }) = &cause.example;
                writeln!(out, "\n{title}{row}: {place}, reviews: {}", cause.reviews)?;
                writeln!(out, "  theirs  {}\n  ours    {}", shortened(theirs), shortened(ours))?;
                writeln!(out, "  in      {review}")?;
            }
        }
        Ok(())
    }

    fn result(&self) -> Result<(), CommandError> {
        match (self.unexplained(), self.unreadable) {
            (0, 0) => Ok(()),
            (0, count) => {
                Err(CommandError::Incomplete(format!("{count} documents could not be compared")))
            }
            (count, _) => {
                Err(CommandError::Findings(format!("{count} differences that no row explains")))
            }
        }
    }
}

/// A value for a table; JSON output has it whole.
fn shortened(text: &str) -> String {
    const SHOWN_CHARS: usize = 160;
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Cause {
    fn as_json(&self) -> Value {
        let (review, Difference { place, theirs, ours, .. }) = &self.example;
        json!({"place": place, "row": self.row, "reviews": self.reviews,
            "example": {"review": review, "theirs": theirs, "ours": ours}})
    }
}
