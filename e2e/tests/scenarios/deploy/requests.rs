//! What the `ServiceAccount` of the release wrote in the cluster.

use injectd_harness::{
    audit_log::events,
    expect::{Outcome, eventually, expect, failed},
    objects::{deployment, enabled},
};
use jiff::Timestamp;
use serde_json::Value;

use super::installed::{Installed, LINKERD_PODS};

/// Verbs that change objects.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// Writes that the release needs.
struct Allowed {
    resource: &'static str,
    verbs: &'static [&'static str],
    /// `None`: any, as the events of pods.
    namespace: Option<String>,
    /// Empty: any.
    names: Vec<String>,
}

fn allowed(it: &Installed<'_>) -> [Allowed; 4] {
    let release = &it.release;
    let (namespace, certificates) = (Some(release.0.clone()), release.certificates());
    let configurations = release.configurations().into_iter().chain(it.of_istiod.clone());
    [
        Allowed {
            resource: "secrets",
            verbs: &["update", "patch"],
            namespace: namespace.clone(),
            names: vec![certificates.clone()],
        },
        Allowed {
            resource: "leases",
            verbs: &["update", "patch"],
            namespace,
            names: vec![certificates, it.release.audit()],
        },
        Allowed {
            resource: "mutatingwebhookconfigurations",
            verbs: &["patch"],
            namespace: Some(String::new()),
            names: configurations.collect(),
        },
        Allowed {
            resource: "events",
            verbs: &["create", "patch"],
            namespace: None,
            names: Vec::new(),
        },
    ]
}

/// A write in the audit log.
struct Write<'a> {
    verb: &'a str,
    resource: &'a str,
    /// Empty for an object without one.
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Write<'a> {
    /// The write of an event; `None` if it only reads.
    fn of(event: &'a Value) -> Option<Self> {
        let verb = event["verb"].as_str().filter(|verb| WRITES.contains(verb))?;
        let of_object = |key: &str| event["objectRef"][key].as_str().unwrap_or_default();
        let [resource, namespace, name] = ["resource", "namespace", "name"].map(of_object);
        Some(Self { verb, resource, namespace, name })
    }

    fn is(&self, allowed: &Allowed) -> bool {
        self.resource == allowed.resource
            && allowed.verbs.contains(&self.verb)
            && allowed.namespace.as_ref().is_none_or(|namespace| namespace == self.namespace)
            && (allowed.names.is_empty() || allowed.names.iter().any(|name| name == self.name))
    }
}

/// Checks all writes in the audit log: each is one that the chart names.
pub(super) fn expect_allowed(it: &Installed<'_>) -> Outcome {
    let (found, allowed) = (of_account(it)?, allowed(it));
    let more = |write: &Write<'_>| !allowed.iter().any(|allowed| write.is(allowed));
    match found.iter().filter_map(Write::of).find(more) {
        Some(Write { verb, resource, namespace, name }) => {
            Err(failed(format!("not allowed: {verb} {resource} {namespace}/{name}")))
        }
        None => Ok(()),
    }
}

/// Each write that the chart names was made, once a Deployment has got its event.
pub(super) async fn all_needed(it: &Installed<'_>) -> Outcome<String> {
    let namespace = it.it.name_of(LINKERD_PODS);
    it.api().create(Some(&namespace), &deployment("web", 1, &enabled())).await?.created()?;
    eventually("the writes are in the audit log", async || {
        let found = of_account(it)?;
        let writes: Vec<_> = found.iter().filter_map(Write::of).collect();
        for allowed in &allowed(it) {
            let is_used = writes.iter().any(|write| write.is(allowed));
            expect(format!("whether it writes {}", allowed.resource), true, is_used)?;
        }
        Ok(format!("{} writes of {} requests", writes.len(), found.len()))
    })
    .await
}

/// All requests of the `ServiceAccount`.
fn of_account(it: &Installed<'_>) -> Outcome<Vec<Value>> {
    in_audit_log(it, &format!("\"username\":{:?}", it.release.account().user()))
}

/// The writes to some resources that the API server accepted of a replica since a time.
pub(super) fn written(
    it: &Installed<'_>,
    credential: &str,
    since: Timestamp,
    resources: &[&str],
) -> Outcome<Vec<String>> {
    let mut writes = Vec::new();
    for event in in_audit_log(it, credential)? {
        let received = event["requestReceivedTimestamp"].as_str().unwrap_or_default();
        let is_accepted = event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300);
        let write = Write::of(&event).filter(|write| resources.contains(&write.resource));
        if let Some(Write { verb, resource, name, .. }) = write
            && is_accepted
            && received.parse::<Timestamp>()? > since
        {
            writes.push(format!("{verb} {resource} {name}"));
        }
    }
    Ok(writes)
}

fn in_audit_log(it: &Installed<'_>, containing: &str) -> Outcome<Vec<Value>> {
    events(&it.it.lab.local()?.audit_log, containing)
}
