//! Two revisions: which pods the API server sends to which, and what they get.

use std::path::Path;

use injectd_harness::{
    client::{patch_of, wait_until_ready},
    expect::{Outcome, eventually, expect, skipped},
    istio::Revision,
    scenario::with_lab,
};
use serde_json::{Value, json};

use super::{
    deployed::Istio,
    pods::{image, labelled},
    replicas::{expect_revision, restore, review, wait_for_patch},
    with_istio, with_replicas,
};

/// Which revision injects a pod: labels of the namespace, labels of the pod, revision.
pub(super) const CALLED: [(&str, &str, Option<&str>); 10] = [
    (r#"{"istio-injection":"enabled"}"#, "{}", Some("default")),
    (r#"{"istio-injection":"enabled"}"#, r#"{"sidecar.istio.io/inject":"false"}"#, None),
    (r#"{"istio-injection":"disabled"}"#, r#"{"sidecar.istio.io/inject":"true"}"#, None),
    (r#"{"istio.io/rev":"canary"}"#, "{}", Some("canary")),
    (r#"{"istio.io/rev":"canary"}"#, r#"{"sidecar.istio.io/inject":"false"}"#, None),
    (r#"{"istio.io/rev":"default"}"#, "{}", Some("default")),
    ("{}", r#"{"istio.io/rev":"canary"}"#, Some("canary")),
    ("{}", r#"{"istio.io/rev":"default"}"#, Some("default")),
    ("{}", r#"{"sidecar.istio.io/inject":"true"}"#, Some("default")),
    ("{}", "{}", None),
];

/// The namespace of a row of [`CALLED`].
pub(super) fn row(index: usize) -> String {
    format!("row-{index}")
}

/// Makes the namespaces of [`CALLED`].
pub(super) async fn make_rows(it: &Istio<'_>) -> Outcome {
    for (index, (labels, ..)) in CALLED.iter().enumerate() {
        it.make_namespace(&row(index), &serde_json::from_str(labels)?).await?;
    }
    Ok(())
}

#[tokio::test]
async fn labels_of_namespace_and_pod_choose_the_revision_or_none() -> Outcome {
    with_istio(async |istio| {
        make_rows(istio).await?;
        for (index, (_, labels, revision)) in CALLED.iter().enumerate() {
            let pod = labelled(&serde_json::from_str(labels)?);
            let pod = istio.pod(&row(index), &pod).await?;
            match revision {
                Some(revision) => expect_revision(istio, &pod, revision)?,
                None => expect(format!("the proxy in row {index}"), None, image(&pod))?,
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_namespace_moves_to_the_canary_and_back_by_its_label() -> Outcome {
    with_istio(async |istio| {
        istio.make_namespace("moving", &json!({"istio-injection": "enabled"})).await?;
        for (labels, revision) in [
            (json!({"istio.io/rev": "canary"}), "canary"),
            (json!({"istio-injection": "enabled"}), "default"),
        ] {
            istio.label("moving", &labels).await?;
            eventually("the label takes effect", async || {
                expect_revision(istio, &istio.pod("moving", &labelled(&json!({}))).await?, revision)
            })
            .await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn recorded_configurations_of_1_19_10_and_1_30_3_are_two_revisions() -> Outcome {
    with_lab(async |lab| {
        let Some(corpus) = lab.corpus.as_deref().filter(|corpus| corpus.join("istio").is_dir())
        else {
            return Err(skipped("it needs $INJECTD_CORPUS"));
        };
        with_replicas(lab, async |istio| {
            inject_recorded(istio, corpus).await?;
            restore(istio).await
        })
        .await
    })
    .await
}

async fn inject_recorded(it: &Istio<'_>, corpus: &Path) -> Outcome {
    for (name, release, namespace) in
        [("default", "1.19.10", "enabled"), ("canary", "1.30.3", "rev-canary")]
    {
        let revision = Revision::recorded(corpus, name, release)?;
        it.configure(&revision).await?;
        let expected = revision.image()?;
        eventually("the recorded configuration takes effect", async || {
            let pod = it.pod(namespace, &labelled(&json!({}))).await?;
            expect("the image of the proxy", Some(&*expected), image(&pod))
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_revision_installed_while_injectd_runs_is_served_until_it_is_removed() -> Outcome {
    with_istio(async |istio| {
        let next = Revision::small("next", "1.30.6", "injectd");
        let pod = labelled(&json!({}));
        istio.install(&next).await?;
        wait_for_status(istio, &pod, 200).await?;
        wait_for_patch(istio, "next", &pod, &next.image()?, true).await?;
        istio.uninstall(&next).await?;
        wait_for_status(istio, &pod, 404).await
    })
    .await
}

/// Waits until both replicas answer reviews of the revision `next` with this status.
async fn wait_for_status(it: &Istio<'_>, pod: &Value, status: u16) -> Outcome {
    for replica in &it.replicas {
        eventually("the replica has seen it", async || {
            let found = review(replica, "next", "any", pod).await?.status;
            expect("the status of a review", status, found)
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_revision_that_cannot_be_read_does_not_keep_a_replica_from_serving_the_others() -> Outcome
{
    with_istio(async |istio| {
        let mut broken = Revision::small("broken", "1.30.7", "injectd");
        broken.config = broken.config.replace("protoToJSON", "noFunction");
        istio.install(&broken).await?;
        let mut replica = istio.replica("beside", &istio.lab.api.server).await?;
        replica.start().await?;
        replica.logs("noFunction").await?;
        wait_until_ready(replica.admin).await?;
        let answer = review(&replica, "canary", "any", &labelled(&json!({}))).await?;
        patch_of(&answer.response()?).map(drop)
    })
    .await
}
