//! Beside Linkerd's own injector, in its place, and back.

use injectd_harness::{
    api::WEBHOOK_CONFIGURATIONS,
    expect::{Outcome, eventually, expect},
    injectd::Injectd,
    objects::{enabled, pod, service, webhook_configuration},
    sidecar::expect_proxy,
    stream::{Stream, all_created},
};
use serde_json::json;

use super::installed::{CONFIGURATIONS, Installed, LINKERD_PODS, NAMESPACE, wait_until_ready};

/// Linkerd's configuration, which the API server calls after injectd's.
const UPSTREAM: &str = "linkerd-proxy-injector-webhook-config";
const IP: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::new(127, 100, 0, 18));

pub(super) async fn all(it: &mut Installed) -> Outcome<String> {
    // It stands for Linkerd's injector: injectd in its place, which counts its reviews apart.
    let folder = tempfile::tempdir()?;
    let host = format!("linkerd-proxy-injector.{NAMESPACE}.svc");
    let kubeconfig = &it.lab.kubeconfig;
    let mut upstream =
        Injectd::proxy_injector(&it.lab.binary, folder.path(), &host, IP, kubeconfig)?;
    upstream.start().await?;
    wait_until_ready(&upstream).await?;
    let port = upstream.webhook.port();
    let of = service("linkerd-proxy-injector", &IP.to_string(), port);
    it.api().create(Some(NAMESPACE), &of).await?.created()?;
    let client = json!({"service": {"name": "linkerd-proxy-injector", "namespace": NAMESPACE, "port": port}});
    let theirs = webhook_configuration(UPSTREAM, client, upstream.ca(), &json!({"e2e": NAMESPACE}));
    let ours = it.release().await?;
    let ours = ours.iter().find(|it| it["metadata"]["name"] == CONFIGURATIONS[0]);
    let mut ours = ours.cloned().unwrap_or_default();
    // As by default: with Fail, pods would be refused until the caBundle is written.
    ours["webhooks"][0]["failurePolicy"] = json!("Ignore");
    let stream = Stream::start(it.api(), &[(LINKERD_PODS, pod("swapped", &enabled()))]);
    stream.wait_for(20).await?;
    // Beside: both are called.
    it.api().create(None, &theirs).await?.created()?;
    let reviews = async || upstream.metric("injectd_reviews_total", &[]).await;
    eventually("both are called", async || {
        expect("whether the other one was", true, reviews().await? > 0)
    })
    .await?;
    stream.wait_for(50).await?;
    // Back: Linkerd's alone. Then injectd alone, in its place.
    let ours_path = format!("{WEBHOOK_CONFIGURATIONS}/{}", CONFIGURATIONS[0]);
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
    it.api().delete(&format!("{WEBHOOK_CONFIGURATIONS}/{UPSTREAM}")).await?.ok()?;
    stream.wait_for(50).await?;
    let seen = stream.stop().await;
    let pods = seen.iter().filter_map(|seen| seen.result.as_ref().ok());
    let mut uninjected = 0;
    for pod in pods {
        uninjected += usize::from(expect_proxy(pod).is_err());
    }
    expect("pods without a sidecar", 0, uninjected)?;
    upstream.terminate().await?;
    let refused = seen.iter().filter(|it| it.result.is_err()).count();
    if refused > 0 {
        all_created(&seen)?;
    }
    Ok(format!("{} pods: 0 uninjected, 0 refused", seen.len()))
}
