//! Pods, Services and workloads that the API server creates with the webhook.

use injectd_harness::{
    expect::{Outcome, expect, expect_contains, expect_listed, expect_same},
    injectd::WEBHOOK_NAME,
    objects::{CONNECT_TIMEOUT, INJECT, deployment, disabled, enabled, plain_pod, pod, service},
    sidecar::{expect_proxy, expect_sidecar, names, proxy_variable, without_sidecar},
};
use serde_json::{Value, json};

use super::{Standalone, with_standalone};

const NATIVE_SIDECAR: &str = "config.linkerd.io/proxy-enable-native-sidecar";
const OPAQUE_PORTS: &str = "config.linkerd.io/opaque-ports";
const CPU_REQUEST: &str = "config.linkerd.io/proxy-cpu-request";
const CLOSE_WAIT_TIMEOUT: &str = "config.linkerd.io/close-wait-timeout";
const NOT_ENABLED: &str = "injection_enable_annotation_absent";
const REPLICAS: usize = 30;

#[tokio::test]
async fn pods_that_ask_get_their_sidecar_and_nothing_else_changes() -> Outcome {
    with_standalone(async |standalone| asking(standalone).await).await
}

#[tokio::test]
async fn pods_are_left_alone_for_the_reason_in_the_audit_log() -> Outcome {
    with_standalone(async |standalone| left_alone(standalone).await).await
}

#[tokio::test]
async fn invalid_annotations_lead_to_a_warning_or_to_a_denial_with_the_reason() -> Outcome {
    with_standalone(async |standalone| invalid(standalone).await).await
}

#[tokio::test]
async fn a_service_gets_the_annotation_of_its_opaque_port() -> Outcome {
    with_standalone(async |standalone| opaque_port(standalone).await).await
}

#[tokio::test]
async fn the_pods_of_a_deployment_get_sidecars() -> Outcome {
    with_standalone(async |standalone| replicas(standalone, REPLICAS).await).await
}

/// All reviews of the scenarios here, with fewer pods.
pub(super) async fn all(standalone: &Standalone<'_>) -> Outcome {
    asking(standalone).await?;
    left_alone(standalone).await?;
    invalid(standalone).await?;
    opaque_port(standalone).await?;
    replicas(standalone, 2).await
}

async fn asking(standalone: &Standalone<'_>) -> Outcome {
    injected_pod(standalone).await?;
    generated_name(standalone).await?;
    own_settings(standalone).await?;
    as_container(standalone).await?;
    dry_run(standalone).await
}

async fn injected_pod(standalone: &Standalone<'_>) -> Outcome {
    let manifest = pod("injected", &enabled());
    let answer = standalone.it.create(&manifest).await?;
    answer.expect_no_warnings()?;
    standalone.expect_audit(&answer, "injected", None).await?;
    let created = answer.created()?;
    expect_sidecar(&created, &standalone.plain(&manifest).await?)?;
    let path = standalone.it.path("v1", "Pod", "injected");
    let stored = standalone.it.lab.api.get(&path).await?.ok()?;
    expect_same("the stored pod", &without_sidecar(&created), &without_sidecar(&stored))
}

async fn generated_name(standalone: &Standalone<'_>) -> Outcome {
    let mut manifest = plain_pod("");
    manifest["metadata"] = json!({"generateName": "generated-", "annotations": enabled()});
    expect_proxy(&standalone.it.create(&manifest).await?.created()?)
}

async fn left_alone(standalone: &Standalone<'_>) -> Outcome {
    standalone.expect_left_alone(&plain_pod("not-asking"), NOT_ENABLED).await?;
    standalone.expect_left_alone(&pod("opted-out", &disabled()), NOT_ENABLED).await?;
    let mut manifest = pod("host-network", &enabled());
    manifest["spec"]["hostNetwork"] = json!(true);
    standalone.expect_left_alone(&manifest, "host_network_enabled").await?;
    standalone.expect_left_alone(&resubmitted(standalone).await?, "sidecar_already_exists").await
}

