//! `deploy/istio-webhook/take-over.sh` with a release of the chart: the script reads the CA from the
//! chart's Secret, and the leader writes the next CAs into istiod's webhook configuration.
//!
//! istiod itself is not there: pods are refused while its webhook leads to it. The scenarios of
//! `istio::takeover` have it.

use std::{collections::BTreeSet, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_harness::{
    api::{Answer, WEBHOOK_CONFIGURATIONS},
    expect::{Outcome, eventually, expect, expect_same, failed},
    istio::of_chart,
    objects::{deployment, plain_pod},
    stream::{Stream, all_created},
};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use super::installed::Installed;
use crate::istio::takeover::script;

/// The end of the name of the namespace whose pods the webhook is called for.
const PODS: &str = "pods-of-istiod";
/// How long a CA may be alone in a bundle, or in it at all.
const LIMIT: Duration = Duration::from_mins(5);
/// Pods that are created after the change.
const AFTERWARDS: usize = 1000;
/// The end of a certificate in PEM.
const PEM_END: &str = "-----END CERTIFICATE-----";

pub(super) async fn there_and_back(it: &Installed<'_>) -> Outcome<String> {
    let name = it.of_istiod.as_deref().ok_or_else(|| failed("nothing to take over"))?;
    let path = format!("{WEBHOOK_CONFIGURATIONS}/{name}");
    make_istiod(it, name).await?;
    expect_refused(it).await?;
    let before = it.api().get(&path).await?.ok()?;

    run(it, &["redirect", "default"]).await?;
    eventually("injectd is called", async || expect_injected(&dry_run(it).await?.created()?))
        .await?;
    let creator = it.it.unaudited(&[it.it.name_of(PODS)]).await?;
    let stream = Stream::start(&creator, &[(&it.it.name_of(PODS), plain_pod("stream"))]);
    let replaced = async {
        wait_for_other_cas(it, name).await?;
        // The next CA signs within seconds.
        stream.wait_for(AFTERWARDS).await
    };
    let replaced = replaced.await;
    let seen = stream.stop().await;
    replaced?;
    for (_, pod) in all_created(&seen)? {
        expect_injected(pod)?;
    }

    run(it, &["back", "default"]).await?;
    let after = it.api().get(&path).await?.ok()?;
    expect_same("the webhooks", &before["webhooks"], &after["webhooks"])?;
    expect_refused(it).await?;
    Ok(format!("{} pods while CAs changed, 0 refused", seen.len()))
}

/// Its Deployment as the take-over needs it, and the webhooks of its chart.
async fn make_istiod(it: &Installed<'_>, name: &str) -> Outcome {
    it.it.make_labelled(&it.it.name_of(PODS), &json!({"istio-injection": "enabled"})).await?;
    let mut istiod = deployment("istiod", 0, &json!({}));
    istiod["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "INJECTION_WEBHOOK_CONFIG_NAME", "value": ""}]);
    it.it.create(&istiod).await?.created()?;
    let mut webhooks = of_chart("1.31", "default", 443)?;
    webhooks["metadata"]["name"] = json!(name);
    for webhook in webhooks["webhooks"].as_array_mut().into_iter().flatten() {
        webhook["failurePolicy"] = json!("Fail");
        webhook["clientConfig"]["service"]["namespace"] = json!(it.it.name);
    }
    it.it.confine(&mut webhooks);
    it.it.create_in_cluster(&webhooks).await?;
    // That of a check which failed.
    it.it.delete_at_end(format!("{WEBHOOK_CONFIGURATIONS}/injectd-tag-injectd-check"));
    Ok(())
}

async fn run(it: &Installed<'_>, arguments: &[&str]) -> Outcome {
    let (name, port) = (&*it.it.name, it.service.addr.port().to_string());
    let variables = [("NAMESPACE", name), ("SERVICE", name), ("PORT", &*port)];
    script(&it.it.lab.kubeconfig, arguments, &variables).await.map(drop)
}

async fn dry_run(it: &Installed<'_>) -> Outcome<Answer> {
    it.api().dry_run(&it.it.name_of(PODS), &plain_pod("tried")).await
}

/// istiod's webhook is called, and there is no istiod.
async fn expect_refused(it: &Installed<'_>) -> Outcome {
    eventually("istiod's webhook is called", async || {
        expect("the status", 500, dry_run(it).await?.status)
    })
    .await
}

fn expect_injected(pod: &Value) -> Outcome {
    let revision = pod["metadata"]["annotations"]["istio.io/rev"].as_str();
    expect("Istio's revision", Some("default"), revision)
}

/// Waits until the configuration has a CA that it does not have now; at full length, until it has only
/// such ones.
async fn wait_for_other_cas(it: &Installed<'_>, name: &str) -> Outcome {
    let first = cas(&it.ca_bundle(name).await?)?;
    let replaced = async {
        let mut ticks = interval(Duration::from_secs(1));
        loop {
            ticks.tick().await;
            let now = cas(&it.ca_bundle(name).await?)?;
            let is_changed = if it.it.lab.is_long {
                !now.is_empty() && now.is_disjoint(&first)
            } else {
                !now.is_subset(&first)
            };
            if is_changed {
                return Ok(());
            }
        }
    };
    timeout(LIMIT, replaced).await.map_err(|_| failed("no other CA in time"))?
}

/// The certificates of a `caBundle`, which the API has in base64.
fn cas(bundle: &str) -> Outcome<BTreeSet<String>> {
    let pem = String::from_utf8(BASE64_STANDARD.decode(bundle)?)?;
    let certificates = pem.split(PEM_END).map(|part| part.trim().to_owned());
    Ok(certificates.filter(|part| !part.is_empty()).collect())
}
