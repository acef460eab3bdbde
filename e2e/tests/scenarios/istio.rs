//! injectd as Istio's injector in a cluster: as the `ServiceAccount` of `deploy/istio-webhook`, in
//! two replicas behind a Service, which are called for the namespaces of one scenario.

use injectd_harness::{
    audit_log::events,
    expect::{Outcome, expect_listed, failed},
    injectd::Injectd,
    lab::Lab,
    namespaced::with_namespace,
    scenario::{explain, with_lab, with_lab_alone},
};
use serde_json::json;

mod both;
mod certificates;
mod configuration;
mod deployed;
mod edits;
mod faults;
mod istiod;
mod judged;
mod nodes;
mod pods;
mod replicas;
mod revisions;
pub(crate) mod takeover;
mod templates;

use deployed::Istio;

/// Runs a scenario whose namespaces two replicas are called for, beside others.
async fn with_istio(scenario: impl AsyncFnOnce(&mut Istio<'_>) -> Outcome) -> Outcome {
    with_lab(async |lab| with_replicas(lab, scenario).await).await
}

/// As [`with_istio`], while no other scenario runs.
async fn with_istio_alone(scenario: impl AsyncFnOnce(&mut Istio<'_>) -> Outcome) -> Outcome {
    with_lab_alone(async |lab| with_replicas(lab, scenario).await).await
}

async fn with_replicas(
    lab: &Lab,
    scenario: impl AsyncFnOnce(&mut Istio<'_>) -> Outcome,
) -> Outcome {
    lab.local()?;
    with_namespace(lab, &json!({}), async |namespaced| {
        let mut istio = Istio::new(namespaced).await?;
        let mut outcome = istio.serve().await;
        if outcome.is_ok() {
            outcome = scenario(&mut istio).await;
        }
        if outcome.is_ok() {
            outcome = expect_requests(&istio);
        }
        explain_replicas(&outcome, &istio.replicas);
        outcome
    })
    .await
}

/// The `ServiceAccount` requests nothing else, and nothing that is forbidden.
fn expect_requests(it: &Istio<'_>) -> Outcome {
    let found =
        events(&it.lab.local()?.audit_log, &format!("\"username\":{:?}", it.account().user()))?;
    if found.is_empty() {
        return Err(failed("no request of the ServiceAccount"));
    }
    for event in &found {
        let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
        expect_listed("a resource", resource, &["configmaps", "proxyconfigs", "nodes"])?;
        let verb = event["verb"].as_str().unwrap_or_default();
        expect_listed(format!("a verb of {resource}"), verb, &["get", "list", "watch"])?;
        if [401, 403].contains(&event["responseStatus"]["code"].as_u64().unwrap_or_default()) {
            return Err(failed(format!("a request that is forbidden: {event}")));
        }
    }
    Ok(())
}

/// Prints the ends of the logs of replicas if a scenario has failed, without the reviews.
pub(crate) fn explain_replicas(outcome: &Outcome, replicas: &[Injectd]) {
    for (index, replica) in replicas.iter().enumerate() {
        let log = replica.log();
        let lines = log.lines().filter(|line| !line.contains("msg=reviewed"));
        explain(outcome, format_args!("the log of replica {index}"), lines);
    }
}