/// A pod that has a sidecar already.
async fn resubmitted(standalone: &Standalone<'_>) -> Outcome<Value> {
    let before = standalone.it.dry_run(&pod("resubmitted", &enabled())).await?.created()?;
    let metadata = &before["metadata"];
    let mut again = plain_pod("resubmitted");
    again["metadata"]["annotations"] = metadata["annotations"].clone();
    again["metadata"]["labels"] = metadata["labels"].clone();
    again["spec"] = before["spec"].clone();
    Ok(again)
}

async fn own_settings(standalone: &Standalone<'_>) -> Outcome {
    let annotations = json!({
        INJECT: "enabled",
        CONNECT_TIMEOUT: "7s",
        "config.linkerd.io/enable-debug-sidecar": "true",
        OPAQUE_PORTS: "8080",
        "config.linkerd.io/skip-outbound-ports": "25",
    });
    let mut manifest = pod("own-settings", &annotations);
    manifest["spec"]["initContainers"] =
        json!([{"name": "migrate", "image": "example.com/migrate:1"}]);
    let created = standalone.it.create(&manifest).await?.created()?;
    expect_sidecar(&created, &standalone.plain(&manifest).await?)?;
    expect_listed("the containers", "linkerd-debug", &names(&created, "containers"))?;
    let timeout = proxy_variable(&created, "LINKERD2_PROXY_OUTBOUND_CONNECT_TIMEOUT");
    expect("the timeout", Some("7000ms"), timeout)
}

async fn as_container(standalone: &Standalone<'_>) -> Outcome {
    let annotations = json!({INJECT: "enabled", NATIVE_SIDECAR: "false"});
    let manifest = pod("proxy-as-container", &annotations);
    let created = standalone.it.create(&manifest).await?.created()?;
    expect_sidecar(&created, &standalone.plain(&manifest).await?)
}

async fn invalid(standalone: &Standalone<'_>) -> Outcome {
    warning(standalone).await?;
    denial(standalone).await
}

async fn warning(standalone: &Standalone<'_>) -> Outcome {
    let manifest = pod("warning", &json!({INJECT: "enabled", CPU_REQUEST: "lots"}));
    let answer = standalone.it.create(&manifest).await?;
    standalone.expect_audit(&answer, "injected", None).await?;
    expect("the number of warnings", 1, answer.warnings.len())?;
    expect_contains("the warning", CPU_REQUEST, &answer.warnings[0])?;
    expect_contains("the warning", "lots", &answer.warnings[0])?;
    expect_sidecar(&answer.created()?, &standalone.plain(&manifest).await?)
}

async fn denial(standalone: &Standalone<'_>) -> Outcome {
    let manifest = pod("denied", &json!({INJECT: "enabled", CLOSE_WAIT_TIMEOUT: "30s"}));
    let answer = standalone.it.create(&manifest).await?;
    expect("the status", 400, answer.status)?;
    let message = answer.body["message"].as_str().unwrap_or_default();
    let denied = format!("admission webhook \"{WEBHOOK_NAME}\" denied the request");
    expect_contains("the message", &denied, message)?;
    expect_contains("the message", "runAsRoot", message)?;
    standalone.expect_audit(&answer, "denied", None).await
}

async fn dry_run(standalone: &Standalone<'_>) -> Outcome {
    let manifest = pod("dry-run", &enabled());
    let created = standalone.it.dry_run(&manifest).await?.created()?;
    expect_sidecar(&created, &standalone.plain(&manifest).await?)?;
    let stored = standalone.it.lab.api.get(&standalone.it.path("v1", "Pod", "dry-run")).await?;
    expect("the status of the pod", 404, stored.status)
}

async fn opaque_port(standalone: &Standalone<'_>) -> Outcome {
    let answer = standalone.it.create(&service("db", "None", 3306)).await?;
    standalone.expect_audit(&answer, "annotated", None).await?;
    let annotations = &answer.created()?["metadata"]["annotations"];
    expect_same("the annotations", &json!({OPAQUE_PORTS: "3306"}), annotations)
}

async fn replicas(standalone: &Standalone<'_>, count: usize) -> Outcome {
    standalone.it.create(&deployment("web", count, &enabled())).await?.created()?;
    standalone.it.expect_pods("web", count, &[("deployment", "web")]).await
}
