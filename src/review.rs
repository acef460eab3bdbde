//! The wire format of admission: `AdmissionReview` in, `AdmissionReview` out.
//!
//! Decoding borrows from the body and skips what nobody asks for, `managedFields` among it, a third
//! of a usual review. Encoding writes one buffer; a patch is appended to it as base64 by the
//! template itself.
//!
//! Not for rules: what is answered is decided elsewhere.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use crate::{
    json::{self, Read, ReadError, Reader},
    outcome::Outcome,
    patch::{Base64Sink, Reply},
    pod::{Bare, Kind, Object, Text, view},
};

/// Longest uid, which is echoed: an API server's has 36 bytes.
pub const MAX_UID_BYTES: usize = 64 << 10;

/// Why a body got no `AdmissionReview` for an answer.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not UTF-8, so not JSON.
    #[error("the body is not UTF-8")]
    NotUtf8(#[source] std::str::Utf8Error),
    /// Not JSON.
    #[error("the body is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// Not of a review's shape.
    #[error("the body is not an AdmissionReview")]
    NotAReview(#[source] ReadError),
    /// A review whose request or `uid` is missing, or whose `uid` is none: it could not be answered.
    #[error("the AdmissionReview has no request with a uid")]
    NoRequest,
}

/// The object of a request.
#[derive(Debug)]
pub enum Subject<'a> {
    /// None that is going to be stored: a deletion, a connection, a request to a part of an object.
    Absent,
    /// An object that could be read.
    Object(Box<Object<'a>>),
    /// An object with a wrong type in a field that is read, and where.
    Unreadable(ReadError),
}

/// An admission request and what its review says of itself.
#[derive(Debug)]
pub struct Request<'a> {
    /// `kind` of the review, echoed.
    pub review_kind: Text<'a>,
    /// `apiVersion` of the review, echoed: `admission.k8s.io/v1` or `v1beta1`.
    pub review_api_version: Text<'a>,
    /// The admission request's uid, echoed.
    pub uid: Text<'a>,
    /// The object's own kind, else the request's.
    pub kind: Kind,
    /// Namespace of the request; empty for objects outside of namespaces.
    pub namespace: Text<'a>,
    /// Whether nothing is going to be stored.
    pub dry_run: bool,
    /// The object under review.
    pub subject: Subject<'a>,
}

/// An `AdmissionReview` that answers a request, as JSON.
#[derive(Debug)]
pub struct Response<'r, 'a> {
    request: &'r Request<'a>,
    out: Vec<u8>,
}

view! {
    struct GroupVersionKind {
        kind: Text<'a> = "kind",
    }
}

view! {
    struct Review {
        kind: Text<'a> = "kind",
        api_version: Text<'a> = "apiVersion",
        request: Option<ReviewRequest<'a>> = "request",
    }
}

view! {
    struct ReviewRequest {
        uid: Text<'a> = "uid",
        kind: GroupVersionKind<'a> = "kind",
        namespace: Text<'a> = "namespace",
        operation: Text<'a> = "operation",
        sub_resource: Text<'a> = "subResource",
        dry_run: Option<bool> = "dryRun",
        object: Found<'a> = "object",
    }
}

/// What stands where the object should be.
#[derive(Debug, Default)]
enum Found<'a> {
    #[default]
    Nothing,
    Object(Box<Object<'a>>),
    /// A text that is read again once the kind is known.
    Other(&'a str, ReadError),
}

impl<'a> Read<'a> for Found<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        let begin = reader.clone();
        let mut object = None::<Box<Object<'a>>>;
        *self = match object.read(reader) {
            Ok(()) => object.map_or(Self::Nothing, Self::Object),
            Err(error) => {
                *reader = begin.clone();
                reader.skip()?;
                Self::Other(reader.since(&begin), error)
            }
        };
        Ok(())
    }
}

impl<'a> Request<'a> {
    /// The request of a door that has only the object as JSON. `kind` counts where the object does
    /// not tell its own.
    ///
    /// # Errors
    /// When the object is no JSON; other trouble is [`Subject::Unreadable`].
    pub fn of_object(
        uid: &'a str,
        namespace: &'a str,
        kind: &str,
        object: &'a [u8],
    ) -> Result<Self, DecodeError> {
        let text = utf8(object)?;
        let mut reader = Reader::new(text);
        let mut found = Found::default();
        let read = found.read(&mut reader).and_then(|()| reader.end());
        if read.is_err() || matches!(found, Found::Other(..)) {
            serde_json::from_str::<IgnoredAny>(text).map_err(DecodeError::NotJson)?;
        }
        read.map_err(DecodeError::NotAReview)?;
        let (kind, subject) = found.subject(true, kind);
        Ok(Self {
            review_kind: Text::default(),
            review_api_version: Text::default(),
            uid: Text(Cow::Borrowed(uid)),
            kind,
            namespace: Text(Cow::Borrowed(namespace)),
            dry_run: false,
            subject,
        })
    }
}

