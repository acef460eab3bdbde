//! Failures of requests: a status with details, or its equivalent in a stream.

use std::time::Duration;

use injectd_telemetry::metrics::RejectReason;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::v1;

/// Time after which a client should retry.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Maximum length of a failure's text.
// A trailer carries it percent-encoded, up to three times as long. Clients take 8 KiB of trailers.
const MAX_TEXT_BYTES: usize = 1 << 10;

/// The failure of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    code: Code,
    message: String,
    /// The invalid field and its problem.
    violation: Option<(String, String)>,
    retry_delay: Option<Duration>,
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: short(message.into()), violation: None, retry_delay: None }
    }

    /// A field is not valid.
    pub(super) fn field(field: impl Into<String>, description: impl Into<String>) -> Self {
        let (field, description) = (short(field.into()), short(description.into()));
        let message = format!("{field}: {description}");
        Self { violation: Some((field, description)), ..Self::new(Code::InvalidArgument, message) }
    }

    /// The server is at a limit.
    pub(super) fn overloaded(message: &str) -> Self {
        Self { retry_delay: Some(RETRY_DELAY), ..Self::new(Code::ResourceExhausted, message) }
    }

    /// A lookup failed.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self { retry_delay: Some(RETRY_DELAY), ..Self::new(Code::Unavailable, message) }
    }

    /// The deadline has passed.
    pub(super) fn late() -> Self {
        Self::new(Code::DeadlineExceeded, "deadline exceeded")
    }

    /// The reason to count. Denied objects are counted with the reviews, messages over the memory
    /// budget by [`Bodies`](super::body::Bodies), and pods that wait too long where they wait.
    pub(super) fn rejected(&self) -> Option<RejectReason> {
        match self.code {
            Code::InvalidArgument => Some(RejectReason::NotAReview),
            Code::Unavailable => Some(RejectReason::Cluster),
            Code::DeadlineExceeded => Some(RejectReason::Deadline),
            _ => None,
        }
    }
}

/// Cuts a long text: a status is sent in headers, and clients limit the size of headers.
fn short(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
    text
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        let mut details = ErrorDetails::new();
        if let Some((field, description)) = failure.violation {
            details.add_bad_request_violation(field, description);
        }
        if let Some(delay) = failure.retry_delay {
            details.set_retry_info(Some(delay));
        }
        Self::with_error_details(failure.code, failure.message, details)
    }
}

impl From<Failure> for v1::Failure {
    fn from(failure: Failure) -> Self {
        let violation = failure.violation;
        Self {
            code: failure.code.into(),
            message: failure.message,
            field_violations: violation
                .map(|(field, description)| v1::FieldViolation { field, description })
                .into_iter()
                .collect(),
            retry_delay: failure.retry_delay.and_then(|delay| delay.try_into().ok()),
        }
    }
}
