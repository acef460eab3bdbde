//! The review around the pod: what Istio answers to bodies that are not one.
//!
//! Istio answers HTTP 200 and `allowed: false` where Linkerd's injector answers HTTP 400. The texts
//! are those of Kubernetes' decoder (`pkg/kube/inject/webhook.go`, `serveInject`).

use injectd_core::{
    injector::{Answer, Injector, ReviewError},
    lookups::{CallerFacts, Lookups},
    mesh::Mesh as _,
    object::Kind,
    outcome::{Outcome, SkipReasons},
    request::{Request, Subject},
    review::{self, DecodeError},
    view::Text,
};
use injectd_gotemplate::check_json;
use injectd_merge::json_type;
use serde_json::Value as Json;

use crate::{
    mesh::Istio,
    object::Object,
    parts::{self, Part},
};

const KIND: &str = "AdmissionReview";
const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];
const GROUP: &str = "admission.k8s.io/";

/// The start of a text on a body that is not JSON.
const NOT_JSON: &str = "couldn't get version/kind; json parse error: ";

/// A mark that some programs put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The scalar fields of a request, with their types in Go.
const SCALARS: [(&str, &str); 7] = [
    ("uid", "types.UID"),
    ("subResource", "string"),
    ("requestSubResource", "string"),
    ("name", "string"),
    ("namespace", "string"),
    ("operation", "v1.Operation"),
    ("dryRun", "bool"),
];

/// What is read of a body that is not a review: its type, and the scalars of its request.
const REVIEW: Part = Part::Keys(&[
    ("kind", Part::Scalar),
    ("apiVersion", Part::Scalar),
    (
        "request",
        Part::Keys(&[
            ("uid", Part::Scalar),
            ("subResource", Part::Scalar),
            ("requestSubResource", Part::Scalar),
            ("name", Part::Scalar),
            ("namespace", Part::Scalar),
            ("operation", Part::Scalar),
            ("dryRun", Part::Scalar),
        ]),
    ),
]);

/// Answers a review. Denies a body that is not a review.
///
/// # Errors
/// When the body is empty, is not UTF-8, or has no request: Istio closes the connection then. When a lookup
/// fails.
pub async fn review<'a, L: Lookups>(
    injector: &'a Injector<Istio, L>,
    facts: CallerFacts<'a>,
    body: &'a [u8],
) -> Result<Answer<'a>, ReviewError> {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    match review::decode::<Object<'a>>(body) {
        Ok(request) if is_review(&request) => injector.answer_review(&request, facts).await,
        Err(error @ DecodeError::NotUtf8(_)) => Err(error.into()),
        Err(error @ DecodeError::NoRequest) if is_review_text(body) => Err(error.into()),
        Err(error) if body.is_empty() => Err(error.into()),
        found => {
            let tree = parts::of(body, REVIEW).unwrap_or_default();
            let message = problem(body, &tree).unwrap_or_else(|| match found {
                Ok(_) => "the body is not an AdmissionReview".to_owned(),
                Err(error) => error.to_string(),
            });
            Ok(denied(injector, &tree, message))
        }
    }
}

fn is_review(request: &Request<'_, Object<'_>>) -> bool {
    *request.review_kind == *KIND && VERSIONS.contains(&&*request.review_api_version)
}

/// Whether a body says that it is a review, although it cannot be read as one.
fn is_review_text(body: &[u8]) -> bool {
    let tree = parts::of(body, REVIEW).unwrap_or_default();
    problem(body, &tree).is_none()
}

