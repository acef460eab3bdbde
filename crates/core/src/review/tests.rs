use super::*;
use crate::linkerd::pod::Object;

fn decode(body: &[u8]) -> Result<Request<'_, Object<'_>>, DecodeError> {
    super::decode(body)
}

fn pod_review(object: &str) -> String {
    format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"u1",
        "kind":{{"group":"","version":"v1","kind":"Pod"}},"namespace":"shop","object":{object}}}}}"#
    )
}

#[test]
fn the_objects_own_kind_wins_over_the_requests() {
    let body = pod_review(r#"{"kind":"StatefulSet"}"#);
    let request = decode(body.as_bytes()).expect("review");
    assert_eq!(request.kind, Kind::Workload("statefulset"));
    let body = pod_review(r#"{"metadata":{}}"#);
    assert_eq!(decode(body.as_bytes()).expect("review").kind, Kind::Pod);
}

#[test]
fn a_body_that_is_not_a_review_is_an_error_and_an_unreadable_object_is_not() {
    for body in ["", "{", "{}x", "\u{feff}{}", "nul", r#"{"request":{"object":{"kind":"Pod" 1}}}"#]
    {
        assert!(matches!(decode(body.as_bytes()), Err(DecodeError::NotJson(_))), "{body}");
    }
    for body in ["[]", "{\"request\":7}", "1"] {
        assert!(matches!(decode(body.as_bytes()), Err(DecodeError::NotAReview(_))), "{body}");
    }
    for body in ["{}", "null", r#"{"request":null}"#, r#"{"request":{"uid":""}}"#] {
        assert!(matches!(decode(body.as_bytes()), Err(DecodeError::NoRequest)), "{body}");
    }
    let endless = format!(r#"{{"request":{{"uid":"{}"}}}}"#, "u".repeat(100_000));
    assert!(matches!(decode(endless.as_bytes()), Err(DecodeError::NoRequest)));
    let body = pod_review(r#"{"kind":"Pod","spec":{"containers":7}}"#);
    let request = decode(body.as_bytes()).expect("review");
    assert!(matches!(request.subject, Subject::Unreadable(_)));
    assert_eq!(&*request.uid, "u1");
}

#[test]
fn a_kind_that_is_not_known_may_have_any_spec() {
    let body = pod_review(
        r#"{"kind":"Widget","metadata":{"annotations":{"linkerd.io/inject":"enabled"}},
        "spec":{"containers":"many","template":7}}"#,
    );
    let request = decode(body.as_bytes()).expect("review");
    let Subject::Object(object) = request.subject else { panic!("an object") };
    assert_eq!(object.metadata.annotations.get("linkerd.io/inject"), Some("enabled"));
}

#[test]
fn no_object_is_no_error() {
    let body = pod_review("null");
    assert!(matches!(decode(body.as_bytes()).expect("review").subject, Subject::Absent));
}

#[test]
fn deep_nesting_in_what_is_not_read_is_skipped() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let body = pod_review(&format!(r#"{{"kind":"Pod","x":{deep}}}"#));
    assert!(matches!(decode(body.as_bytes()).expect("review").subject, Subject::Object(_)));
}
