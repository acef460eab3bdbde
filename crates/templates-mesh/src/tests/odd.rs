//! Pods that are odd where they are read.

use futures_util::FutureExt as _;
use injectd_core::{injector::Injector, outcome::Verdict, standalone::Standalone};
use serde_json::json;

use super::read;
use crate::Templates;

/// A number that is JSON, and larger than any number of a pod.
const TOO_LARGE: &str = "1e999";

#[test]
fn a_pod_that_cannot_be_understood_is_denied() {
    for condition in ["object.spec.serviceAccountName == 'x'", "owner.name == 'x'"] {
        let template = json!({
            "apiVersion": "injectd.dev/v1alpha1", "kind": "ClusterSidecarTemplate",
            "metadata": {"name": "agent"},
            "spec": {
                "match": {"conditions": [{"name": "account",
                    "expression": format!("{condition} || object.spec.?serviceAccountName.hasValue()")}]},
                "steps": [{"name": "agent", "overlay": {"metadata": {"labels": {"a": "b"}}}}],
            },
        });
        let templates = Templates::new([read(&template)], None, 1);
        let injector = Injector::new(templates, Standalone::default());
        let review = format!(
            r#"{{"request": {{"uid": "1", "kind": {{"kind": "Pod"}}, "namespace": "shop",
                "object": {{"metadata": {{"name": "web"}}, "spec": {{"serviceAccountName": {TOO_LARGE},
                "containers": [{{"name": "app"}}]}}}}}}}}"#
        );
        // The second answer is one that is kept, if any is.
        for _ in 0..2 {
            let answer =
                injector.review(review.as_bytes()).now_or_never().expect("nothing to wait for");
            let answer = answer.expect("an answer");
            assert_eq!(answer.outcome.verdict, Verdict::Denied, "{condition}");
            let text = answer.outcome.denial.expect("a reason");
            assert!(text.starts_with("the pod cannot be understood: "), "{text}");
        }
    }
}
