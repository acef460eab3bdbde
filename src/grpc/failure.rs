//! Why a request gets no response: a status with details, or its like in a stream.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::v1;
use crate::metrics::Refused;

/// When a request is worth another try.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Longest text of a failure.
const MAX_TEXT_BYTES: usize = 1 << 10;

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    code: Code,
    message: String,
    /// The field that is wrong, and what is wrong with it.
    violation: Option<(String, String)>,
    retry_delay: Option<Duration>,
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: short(message.into()), violation: None, retry_delay: None }
    }

    /// A field is wrong.
    pub(super) fn field(field: impl Into<String>, description: impl Into<String>) -> Self {
        let (field, description) = (short(field.into()), short(description.into()));
        let message = format!("{field}: {description}");
        Self { violation: Some((field, description)), ..Self::new(Code::InvalidArgument, message) }
    }

    /// More than is answered at a time.
    pub(super) fn overloaded(message: &str) -> Self {
        Self { retry_delay: Some(RETRY_DELAY), ..Self::new(Code::ResourceExhausted, message) }
    }

    /// A lookup failed.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self { retry_delay: Some(RETRY_DELAY), ..Self::new(Code::Unavailable, message) }
    }

    /// The caller has stopped waiting.
    pub(super) fn late() -> Self {
        Self::new(Code::DeadlineExceeded, "deadline exceeded")
    }

    /// What it is counted as; refused objects are counted with the reviews.
    pub(super) fn refused(&self) -> Option<Refused> {
        match self.code {
            Code::InvalidArgument => Some(Refused::NotAReview),
            Code::ResourceExhausted => Some(Refused::Requests),
            Code::Unavailable => Some(Refused::Cluster),
            Code::DeadlineExceeded => Some(Refused::Deadline),
            _ => None,
        }
    }
}

/// A status goes into headers, which clients take only so much of.
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