/// What is wrong with a body, in the words of Kubernetes' decoder.
fn problem(body: &[u8], tree: &Json) -> Option<String> {
    let shown = || String::from_utf8_lossy(body);
    if body.trim_ascii().is_empty() {
        return Some(format!("Object 'Kind' is missing in '{}'", shown()));
    }
    if let Err(error) = check_json(body) {
        return Some(format!("{NOT_JSON}{error}"));
    }
    if !tree.is_object() && !tree.is_null() {
        let into =
            r#"into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; "#;
        let into = format!(r#"{into}Kind string "json:\"kind,omitempty\"" }}"#);
        return Some(format!("{NOT_JSON}json: cannot unmarshal {} {into}", json_type(tree)));
    }
    let text = |key: &str| tree[key].as_str().unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if kind.is_empty() {
        return Some(format!("Object 'Kind' is missing in '{}'", shown()));
    }
    if version.is_empty() {
        return Some(format!("Object 'apiVersion' is missing in '{}'", shown()));
    }
    if !version.starts_with(GROUP) {
        return Some(format!("unsupported type :&TypeMeta{{Kind:{kind},APIVersion:{version},}}"));
    }
    if kind != KIND || !VERSIONS.contains(&version) {
        return Some(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \
             \"pkg/runtime/scheme.go:111\""
        ));
    }
    let request = &tree["request"];
    if !request.is_object() && !request.is_null() {
        let found = json_type(request);
        return Some(format!(
            "json: cannot unmarshal {found} into Go struct field AdmissionReview.request of type \
             v1.AdmissionRequest"
        ));
    }
    SCALARS.iter().find_map(|(field, go_type)| {
        let value = &request[field];
        let fits = if *go_type == "bool" { value.is_boolean() } else { value.is_string() };
        (!fits && !value.is_null()).then(|| {
            let found = json_type(value);
            format!(
                "json: cannot unmarshal {found} into Go struct field \
                 AdmissionRequest.request.{field} of type {go_type}"
            )
        })
    })
}

/// The denial of a body. It has the uid of the request, where Istio's has none.
fn denied<'a, L: Lookups>(
    injector: &Injector<Istio, L>,
    tree: &Json,
    message: String,
) -> Answer<'a> {
    let uid = tree["request"]["uid"].as_str().filter(|uid| uid.len() <= review::MAX_UID_BYTES);
    let version = tree["apiVersion"].as_str().filter(|version| VERSIONS.contains(version));
    let request = Request::<Object<'a>> {
        review_kind: Text::owned(KIND),
        review_api_version: Text::owned(version.unwrap_or(VERSIONS[0])),
        uid: Text::owned(uid.unwrap_or_default()),
        kind: Kind::Other,
        namespace: Text::default(),
        dry_run: false,
        subject: Subject::Absent,
    };
    let mesh = injector.mesh();
    let configuration = std::sync::Arc::clone(mesh.configuration());
    let reasons = SkipReasons::empty(Istio::SKIP_REASONS);
    let mut outcome = Outcome::of(&request, reasons, configuration);
    outcome.deny(message.into());
    Answer { body: review::encode(&request, &outcome, review::patch_buffer()), outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem_of(body: &str) -> Option<String> {
        problem(body.as_bytes(), &parts::of(body.as_bytes(), REVIEW).unwrap_or_default())
    }

    #[test]
    fn bodies_that_are_no_review_are_denied_in_the_words_of_kubernetes() {
        let review = r#""kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1""#;
        for (body, expected) in [
            ("  ".to_owned(), "Object 'Kind' is missing in '  '"),
            ("null".to_owned(), "Object 'Kind' is missing in 'null'"),
            ("{}".to_owned(), "Object 'Kind' is missing in '{}'"),
            (r#"{"kind":"A"}"#.to_owned(), r#"Object 'apiVersion' is missing in '{"kind":"A"}'"#),
            (
                "[]".to_owned(),
                "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go \
                 value of type struct { APIVersion string \"json:",
            ),
            (
                format!("{{{review}"),
                "couldn't get version/kind; json parse error: unexpected end of JSON input",
            ),
            (
                r#"{"kind":"Pod","apiVersion":"v1"}"#.to_owned(),
                "unsupported type :&TypeMeta{Kind:Pod,APIVersion:v1,}",
            ),
            (
                r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2"}"#.to_owned(),
                "no kind \"AdmissionReview\" is registered for version \"admission.k8s.io/v2\" in \
                 scheme",
            ),
            (
                format!("{{{review},\"request\":{{\"uid\":5}}}}"),
                "json: cannot unmarshal number into Go struct field AdmissionRequest.request.uid \
                 of type types.UID",
            ),
            (
                format!("{{{review},\"request\":[]}}"),
                "json: cannot unmarshal array into Go struct field AdmissionReview.request of type \
                 v1.AdmissionRequest",
            ),
        ] {
            let found = problem_of(&body).expect(&body);
            assert!(found.starts_with(expected), "{body}: {found}");
        }
        assert_eq!(problem_of(&format!("{{{review},\"request\":null}}")), None);
    }
}
