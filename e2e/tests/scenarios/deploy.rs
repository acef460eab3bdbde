//! injectd as its chart installs it: the objects, the permissions and the arguments that
//! `injectd manifest install` prints, for both meshes, with certificates that it manages.
//!
//! Each scenario with a release has three replicas of its own. It is alone: a leader acts within seconds,
//! and its audit restarts workloads of the whole cluster.

use injectd_harness::{
    expect::Outcome,
    namespaced::with_namespace,
    scenario::{note, step, with_binary, with_lab_alone},
};
use serde_json::json;

use crate::istio::explain_replicas;

mod accepted;
mod callers;
mod certificates;
mod chart;
mod checked;
mod installed;
mod leaders;
mod lease;
mod load;
mod matrix;
mod release;
mod requests;
mod swap;
mod takeover;

use installed::Installed;

#[tokio::test]
async fn helm_template_and_manifest_install_print_the_same_objects() -> Outcome {
    with_binary(async |bench| chart::same_as_helm(&bench.binary).await).await
}

/// It is alone: definitions of kinds, and a webhook for all kinds, are for the whole cluster.
#[tokio::test]
async fn the_api_server_accepts_every_object_of_the_chart() -> Outcome {
    with_lab_alone(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| accepted::all(namespaced).await).await
    })
    .await
}

/// It is alone, since a Service without an address would get one that another scenario is about to use.
#[tokio::test]
async fn helm_installs_upgrades_and_uninstalls_a_release_and_refuses_a_second_one() -> Outcome {
    with_lab_alone(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| accepted::by_helm(namespaced).await)
            .await
    })
    .await
}

#[tokio::test]
async fn a_release_writes_only_what_the_chart_names_and_has_all_metrics_of_its_dashboard() -> Outcome
{
    with_release(async |installed| {
        step("manifest check --live", noted(checked::live(installed))).await?;
        step("every metric of dashboard and alerts", noted(checked::metrics(installed))).await?;
        step("all that the chart allows is needed", noted(requests::all_needed(installed))).await
    })
    .await
}

#[tokio::test]
async fn certificates_rotate_whatever_the_clock_of_the_leader_is_and_no_review_fails() -> Outcome {
    with_release(async |installed| noted(certificates::rotations(installed)).await).await
}

#[tokio::test]
async fn another_replica_goes_on_if_the_leader_hangs_and_the_first_one_gives_up() -> Outcome {
    with_release(async |installed| noted(leaders::hung(installed)).await).await
}

#[tokio::test]
async fn another_replica_goes_on_if_the_leader_is_killed() -> Outcome {
    with_release(async |installed| noted(leaders::killed(installed)).await).await
}

#[tokio::test]
async fn another_replica_completes_what_a_leader_left_between_secret_and_ca_bundle() -> Outcome {
    with_release(async |installed| noted(leaders::half_way(installed)).await).await
}

#[tokio::test]
async fn leases_and_a_secret_that_are_lost_are_made_again_and_no_review_fails() -> Outcome {
    with_release(async |installed| {
        step("the Leases are deleted", noted(leaders::lost_leases(installed))).await?;
        let name = "the Secret is deleted, emptied, and replaced by another one";
        step(name, noted(certificates::lost_secret(installed))).await
    })
    .await
}

#[tokio::test]
async fn a_ca_bundle_that_others_write_is_repaired() -> Outcome {
    with_release(async |installed| noted(certificates::overwritten(installed)).await).await
}

#[tokio::test]
async fn without_a_permission_injectd_says_which_and_keeps_serving() -> Outcome {
    with_release(async |installed| noted(certificates::forbidden(installed)).await).await
}

#[tokio::test]
async fn a_ca_that_others_write_is_not_used_and_a_revoked_one_is_replaced() -> Outcome {
    with_release(async |installed| noted(certificates::strangers(installed)).await).await
}

#[tokio::test]
async fn every_pod_gets_its_sidecar_beside_linkerds_injector_in_its_place_and_back() -> Outcome {
    with_release(async |installed| noted(swap::all(installed)).await).await
}

#[tokio::test]
async fn istiods_webhooks_are_taken_over_with_the_chart_and_trust_its_next_ca() -> Outcome {
    with_release_beside(true, async |installed| noted(takeover::there_and_back(installed)).await)
        .await
}

/// Runs a scenario with a release whose replicas have started at once, made one CA, and inject for both
/// meshes. It must not have written more than the chart names.
async fn with_release(scenario: impl AsyncFnOnce(&mut Installed<'_>) -> Outcome) -> Outcome {
    with_release_beside(false, scenario).await
}

/// As [`with_release`], maybe in the namespace of istiod, for its webhooks.
async fn with_release_beside(
    istiod: bool,
    scenario: impl AsyncFnOnce(&mut Installed<'_>) -> Outcome,
) -> Outcome {
    with_lab_alone(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| {
            let mut installed = Installed::new(namespaced, istiod).await?;
            let mut outcome = step("a release is installed", installed.install()).await;
            if outcome.is_ok() {
                outcome = scenario(&mut installed).await;
            }
            if outcome.is_ok() {
                outcome = requests::expect_allowed(&installed);
            }
            explain_replicas(&outcome, &installed.replicas);
            outcome
        })
        .await
    })
    .await
}

/// Prints what a step counted.
async fn noted(step: impl Future<Output = Outcome<String>>) -> Outcome {
    note(&step.await?);
    Ok(())
}
