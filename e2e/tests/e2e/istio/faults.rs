//! Faults: no API server, one that hangs, replicas that end under load, a certificate that expired.

use std::{net::SocketAddr, time::Duration};

use injectd_harness::{
    client::{self, patch_of},
    expect::{Outcome, eventually, expect, expect_contains, failed},
    relay::Relay,
    run::Suite,
    stream::{Stream, all_created},
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    deployed::{Deployed, certificate_of, metric_of, review, wait_until_ready},
    pods::{INJECTOR, annotation, image, labelled},
    revisions::expect_revision,
};

/// Pods that are created while a replica ends.
const PODS: usize = 100;
const STREAMS: usize = 4;
const KNOWN_REVIEWS: usize = 50;
/// What takes longer is not answered from memory.
const AT_ONCE: Duration = Duration::from_millis(500);
const EXPIRY: &str = "injectd_certificate_expiry_timestamp_seconds";

pub(super) async fn all(suite: &mut Suite<'_>, it: &mut Deployed) {
    let name = "a replica is ready once there is an API server, and stays so when it is gone";
    suite.scenario(name, late_server(it)).await;
    let name = "while the API server hangs, reviews are answered from memory; then edits act";
    suite.scenario(name, hangs(it)).await;
    let name = "replicas end by SIGTERM under load and come back: no pod fails";
    suite.scenario(name, rolling(it)).await;
    let name = "an expired certificate is reported, and a new one acts without a restart";
    suite.scenario(name, expired(it)).await;
}

async fn late_server(it: &Deployed) -> Outcome<String> {
    let target = it.lab.api.server.strip_prefix("https://");
    let target: SocketAddr = target.ok_or_else(|| failed("no address"))?.parse()?;
    let mut relay = Relay::to(target)?;
    let mut replica = it.replica("late", &format!("https://{}", relay.addr)).await?;
    replica.start().await?;
    let (status, _) = client::probe(replica.admin, "/live").await?;
    expect("/live", 200, status)?;
    let (status, _) = client::probe(replica.admin, "/ready").await?;
    expect("/ready", 500, status)?;
    let pod = labelled(&json!({}));
    let answer = review(&replica, "default", "enabled", &pod).await?;
    answer.expect_refused()?;
    let begin = Instant::now();
    relay.open()?;
    wait_until_ready(&replica).await?;
    let patch = patch_of(&review(&replica, "default", "enabled", &pod).await?.response()?)?;
    expect("whether there is a patch", false, patch.is_empty())?;
    let ready = begin.elapsed();
    drop(relay);
    for watch in ["config_maps", "nodes", "proxy_configs"] {
        eventually("the watch fails", async || {
            let labels = [("watch", watch)];
            let failing = metric_of(&replica, "injectd_watch_failing", &labels).await?;
            expect(format!("whether the watch of {watch} fails"), 1, failing)
        })
        .await?;
    }
    let (status, _) = client::probe(replica.admin, "/ready").await?;
    expect("/ready", 200, status)?;
    patch_of(&review(&replica, "default", "enabled", &pod).await?.response()?)?;
    Ok(format!("ready after {ready:.1?}"))
}

async fn hangs(it: &Deployed) -> Outcome<String> {
    let local = it.lab.local.as_ref().ok_or_else(|| failed("no local API server"))?;
    let hanging = local.hang()?;
    let mut slowest = Duration::ZERO;
    for replica in &it.replicas {
        for number in 0..KNOWN_REVIEWS {
            // Namespaces and names that it never saw.
            let mut pod = labelled(&json!({}));
            pod["metadata"]["name"] = json!(format!("new-{number}"));
            let begin = Instant::now();
            let answer = review(replica, "canary", &format!("unknown-{number}"), &pod).await?;
            slowest = slowest.max(begin.elapsed());
            patch_of(&answer.response()?)?;
        }
        let (status, _) = client::probe(replica.admin, "/ready").await?;
        expect("/ready", 200, status)?;
    }
    if slowest > AT_ONCE {
        return Err(failed(format!("a review took {slowest:.1?}")));
    }
    drop(hanging);
    let mut changed = it.revision("canary")?.clone();
    changed.values = changed.values.replace("1.30.4", "1.30.5");
    eventually("the API server is back", async || it.configure(&changed).await).await?;
    wait_for_image(it, &changed.image()?).await?;
    it.configure(it.revision("canary")?).await?;
    wait_for_image(it, &it.revision("canary")?.image()?).await?;
    Ok(format!("at most {slowest:.0?}"))
}

async fn wait_for_image(it: &Deployed, expected: &str) -> Outcome {
    eventually("the edit takes effect", async || {
        let pod = it.pod("rev-canary", &labelled(&json!({}))).await?;
        expect("the image of the proxy", Some(expected), image(&pod))
    })
    .await
}

/// Each replica ends as a kubelet ends it: SIGTERM, and the Service forgets it a moment later.
async fn rolling(it: &mut Deployed) -> Outcome<String> {
    let pods = vec![("enabled", labelled(&json!({}))); STREAMS];
    let stream = Stream::start(&it.lab.api, &pods);
    stream.wait_for(PODS).await?;
    let outcome = roll(it, &stream).await;
    let seen = stream.stop().await;
    outcome?;
    let created = all_created(&seen)?;
    for (_, pod) in &created {
        expect("the injector", Some("injectd"), annotation(pod, INJECTOR))?;
    }
    Ok(format!("{} pods", created.len()))
}

async fn roll(it: &mut Deployed, stream: &Stream) -> Outcome {
    for index in 0..it.replicas.len() {
        let others: Vec<_> = it.replicas.iter().map(|it| it.webhook).collect();
        let own = others.get(index).copied();
        let others = others.into_iter().filter(|it| Some(*it) != own).collect();
        let Deployed { replicas, service, .. } = &mut *it;
        let replica = replicas.get_mut(index).ok_or_else(|| failed("no replica"))?;
        let forgotten = async {
            stream.wait_for(PODS).await?;
            service.set(others);
            Ok(())
        };
        tokio::try_join!(replica.terminate(), forgotten)?;
        replica.start().await?;
        wait_until_ready(replica).await?;
        it.balance();
        stream.wait_for(PODS).await?;
    }
    Ok(())
}

async fn expired(it: &Deployed) -> Outcome {
    let outcome = expire(it).await;
    it.serve_certificate(&certificate_of(&it.ca)?).await?;
    let pod = it.pod("enabled", &labelled(&json!({}))).await?;
    expect_revision(it, &pod, "default")?;
    outcome
}

async fn expire(it: &Deployed) -> Outcome {
    it.write_certificate(&it.issue_expired()?)?;
    for replica in &it.replicas {
        replica.logs("the certificate has expired").await?;
        let expiry = metric_of(replica, EXPIRY, &[]).await?;
        expect("whether it expired after 2021", false, expiry > 1_609_459_200)?;
    }
    // Connections that are there go on; a rollout of the API server makes new ones.
    it.service.cut();
    eventually("the API server refuses pods", async || {
        let answer = it.lab.api.dry_run("enabled", &labelled(&json!({}))).await?;
        expect("the status", 500, answer.status)?;
        let message = answer.body["message"].as_str().unwrap_or_default();
        expect_contains("the message", "certificate has expired", message)
    })
    .await
}
