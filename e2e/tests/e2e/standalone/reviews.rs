//! Pods, Services and workloads that the API server creates with the webhook.

use injectd_harness::{
    expect::{Outcome, expect, expect_contains, expect_listed, expect_same},
    injectd::WEBHOOK_NAME,
    objects::{CONNECT_TIMEOUT, INJECT, deployment, disabled, enabled, plain_pod, pod, service},
    run::Suite,
    sidecar::{expect_proxy, expect_sidecar, names, proxy_variable, without_sidecar},
};
use serde_json::json;

use super::Standalone;

const NATIVE_SIDECAR: &str = "config.linkerd.io/proxy-enable-native-sidecar";
const OPAQUE_PORTS: &str = "config.linkerd.io/opaque-ports";
const CPU_REQUEST: &str = "config.linkerd.io/proxy-cpu-request";
const CLOSE_WAIT_TIMEOUT: &str = "config.linkerd.io/close-wait-timeout";
const NOT_ENABLED: &str = "injection_enable_annotation_absent";
const REPLICAS: usize = 30;

pub(super) async fn all(suite: &mut Suite<'_>, it: &Standalone) {
    suite.scenario("a pod that asks for a sidecar gets it", injected_pod(it)).await;
    suite.scenario("a pod whose name is generated gets a sidecar", generated_name(it)).await;
    suite.scenario("a pod that does not ask is left alone", not_asking(it)).await;
    suite.scenario("a pod that opts out is left alone", opted_out(it)).await;
    suite.scenario("a pod on the network of its node is left alone", host_network(it)).await;
    suite.scenario("a pod with a sidecar does not get a second one", resubmitted(it)).await;
    suite.scenario("the annotations of a pod configure its sidecar", own_settings(it)).await;
    suite.scenario("a pod may ask for the proxy among its containers", as_container(it)).await;
    suite.scenario("an invalid annotation leads to a warning", warning(it)).await;
    suite.scenario("a pod that cannot be injected is denied with the reason", denial(it)).await;
    suite.scenario("a dry run shows the sidecar and stores nothing", dry_run(it)).await;
    suite.scenario("a Service gets the annotation of its opaque port", opaque_port(it)).await;
    suite.scenario("the pods of a Deployment get sidecars", replicas(it)).await;
}

async fn injected_pod(it: &Standalone) -> Outcome {
    let manifest = pod("injected", &enabled());
    let answer = it.create(&manifest).await?;
    answer.expect_no_warnings()?;
    it.expect_audit(&answer, "injected", None).await?;
    let created = answer.created()?;
    expect_sidecar(&created, &it.plain(&manifest).await?)?;
    let stored = it.lab.api.get(&it.path("v1", "Pod", "injected")).await?.ok()?;
    expect_same("the stored pod", &without_sidecar(&created), &without_sidecar(&stored))
}

async fn generated_name(it: &Standalone) -> Outcome {
    let mut manifest = plain_pod("");
    manifest["metadata"] = json!({"generateName": "generated-", "annotations": enabled()});
    expect_proxy(&it.create(&manifest).await?.created()?)
}

async fn not_asking(it: &Standalone) -> Outcome {
    it.expect_left_alone(&plain_pod("not-asking"), NOT_ENABLED).await
}

async fn opted_out(it: &Standalone) -> Outcome {
    it.expect_left_alone(&pod("opted-out", &disabled()), NOT_ENABLED).await
}

async fn host_network(it: &Standalone) -> Outcome {
    let mut manifest = pod("host-network", &enabled());
    manifest["spec"]["hostNetwork"] = json!(true);
    it.expect_left_alone(&manifest, "host_network_enabled").await
}

async fn resubmitted(it: &Standalone) -> Outcome {
    let before = it.dry_run(&pod("resubmitted", &enabled())).await?.created()?;
    let metadata = &before["metadata"];
    let mut again = plain_pod("resubmitted");
    again["metadata"]["annotations"] = metadata["annotations"].clone();
    again["metadata"]["labels"] = metadata["labels"].clone();
    again["spec"] = before["spec"].clone();
    it.expect_left_alone(&again, "sidecar_already_exists").await
}

async fn own_settings(it: &Standalone) -> Outcome {
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
    let created = it.create(&manifest).await?.created()?;
    expect_sidecar(&created, &it.plain(&manifest).await?)?;
    expect_listed("the containers", "linkerd-debug", &names(&created, "containers"))?;
    let timeout = proxy_variable(&created, "LINKERD2_PROXY_OUTBOUND_CONNECT_TIMEOUT");
    expect("the timeout", Some("7000ms"), timeout)
}

async fn as_container(it: &Standalone) -> Outcome {
    let annotations = json!({INJECT: "enabled", NATIVE_SIDECAR: "false"});
    let manifest = pod("proxy-as-container", &annotations);
    let created = it.create(&manifest).await?.created()?;
    expect_sidecar(&created, &it.plain(&manifest).await?)
}

async fn warning(it: &Standalone) -> Outcome {
    let manifest = pod("warning", &json!({INJECT: "enabled", CPU_REQUEST: "lots"}));
    let answer = it.create(&manifest).await?;
    it.expect_audit(&answer, "injected", None).await?;
    expect("the number of warnings", 1, answer.warnings.len())?;
    expect_contains("the warning", CPU_REQUEST, &answer.warnings[0])?;
    expect_contains("the warning", "lots", &answer.warnings[0])?;
    expect_sidecar(&answer.created()?, &it.plain(&manifest).await?)
}

async fn denial(it: &Standalone) -> Outcome {
    let manifest = pod("denied", &json!({INJECT: "enabled", CLOSE_WAIT_TIMEOUT: "30s"}));
    let answer = it.create(&manifest).await?;
    expect("the status", 400, answer.status)?;
    let message = answer.body["message"].as_str().unwrap_or_default();
    let denied = format!("admission webhook \"{WEBHOOK_NAME}\" denied the request");
    expect_contains("the message", &denied, message)?;
    expect_contains("the message", "runAsRoot", message)?;
    it.expect_audit(&answer, "denied", None).await
}

async fn dry_run(it: &Standalone) -> Outcome {
    let manifest = pod("dry-run", &enabled());
    let created = it.dry_run(&manifest).await?.created()?;
    expect_sidecar(&created, &it.plain(&manifest).await?)?;
    let stored = it.lab.api.get(&it.path("v1", "Pod", "dry-run")).await?;
    expect("the status of the pod", 404, stored.status)
}

async fn opaque_port(it: &Standalone) -> Outcome {
    let answer = it.create(&service("db", "None", 3306)).await?;
    it.expect_audit(&answer, "annotated", None).await?;
    let annotations = &answer.created()?["metadata"]["annotations"];
    expect_same("the annotations", &json!({OPAQUE_PORTS: "3306"}), annotations)
}

async fn replicas(it: &Standalone) -> Outcome {
    it.create(&deployment("web", REPLICAS, &enabled())).await?.created()?;
    it.expect_injected_pods("web", REPLICAS).await
}
