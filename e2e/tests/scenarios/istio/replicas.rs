//! What replicas answer: reviews, probes and metrics.

use injectd_harness::{
    client::{self, Answer, patch_of},
    expect::{Outcome, eventually, expect},
    injectd::Injectd,
    objects::plain_pod,
};
use serde_json::Value;

use super::{
    deployed::Istio,
    pods::{annotation, expect_injected},
};

/// Waits until the patch of each replica has this text, or has it no more.
pub(super) async fn wait_for_patch(
    it: &Istio<'_>,
    revision: &str,
    pod: &Value,
    text: &str,
    has_it: bool,
) -> Outcome {
    for replica in &it.replicas {
        eventually("the configuration takes effect", async || {
            let answer = review(replica, revision, "any", pod).await?;
            let patch = patch_of(&answer.response()?)?;
            let patch: String = patch.iter().map(Value::to_string).collect();
            expect(format!("whether the patch has {text:?}"), has_it, patch.contains(text))
        })
        .await?;
    }
    Ok(())
}

/// Waits until each replica has the revisions as they were made.
pub(super) async fn restore(it: &Istio<'_>) -> Outcome {
    for (name, revision) in &it.revisions {
        it.configure(revision).await?;
        let pod = plain_pod("tried");
        let image = format!("\"{}\"", revision.image()?);
        wait_for_patch(it, name, &pod, &image, true).await?;
        wait_for_patch(it, name, &pod, "\"injectd\"", true).await?;
    }
    Ok(())
}

/// Sends a review as the API server does.
pub(super) async fn review(
    replica: &Injectd,
    revision: &str,
    namespace: &str,
    pod: &Value,
) -> Outcome<Answer> {
    let path = format!("/istio/{revision}/inject");
    replica.client().review_at(&path, namespace, pod, 10).await
}

/// Fails unless the pod has the proxy of a revision, from injectd.
pub(super) fn expect_revision(it: &Istio<'_>, pod: &Value, revision: &str) -> Outcome {
    expect_injected(pod, &it.revision(revision)?.image()?, "injectd")?;
    expect("the revision", Some(revision), annotation(pod, "istio.io/rev"))
}

pub(super) async fn expect_probe(replica: &Injectd, path: &str, status: u16) -> Outcome {
    expect(path, status, client::probe(replica.admin, path).await?.0)
}
