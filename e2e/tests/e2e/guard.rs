//! `injectd manifest guard`: its policy reports exactly the pods that the webhook would inject.
//!
//! Each case has a webhook with the selectors of its mesh, failure policy Ignore, and a table of
//! pods. The webhook answers for all of them, then it is gone.

use std::{net::Ipv4Addr, time::Duration};

use injectd_harness::{
    expect::{Outcome, eventually, expect, expect_contains, failed},
    lab::{Lab, NOT_LOCAL},
    run::{Run, Suite},
};

mod case;
mod istio;
mod linkerd;
mod policy;

use case::{Case, Row};

pub(crate) const NAME: &str = "guard";
const LIMIT: Duration = Duration::from_mins(3);

pub(crate) async fn run(run: &mut Run, lab: &Lab) -> Outcome {
    let Some(mut suite) = run.suite(NAME, LIMIT) else { return Ok(()) };
    if lab.local.is_none() {
        suite.skip(NOT_LOCAL);
        return Ok(());
    }
    let ip = |last| Ipv4Addr::new(127, 100, 0, last).into();
    let mut cases = [
        Case::new(lab, linkerd::plan(), ip(12))?,
        Case::new(lab, linkerd::plan_with_mounted_tokens(), ip(13))?,
        Case::new(lab, istio::plan()?, ip(14))?,
        Case::new(lab, istio::plan_with_settings()?, ip(15))?,
    ];
    for case in &mut cases {
        all(&mut suite, case).await;
        case.clean_up().await?;
    }
    for case in &cases {
        case.delete_namespaces().await?;
    }
    Ok(())
}

async fn all(suite: &mut Suite<'_>, it: &mut Case) {
    let mesh = it.plan.name;
    let name = format!("{mesh}: the webhook injects the pods of the table that ask for it");
    suite.setup(&name, injected(it)).await;
    let name =
        format!("{mesh}: without the webhook and the guard, pods are created without a warning");
    suite.setup(&name, silent(it)).await;
    let name =
        format!("{mesh}: the guard warns of these pods, and the policy has no type warnings");
    suite.scenario(&name, warned(it)).await;
    let name = format!("{mesh}: the audit log and a metric of the API server have the warning");
    suite.scenario(&name, audited(it)).await;
    let name = format!("{mesh}: the guard refuses these pods");
    suite.scenario(&name, denied(it)).await;
    let name = format!("{mesh}: with the webhook, the guard lets every pod pass");
    suite.scenario(&name, passed(it)).await;
    if mesh == "guard-istio" {
        let name = format!("{mesh}: without --revision, a revision without a webhook is reported");
        suite.scenario(&name, unknown_revision(it)).await;
    }
}

/// The webhook is the reference for the table.
async fn injected(it: &mut Case) -> Outcome<String> {
    it.make_namespaces().await?;
    it.serve().await?;
    let mut count = 0;
    for row in &it.plan.rows {
        let is_injected = (it.plan.is_injected)(&it.create(row).await?.created()?);
        expect(format!("whether {row} is injected"), row.asks, is_injected)?;
        count += usize::from(is_injected);
    }
    Ok(format!("{count} of {}", it.plan.rows.len()))
}

async fn silent(it: &mut Case) -> Outcome {
    it.injectd.kill().await?;
    for row in &it.plan.rows {
        let answer = it.create(row).await?;
        answer.expect_no_warnings()?;
        let is_injected = (it.plan.is_injected)(&answer.created()?);
        expect(format!("whether {row} is injected"), false, is_injected)?;
    }
    Ok(())
}

async fn warned(it: &Case) -> Outcome<String> {
    policy::apply(it, "warn,audit", it.plan.flags).await?;
    let probe = it.plan.a_reported()?;
    eventually("the policy takes effect", async || {
        let answer = it.create(probe).await?;
        expect("the number of warnings", 1, answer.warnings.len())
    })
    .await?;
    policy::expect_no_type_warnings(it).await?;
    let mut count = 0;
    for row in &it.plan.rows {
        let answer = it.create(row).await?;
        let warnings = answer.warnings.clone();
        answer.created()?;
        expect(format!("the warnings of {row}"), usize::from(row.is_reported()), warnings.len())?;
        for warning in &warnings {
            expect_text(it, row, warning)?;
            count += 1;
        }
    }
    Ok(format!("{count} of {}", it.plan.rows.len()))
}

async fn audited(it: &Case) -> Outcome {
    let answer = it.create(it.plan.a_reported()?).await?;
    policy::expect_audit(it, &answer.audit_id).await?;
    policy::expect_counted(it, "warn").await
}

async fn denied(it: &Case) -> Outcome<String> {
    policy::apply(it, "deny", it.plan.flags).await?;
    let probe = it.plan.a_reported()?;
    eventually("the binding takes effect", async || {
        expect("the status", 403, it.create(probe).await?.status)
    })
    .await?;
    let mut count = 0;
    for row in &it.plan.rows {
        let answer = it.create(row).await?;
        answer.expect_no_warnings()?;
        let status = if row.is_reported() { 403 } else { 201 };
        expect(format!("the status of {row}"), status, answer.status)?;
        if row.is_reported() {
            expect_text(it, row, answer.body["message"].as_str().unwrap_or_default())?;
            count += 1;
        }
    }
    Ok(format!("{count} of {}", it.plan.rows.len()))
}

async fn passed(it: &mut Case) -> Outcome {
    it.injectd.start().await?;
    let probe = it.plan.a_reported()?;
    eventually("the webhook is called", async || it.create(probe).await?.created().map(drop))
        .await?;
    for row in &it.plan.rows {
        let created = it.create(row).await?.created();
        created.map_err(|why| failed(format!("{row}: {why}")))?;
    }
    Ok(())
}

async fn unknown_revision(it: &Case) -> Outcome {
    policy::apply(it, "warn", &["--mesh", "istio"]).await?;
    let mut unknown = it.plan.rows.iter().filter(|row| row.namespace == istio::UNKNOWN);
    let row = unknown.next().ok_or_else(|| failed("no row of an unknown revision"))?;
    eventually("the policy takes effect", async || {
        let answer = it.create(row).await?;
        expect("the number of warnings", 1, answer.warnings.len())?;
        expect_text(it, row, &answer.warnings[0])
    })
    .await
}

/// The message names the pod, and what asks for the sidecar.
fn expect_text(it: &Case, row: &Row, text: &str) -> Outcome {
    let name = row.pod["metadata"]["name"].as_str().unwrap_or("generated-");
    expect_contains(row, &format!("pod {name}"), text)?;
    expect_contains(row, &format!("has no {} sidecar, but ", it.plan.mesh), text)?;
    expect_contains(row, &row.asked_by, text)?;
    expect_contains(row, "The webhook failed, did not answer or is missing", text)
}
