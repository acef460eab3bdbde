//! Requests and responses of the gRPC API, and what they are to the injector.

use std::borrow::Cow;

use bytes::Bytes;

use super::{
    failure::Failure,
    v1::{self, InjectRequest, InjectResponse},
};
use crate::{
    cluster::is_object_name,
    injector::Known,
    linkerd::events,
    outcome::{Outcome, SkipReason, Verdict, Workload},
    pod::{Kind, TextMap},
    review::{self, DecodeError, MAX_UID_BYTES, Subject},
    server::Taken,
};

/// Longest kind of an object: they are DNS labels in capitals.
const MAX_KIND_BYTES: usize = 63;

type Result<T> = std::result::Result<T, Failure>;

/// A patch, and the room that is given back when it is sent.
struct Patch {
    json: Vec<u8>,
    _room: Taken,
}

impl AsRef<[u8]> for Patch {
    fn as_ref(&self) -> &[u8] {
        &self.json
    }
}

/// Memory that an annotation takes in a map beside its key and value.
const ENTRY_BYTES: usize = 100;

/// Bytes that a request takes while it is answered.
pub(super) fn bytes_of(request: &InjectRequest) -> usize {
    let annotations = request.namespace_annotations.iter().flat_map(|it| &it.annotations);
    let annotations = annotations.map(|(key, value)| ENTRY_BYTES + key.len() + value.len());
    let workload = request.workload.iter().map(|it| it.kind.len() + it.name.len());
    let InjectRequest { uid, namespace, kind, object, .. } = request;
    let texts = uid.len() + namespace.len() + kind.len() + object.len();
    texts + annotations.chain(workload).sum::<usize>()
}

/// The object of a request as an object under review.
///
/// # Errors
/// The field that cannot be used, or that contradicts the object.
pub(super) fn review_of(request: &InjectRequest) -> Result<review::Request<'_>> {
    let InjectRequest { uid, namespace, kind, object, .. } = request;
    if uid.len() > MAX_UID_BYTES {
        let problem = format!("must not be longer than {MAX_UID_BYTES} bytes");
        return Err(Failure::field("uid", problem));
    }
    if !is_object_name(namespace) {
        return Err(Failure::field("namespace", "expected the name of a namespace"));
    }
    let mut reviewed = review::Request::of_object(uid, namespace, kind, object)
        .map_err(|error| unreadable(&error))?;
    reviewed.dry_run = request.dry_run;
    match &reviewed.subject {
        Subject::Unreadable(error) => {
            let field = format!("object.{}", error.field());
            Err(Failure::field(field.trim_end_matches('.'), error.problem()))
        }
        Subject::Absent => Err(Failure::field("object", "expected an object, found null")),
        Subject::Object(object) => {
            let (own_kind, own_namespace) = (&*object.kind, &*object.metadata.namespace);
            if kind.is_empty() && own_kind.is_empty() {
                let problem = "must be set: the object has no kind of its own";
                return Err(Failure::field("kind", problem));
            }
            must_agree("kind", kind, own_kind, str::eq_ignore_ascii_case)?;
            must_agree("namespace", namespace, own_namespace, str::eq)?;
            Ok(reviewed)
        }
    }
}

/// What a request says of an object must be what the object says of itself, if it says anything.
fn must_agree(
    field: &str,
    requested: &str,
    own: &str,
    is_same: fn(&str, &str) -> bool,
) -> Result<()> {
    if requested.is_empty() || own.is_empty() || is_same(requested, own) {
        return Ok(());
    }
    Err(Failure::field(field, format!("is {requested:?}, but the object says {own:?}")))
}

fn unreadable(error: &DecodeError) -> Failure {
    let description = match error {
        DecodeError::NotUtf8(error) => format!("expected JSON: {error}"),
        DecodeError::NotJson(error) => format!("expected JSON: {error}"),
        DecodeError::NotAReview(error) => error.to_string(),
        DecodeError::NoRequest => error.to_string(),
    };
    Failure::field("object", description)
}

/// What the caller knows better than the cluster.
///
/// # Errors
/// The field that cannot be used.
pub(super) fn known<'a>(
    request: &'a InjectRequest,
    reviewed: &review::Request<'_>,
) -> Result<Known<'a>> {
    let namespace_annotations = request.namespace_annotations.as_ref().map(|namespace| {
        let all = namespace.annotations.iter();
        all.filter(|(key, _)| TextMap::matters(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    });
    let workload = match &request.workload {
        None => None,
        Some(_) if reviewed.kind != Kind::Pod => {
            let problem = "only a pod has a workload behind it; leave it out";
            return Err(Failure::field("workload", problem));
        }
        Some(workload) => Some(workload_of(workload)?),
    };
    Ok(Known { namespace_annotations, workload })
}

fn workload_of(workload: &v1::Workload) -> Result<Workload<'_>> {
    if !is_kind(&workload.kind) {
        return Err(Failure::field("workload.kind", "expected a kind, such as Deployment"));
    }
    if !is_object_name(&workload.name) {
        return Err(Failure::field("workload.name", "expected the name of an object"));
    }
    Ok(Workload {
        kind: Cow::Owned(workload.kind.to_ascii_lowercase()),
        name: Cow::Borrowed(workload.name.as_str()),
        object_uid: Cow::Borrowed(""),
    })
}

fn is_kind(kind: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    kind.len() <= MAX_KIND_BYTES
        && kind.starts_with(|first: char| first.is_ascii_alphabetic())
        && kind.bytes().all(is_inner)
}

/// What became of an object. `room` is given back once the patch is sent.
pub(super) fn response(
    uid: &str,
    outcome: &Outcome<'_>,
    patch: Vec<u8>,
    room: Taken,
) -> InjectResponse {
    let verdict = match outcome.verdict {
        Verdict::Injected => v1::Verdict::Injected,
        Verdict::Annotated => v1::Verdict::Annotated,
        Verdict::Skipped | Verdict::Allowed | Verdict::Denied => v1::Verdict::Skipped,
    };
    let skips = outcome.reasons.iter().map(|reason| v1::Skip {
        reason: skip_reason(reason).into(),
        message: events::words(reason).to_owned(),
    });
    let warnings = outcome.warnings.kept().iter().map(|warning| v1::Warning {
        annotation: warning.annotation.to_owned(),
        problem: warning.problem.clone(),
    });
    InjectResponse {
        uid: uid.to_owned(),
        verdict: verdict.into(),
        patch: Bytes::from_owner(Patch { json: patch, _room: room }),
        skips: skips.collect(),
        warnings: warnings.collect(),
        configuration_generation: outcome.generation,
        release: outcome.release.to_string(),
        omitted_warnings: outcome.warnings.left_out() as u64,
    }
}

fn skip_reason(reason: SkipReason) -> v1::SkipReason {
    match reason {
        SkipReason::HostNetwork => v1::SkipReason::HostNetwork,
        SkipReason::SidecarExists => v1::SkipReason::SidecarExists,
        SkipReason::UnsupportedResource => v1::SkipReason::UnsupportedResource,
        SkipReason::InvalidNamespaceAnnotation => v1::SkipReason::InvalidNamespaceAnnotation,
        SkipReason::InvalidPodAnnotation => v1::SkipReason::InvalidPodAnnotation,
        SkipReason::DisabledByPod => v1::SkipReason::DisabledByPod,
        SkipReason::NotEnabled => v1::SkipReason::NotEnabled,
        SkipReason::NoServiceAccountToken => v1::SkipReason::NoServiceAccountToken,
    }
}
