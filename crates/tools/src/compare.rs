//! `injectd compare`: compares the answers of injectd and another injector to the same reviews.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use injectd_command::{
    CommandError,
    config::{ConfigArgs, Purpose},
    input,
};
use injectd_core::{linkerd::events, objects::Objects, standalone::Standalone};
use injectd_profiles::Profile;
use serde_json::Value;

use self::{
    audit::{AuditLog, Event, Recorded},
    baseline::{Baseline, BaselineArgs},
    meaning::{Answer, Meaning, differences},
    report::{Compared, Differing, Format, Reasons, Report},
};
use super::{
    answering::Answering,
    progress::Progress,
    sidecars::{self, TemplateArgs},
    stream::{Document, Documents, Step},
};

mod audit;
mod baseline;
mod meaning;
mod missing;
mod pods;
mod report;

/// Compare with another injector: at a URL, from recorded answers, or from an audit log
///
/// The input is a stream of admission reviews, or an API server's audit log, plain or compressed
/// with gzip or zstd. The audit log needs level RequestResponse for pods; it then contains the
/// other injector's patches. It contains no objects of denied requests, so compare finds no
/// differences in denials.
///
/// For Istio and sidecar templates, compare applies both patches and compares the pods; it cannot use
/// audit logs. Of templates, the annotation and label that mark their pods do not count, nor does the
/// order of volumes and mounts.
///
/// Differences that docs/differences.md documents are listed by name. Any other difference leads to
/// exit code 3. Differences that may come from a namespace or owner missing in --objects are listed
/// separately and lead to exit code 1; without --objects, all of them are missing. The exit code is
/// also 1 if some or all of the input could not be compared.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files or directories with reviews or audit events; - reads stdin [default: stdin]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    theirs: BaselineArgs,
    /// Name of the other injector's webhook in the audit log
    #[arg(long, value_name = "NAME", default_value = audit::DEFAULT_WEBHOOK)]
    webhook: String,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,
    #[command(flatten)]
    templates: TemplateArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

/// A comparison of two injectors.
struct Comparison {
    answering: Answering,
    /// The path of the reviews.
    path: String,
    /// The objects of --objects; empty without the flag.
    objects: Arc<Objects>,
    theirs: Baseline,
    audit_log: AuditLog,
    report: Report,
    progress: Progress,
}

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
pub fn run(args: &Args) -> Result<(), CommandError> {
    if args.templates.is_set() {
        sidecars::must_suit(args.config.set_for_a_mesh())?;
    } else {
        args.config.must_suit_the_mesh()?;
    }
    let theirs = args.theirs.open()?;
    let Ours { answering, path, objects } = Ours::of(args, &theirs)?;
    let files = input::all_files(&args.files)?;
    let mut comparison = Comparison {
        path,
        answering,
        objects,
        theirs,
        audit_log: AuditLog::new(&args.webhook),
        report: Report::default(),
        progress: Progress::of(&files),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::failed("cannot start the async runtime", error))?;
    for path in files {
        runtime.block_on(comparison.compare_file(&path))?;
    }
    let Comparison { report, audit_log, progress, .. } = comparison;
    drop(progress);
    report.print(args.output).map_err(CommandError::output)?;
    audit_log.result().map_err(CommandError::Incomplete)?;
    report.result(&args.webhook)
}

/// Who gives our answers.
struct Ours {
    answering: Answering,
    path: String,
    objects: Arc<Objects>,
}

impl Ours {
    fn of(args: &Args, theirs: &Baseline) -> Result<Self, CommandError> {
        let is_log = matches!(theirs, Baseline::AuditLog);
        let needs = |flag: &str, whose: &str| {
            CommandError::Usage(format!(
                "compare {flag} needs --url or --answers: an audit log does not have what the patches {whose} \
                 replaced"
            ))
        };
        if args.templates.is_set() {
            if is_log {
                return Err(needs("--templates", "of an injector"));
            }
            let templates = args.templates.read(&args.files)?;
            let answering = Answering::templates(templates, &args.config)?;
            return Ok(Self { answering, path: String::new(), objects: Arc::default() });
        }
        let objects = args.config.objects(Purpose::Replay)?.map(Arc::new);
        let profile = if args.config.is_istio() {
            if is_log {
                return Err(needs("--mesh istio", "of Istio"));
            }
            args.config.standalone_profile(Purpose::Replay)?
        } else {
            let everywhere = || Standalone::default();
            let standalone = objects.clone().map_or_else(everywhere, Standalone::ListedInPart);
            let injector = args.config.injector(standalone.into(), Purpose::Replay)?;
            Profile::Linkerd(Arc::new(injector))
        };
        let path = args.config.path(&profile).map_err(CommandError::Usage)?;
        let objects = objects.unwrap_or_default();
        Ok(Self { answering: Answering::Mesh(profile), path, objects })
    }
}

