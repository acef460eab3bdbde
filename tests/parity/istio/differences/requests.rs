//! Rows about requests.

use serde_json::Value;

use super::{
    super::answer::{Review, Verdict},
    Answer, Context,
};

const KIND: &str = "AdmissionReview";
const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// Upstream panicked and closed the connection.
pub(crate) fn no_panic(_: &Context<'_>, seen: &Answer) -> Option<Answer> {
    matches!(seen, Answer::Closed).then_some(Answer::Status(400))
}

/// A body that is not UTF-8 is refused. Upstream replaces the wrong bytes.
pub(crate) fn utf8_only(context: &Context<'_>, _: &Answer) -> Option<Answer> {
    std::str::from_utf8(&context.case.body).is_err().then_some(Answer::Status(400))
}

/// A body that is not JSON is denied. Upstream reads some of them as YAML.
pub(crate) fn json_only(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    const NOT_JSON: &str = "couldn't get version/kind; json parse error: invalid character ";
    let is_read = seen.denial().is_some_and(|message| message.starts_with("json: "));
    (context.review.is_none() && is_read)
        .then(|| seen.with_verdict(Verdict::Denied(NOT_JSON.to_owned())))?
}

/// An answer has the uid of its request and a type. Upstream's has none if the request could not be
/// decoded.
pub(crate) fn answer_type(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    let review = seen.review()?;
    let given = |pointer| context.review.as_ref().and_then(|review| review.pointer(pointer));
    let uid = given("/request/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
    let version = given("/apiVersion").and_then(Value::as_str);
    let version = version.filter(|version| VERSIONS.contains(version)).unwrap_or(VERSIONS[0]);
    let type_meta = [version.to_owned(), KIND.to_owned()];
    Some(Answer::Review(Review { type_meta, uid, ..review.clone() }))
}

/// Requests without an object, DELETE, CONNECT and subresources are allowed without a patch.
/// Upstream denies a missing object, and injects into the others.
pub(crate) fn no_object(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    let request = context.request()?;
    let has_subresource = !text(&request["subResource"]).is_empty();
    let has_nothing = request["object"].is_null()
        || matches!(text(&request["operation"]), "DELETE" | "CONNECT")
        || has_subresource;
    if has_nothing { seen.with_verdict(Verdict::Skipped) } else { None }
}

/// Objects that are no pods are allowed without a patch. Upstream takes them for pods.
pub(crate) fn other_kinds(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    let request = context.request()?;
    let kind = match text(&request["object"]["kind"]) {
        "" => text(&request["kind"]["kind"]),
        own => own,
    };
    if kind == "Pod" || seen.denial().is_some() {
        None
    } else {
        seen.with_verdict(Verdict::Skipped)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
