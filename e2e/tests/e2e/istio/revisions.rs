//! Two revisions: which pods the API server sends to which, and what they get.

use std::path::Path;

use injectd_harness::{
    api::collection,
    client::patch_of,
    expect::{Outcome, eventually, expect, skipped},
    objects,
    run::Suite,
};
use serde_json::{Value, json};

use super::{
    config::{Revision, printed},
    deployed::{
        Deployed, NAMESPACE, review, wait_for_patch, wait_until_ready, wait_until_restored,
    },
    judged,
    pods::{annotation, expect_injected, image, labelled},
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

pub(super) async fn all(suite: &mut Suite<'_>, it: &Deployed) {
    let name = "the API server calls injectd by its Service for both revisions";
    suite.setup(name, serve(it)).await;
    let name = "labels of namespace and pod choose the revision, or none";
    suite.scenario(name, called(it)).await;
    let name = "explain and audit agree with the API server";
    suite.scenario(name, judged::agree(it)).await;
    let name = "without webhooks, audit tells what asks, and advises no restart";
    suite.scenario(name, judged::without_webhooks(it)).await;
    let name = "a namespace moves to the canary and back by its label";
    suite.scenario(name, canary(it)).await;
    let name = "recorded configurations of 1.19.10 and 1.30.3 are two revisions";
    suite.scenario(name, recorded(it)).await;
    let name = "a revision that is installed while injectd runs is served, and then removed";
    suite.scenario(name, installed(it)).await;
    let name = "a revision that cannot be read does not keep a replica from serving the others";
    suite.scenario(name, broken(it)).await;
}

/// Makes the webhook configurations of both revisions, and waits until they act.
pub(super) async fn serve(it: &Deployed) -> Outcome {
    for (index, (labels, ..)) in CALLED.iter().enumerate() {
        it.make_namespace(&format!("row-{index}"), &serde_json::from_str(labels)?).await?;
    }
    it.make_namespace("enabled", &json!({"istio-injection": "enabled"})).await?;
    it.make_namespace("rev-canary", &json!({"istio.io/rev": "canary"})).await?;
    serve_again(it).await
}

/// Makes the webhook configurations of both revisions.
pub(super) async fn serve_again(it: &Deployed) -> Outcome {
    for (file, revision) in [("default.yaml", "default"), ("revision.yaml", "canary")] {
        it.lab.api.create(None, &configuration(it, file, revision, "")?).await?.created()?;
    }
    eventually("the webhooks take effect", async || {
        for (namespace, revision) in [("enabled", "default"), ("rev-canary", "canary")] {
            expect_revision(it, &it.pod(namespace, &labelled(&json!({}))).await?, revision)?;
        }
        Ok(())
    })
    .await
}

/// A webhook configuration of `deploy/istio-webhook` for injectd's Service.
pub(super) fn configuration(
    it: &Deployed,
    file: &str,
    revision: &str,
    tag: &str,
) -> Outcome<Value> {
    let port = it.service.addr.port();
    let words = [("REVISION", revision), ("TAG", tag), ("NAMESPACE", NAMESPACE), ("PORT", "0")];
    let mut object = printed(file, &words)?;
    for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
        webhook["clientConfig"]["service"]["port"] = json!(port);
        webhook["clientConfig"]["caBundle"] = json!(objects::base64(it.ca_pem()));
    }
    Ok(object)
}

/// Fails unless the pod has the proxy of a revision, from injectd.
pub(super) fn expect_revision(it: &Deployed, pod: &Value, revision: &str) -> Outcome {
    expect_injected(pod, &it.revision(revision)?.image()?, "injectd")?;
    expect("the revision", Some(revision), annotation(pod, "istio.io/rev"))
}

async fn called(it: &Deployed) -> Outcome {
    for (index, (_, labels, revision)) in CALLED.iter().enumerate() {
        let pod = labelled(&serde_json::from_str(labels)?);
        let pod = it.pod(&format!("row-{index}"), &pod).await?;
        match revision {
            Some(revision) => expect_revision(it, &pod, revision)?,
            None => expect(format!("the proxy in row {index}"), None, image(&pod))?,
        }
    }
    Ok(())
}

async fn canary(it: &Deployed) -> Outcome {
    it.make_namespace("moving", &json!({"istio-injection": "enabled"})).await?;
    for (labels, revision) in [
        (json!({"istio.io/rev": "canary"}), "canary"),
        (json!({"istio-injection": "enabled"}), "default"),
    ] {
        it.label("moving", &labels).await?;
        eventually("the label takes effect", async || {
            expect_revision(it, &it.pod("moving", &labelled(&json!({}))).await?, revision)
        })
        .await?;
    }
    Ok(())
}

async fn recorded(it: &Deployed) -> Outcome {
    let Some(corpus) = it.lab.corpus.as_deref().filter(|it| it.join("istio").is_dir()) else {
        return Err(skipped("it needs $INJECTD_CORPUS"));
    };
    let outcome = inject_recorded(it, corpus).await;
    wait_until_restored(it).await?;
    outcome
}

async fn inject_recorded(it: &Deployed, corpus: &Path) -> Outcome {
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

async fn installed(it: &Deployed) -> Outcome {
    let next = Revision::small("next", "1.30.6", "injectd");
    let (pod, image) = (labelled(&json!({})), next.image()?);
    let status = async |replica| Outcome::Ok(review(replica, "next", "any", &pod).await?.status);
    install(it, &next).await?;
    for replica in &it.replicas {
        eventually("the revision is served", async || {
            expect("the status of a review", 200, status(replica).await?)
        })
        .await?;
    }
    wait_for_patch(it, ("next", &pod), &image, true).await?;
    uninstall(it, &next).await?;
    for replica in &it.replicas {
        eventually("the revision is not served", async || {
            expect("the status of a review", 404, status(replica).await?)
        })
        .await?;
    }
    Ok(())
}

async fn broken(it: &Deployed) -> Outcome {
    let mut broken = Revision::small("broken", "1.30.7", "injectd");
    broken.config = broken.config.replace("protoToJSON", "noFunction");
    install(it, &broken).await?;
    let outcome = start_beside(it).await;
    uninstall(it, &broken).await?;
    outcome
}

async fn start_beside(it: &Deployed) -> Outcome {
    let mut replica = it.replica("beside", &it.lab.api.server).await?;
    replica.start().await?;
    replica.logs("noFunction").await?;
    wait_until_ready(&replica).await?;
    let answer = review(&replica, "canary", "any", &labelled(&json!({}))).await?;
    patch_of(&answer.response()?).map(drop)
}

async fn install(it: &Deployed, revision: &Revision) -> Outcome {
    for config_map in revision.config_maps() {
        it.create(NAMESPACE, &config_map).await?;
    }
    Ok(())
}

async fn uninstall(it: &Deployed, revision: &Revision) -> Outcome {
    for config_map in revision.config_maps() {
        let name = config_map["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{}/{name}", collection("v1", "ConfigMap", Some(NAMESPACE)));
        it.lab.api.delete(&path).await?.ok()?;
    }
    Ok(())
}
