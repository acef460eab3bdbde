//! injectd in Linkerd's place in a cluster that it watches, whose API server comes, hangs and
//! comes back.

use std::{collections::BTreeSet, time::Duration};

use injectd_harness::{
    audit_log::events,
    expect::{Outcome, expect, failed},
    lab::{Hanging, Lab, NOT_LOCAL},
    relay::Relay,
    run::{Run, Suite},
};
use serde_json::Value;

use crate::linkerd::{ACCOUNT, CONTROL_PLANE, Linkerd};

mod namespaces;
mod outage;
mod start;
mod workloads;

pub(crate) const NAME: &str = "watched";
const LIMIT: Duration = Duration::from_mins(2);
/// Where pods are injected.
const NAMESPACE: &str = "annotated";
/// What takes longer is not answered from memory.
const AT_ONCE: Duration = Duration::from_millis(500);

/// What all scenarios of the suite share.
struct Watched {
    linkerd: Linkerd,
    relay: Option<Relay>,
    hanging: Option<Hanging>,
}

pub(crate) async fn run(run: &mut Run, lab: &Lab) -> Outcome {
    let Some(mut suite) = run.suite(NAME, LIMIT) else { return Ok(()) };
    let Some(local) = &lab.local else {
        suite.skip(NOT_LOCAL);
        return Ok(());
    };
    let linkerd = Linkerd::new(lab, local, NAMESPACE, &[])?;
    let mut watched = Watched { linkerd, relay: None, hanging: None };
    all(&mut suite, &mut watched).await;
    watched.linkerd.explain(&suite);
    Ok(())
}

async fn all(suite: &mut Suite<'_>, it: &mut Watched) {
    let name = "a ServiceAccount has exactly Linkerd's ClusterRole";
    suite.setup(name, it.linkerd.make_account()).await;
    start::all(suite, it).await;
    let name = "the API server calls proxy-injector by its Service";
    suite.setup(name, it.linkerd.serve()).await;
    namespaces::all(suite, &it.linkerd).await;
    workloads::all(suite, &it.linkerd).await;
    let name = "a pod of an unknown namespace is denied in the API server's words";
    suite.scenario(name, it.linkerd.expect_not_found("nowhere")).await;
    outage::all(suite, it).await;
    let name = "the ServiceAccount requests nothing else, and nothing that is forbidden";
    suite.scenario(name, async { requests(&it.linkerd) }).await;
    suite.scenario("SIGTERM ends it with exit code 0", it.linkerd.terminate()).await;
}

/// All requests of the `ServiceAccount` in the audit log.
fn requests(it: &Linkerd) -> Outcome<String> {
    let user = format!("system:serviceaccount:{CONTROL_PLANE}:{ACCOUNT}");
    let found = events(&it.local.audit_log, &format!("\"username\":\"{user}\""))?;
    let requests: BTreeSet<_> = found.iter().map(verb_and_resource).collect();
    let expected = BTreeSet::from([
        ("list", "namespaces"),
        ("watch", "namespaces"),
        ("get", "namespaces"),
        ("get", "replicasets"),
        ("get", "jobs"),
        ("get", "deployments"),
        ("get", "cronjobs"),
        ("create", "events"),
        ("patch", "events"),
    ]);
    expect("the requests", expected, requests)?;
    for event in &found {
        if [401, 403].contains(&event["responseStatus"]["code"].as_u64().unwrap_or_default()) {
            return Err(failed(format!("a request that is forbidden: {event}")));
        }
    }
    let ids: BTreeSet<_> = found.iter().map(|it| it["auditID"].as_str()).collect();
    Ok(format!("{} requests", ids.len()))
}

fn verb_and_resource(event: &Value) -> (&str, &str) {
    let resource = event["objectRef"]["resource"].as_str();
    let resource = resource.or(event["requestURI"].as_str()).unwrap_or_default();
    (event["verb"].as_str().unwrap_or_default(), resource)
}
