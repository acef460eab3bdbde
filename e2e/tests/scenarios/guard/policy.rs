//! The objects of `injectd manifest guard` in the cluster.

use std::process::Command;

use hyper::http::Method;
use injectd_harness::{
    api::{collection, path_of},
    audit_log::events,
    expect::{Outcome, eventually, expect, expect_contains, failed},
    process::run,
};
use serde_json::Value;

use super::case::Case;

const GROUP: &str = "admissionregistration.k8s.io/v1";
const AUDIT_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";

/// Prints the policy and its binding, and applies them.
pub(super) async fn apply(it: &Case<'_>, action: &str, flags: &[String]) -> Outcome {
    for object in printed(it, action, flags).await? {
        let objects = collection(GROUP, object["kind"].as_str().unwrap_or_default(), None);
        let path = format!("{objects}?fieldValidation=Strict");
        // Before the request: its answer may be lost.
        it.it.delete_at_end(path_of(&object, None));
        let created = it.it.lab.api.call(Method::POST, &path, Some(object.to_string())).await?;
        created.expect_no_warnings()?;
        if created.status == 409 {
            let path = format!("{objects}/{}", it.it.name);
            let spec = object["spec"].clone();
            it.it.lab.api.update(&path, |policy| policy["spec"] = spec).await?;
        } else {
            created.created()?;
        }
    }
    Ok(())
}

/// What the command prints, with the name of the case.
async fn printed(it: &Case<'_>, action: &str, flags: &[String]) -> Outcome<Vec<Value>> {
    let mut command = Command::new(&it.it.lab.binary);
    command.args(["manifest", "guard", "--action", action, "--failure-policy", "Fail"]);
    command.args(["--name", &it.it.name]).args(flags);
    Ok(serde_saphyr::from_multiple(&run(command).await?.with_code(0)?)?)
}

/// Waits until the controller manager has checked the types of the policy.
pub(super) async fn expect_no_type_warnings(it: &Case<'_>) -> Outcome {
    let path = format!("{}/{}", collection(GROUP, "ValidatingAdmissionPolicy", None), it.it.name);
    let policy = eventually("the types of the policy are checked", async || {
        let policy = it.it.lab.api.get(&path).await?.ok()?;
        let generation = &policy["metadata"]["generation"];
        expect("the generation", generation, &policy["status"]["observedGeneration"])?;
        Ok(policy)
    })
    .await?;
    let warnings = &policy["status"]["typeChecking"]["expressionWarnings"];
    expect("the warnings of the types", &Value::Null, warnings)
}

pub(super) async fn expect_audit(it: &Case<'_>, audit_id: &str) -> Outcome {
    let local = it.it.lab.local()?;
    let event = eventually("the audit log has the request", async || {
        let event = events(&local.audit_log, audit_id)?.pop();
        event.ok_or_else(|| failed(format!("no event {audit_id}")))
    })
    .await?;
    let text = event["annotations"][AUDIT_ANNOTATION].as_str().unwrap_or_default();
    expect_contains("the annotation", "sidecar, but", text)
}

/// Fails unless the API server counts an action of the policy.
pub(super) async fn expect_counted(it: &Case<'_>, action: &str) -> Outcome {
    let metrics = it.it.lab.api.get("/metrics").await?;
    let text = metrics.body["message"].as_str().unwrap_or_default();
    let policy = format!("policy=\"{}\"", it.it.name);
    let is_counted = text.lines().any(|line| {
        line.starts_with("apiserver_validating_admission_policy_check_total{")
            && line.contains(&format!("enforcement_action=\"{action}\""))
            && line.contains(&policy)
    });
    expect(format!("whether {action} is counted"), true, is_counted)
}
