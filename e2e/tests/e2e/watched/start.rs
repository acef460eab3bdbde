//! The start of proxy-injector while its API server is not there yet, or its watch lags.

use std::net::SocketAddr;

use injectd_harness::{
    expect::{Outcome, expect, failed},
    objects::{enabled, plain_pod},
    relay::Relay,
    run::Suite,
};
use tokio::time::Instant;

use super::Watched;
use crate::linkerd::CONTROL_PLANE;

pub(super) async fn all(suite: &mut Suite<'_>, it: &mut Watched) {
    suite.scenario("without an API server it is not ready", unready(it)).await;
    suite.scenario("it is ready once the API server answers", ready(it)).await;
    let name = "a namespace that the watch has not delivered is read from the API server";
    suite.scenario(name, lag(it)).await;
}

async fn unready(it: &mut Watched) -> Outcome {
    let target = it.linkerd.lab.api.server.strip_prefix("https://");
    let target: SocketAddr = target.ok_or_else(|| failed("no address"))?.parse()?;
    let relay = it.relay.insert(Relay::to(target)?);
    let server = format!("https://{}", relay.addr);
    it.linkerd.start(&server).await?;
    it.linkerd.injectd()?.logs("cannot watch namespaces").await?;
    it.linkerd.expect_probe("/ping", 200, "pong\n").await?;
    it.linkerd.expect_probe("/ready", 500, "not ready\n").await?;
    it.linkerd.review(CONTROL_PLANE, &plain_pod("early"), 10).await?.expect_refused()
}

async fn ready(it: &mut Watched) -> Outcome<String> {
    let begin = Instant::now();
    it.relay.as_mut().ok_or_else(|| failed("no relay"))?.open()?;
    it.linkerd.wait_until_ready().await?;
    Ok(format!("after {:.1} s", begin.elapsed().as_secs_f64()))
}

/// The connections that the watch has fall silent: new ones pass.
async fn lag(it: &mut Watched) -> Outcome<String> {
    let relay = it.relay.take().ok_or_else(|| failed("no relay"))?;
    let connections = relay.hold();
    it.linkerd.make_namespace("lagging", &enabled()).await?;
    let before = it.linkerd.misses("namespaces").await?;
    for _ in 0..3 {
        let response = it.linkerd.response("lagging", &plain_pod("at-once")).await?;
        let verdict = response["auditAnnotations"]["verdict"].as_str();
        expect("the verdict", Some("injected"), verdict)?;
    }
    let misses = it.linkerd.misses("namespaces").await? - before;
    expect("how often the namespace was unknown", 1, misses)?;
    relay.release();
    it.linkerd.discard();
    Ok(format!("{connections} connections held"))
}