impl Comparison {
    async fn compare_file(&mut self, path: &Path) -> Result<(), CommandError> {
        let file = input::name(path);
        let reader = self.progress.reader(input::open(path)?);
        let read = match Documents::new(reader) {
            Ok(documents) => self.compare_documents(&file, documents).await?,
            Err(error) => Err(error),
        };
        if let Err(error) = read {
            self.add(&file, Compared::Unreadable(format!("cannot read: {error}")));
        }
        Ok(())
    }

    /// Compares the documents of a file, up to its end or a read error.
    async fn compare_documents(
        &mut self,
        file: &str,
        mut documents: Documents,
    ) -> Result<io::Result<()>, CommandError> {
        loop {
            match documents.next() {
                Ok(Step::Document(document)) => self.compare_document(file, &document).await?,
                Ok(Step::Reads) => self.progress.draw(),
                Ok(Step::End) => return Ok(Ok(())),
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    fn add(&mut self, place: &str, compared: Compared) {
        if let Some(line) = self.report.add(place, compared) {
            self.progress.print_line(&line);
        }
    }

    async fn compare_document(
        &mut self,
        file: &str,
        document: &Document<'_>,
    ) -> Result<(), CommandError> {
        self.progress.add();
        let place = format!("{file}:{}", document.line);
        let compared = match read(document) {
            Err(problem) => Compared::Unreadable(problem),
            Ok((text, tree)) => match audit::events(&tree) {
                None => self.compare(text, &tree, None).await?,
                Some(events) => {
                    for event in events {
                        let compared = self.compare_event(event).await?;
                        self.add(&place, compared);
                    }
                    return Ok(());
                }
            },
        };
        self.add(&place, compared);
        Ok(())
    }

    async fn compare_event(&mut self, event: &Value) -> Result<Compared, CommandError> {
        match self.audit_log.read(event) {
            Ok(Event::Answered(Recorded { review, patch, reason })) => {
                let logged = Answer { meaning: Meaning::Allowed(patch), reason };
                self.compare(review.to_string().as_bytes(), &review, Some(logged)).await
            }
            Ok(Event::FailedOpen) => Ok(Compared::FailedOpen),
            Ok(Event::Ignored) => Ok(Compared::Ignored),
            Err(problem) => Ok(Compared::Unreadable(problem)),
        }
    }

    /// Compares the answers to a review: `text` and `review` are the same document, `logged` is the
    /// answer from an audit log.
    async fn compare(
        &mut self,
        text: &[u8],
        review: &Value,
        logged: Option<Answer>,
    ) -> Result<Compared, CommandError> {
        let theirs = match self.theirs.answer(text, review, logged).await? {
            Ok(theirs) => theirs,
            Err(problem) => return Ok(Compared::Unreadable(problem)),
        };
        let (object, ours, has_object) = match self.answering.review(&self.path, text).await {
            Ok(answer) => {
                let outcome = &answer.outcome;
                let object =
                    format!("{} {}/{}", outcome.kind.as_str(), &*outcome.namespace, &*outcome.name);
                let reason =
                    Some(events::in_words(outcome.reasons)).filter(|reason| !reason.is_empty());
                let ours = Answer::of(&answer.body).map_or(Meaning::NoAnswer, |own| own.meaning);
                (object, Answer { meaning: ours, reason }, !review["request"]["object"].is_null())
            }
            Err(error) => ("invalid review".to_owned(), Answer::none(&error), true),
        };
        // Two errors are no agreement: whether the injectors would differ is not known.
        if let (Meaning::NoAnswer, Meaning::NoAnswer) = (&theirs.meaning, &ours.meaning) {
            let reason = ours.reason.unwrap_or_default();
            return Ok(Compared::Unreadable(format!("neither injector answered: {reason}")));
        }
        let (their_meaning, our_meaning) = (&theirs.meaning, &ours.meaning);
        let request = &review["request"];
        let differences = match &self.answering {
            Answering::Mesh(Profile::Linkerd(_)) => {
                differences(their_meaning, our_meaning, has_object)
            }
            Answering::Mesh(Profile::Istio(_) | Profile::Templates(_)) => {
                pods::differences(their_meaning, our_meaning, request)
            }
            Answering::Templates(_) => pods::of_templates(their_meaning, our_meaning, request),
        };
        if differences.is_empty() {
            return Ok(Compared::Same);
        }
        let reasons = Reasons { theirs: theirs.reason, ours: ours.reason };
        let missing = match &self.answering {
            Answering::Mesh(Profile::Linkerd(_)) => missing::missing(&self.objects, text),
            // Only OpenShift's ids and native sidecars depend on objects.
            Answering::Mesh(Profile::Istio(_) | Profile::Templates(_)) => Vec::new(),
            Answering::Templates(injector) => missing::of_templates(&injector.mesh(), request),
        };
        Ok(Compared::Differs(Differing { object, differences, reasons, missing }))
    }
}

/// Parses a document; returns its text and its tree.
fn read<'d>(document: &Document<'d>) -> Result<(&'d [u8], Value), String> {
    let text = document
        .text
        .as_ref()
        .map_err(|error| format!("{error}; audit logs need one event per line"))?;
    let tree = serde_json::from_slice(text).map_err(|error| format!("not JSON: {error}"))?;
    Ok((text, tree))
}
