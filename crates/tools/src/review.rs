//! `injectd review`: reads a stream of reviews and prints one answer per line.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use injectd_command::{
    CommandError,
    config::{ConfigArgs, Purpose},
    counted, input,
    print::{json_shown, stdout},
};
use injectd_core::{linkerd::events, outcome::Outcome};
use injectd_profiles::for_mesh;
use serde_json::json;
use tokio::runtime::Runtime;

use super::{
    answering::Answering,
    sidecars::{self, TemplateArgs},
    stream::{Document, Documents, Errors, Step},
};

/// Answer admission reviews from files or stdin, as the webhook does
///
/// Reads a stream of JSON documents, one per line or pretty-printed, plain or compressed with gzip
/// or zstd. Prints one line per review, in the order of the input, and flushes stdout before it
/// waits for more input. For a review that cannot be read it prints {"error": …, "file": …,
/// "line": N} and exits with 1 at the end. For Linkerd, only the first 100 errors are printed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files or directories with reviews; - reads stdin [default: stdin]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Also print the Kubernetes event that the webhook would send: {"review": …, "event": …}; the
    /// event is null if it would send none
    #[arg(long)]
    events: bool,
    #[command(flatten)]
    templates: TemplateArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let (answering, path) = answering(args)?;
    let mut run = Run {
        answering,
        path,
        runtime: tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|error| CommandError::failed("cannot start the async runtime", error))?,
        events: args.events,
        out: io::BufWriter::new(stdout()),
        errors: Errors::default(),
    };
    for path in input::all_files(&args.files)? {
        run.answer_file(&path)?;
    }
    match run.errors.count {
        0 => Ok(()),
        count => Err(CommandError::Incomplete(format!(
            "{} could not be read{}",
            counted(count, "review"),
            run.errors.hint()
        ))),
    }
}

/// Who answers, and the path of the requests, or why there is no answer.
fn answering(args: &Args) -> Result<(Answering, Result<String, String>), CommandError> {
    if args.templates.is_set() {
        let events = args.events.then_some("--events");
        sidecars::must_suit(args.config.set_for_a_mesh().or(events))?;
        let templates = args.templates.read(&args.files)?;
        return Ok((Answering::templates(templates, &args.config)?, Ok(String::new())));
    }
    let profile = args.config.standalone_profile(Purpose::Replay)?;
    if args.events {
        args.config.must_be_linkerd("--events")?;
    }
    let path = args.config.path(&profile);
    Ok((Answering::Mesh(profile), path))
}

struct Run<W> {
    answering: Answering,
    /// The path of the requests, or why there is no answer.
    path: Result<String, String>,
    runtime: Runtime,
    events: bool,
    out: W,
    errors: Errors,
}

impl<W: Write> Run<W> {
    fn answer_file(&mut self, path: &Path) -> Result<(), CommandError> {
        let file = input::name(path);
        let failed = |error| CommandError::failed(format!("cannot read {file}"), error);
        let mut reviews = Documents::new(input::open(path)?).map_err(failed)?;
        loop {
            let written = match reviews.next().map_err(failed)? {
                Step::Document(review) => self.answer(&file, &review),
                // The caller may wait for an answer before it writes more.
                Step::Reads => self.out.flush(),
                Step::End => return self.out.flush().map_err(CommandError::output),
            };
            written.map_err(CommandError::output)?;
        }
    }

    fn answer(&mut self, file: &str, review: &Document<'_>) -> io::Result<()> {
        let answer = match (&review.text, &self.path) {
            (Ok(text), Ok(path)) => {
                // Messages quote a body; the end of its line is not part of it.
                let text = text.trim_ascii_end();
                self.runtime.block_on(answer(&self.answering, path, text, self.events))
            }
            (Err(error), _) => Err(error.to_string()),
            (_, Err(problem)) => Err(problem.clone()),
        };
        let line = match answer {
            Ok(line) => line,
            Err(error) if self.errors.add() || self.answering.denies_other_bodies() => {
                json!({ "error": error, "file": file, "line": review.line })
                    .to_string()
                    .into_bytes()
            }
            Err(_) => return Ok(()),
        };
        match str::from_utf8(&line) {
            Ok(line) => self.out.write_all(json_shown(line).as_bytes())?,
            Err(_) => self.out.write_all(&line)?,
        }
        self.out.write_all(b"\n")
    }
}

async fn answer(
    answering: &Answering,
    path: &str,
    review: &[u8],
    events: bool,
) -> Result<Vec<u8>, String> {
    use std::error::Error as _;
    match answering.review(path, review).await {
        Ok(answer) if events => {
            let mut line = br#"{"review":"#.to_vec();
            line.extend_from_slice(&answer.body);
            let event = event_of(answering, &answer.outcome).await;
            line.extend_from_slice(format!(",\"event\":{event}}}").as_bytes());
            Ok(line)
        }
        Ok(answer) => Ok(answer.body),
        Err(error) => Err(match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        }),
    }
}

/// The event as a `core/v1` object in JSON, or `null`.
async fn event_of(answering: &Answering, outcome: &Outcome<'_>) -> String {
    let (Some(event), Answering::Mesh(profile)) = (&outcome.event, answering) else {
        return "null".to_owned();
    };
    let object =
        for_mesh!(profile, injector => events::involved_object(injector.lookups(), event).await);
    match object {
        Some(object) => events::to_json(&event.namespace, &object, event.reasons).to_string(),
        None => "null".to_owned(),
    }
}
