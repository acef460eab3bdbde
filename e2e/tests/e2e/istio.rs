//! injectd as Istio's injector in a cluster: as the `ServiceAccount` of `deploy/istio-webhook`, in
//! two replicas behind a Service, beside an istiod that it takes the webhooks from.

use std::time::Duration;

use injectd_harness::{
    audit_log::events,
    expect::{Outcome, expect_listed, failed},
    lab::{Lab, NOT_LOCAL},
    run::{Run, Suite},
};

mod both;
pub(crate) mod config;
mod deployed;
mod edits;
mod faults;
mod istiod;
mod judged;
mod nodes;
mod pods;
mod revisions;
mod takeover;
mod templates;

use deployed::{ACCOUNT, Deployed, NAMESPACE};

pub(crate) const NAME: &str = "istio";
const LIMIT: Duration = Duration::from_mins(10);

pub(crate) async fn run(run: &mut Run, lab: &Lab) -> Outcome {
    let Some(mut suite) = run.suite(NAME, LIMIT) else { return Ok(()) };
    if lab.local.is_none() {
        suite.skip(NOT_LOCAL);
        return Ok(());
    }
    let mut it = Deployed::new(lab).await?;
    all(&mut suite, &mut it).await;
    it.explain(&suite);
    Ok(())
}

async fn all(suite: &mut Suite<'_>, it: &mut Deployed) {
    let name = "the API server accepts the manifests of deploy/istio-webhook";
    suite.setup(name, it.apply()).await;
    suite.setup("two replicas find two revisions", it.start()).await;
    revisions::all(suite, it).await;
    templates::all(suite, it).await;
    nodes::all(suite, it).await;
    suite.scenario("one process injects for Linkerd and for Istio", both::meshes(it)).await;
    edits::all(suite, it).await;
    faults::all(suite, it).await;
    takeover::all(suite, it).await;
    let name = "the ServiceAccount requests nothing else, and nothing that is forbidden";
    suite.scenario(name, async { requests(it) }).await;
    suite.scenario("SIGTERM ends both replicas with exit code 0", it.terminate()).await;
}

/// All requests of the `ServiceAccount` in the audit log.
fn requests(it: &Deployed) -> Outcome<String> {
    let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let local = it.lab.local.as_ref().ok_or_else(|| failed("no audit log"))?;
    let found = events(&local.audit_log, &format!("\"username\":\"{user}\""))?;
    for event in &found {
        let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
        expect_listed("a resource", resource, &["configmaps", "proxyconfigs", "nodes"])?;
        let verb = event["verb"].as_str().unwrap_or_default();
        expect_listed(format!("a verb of {resource}"), verb, &["get", "list", "watch"])?;
        if [401, 403].contains(&event["responseStatus"]["code"].as_u64().unwrap_or_default()) {
            return Err(failed(format!("a request that is forbidden: {event}")));
        }
    }
    Ok(format!("{} requests", found.len()))
}
