//! Converts between the messages of the gRPC API and the types of the injector.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Instant};

use bytes::Bytes;
use injectd_k8s::names::{is_dns_label, is_dns_subdomain};
use injectd_profiles::{Profile, Profiles};

use super::{
    failure::Failure,
    v1::{self, InjectRequest, InjectResponse},
};
use crate::{
    lookups::{CallerFacts, Entries, Metadata},
    namespace::{KeySet, NamespaceReads},
    object::Kind,
    outcome::{Outcome, Verdict, Workload},
    request::{Request, Subject, View},
    review::{self, DecodeError, MAX_UID_BYTES},
    server::Permit,
};

/// Maximum length of a kind: kinds are DNS labels with capitals.
const MAX_KIND_BYTES: usize = 63;

type Result<T> = std::result::Result<T, Failure>;

/// A patch, and its memory, which is returned once the patch is sent.
struct Patch {
    json: Vec<u8>,
    _permit: Permit,
}

impl AsRef<[u8]> for Patch {
    fn as_ref(&self) -> &[u8] {
        &self.json
    }
}

/// Memory that a label or annotation takes in a map, without its key and value.
// Two texts of 24 bytes each, in a map that is about half full.
const ENTRY_BYTES: usize = 100;

/// Memory that a request takes while it is answered, in bytes.
pub(super) fn bytes_of(request: &InjectRequest) -> usize {
    let namespace = request.namespace_annotations.iter();
    let entries =
        namespace.flat_map(|namespace| namespace.annotations.iter().chain(&namespace.labels));
    let entries = entries.map(|(key, value)| ENTRY_BYTES + key.len() + value.len());
    let workload = request.workload.iter().map(|owner| owner.kind.len() + owner.name.len());
    let InjectRequest { uid, namespace, kind, object, injector, .. } = request;
    let texts = uid.len() + namespace.len() + kind.len() + object.len() + injector.len();
    texts + entries.chain(workload).sum::<usize>()
}

/// The profile that a request names.
///
/// # Errors
/// The field with the name, and the names that there are.
pub(super) fn named(profiles: &Profiles, request: &InjectRequest) -> Result<Profile> {
    let injector = request.injector.as_str();
    profiles.named(injector).ok_or_else(|| {
        let names: Vec<_> = profiles.names().iter().map(|name| format!("{name:?}")).collect();
        let names = match &*names {
            [] => "no injector yet".to_owned(),
            [name] => format!("one injector: {name}"),
            names => format!("the injectors {}", names.join(", ")),
        };
        Failure::field("injector", format!("is {injector:?}; this server has {names}"))
    })
}

/// Converts the object of a request to an object under review.
///
/// # Errors
/// The field that is not valid, or that contradicts the object.
pub(super) fn review_of<'a, O: View<'a>>(request: &'a InjectRequest) -> Result<Request<'a, O>> {
    let InjectRequest { uid, namespace, kind, object, .. } = request;
    if uid.len() > MAX_UID_BYTES {
        let problem = format!("must not be longer than {MAX_UID_BYTES} bytes");
        return Err(Failure::field("uid", problem));
    }
    if !is_dns_label(namespace) {
        return Err(Failure::field("namespace", "expected the name of a namespace"));
    }
    let mut reviewed = review::decode_object::<O>(uid, namespace, kind, object)
        .map_err(|error| unreadable(&error))?;
    reviewed.dry_run = request.dry_run;
    match &reviewed.subject {
        Subject::Unreadable(error) => {
            let field = format!("object.{}", error.field());
            Err(Failure::field(field.trim_end_matches('.'), error.problem()))
        }
        Subject::Absent => Err(Failure::field("object", "expected an object, found null")),
        Subject::Object(object) => {
            let (own_kind, own_namespace) = (object.kind(), object.namespace());
            if kind.is_empty() && own_kind.is_empty() {
                let problem = "must be set: the object has no kind";
                return Err(Failure::field("kind", problem));
            }
            must_agree("kind", kind, own_kind, str::eq_ignore_ascii_case)?;
            must_agree("namespace", namespace, own_namespace, str::eq)?;
            Ok(reviewed)
        }
    }
}

/// A field of the request must equal that of the object, if both are set.
fn must_agree(
    field: &str,
    requested: &str,
    own: &str,
    is_same: fn(&str, &str) -> bool,
) -> Result<()> {
    if requested.is_empty() || own.is_empty() || is_same(requested, own) {
        return Ok(());
    }
    Err(Failure::field(field, format!("is {requested:?}, but the object has {own:?}")))
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

/// The facts that the caller supplies in place of a lookup. Keeps only the labels and annotations of the
/// namespace that the mesh reads.
///
/// # Errors
/// The field that is not valid.
pub(super) fn facts<'a>(
    request: &'a InjectRequest,
    kind: Kind,
    deadline: Instant,
    reads: &NamespaceReads,
) -> Result<CallerFacts<'a>> {
    let namespace = request.namespace_annotations.as_ref().map(|namespace| {
        Arc::new(Metadata {
            labels: read(&namespace.labels, &reads.labels),
            annotations: read(&namespace.annotations, &reads.annotations),
        })
    });
    let workload = match &request.workload {
        None => None,
        Some(_) if kind != Kind::Pod => {
            let problem = "applies only to pods; leave it unset";
            return Err(Failure::field("workload", problem));
        }
        Some(workload) => Some(workload_of(workload)?),
    };
    let deadline = Some(deadline);
    Ok(CallerFacts { namespace, workload, deadline, ..CallerFacts::default() })
}

/// What is read of the labels or annotations of a namespace.
fn read(all: &HashMap<String, String>, keys: &KeySet) -> Entries {
    let read = all.iter().filter(|(key, _)| keys.has(key));
    read.map(|(key, text)| (key.clone(), text.clone())).collect()
}

fn workload_of(workload: &v1::Workload) -> Result<Workload<'_>> {
    if !is_kind(&workload.kind) {
        return Err(Failure::field("workload.kind", "expected a kind, such as Deployment"));
    }
    if !is_dns_subdomain(&workload.name) {
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

/// The response for an outcome. `permit` is returned to the budget once the patch is sent.
pub(super) fn response(
    uid: &str,
    outcome: &Outcome<'_>,
    patch: Vec<u8>,
    permit: Permit,
) -> InjectResponse {
    let verdict = match outcome.verdict {
        Verdict::Injected => v1::Verdict::Injected,
        Verdict::Annotated => v1::Verdict::Annotated,
        Verdict::Skipped | Verdict::Allowed | Verdict::Denied => v1::Verdict::Skipped,
    };
    let skips = outcome.reasons.iter().map(|(_, reason)| v1::Skip {
        reason: reason.code.to_owned(),
        message: reason.text.to_owned(),
    });
    let warnings = outcome.warnings.kept().iter().map(|warning| v1::Warning {
        annotation: warning.annotation.to_owned(),
        problem: warning.problem.clone(),
    });
    InjectResponse {
        uid: uid.to_owned(),
        verdict: verdict.into(),
        patch: Bytes::from_owner(Patch { json: patch, _permit: permit }),
        skips: skips.collect(),
        warnings: warnings.collect(),
        configuration_generation: outcome.configuration.generation,
        release: outcome.configuration.release.clone(),
        omitted_warnings: outcome.warnings.left_out() as u64,
    }
}
