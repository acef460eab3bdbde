//! The wire format of admission: `AdmissionReview` in, `AdmissionReview` out.
//!
//! Decoding borrows from the body and skips unread fields such as `managedFields`, a third of a
//! usual review. Encoding writes one buffer, to which the template appends the patch as base64.
//!
//! Not for decisions: other modules make them.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use crate::{
    json::{self, Read, ReadError, Reader},
    object::Kind,
    outcome::Outcome,
    patch::PatchBuffer,
    request::{Request, Subject, View},
    view::{Text, view},
};

/// Maximum size of a review: upstream's limit.
pub const MAX_BODY_BYTES: usize = 10 << 20;
/// Maximum length of a uid, which is echoed: an API server's has 36 bytes.
pub const MAX_UID_BYTES: usize = 64 << 10;

/// Why a body cannot be answered with an `AdmissionReview`.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not UTF-8, so not JSON.
    #[error("the body is not UTF-8")]
    NotUtf8(#[source] std::str::Utf8Error),
    /// Not JSON.
    #[error("the body is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// Not in the shape of a review.
    #[error("the body is not an AdmissionReview")]
    NotAReview(#[source] ReadError),
    /// The request or its `uid` is missing, or the `uid` is too long: a response needs it.
    #[error("the AdmissionReview has no request with a uid")]
    NoRequest,
}

/// The start of an answer with a patch, which follows as base64.
const PATCH_HEAD: &[u8] = br#"{"response":{"patchType":"JSONPatch","patch":""#;

view! {
    struct GroupVersionKind {
        kind: Text<'a> = "kind",
    }
}

view! {
    struct Review<O: View<'a>> {
        kind: Text<'a> = "kind",
        api_version: Text<'a> = "apiVersion",
        request: Option<ReviewRequest<'a, O>> = "request",
    }
}

view! {
    struct ReviewRequest<O: View<'a>> {
        uid: Text<'a> = "uid",
        kind: GroupVersionKind<'a> = "kind",
        namespace: Text<'a> = "namespace",
        operation: Text<'a> = "operation",
        sub_resource: Text<'a> = "subResource",
        dry_run: Option<bool> = "dryRun",
        object: Found<'a, O> = "object",
    }
}

/// The value of the field `object`.
#[derive(Debug, Default)]
enum Found<'a, O> {
    #[default]
    Nothing,
    Object(Box<O>),
    /// JSON that is read again once the kind is known.
    Other(&'a str, ReadError),
}

impl<'a, O: View<'a>> Read<'a> for Found<'a, O> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        let begin = reader.clone();
        let mut object = None::<Box<O>>;
        *self = match object.read(reader) {
            Ok(()) => object.map_or(Self::Nothing, Self::Object),
            // The kind that decides whether the error counts stands in the object, or in the
            // request behind it.
            Err(error) => {
                *reader = begin.clone();
                reader.skip()?;
                Self::Other(reader.since(&begin), error)
            }
        };
        Ok(())
    }
}

/// Decodes a review.
///
/// # Errors
/// When no response can be addressed: not UTF-8, not JSON, not a review, no `uid`. An object that
/// cannot be decoded is not an error but [`Subject::Unreadable`], so that the request is denied.
pub fn decode<'a, O: View<'a>>(body: &'a [u8]) -> Result<Request<'a, O>, DecodeError> {
    let body = utf8(body)?;
    let mut reader = Reader::new(body);
    let mut review = Review::<O>::default();
    let read = review.read(&mut reader).and_then(|()| reader.end());
    let request = review.request.as_ref();
    if read.is_err() || request.is_some_and(|request| matches!(request.object, Found::Other(..))) {
        // A body that is not JSON is an error and not a denial.
        serde_json::from_str::<IgnoredAny>(body).map_err(DecodeError::NotJson)?;
    }
    read.map_err(DecodeError::NotAReview)?;
    review.into_request()
}

/// The request of a server that has only the object, as JSON. `kind` applies if the object has no
/// kind.
///
/// # Errors
/// When the object is not JSON; a wrong type in it is [`Subject::Unreadable`].
pub fn decode_object<'a, O: View<'a>>(
    uid: &'a str,
    namespace: &'a str,
    kind: &str,
    object: &'a [u8],
) -> Result<Request<'a, O>, DecodeError> {
    let text = utf8(object)?;
    let mut reader = Reader::new(text);
    let mut found = Found::default();
    let read = found.read(&mut reader).and_then(|()| reader.end());
    if read.is_err() || matches!(found, Found::Other(..)) {
        serde_json::from_str::<IgnoredAny>(text).map_err(DecodeError::NotJson)?;
    }
    read.map_err(DecodeError::NotAReview)?;
    let (kind, subject) = found.subject(true, kind);
    Ok(Request {
        review_kind: Text::default(),
        review_api_version: Text::default(),
        uid: Text(Cow::Borrowed(uid)),
        kind,
        namespace: Text(Cow::Borrowed(namespace)),
        dry_run: false,
        subject,
    })
}