/// Reads a review.
///
/// # Errors
/// When no answer can be addressed: not UTF-8, not JSON, not a review, no `uid`. An object that
/// cannot be understood is no error: it is [`Subject::Unreadable`], so that the request is denied.
pub fn decode(body: &[u8]) -> Result<Request<'_>, DecodeError> {
    let body = utf8(body)?;
    let mut reader = Reader::new(body);
    let mut review = Review::default();
    let read = review.read(&mut reader).and_then(|()| reader.end());
    let request = review.request.as_ref();
    if read.is_err() || request.is_some_and(|it| matches!(it.object, Found::Other(..))) {
        // The second look: what is no JSON at all is not worth a denial.
        serde_json::from_str::<IgnoredAny>(body).map_err(DecodeError::NotJson)?;
    }
    read.map_err(DecodeError::NotAReview)?;
    review.into_request()
}

fn utf8(body: &[u8]) -> Result<&str, DecodeError> {
    simdutf8::basic::from_utf8(body)
        .or_else(|_| std::str::from_utf8(body))
        .map_err(DecodeError::NotUtf8)
}

impl<'a> Review<'a> {
    fn into_request(self) -> Result<Request<'a>, DecodeError> {
        let is_one = |uid: &str| !uid.is_empty() && uid.len() <= MAX_UID_BYTES;
        let request = self.request.filter(|request| is_one(&request.uid));
        let request = request.ok_or(DecodeError::NoRequest)?;
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

impl<'a> Found<'a> {
    /// The kind, which the object tells or else the request, and what is under review.
    fn subject(self, is_whole: bool, requested_kind: &str) -> (Kind, Subject<'a>) {
        match self {
            Self::Object(object) if is_whole => {
                let kind = kind_of(&object.kind, requested_kind);
                (kind, Subject::Object(completed(object, kind)))
            }
            Self::Other(text, error) if is_whole => read_bare(text, error, requested_kind),
            _ => (Kind::of(requested_kind), Subject::Absent),
        }
    }
}

/// Of a kind that is not known only the metadata is read, whatever its spec looks like.
fn read_bare<'a>(text: &'a str, error: ReadError, requested_kind: &str) -> (Kind, Subject<'a>) {
    let Ok(bare) = json::read::<Bare<'a>>(text) else {
        return (Kind::of(requested_kind), Subject::Unreadable(error));
    };
    match kind_of(&bare.kind, requested_kind) {
        Kind::Other => (Kind::Other, Subject::Object(Box::new(bare.into()))),
        kind => (kind, Subject::Unreadable(error)),
    }
}

fn completed(mut object: Box<Object<'_>>, kind: Kind) -> Box<Object<'_>> {
    object.complete_template(kind);
    object
}

fn kind_of(own: &str, requested: &str) -> Kind {
    Kind::of(if own.is_empty() { requested } else { own })
}

// === impl Response ===

impl<'r, 'a> Response<'r, 'a> {
    /// An answer to a request.
    #[must_use]
    pub fn new(request: &'r Request<'a>) -> Self {
        Self { request, out: Vec::new() }
    }

    /// Starts the answer up to and including `"uid"`; `capacity` bytes are expected to follow.
    fn begin(&mut self, capacity: usize) {
        let Self { request, out } = self;
        out.reserve(capacity + 512);
        out.push(b'{');
        let types: [(&[u8], _); 2] = [
            (br#""kind":"#, &request.review_kind),
            (br#""apiVersion":"#, &request.review_api_version),
        ];
        for (key, text) in types {
            if !text.is_empty() {
                out.extend_from_slice(key);
                json::write_string(out, text);
                out.push(b',');
            }
        }
        out.extend_from_slice(br#""response":{"uid":"#);
        json::write_string(out, &request.uid);
    }

    /// The whole answer: with what the audit log is told, and warnings for whoever sent the object.
    #[must_use]
    pub fn end(self, outcome: &Outcome<'_>) -> Vec<u8> {
        let mut out = self.out;
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
        out.extend_from_slice(if outcome.warnings.is_empty() { b"}}" } else { b"]}}" });
        out
    }
}

impl Reply for Response<'_, '_> {
    type Patch<'s>
        = Base64Sink<'s>
    where
        Self: 's;

    fn allow(&mut self) {
        self.begin(0);
        self.out.extend_from_slice(br#","allowed":true"#);
    }

    fn deny(&mut self, reason: &str) {
        self.begin(reason.len());
        self.out.extend_from_slice(br#","allowed":false,"status":{"metadata":{},"message":"#);
        json::write_string(&mut self.out, reason);
        self.out.push(b'}');
    }

    fn begin_patch(&mut self, base64_len: usize) -> Base64Sink<'_> {
        self.begin(base64_len);
        self.out.extend_from_slice(br#","allowed":true,"patchType":"JSONPatch","patch":""#);
        Base64Sink::new(&mut self.out)
    }

    fn end_patch(&mut self) {
        self.out.push(b'"');
    }
}

#[cfg(test)]
mod tests;
