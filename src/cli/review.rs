//! `injectd review`: a stream of reviews in, one answer per line out.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use super::{
    CommandError,
    config::{Bundle, ConfigArgs},
    input,
    stream::Reviews,
};
use crate::{injector::Injector, linkerd::events, outcome::Outcome};

/// Answer admission reviews from files or stdin, as the webhook would
///
/// The reviews follow each other as JSON, on one line each or pretty-printed. Each gets one line
/// of output, in the order of the input. One that cannot be read gets {"error": …, "line": N}, and
/// the exit code is 1 at the end.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of reviews; - is stdin [default: stdin]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print {"review": …, "event": …}: the answer and the Kubernetes event that the review leads
    /// to, or null
    #[arg(long)]
    events: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let injector = args.config.standalone_injector(&[], Bundle::Anything)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| CommandError::failed("cannot start", error))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut unreadable = 0;
    for path in input::files(&args.files)? {
        let mut reviews = Reviews::new(input::open(&path)?);
        let failed =
            |error| CommandError::failed(format!("cannot read {}", input::name(&path)), error);
        while let Some(line) = reviews.next().map_err(failed)? {
            let answer = runtime.block_on(answer(&injector, &reviews.text, args.events));
            let answer = answer.unwrap_or_else(|error| {
                unreadable += 1;
                serde_json::json!({ "error": error, "line": line }).to_string().into_bytes()
            });
            out.write_all(&answer)
                .and_then(|()| out.write_all(b"\n"))
                .map_err(CommandError::output)?;
        }
    }
    out.flush().map_err(CommandError::output)?;
    match unreadable {
        0 => Ok(()),
        count => Err(CommandError::Incomplete(format!("{count} reviews could not be read"))),
    }
}

async fn answer(injector: &Injector, review: &[u8], events: bool) -> Result<Vec<u8>, String> {
    use std::error::Error as _;
    match injector.review(review).await {
        Ok(answer) if events => {
            let mut line = br#"{"review":"#.to_vec();
            line.extend_from_slice(&answer.body);
            let event = event_of(injector, &answer.outcome).await;
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

/// The event as `core/v1` writes it, or `null`.
async fn event_of(injector: &Injector, outcome: &Outcome<'_>) -> String {
    let Some(event) = &outcome.event else { return "null".to_owned() };
    match injector.involved_object(event).await {
        Some(object) => events::to_json(&event.namespace, &object, event.reasons).to_string(),
        None => "null".to_owned(),
    }
}
