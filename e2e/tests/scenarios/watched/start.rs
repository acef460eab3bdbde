//! The start of proxy-injector while its API server is not there yet, or its watch lags.

use std::net::SocketAddr;

use injectd_harness::{
    expect::{Outcome, expect, failed},
    objects::{enabled, plain_pod},
    relay::Relay,
    scenario::{note, with_lab},
};
use tokio::time::Instant;

use crate::linkerd::{Linkerd, with_account};

#[tokio::test]
async fn it_is_ready_once_its_api_server_answers_and_not_before() -> Outcome {
    with_lab(async |lab| {
        with_account(lab, &[], async |linkerd| {
            let mut relay = relay(linkerd).await?;
            linkerd.injectd.start().await?;
            linkerd.injectd.logs("cannot watch namespaces").await?;
            linkerd.expect_probe("/ping", 200, "pong\n").await?;
            linkerd.expect_probe("/ready", 500, "not ready\n").await?;
            let early = plain_pod("early");
            linkerd.review(&linkerd.control_plane, &early, 10).await?.expect_refused()?;
            let begin = Instant::now();
            relay.open()?;
            linkerd.wait_until_ready().await?;
            note(&format!("ready after {:.1} s", begin.elapsed().as_secs_f64()));
            linkerd.response(&linkerd.control_plane, &early).await.map(drop)
        })
        .await
    })
    .await
}

/// The connections that the watch has fall silent: new ones pass.
#[tokio::test]
async fn a_namespace_that_the_watch_has_not_delivered_is_read_from_the_api_server() -> Outcome {
    with_lab(async |lab| {
        with_account(lab, &[], async |linkerd| {
            let mut relay = relay(linkerd).await?;
            relay.open()?;
            linkerd.injectd.start().await?;
            linkerd.wait_until_ready().await?;
            note(&format!("{} connections held", relay.hold()));
            let lagging = format!("{}-lagging", linkerd.it.name);
            linkerd.it.make(&lagging, &enabled()).await?;
            let before = linkerd.misses("namespaces").await?;
            for _ in 0..3 {
                let response = linkerd.response(&lagging, &plain_pod("at-once")).await?;
                let verdict = response["auditAnnotations"]["verdict"].as_str();
                expect("the verdict", Some("injected"), verdict)?;
            }
            let misses = linkerd.misses("namespaces").await? - before;
            expect("how often the namespace was unknown", 1, misses)?;
            relay.release();
            Ok(())
        })
        .await
    })
    .await
}

/// A relay to the API server, closed, which the injector will use.
async fn relay(linkerd: &Linkerd<'_>) -> Outcome<Relay> {
    let target = linkerd.it.lab.api.server.strip_prefix("https://");
    let target: SocketAddr = target.ok_or_else(|| failed("no address"))?.parse()?;
    let relay = Relay::to(target)?;
    linkerd.use_server(&format!("https://{}", relay.addr)).await?;
    Ok(relay)
}
