//! What a template is for is another thing than what the recorded webhook does.

use serde_json::{Value, json};

use super::{Context, containers_mut};
use crate::sidecars::{answer::Answer, families};

/// A patch that cannot be applied to a pod without a list or a field: injectd adds it.
pub(super) fn applied_patches(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let case = context.case;
    if !case.has_broken_patch || !matches!(expected, Answer::Denied(_)) {
        return None;
    }
    let namespace = case.config["annotationNamespace"].as_str()?;
    let request = case.annotation(&format!("{namespace}/request"))?.to_lowercase();
    let files = case.config["files"].as_object()?;
    let names = |file: &Value| {
        let name = file["name"].as_str().unwrap_or_default().to_lowercase();
        request == name || request == format!("{name}:latest")
    };
    let (name, _) = files.iter().find(|(_, file)| names(file))?;
    let configuration = families::configuration(&case.config["files"], name);
    if configuration["serviceAccountName"].is_string() {
        return None;
    }
    let mut pod = case.pod.clone();
    let add = |object: &mut Value, list: &str, from: &Value| {
        let mut all = object[list].as_array().cloned().unwrap_or_default();
        for entry in from.as_array().into_iter().flatten() {
            if all.iter().all(|known| entry["name"].is_null() || known["name"] != entry["name"]) {
                all.push(entry.clone());
            }
        }
        object[list] = all.into();
    };
    for list in ["containers", "initContainers", "volumes", "hostAliases"] {
        let from = configuration[list].clone();
        add(&mut pod["spec"], list, &from);
    }
    for container in containers_mut(&mut pod) {
        for list in ["env", "volumeMounts"] {
            add(container, list, &configuration[list]);
        }
    }
    for field in ["hostNetwork", "hostPID"] {
        if !configuration[field].is_null() {
            pod["spec"][field] = configuration[field].clone();
        }
    }
    pod["metadata"]["annotations"][format!("{namespace}/status")] = json!("injected");
    Some(Answer::Pod(pod))
}

/// A template does not change the ServiceAccount: the pod is denied, with what to write.
pub(super) fn own_service_account(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    let field = "serviceAccountName";
    (pod["spec"][field] != context.case.pod["spec"][field])
        .then(|| Answer::Denied("the ServiceAccount would change".to_owned()))
}

/// A JSON patch of the agent that a pod writes is not applied.
pub(super) fn json_patches(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    let keys = ["agent-json-patch", "agent-init-json-patch"];
    let has_patch = keys.into_iter().any(|key| {
        let patch = context.case.annotation(&format!("vault.hashicorp.com/{key}"));
        patch.is_some_and(|patch| !patch.is_empty())
    });
    let is_changed =
        !pod["metadata"]["annotations"]["vault.hashicorp.com/agent-inject-status"].is_null();
    (has_patch && is_changed).then(|| Answer::Denied("JSON patches are not applied".to_owned()))
}
