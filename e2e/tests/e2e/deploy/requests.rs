//! What the `ServiceAccount` of the release asked of the API server, and what its metrics are.

use std::{path::Path, process::Command};

use injectd_harness::{
    audit_log::events,
    client::probe,
    expect::{Outcome, eventually, expect, failed},
};
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::installed::{AUDIT_LEASE, CONFIGURATIONS, Installed, NAMESPACE, SECRET};

/// Verbs that change objects.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// Writes that the release needs.
struct Allowed {
    resource: &'static str,
    verbs: &'static [&'static str],
    /// `None`: any, as the events of pods.
    namespace: Option<&'static str>,
    /// Empty: any.
    names: &'static [&'static str],
}

const ALLOWED: [Allowed; 4] = [
    Allowed {
        resource: "secrets",
        verbs: &["update", "patch"],
        namespace: Some(NAMESPACE),
        names: &[SECRET],
    },
    Allowed {
        resource: "leases",
        verbs: &["update", "patch"],
        namespace: Some(NAMESPACE),
        names: &[SECRET, AUDIT_LEASE],
    },
    Allowed {
        resource: "mutatingwebhookconfigurations",
        verbs: &["patch"],
        namespace: Some(""),
        names: &CONFIGURATIONS,
    },
    Allowed { resource: "events", verbs: &["create", "patch"], namespace: None, names: &[] },
];

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
            && allowed.namespace.is_none_or(|namespace| namespace == self.namespace)
            && (allowed.names.is_empty() || allowed.names.contains(&self.name))
    }
}

/// Checks all writes in the audit log: each is allowed, and each that is allowed was needed.
pub(super) fn all(it: &Installed) -> Outcome<String> {
    let user = format!("\"username\":\"system:serviceaccount:{NAMESPACE}:injectd\"");
    let found = in_audit_log(it, &user)?;
    let writes: Vec<_> = found.iter().filter_map(Write::of).collect();
    let more = |write: &&Write<'_>| !ALLOWED.iter().any(|allowed| write.is(allowed));
    if let Some(Write { verb, resource, namespace, name }) = writes.iter().find(more) {
        return Err(failed(format!("not allowed: {verb} {resource} {namespace}/{name}")));
    }
    for allowed in &ALLOWED {
        let is_used = writes.iter().any(|write| write.is(allowed));
        expect(format!("whether it writes {}", allowed.resource), true, is_used)?;
    }
    Ok(format!("{} writes of {} requests", writes.len(), found.len()))
}

/// The writes to some resources that the API server accepted of a replica since a time.
pub(super) fn written(
    it: &Installed,
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

fn in_audit_log(it: &Installed, containing: &str) -> Outcome<Vec<Value>> {
    let local = it.lab.local.as_ref().ok_or_else(|| failed("no audit log"))?;
    events(&local.audit_log, containing)
}

/// Every metric that dashboard and alerts name is one of a replica.
pub(super) async fn metrics(it: &Installed) -> Outcome<String> {
    // The first audit of a leader takes some time.
    eventually("all metrics are there", async || {
        let folder = tempfile::tempdir()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/check-metrics.py");
        let mut command = Command::new("python3");
        command.arg("-B").arg(script);
        for (index, replica) in it.replicas.iter().enumerate() {
            let file = folder.path().join(index.to_string());
            std::fs::write(&file, probe(replica.admin, "/metrics").await?.1)?;
            command.arg(file);
        }
        expect("replicas that audit", 1, it.sum("injectd_audit_is_leader", &[]).await?)?;
        let output = spawn_blocking(move || command.output()).await??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(failed(text(&output.stderr)))
        }
    })
    .await
}