fn utf8(body: &[u8]) -> Result<&str, DecodeError> {
    // The fast check has no place of an error: only a body that fails it is checked again.
    simdutf8::basic::from_utf8(body)
        .or_else(|_| std::str::from_utf8(body))
        .map_err(DecodeError::NotUtf8)
}

impl<'a, O: View<'a>> Review<'a, O> {
    fn into_request(self) -> Result<Request<'a, O>, DecodeError> {
        let is_valid =
            |uid: &str| (O::MAY_LACK_UID || !uid.is_empty()) && uid.len() <= MAX_UID_BYTES;
        let request = self.request.filter(|request| is_valid(&request.uid));
        let request = request.ok_or(DecodeError::NoRequest)?;
        // Objects of subresources, such as a Binding, and objects that go away get no sidecar.
        let is_whole =
            request.sub_resource.is_empty() && !matches!(&*request.operation, "DELETE" | "CONNECT");
        let (kind, subject) = request.object.subject(is_whole, &request.kind.kind);
        Ok(Request {
            review_kind: self.kind,
            review_api_version: self.api_version,
            uid: request.uid,
            kind,
            namespace: request.namespace,
            dry_run: request.dry_run.unwrap_or_default(),
            subject,
        })
    }
}

impl<'a, O: View<'a>> Found<'a, O> {
    /// The kind of the object, or else of the request, and the subject of the review.
    fn subject(self, is_whole: bool, requested_kind: &str) -> (Kind, Subject<O>) {
        match self {
            Self::Object(mut object) if is_whole => {
                let kind = kind_of(object.kind(), requested_kind);
                object.complete(kind);
                (kind, Subject::Object(object))
            }
            Self::Other(json, error) if is_whole => read_bare(json, error, requested_kind),
            _ => (Kind::of(requested_kind), Subject::Absent),
        }
    }
}

/// The subject of a review whose object could not be read. The spec of a kind that injection does
/// not read may have any shape.
fn read_bare<'a, O: View<'a>>(
    json: &'a str,
    error: ReadError,
    requested_kind: &str,
) -> (Kind, Subject<O>) {
    let Ok(bare) = O::read_bare(json) else {
        return (Kind::of(requested_kind), Subject::Unreadable(error));
    };
    match kind_of(bare.kind(), requested_kind) {
        kind @ (Kind::Namespace | Kind::Other) => (kind, Subject::Object(Box::new(bare))),
        kind => (kind, Subject::Unreadable(error)),
    }
}

fn kind_of(own: &str, requested: &str) -> Kind {
    Kind::of(if own.is_empty() { requested } else { own })
}

/// A buffer for the patch in the answer to a review.
#[must_use]
pub fn patch_buffer() -> PatchBuffer {
    PatchBuffer::base64(PATCH_HEAD)
}

/// The answer to a request as an `AdmissionReview`, with audit annotations and with warnings for the
/// client. `patch` must come from [`patch_buffer`].
#[must_use]
pub fn encode<O>(request: &Request<'_, O>, outcome: &Outcome<'_>, patch: PatchBuffer) -> Vec<u8> {
    let mut out = patch.into_bytes();
    if out.is_empty() {
        out.reserve(512 + outcome.denial.as_ref().map_or(0, |reason| reason.len()));
        out.extend_from_slice(br#"{"response":{"uid":"#);
    } else {
        out.extend_from_slice(br#"","uid":"#);
    }
    json::write_string(&mut out, &request.uid);
    match &outcome.denial {
        None => out.extend_from_slice(br#","allowed":true"#),
        Some(reason) => {
            out.extend_from_slice(br#","allowed":false,"status":{"metadata":{},"message":"#);
            json::write_string(&mut out, reason);
            out.push(b'}');
        }
    }
    out.extend_from_slice(br#","auditAnnotations":{"verdict":"#);
    json::write_string(&mut out, outcome.verdict.as_str());
    if !outcome.reasons.is_empty() {
        out.extend_from_slice(br#","reasons":"#);
        json::write_string(&mut out, &outcome.reasons.joined());
    }
    out.push(b'}');
    for (index, warning) in outcome.warnings.lines().enumerate() {
        out.extend_from_slice(if index == 0 { br#","warnings":["# } else { b"," });
        json::write_string(&mut out, &warning);
    }
    out.extend_from_slice(if outcome.warnings.is_empty() { b"}" } else { b"]}" });
    let types: [(&[u8], _); 2] = [
        (br#","kind":"#, &request.review_kind),
        (br#","apiVersion":"#, &request.review_api_version),
    ];
    for (key, text) in types {
        if !text.is_empty() {
            out.extend_from_slice(key);
            json::write_string(&mut out, text);
        }
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests;
