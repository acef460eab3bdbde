//! The other injector's answers: from a URL, a file or the audit log.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
};

use injectd_cluster::causes::with_causes;
use injectd_command::{
    CommandError, counted,
    input::{self, MAX_FILE_BYTES},
    print::print_line,
    remote::{RemoteError, RemoteInjector, Verification},
};
use serde_json::Value;

use super::{
    super::stream::{Document, Documents, Errors, Step},
    meaning::Answer,
};

const NOT_AN_ANSWER: &str = "the answer is not an AdmissionReview with response.allowed";

/// The flags for the source of the other injector's answers; the default is the audit log.
#[derive(Debug, clap::Args)]
pub(super) struct BaselineArgs {
    /// URL of the other injector: https://HOST:PORT/PATH
    #[arg(long, conflicts_with = "answers")]
    url: Option<String>,
    /// PEM file with the CA bundle that verifies the server at --url [default: any certificate is
    /// accepted]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// File with the other injector's answers as a stream of AdmissionReviews. An answer belongs to
    /// the review with the same uid, or to the audit event with that auditID
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
}

/// The source of the other injector's answers.
pub(super) enum Baseline {
    Url(Box<RemoteInjector>),
    /// Answers by the uid of the review.
    Recorded(HashMap<String, Vec<u8>>),
    AuditLog,
}

impl BaselineArgs {
    pub(super) fn open(&self) -> Result<Baseline, CommandError> {
        // clap does not report this beside --answers, which excludes --url.
        if self.ca.is_some() && self.url.is_none() {
            let text = "--ca requires --url";
            return Err(CommandError::Usage(text.to_owned()));
        }
        if let Some(url) = &self.url {
            let ca = self.ca.as_deref().map(input::read).transpose()?;
            let verification = Verification { ca: ca.as_deref(), server_name: None };
            let injector = RemoteInjector::new(url, verification)
                .map_err(|error| CommandError::Usage(format!("--url {url}: {error}")))?;
            return Ok(Baseline::Url(Box::new(injector)));
        }
        let Some(path) = &self.answers else { return Ok(Baseline::AuditLog) };
        recorded_answers(path, MAX_FILE_BYTES).map(Baseline::Recorded)
    }
}

/// Reads the answers of a stream, by uid. The answers together have at most so many bytes.
fn recorded_answers(
    path: &Path,
    max_bytes: usize,
) -> Result<HashMap<String, Vec<u8>>, CommandError> {
    let file = input::name(path);
    let failed = |error| CommandError::failed(format!("cannot read --answers {file}"), error);
    let mut recorded = HashMap::new();
    let (mut errors, mut kept_bytes) = (Errors::default(), 0);
    let mut answers = Documents::new(input::open(path)?).map_err(failed)?;
    loop {
        let Document { line, text } = match answers.next().map_err(failed)? {
            Step::Document(answer) => answer,
            Step::Reads => continue,
            Step::End => break,
        };
        let problem = match text {
            Ok(text) => {
                // A text that is not JSON has no uid either, and gets the same message.
                let answer: Value = serde_json::from_slice(text).unwrap_or_default();
                if let Some(uid) = answer["response"]["uid"].as_str() {
                    kept_bytes += text.len();
                    if kept_bytes > max_bytes {
                        let limit = format!("more than {} MiB of answers", max_bytes >> 20);
                        let problem = format!("{limit}; compare the reviews in parts");
                        return Err(failed(io::Error::other(problem)));
                    }
                    recorded.insert(uid.to_owned(), text.to_vec());
                    continue;
                }
                "expected an AdmissionReview with a response".to_owned()
            }
            Err(error) => error.to_string(),
        };
        if errors.add() {
            print_line(&format!("--answers {file}:{line}: {problem}"));
        }
    }
    if errors.count > 0 {
        let unused = counted(errors.count, "document");
        print_line(&format!("--answers {file}: {unused} could not be used{}", errors.hint()));
    }
    Ok(recorded)
}

impl Baseline {
    /// The answer to a review: `text` and `review` are the same document, `logged` is the answer
    /// from an audit log. The inner error says why there is no answer to compare.
    pub(super) async fn answer(
        &mut self,
        text: &[u8],
        review: &Value,
        logged: Option<Answer>,
    ) -> Result<Result<Answer, String>, CommandError> {
        let answer = match (self, logged) {
            (Self::Url(injector), _) => match injector.review(text.to_vec()).await {
                Ok(answer) => Answer::of(&answer)
                    .ok_or_else(|| format!("--url: HTTP status 200, but {NOT_AN_ANSWER}")),
                Err(error @ (RemoteError::Connect(_) | RemoteError::Timeout)) => {
                    return Err(CommandError::failed("--url", error));
                }
                // An injector that panics at a review is a difference to report, whereas one that
                // cannot be reached would fail at all further ones.
                Err(error @ RemoteError::Closed(_)) => Ok(Answer::none(&error)),
                Err(error) => Err(format!("--url: {}", with_causes(&error))),
            },
            (Self::Recorded(answers), _) => {
                let uid = review["request"]["uid"].as_str().unwrap_or_default();
                match answers.get(uid) {
                    Some(answer) => Answer::of(answer)
                        .ok_or_else(|| format!("--answers, uid {uid}: {NOT_AN_ANSWER}")),
                    None => Err(format!("--answers contains no answer for uid {uid}")),
                }
            }
            (Self::AuditLog, Some(logged)) => Ok(logged),
            (Self::AuditLog, None) => {
                let text = "the input is an AdmissionReview without the other injector's answer; \
                            set --url or --answers, or pass an audit log";
                return Err(CommandError::Usage(text.to_owned()));
            }
        };
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_answers_have_a_limit() {
        let text = "x".repeat(600_000);
        let answer = |uid| format!("{{\"response\":{{\"uid\":\"{uid}\",\"x\":\"{text}\"}}}}\n");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), answer(1) + &answer(2)).expect("must be written");
        let read = |max_bytes| recorded_answers(file.path(), max_bytes);
        assert_eq!(read(2 << 20).expect("must be read").len(), 2);
        let error = with_causes(&read(1 << 20).expect_err("must be refused"));
        assert!(
            error.ends_with("more than 1 MiB of answers; compare the reviews in parts"),
            "{error}"
        );
    }
}
