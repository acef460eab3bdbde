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
use injectd_core::{linkerd::events, lookups::CallerFacts, outcome::Outcome};
use injectd_profiles::{Profile, for_mesh};
use serde_json::json;
use tokio::runtime::Runtime;

use super::stream::{Document, Documents, Errors, Step};

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
    config: ConfigArgs,
}

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let profile = args.config.standalone_profile(Purpose::Replay)?;
    if args.events {
        args.config.must_be_linkerd("--events")?;
    }
    let path = args.config.path(&profile);
    let mut run = Run {
        profile,
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

struct Run<W> {
    profile: Profile,
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
                self.runtime.block_on(answer(&self.profile, path, text, self.events))
            }
            (Err(error), _) => Err(error.to_string()),
            (_, Err(problem)) => Err(problem.clone()),
        };
        let line = match answer {
            Ok(line) => line,
            Err(error) if self.errors.add() || self.profile.denies_other_bodies() => {
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
    profile: &Profile,
    path: &str,
    review: &[u8],
    events: bool,
) -> Result<Vec<u8>, String> {
    use std::error::Error as _;
    let facts = CallerFacts { path, ..CallerFacts::default() };
    match profile.review_with(facts, review).await {
        Ok(answer) if events => {
            let mut line = br#"{"review":"#.to_vec();
            line.extend_from_slice(&answer.body);
            let event = event_of(profile, &answer.outcome).await;
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
async fn event_of(profile: &Profile, outcome: &Outcome<'_>) -> String {
    let Some(event) = &outcome.event else { return "null".to_owned() };
    let object =
        for_mesh!(profile, injector => events::involved_object(injector.lookups(), event).await);
    match object {
        Some(object) => events::to_json(&event.namespace, &object, event.reasons).to_string(),
        None => "null".to_owned(),
    }
}
