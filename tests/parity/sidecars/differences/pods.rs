//! What a pod has already, and what is known about it.

use serde_json::Value;

use super::{Context, containers, containers_mut};
use crate::sidecars::answer::Answer;

const TAIL: &str = "sidecar.logging-extensions.banzaicloud.io/tail";

/// A pod that has its tailers is left as it is.
pub(super) fn second_pass(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let files = context.case.annotation(TAIL)?.split(',').map(|file| {
        let file = file.trim();
        file.split_once(':').map_or(file, |(_, path)| path)
    });
    let pod = &context.case.pod;
    let image = &context.case.config["fluentBitImage"];
    let has_tailer = |file: &str| {
        let path = format!("path={file}");
        containers(pod)
            .any(|container| container["image"] == *image && container["command"][4] == path)
    };
    let is_again = matches!(expected, Answer::Denied(_)) && files.into_iter().all(has_tailer);
    is_again.then(|| Answer::Pod(pod.clone()))
}

/// Labels that the pod has are not changed.
pub(super) fn own_labels(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    let mut pod = pod.clone();
    for (key, value) in context.case.pod["metadata"]["labels"].as_object().into_iter().flatten() {
        pod["metadata"]["labels"][key] = value.clone();
    }
    Some(Answer::Pod(pod))
}

/// Secrets for images that the pod has stay, also one that is there twice.
pub(super) fn own_pull_secrets(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    let own = context.case.pod["spec"]["imagePullSecrets"].as_array()?;
    let all = pod["spec"]["imagePullSecrets"].as_array()?;
    let added = all.iter().filter(|secret| !own.contains(secret));
    let secrets: Vec<Value> = own.iter().chain(added).cloned().collect();
    let mut pod = pod.clone();
    pod["spec"]["imagePullSecrets"] = secrets.into();
    Some(Answer::Pod(pod))
}

/// An owner that is named by a reference counts, although it was not looked up.
pub(super) fn owner_by_reference(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    if context.family != "otel-sidecar" {
        return None;
    }
    let owners = context.case.owners();
    let last = owners.last().unwrap_or(&context.case.pod);
    let references = last["metadata"]["ownerReferences"].as_array()?;
    let reference = references.iter().find(|reference| reference["controller"] == true)?;
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let kind = text("kind").to_lowercase();
    if !["replicaset", "deployment"].contains(&kind.as_str()) {
        return None;
    }
    let mut pod = pod.clone();
    let collector =
        containers_mut(&mut pod).find(|container| container["name"] == "otc-container")?;
    let env = collector["env"].as_array_mut()?;
    let attributes = env.iter_mut().find(|entry| entry["name"] == "OTEL_RESOURCE_ATTRIBUTES")?;
    let value = attributes["value"].as_str()?;
    let more =
        [format!("k8s.{kind}.name={}", text("name")), format!("k8s.{kind}.uid={}", text("uid"))];
    let mut all: Vec<_> = value.split(',').map(str::to_owned).chain(more).collect();
    all.sort();
    attributes["value"] = all.join(",").into();
    Some(Answer::Pod(pod))
}
