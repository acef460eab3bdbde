//! What a release that runs says of itself: `manifest check --live`, and its metrics.

use std::{fs, process::Command};

use injectd_harness::{
    client::probe,
    expect::{Outcome, eventually, expect, expect_contains},
    lab::root,
    process::run,
};
use serde_json::Value;

use super::installed::Installed;

/// `manifest check --live`, with the certificate that a replica serves. The cluster may have other
/// webhooks.
pub(super) async fn live(it: &Installed<'_>) -> Outcome<String> {
    let mut command = Command::new(&it.it.lab.binary);
    command.args(["manifest", "check", "--live", "-o", "json", "--fail-on", "danger"]);
    command.arg("--kubeconfig").arg(&it.it.lab.kubeconfig);
    let addr = it.replicas[0].webhook;
    command.arg("--connect").arg(format!("{0}/{0}={addr}", it.release.0));
    let report: Value = serde_json::from_str(&run(command).await?.with_code(3)?)?;
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let configurations = it.release.configurations();
    let of_ca = findings.iter().filter(|finding| {
        let of_release = configurations.iter().any(|name| finding["configuration"] == *name);
        of_release && finding["field"] == "clientConfig.caBundle"
    });
    let problems: Vec<_> =
        of_ca.map(|finding| finding["problem"].as_str().unwrap_or_default()).collect();
    // A CA that lives two minutes begins an hour earlier, for clocks that are late: by its dates it is at
    // its end. One finding for each of three entries; none says that the served certificate is not
    // verified.
    let is_of_time = |problem: &&str| problem.contains("was not renewed");
    expect("the findings of the caBundle", 3, problems.len())?;
    expect(
        "those of CAs that expire",
        3,
        problems.iter().filter(|problem| is_of_time(problem)).count(),
    )?;
    let notes = report["notes"].to_string();
    expect_contains("what cannot be seen", ".static.k8s.io", &notes)?;
    Ok(format!("{} findings", findings.len()))
}

/// Every metric that dashboard and alerts name is one of a replica.
pub(super) async fn metrics(it: &Installed<'_>) -> Outcome<String> {
    // The first audit of a leader takes some time.
    eventually("all metrics are there", async || {
        let folder = tempfile::tempdir()?;
        let script = root().join("deploy/check-metrics.py");
        let mut command = Command::new("python3");
        // No replica serves templates here.
        command.arg("-B").arg(script);
        command.args(["--without=injectd_template", "--without=injectd_webhook_scope"]);
        for (index, replica) in it.replicas.iter().enumerate() {
            let file = folder.path().join(index.to_string());
            fs::write(&file, probe(replica.admin, "/metrics").await?.1)?;
            command.arg(file);
        }
        expect("replicas that audit", 1, it.sum("injectd_audit_is_leader", &[]).await?)?;
        Ok(run(command).await?.with_code(0)?.trim().to_owned())
    })
    .await
}
