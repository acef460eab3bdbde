//! Beside Linkerd's own injector, in its place, and back.

use injectd_harness::{
    api::WEBHOOK_CONFIGURATIONS,
    client::wait_until_ready,
    expect::{Outcome, eventually, expect, failed},
    injectd::Injectd,
    lab::service_ip,
    objects::{enabled, pod, service, webhook_configuration},
    sidecar::expect_proxy,
    stream::all_created,
};
use serde_json::json;

use super::installed::Installed;

/// Linkerd's Service.
const SERVICE: &str = "linkerd-proxy-injector";

pub(super) async fn all(it: &Installed<'_>) -> Outcome<String> {
    // It stands for Linkerd's injector: injectd in its place, which counts its reviews apart.
    let folder = tempfile::tempdir()?;
    let (lab, namespace, ip) = (it.it.lab, &it.it.name, service_ip()?);
    let host = format!("{SERVICE}.{namespace}.svc");
    let mut upstream =
        Injectd::proxy_injector(&lab.binary, folder.path(), &host, ip, &lab.kubeconfig)?;
    upstream.start().await?;
    wait_until_ready(upstream.admin).await?;
    let port = upstream.webhook.port();
    it.it.create(&service(SERVICE, &ip.to_string(), port)).await?.created()?;
    let client = json!({"service": {"name": SERVICE, "namespace": namespace, "port": port}});
    // As that of Linkerd, the API server calls it after injectd's, by its name.
    let name = it.it.name_of("upstream");
    let theirs = webhook_configuration(&name, client, upstream.ca(), &json!({"e2e": namespace}));
    let [our_name, _] = it.release.configurations();
    let ours =
        it.objects().await?.into_iter().find(|object| object["metadata"]["name"] == *our_name);
    let mut ours = ours.ok_or_else(|| failed(format!("no {our_name}")))?;
    // As by default: with Fail, pods would be refused until the caBundle is written.
    ours["webhooks"][0]["failurePolicy"] = json!("Ignore");
    let stream = it.stream_of(pod("swapped", &enabled()));
    stream.wait_for(20).await?;
    // Beside: both are called.
    it.it.create_in_cluster(&theirs).await?;
    let reviews = async || upstream.metric("injectd_reviews_total", &[]).await;
    eventually("both are called", async || {
        expect("whether the other one was", true, reviews().await? > 0)
    })
    .await?;
    stream.wait_for(50).await?;
    // Back: Linkerd's alone. Then injectd alone, in its place.
    let ours_path = format!("{WEBHOOK_CONFIGURATIONS}/{our_name}");
    it.api().delete(&ours_path).await?.ok()?;
    stream.wait_for(50).await?;
    it.api().apply(&ours, "helm").await?;
    eventually("injectd publishes its CA", async || {
        let found = it.api().get(&ours_path).await?.ok()?;
        let bundle = &found["webhooks"][0]["clientConfig"]["caBundle"];
        expect("whether there is a caBundle", true, bundle.is_string())
    })
    .await?;
    stream.wait_for(50).await?;
    it.api().delete(&format!("{WEBHOOK_CONFIGURATIONS}/{name}")).await?.ok()?;
    stream.wait_for(50).await?;
    let seen = stream.stop().await;
    let pods = seen.iter().filter_map(|seen| seen.result.as_ref().ok());
    let mut uninjected = 0;
    for pod in pods {
        uninjected += usize::from(expect_proxy(pod).is_err());
    }
    expect("pods without a sidecar", 0, uninjected)?;
    upstream.terminate().await?;
    let refused = seen.iter().filter(|created| created.result.is_err()).count();
    if refused > 0 {
        all_created(&seen)?;
    }
    Ok(format!("{} pods: 0 uninjected, 0 refused", seen.len()))
}
