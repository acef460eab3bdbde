//! `injectd manifest guard`: its policy reports exactly the pods that the webhook would inject.
//!
//! Each scenario has a webhook with the selectors of its mesh, failure policy Ignore, and a table of
//! pods. The webhook answers for all of them, then it is gone. Webhook and policy are there for all
//! namespaces, so that no other scenario runs.

use injectd_harness::{
    expect::{Outcome, about, eventually, expect, expect_contains, failed},
    namespaced::with_namespace,
    scenario::{explain, note, with_lab_alone},
};
use serde_json::json;

mod case;
mod istio;
mod linkerd;
mod policy;

use case::{Case, Plan, Row};

#[tokio::test]
async fn linkerds_guard_reports_exactly_the_pods_that_the_webhook_would_inject() -> Outcome {
    with_plan(|prefix| Ok(linkerd::plan(prefix)), async |case| all(case).await).await
}

#[tokio::test]
async fn without_token_projection_linkerds_guard_leaves_out_pods_without_a_token() -> Outcome {
    let plan = |prefix: &str| Ok(linkerd::plan_with_mounted_tokens(prefix));
    with_plan(plan, async |case| all(case).await).await
}

#[tokio::test]
async fn istios_guard_reports_exactly_the_pods_that_the_webhooks_would_inject() -> Outcome {
    with_plan(istio::plan, async |case| {
        all(case).await?;
        about("without --revision", unknown_revision(case).await)
    })
    .await
}

#[tokio::test]
async fn istios_guard_decides_by_the_settings_and_the_release_of_the_webhook() -> Outcome {
    with_plan(istio::plan_with_settings, async |case| all(case).await).await
}

/// Runs a scenario with a plan, whose names begin with this prefix.
async fn with_plan(
    plan: impl FnOnce(&str) -> Outcome<Plan>,
    scenario: impl AsyncFnOnce(&mut Case<'_>) -> Outcome,
) -> Outcome {
    with_lab_alone(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| {
            let mut case = Case::new(namespaced, plan(&namespaced.name)?)?;
            let outcome = scenario(&mut case).await;
            explain(&outcome, "injectd's log", case.injectd.log().lines());
            let cleaned = case.clean_up().await;
            outcome.and(cleaned)
        })
        .await
    })
    .await
}

async fn all(it: &mut Case<'_>) -> Outcome {
    about("with the webhook", injected(it).await)?;
    about("without the webhook and the guard", silent(it).await)?;
    about("the guard warns", warned(it).await)?;
    about("the audit log and a metric of the API server", audited(it).await)?;
    about("the guard refuses", denied(it).await)?;
    about("with the webhook and the guard", passed(it).await)
}

/// The webhook is the reference for the table.
async fn injected(it: &mut Case<'_>) -> Outcome {
    it.make_namespaces().await?;
    it.serve().await?;
    let mut count = 0;
    for row in &it.plan.rows {
        let is_injected = (it.plan.is_injected)(&it.create(row).await?.created()?);
        expect(format!("whether {row} is injected"), row.asks, is_injected)?;
        count += usize::from(is_injected);
    }
    note(&format!("the webhook injects {count} of {} pods", it.plan.rows.len()));
    Ok(())
}

async fn silent(it: &mut Case<'_>) -> Outcome {
    it.injectd.kill().await?;
    for row in &it.plan.rows {
        let answer = it.create(row).await?;
        answer.expect_no_warnings()?;
        let is_injected = (it.plan.is_injected)(&answer.created()?);
        expect(format!("whether {row} is injected"), false, is_injected)?;
    }
    Ok(())
}

async fn warned(it: &Case<'_>) -> Outcome {
    policy::apply(it, "warn,audit", &it.plan.flags).await?;
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
    note(&format!("the guard reports {count} of {} pods", it.plan.rows.len()));
    Ok(())
}

async fn audited(it: &Case<'_>) -> Outcome {
    let answer = it.create(it.plan.a_reported()?).await?;
    policy::expect_audit(it, &answer.audit_id).await?;
    policy::expect_counted(it, "warn").await
}

async fn denied(it: &Case<'_>) -> Outcome {
    policy::apply(it, "deny", &it.plan.flags).await?;
    let probe = it.plan.a_reported()?;
    eventually("the binding takes effect", async || {
        expect("the status", 403, it.create(probe).await?.status)
    })
    .await?;
    for row in &it.plan.rows {
        let answer = it.create(row).await?;
        answer.expect_no_warnings()?;
        let status = if row.is_reported() { 403 } else { 201 };
        expect(format!("the status of {row}"), status, answer.status)?;
        if row.is_reported() {
            expect_text(it, row, answer.body["message"].as_str().unwrap_or_default())?;
        }
    }
    Ok(())
}

async fn passed(it: &mut Case<'_>) -> Outcome {
    it.injectd.start().await?;
    let probe = it.plan.a_reported()?;
    eventually("the webhook is called", async || it.create(probe).await?.created().map(drop))
        .await?;
    for row in &it.plan.rows {
        about(row, it.create(row).await?.created())?;
    }
    Ok(())
}

async fn unknown_revision(it: &Case<'_>) -> Outcome {
    policy::apply(it, "warn", &["--mesh=istio".to_owned()]).await?;
    let unknown = istio::unknown(&it.it.name);
    let row = it.plan.rows.iter().find(|row| row.namespace == unknown);
    let row = row.ok_or_else(|| failed("no row of an unknown revision"))?;
    eventually("the policy takes effect", async || {
        let answer = it.create(row).await?;
        expect("the number of warnings", 1, answer.warnings.len())?;
        expect_text(it, row, &answer.warnings[0])
    })
    .await
}

/// The message names the pod, and what asks for the sidecar.
fn expect_text(it: &Case<'_>, row: &Row, text: &str) -> Outcome {
    let name = row.pod["metadata"]["name"].as_str().unwrap_or("generated-");
    expect_contains(row, &format!("pod {name}"), text)?;
    expect_contains(row, &format!("has no {} sidecar, but ", it.plan.mesh), text)?;
    expect_contains(row, &row.asked_by, text)?;
    expect_contains(row, "The webhook failed, did not answer or is missing", text)
}
