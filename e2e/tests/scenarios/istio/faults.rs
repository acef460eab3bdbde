//! Faults: no API server, one that hangs, replicas that end under load, a certificate that expired.

use std::{net::SocketAddr, time::Duration};

use injectd_harness::{
    client::{patch_of, wait_until_ready},
    expect::{Outcome, eventually, expect, expect_contains, failed},
    injectd::Injectd,
    relay::Relay,
    scenario::note,
    stream::{Stream, all_created},
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    deployed::Istio,
    pods::{INJECTOR, annotation, image, labelled},
    replicas::{expect_probe, expect_revision, review},
    with_istio, with_istio_alone,
};

/// Pods that are created while a replica ends.
const PODS: usize = 100;
const STREAMS: usize = 4;
const KNOWN_REVIEWS: usize = 50;
/// What is not answered from memory waits for the API server, two seconds or longer.
const AT_ONCE: Duration = Duration::from_millis(1500);
const EXPIRY: &str = "injectd_certificate_expiry_timestamp_seconds";
const REJECTED: &str = "injectd_reload_rejected";

#[tokio::test]
async fn a_replica_is_ready_once_there_is_an_api_server_and_stays_so_when_it_is_gone() -> Outcome {
    with_istio(async |istio| late_server(istio).await).await
}

async fn late_server(it: &Istio<'_>) -> Outcome {
    let target = it.lab.api.server.strip_prefix("https://");
    let target: SocketAddr = target.ok_or_else(|| failed("no address"))?.parse()?;
    let mut relay = Relay::to(target)?;
    let mut replica = it.replica("late", &format!("https://{}", relay.addr)).await?;
    replica.start().await?;
    expect_probe(&replica, "/live", 200).await?;
    expect_probe(&replica, "/ready", 500).await?;
    let pod = labelled(&json!({}));
    let answer = review(&replica, "default", "enabled", &pod).await?;
    answer.expect_refused()?;
    let begin = Instant::now();
    relay.open()?;
    wait_until_ready(replica.admin).await?;
    let patch = patch_of(&review(&replica, "default", "enabled", &pod).await?.response()?)?;
    expect("whether there is a patch", false, patch.is_empty())?;
    let ready = begin.elapsed();
    drop(relay);
    for watch in ["config_maps", "nodes", "proxy_configs"] {
        eventually("the watch fails", async || {
            let labels = [("watch", watch)];
            let failing = replica.metric("injectd_watch_failing", &labels).await?;
            expect(format!("whether the watch of {watch} fails"), 1, failing)
        })
        .await?;
    }
    expect_probe(&replica, "/ready", 200).await?;
    patch_of(&review(&replica, "default", "enabled", &pod).await?.response()?)?;
    note(&format!("ready after {ready:.1?}"));
    Ok(())
}

#[tokio::test]
async fn while_the_api_server_hangs_reviews_are_answered_from_memory_and_then_edits_act() -> Outcome
{
    with_istio_alone(async |istio| hangs(istio).await).await
}

async fn hangs(it: &Istio<'_>) -> Outcome {
    let hanging = it.lab.local()?.hang().await?;
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
        expect_probe(replica, "/ready", 200).await?;
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
    note(&format!("at most {slowest:.0?}"));
    Ok(())
}

async fn wait_for_image(it: &Istio<'_>, expected: &str) -> Outcome {
    eventually("the edit takes effect", async || {
        let pod = it.pod("rev-canary", &labelled(&json!({}))).await?;
        expect("the image of the proxy", Some(expected), image(&pod))
    })
    .await
}

#[tokio::test]
async fn replicas_end_by_sigterm_under_load_and_come_back_and_no_pod_fails() -> Outcome {
    with_istio(rolling).await
}

/// Each replica ends as a kubelet ends it: SIGTERM, and the Service forgets it a moment later.
async fn rolling(it: &mut Istio<'_>) -> Outcome {
    let pods = vec![("enabled", labelled(&json!({}))); STREAMS];
    let stream = it.stream(&pods).await?;
    stream.wait_for(PODS).await?;
    let outcome = roll(it, &stream).await;
    let seen = stream.stop().await;
    outcome?;
    let created = all_created(&seen)?;
    for (_, pod) in &created {
        expect("the injector", Some("injectd"), annotation(pod, INJECTOR))?;
    }
    note(&format!("{} pods", created.len()));
    Ok(())
}

async fn roll(it: &mut Istio<'_>, stream: &Stream) -> Outcome {
    for index in 0..it.replicas.len() {
        let others: Vec<_> = it.replicas.iter().map(|replica| replica.webhook).collect();
        let own = others.get(index).copied();
        let others = others.into_iter().filter(|webhook| Some(*webhook) != own).collect();
        let Istio { replicas, service, .. } = &mut *it;
        let replica = replicas.get_mut(index).ok_or_else(|| failed("no replica"))?;
        let forgotten = async {
            stream.wait_for(PODS).await?;
            service.set(others);
            Ok(())
        };
        tokio::try_join!(replica.terminate(), forgotten)?;
        replica.start().await?;
        wait_until_ready(replica.admin).await?;
        it.balance();
        stream.wait_for(PODS).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_expired_certificate_does_not_replace_a_valid_one_and_is_reported_at_a_start() -> Outcome
{
    with_istio(async |istio| {
        let injected = labelled(&json!({}));
        istio.write_certificate(&istio.expired()?)?;
        keeps(istio).await?;
        begins_expired(istio).await?;
        istio.serve_certificate(&istio.certificate_of(&istio.ca)?).await?;
        expect_revision(istio, &istio.pod("enabled", &injected).await?, "default")
    })
    .await
}

/// Fails unless each replica rejects the files, and its certificate in use has not expired.
async fn keeps(it: &Istio<'_>) -> Outcome {
    for replica in &it.replicas {
        replica.logs("the certificate has expired, and the one in use has not").await?;
        eventually("the files are rejected", async || {
            let rejected = replica.metric(REJECTED, &[("what", "tls")]).await?;
            expect("whether they are rejected", 1, rejected)
        })
        .await?;
        expect("whether it has expired", false, has_expired(replica).await?)?;
    }
    // Connections that are there go on; a rollout of the API server makes new ones.
    it.service.cut();
    // It may still write to a connection that was cut.
    eventually("pods are created over new connections", async || {
        let pod = it.pod("enabled", &labelled(&json!({}))).await?;
        expect_revision(it, &pod, "default")
    })
    .await
}

/// Starts each replica again, with a certificate that has expired: none before it is in memory.
async fn begins_expired(it: &mut Istio<'_>) -> Outcome {
    for replica in &mut it.replicas {
        replica.terminate().await?;
        replica.start().await?;
        wait_until_ready(replica.admin).await?;
        replica.logs("the certificate has expired: API servers reject it").await?;
        expect("whether it has expired", true, has_expired(replica).await?)?;
    }
    let enabled = it.it.name_of("enabled");
    eventually("the API server refuses pods", async || {
        let answer = it.lab.api.dry_run(&enabled, &labelled(&json!({}))).await?;
        expect("the status", 500, answer.status)?;
        let message = answer.body["message"].as_str().unwrap_or_default();
        expect_contains("the message", "certificate has expired", message)
    })
    .await
}

/// Whether the certificate in use expired before 2021, as the one of the scenario.
async fn has_expired(replica: &Injectd) -> Outcome<bool> {
    Ok(replica.metric(EXPIRY, &[]).await? <= 1_609_459_200)
}
