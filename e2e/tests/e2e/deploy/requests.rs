//! What the `ServiceAccount` of the release asked of the API server, and what its metrics are.

use std::{path::Path, process::Command};

use injectd_e2e::{
    audit_log::events,
    client::probe,
    expect::{Outcome, expect_listed, failed},
};
use tokio::task::spawn_blocking;

use super::installed::{CONFIGURATIONS, Installed, NAMESPACE, SECRET};

/// Verbs that change objects.
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// Checks all writes in the audit log.
pub(super) fn all(it: &Installed) -> Outcome<String> {
    let user = format!("system:serviceaccount:{NAMESPACE}:injectd");
    let local = it.lab.local.as_ref().ok_or_else(|| failed("no audit log"))?;
    let found = events(&local.audit_log, &format!("\"username\":\"{user}\""))?;
    let mut writes = 0;
    for event in &found {
        let verb = event["verb"].as_str().unwrap_or_default();
        if !WRITES.contains(&verb) {
            continue;
        }
        writes += 1;
        let (resource, name) = (&event["objectRef"]["resource"], &event["objectRef"]["name"]);
        let (resource, name) = (resource.as_str().unwrap_or_default(), name.as_str());
        match resource {
            "secrets" | "leases" => expect_listed(resource, name, &[Some(SECRET)])?,
            "mutatingwebhookconfigurations" => {
                expect_listed(resource, name, &CONFIGURATIONS.map(Some))?;
            }
            _ => expect_listed("a resource that is written", resource, &["events"])?,
        }
    }
    if writes == 0 {
        return Err(failed("the audit log has no write"));
    }
    Ok(format!("{writes} writes of {} requests", found.len()))
}

/// Every metric that dashboard and alerts name is one of a replica.
pub(super) async fn metrics(it: &Installed) -> Outcome<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/check-metrics.py");
    let folder = tempfile::tempdir()?;
    let mut command = Command::new("python3");
    command.arg("-B").arg(script);
    for (index, replica) in it.replicas.iter().enumerate() {
        let file = folder.path().join(index.to_string());
        std::fs::write(&file, probe(replica.admin, "/metrics").await?.1)?;
        command.arg(file);
    }
    let output = spawn_blocking(move || command.output()).await??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(failed(text(&output.stderr)))
    }
}
