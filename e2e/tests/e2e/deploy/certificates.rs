//! `serve --manage-certs`: rotations, a lost leader, a lost Secret, overwritten webhooks, and missing
//! permissions, while pods are created with the failure policy Fail.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_e2e::{
    api::{WEBHOOK_CONFIGURATIONS, collection},
    certificates::Ca,
    expect::{Outcome, eventually, expect, expect_contains, failed},
    stream::{Seen, all_created},
};
use serde_json::{Value, json};
use tokio::time::{Instant, interval, timeout};

use super::installed::{CONFIGURATIONS, Installed, NAMESPACE, SECRET};

/// New certificates in one run; every second one has a new CA.
const ROTATIONS: u64 = 5;
const SHORT_ROTATIONS: u64 = 2;
/// How long a wait for rotations may take.
const LIMIT: Duration = Duration::from_mins(5);
const MANAGED: &str = "injectd_certificates_managed_total";

pub(super) async fn first_start(it: &mut Installed) -> Outcome<String> {
    it.start().await?;
    let leader = it.leader().await?;
    it.balance_without(leader);
    eventually("both webhooks take effect", async || it.inject().await).await?;
    let made = it.sum(MANAGED, &[("step", "create_ca"), ("result", "ok")]).await?;
    expect("CAs that were made", 1, made)?;
    Ok(format!("{} replicas, one CA", it.replicas.len()))
}

pub(super) async fn rotations(it: &mut Installed) -> Outcome<String> {
    let count = async |step| it.sum(MANAGED, &[("step", step), ("result", "ok")]).await;
    let rotations = if it.lab.is_long { ROTATIONS } else { SHORT_ROTATIONS };
    let before = count("create_leaf").await?;
    let cas = count("create_ca").await?;
    let served = metric_expiry(it).await?;
    let stream = it.stream();
    let rotated = async {
        let mut ticks = interval(Duration::from_millis(200));
        while count("create_leaf").await? < before + rotations {
            ticks.tick().await;
        }
        stream.wait_for(50).await
    };
    timeout(LIMIT, rotated).await.map_err(|_| failed("too few rotations in time"))??;
    let seen = stream.stop().await;
    all_created(&seen)?;
    let cas = count("create_ca").await? - cas;
    expect("whether the CA rotated too", true, cas >= rotations / 2)?;
    expect("whether replicas serve new certificates", true, metric_expiry(it).await? > served)?;
    Ok(format!("{} pods, {rotations} certificates, {cas} CAs: 0 failed", seen.len()))
}

pub(super) async fn killed(it: &mut Installed) -> Outcome<String> {
    let leader = it.leader().await?;
    // It gets no reviews: a process that is killed breaks the connections that it has.
    it.balance_without(leader);
    it.service.cut();
    let made = it.sum(MANAGED, &[("step", "create_leaf"), ("result", "ok")]).await?;
    let stream = it.stream();
    stream.wait_for(20).await?;
    let began = Instant::now();
    it.replicas[leader].kill().await?;
    let name = format!("number {leader}");
    let mut again = it.replica(&name).await?;
    again.start().await?;
    it.replicas[leader] = again;
    // The new leader renews as the old one did.
    let renewed = async {
        let mut ticks = interval(Duration::from_millis(200));
        let first = it.secret("tls.crt").await?;
        while it.secret("tls.crt").await? == first {
            ticks.tick().await;
        }
        stream.wait_for(20).await
    };
    timeout(LIMIT, renewed).await.map_err(|_| failed("the new leader renews nothing"))??;
    let after = began.elapsed().as_secs();
    let seen = stream.stop().await;
    all_created(&seen)?;
    Ok(format!(
        "{} pods: 0 failed; its successor renewed the certificate after {after} s, {made} before",
        seen.len()
    ))
}

pub(super) async fn lost_secret(it: &mut Installed) -> Outcome<String> {
    let leader = it.leader().await?;
    it.balance_without(leader);
    let stream = it.stream();
    stream.wait_for(20).await?;
    let path = Installed::secret_path();
    let restored = async || {
        eventually("the Secret is restored", async || {
            expect("whether it has a key", true, !it.secret("ca.key").await?.is_empty())
        })
        .await
    };
    it.api().delete(&path).await?.ok()?;
    restored().await?;
    eventually("the Secret is written", async || {
        it.api().update(&path, |secret| secret["data"] = Value::Null).await
    })
    .await?;
    restored().await?;
    // Another product's Secret, such as that of cert-manager.
    let ca = Ca::new()?;
    let other = ca.issue("other.example", [127, 0, 0, 1].into())?;
    let data = json!({
        "ca.crt": BASE64_STANDARD.encode(&other.ca),
        "tls.crt": BASE64_STANDARD.encode(&other.certificate),
        "tls.key": BASE64_STANDARD.encode(&other.key),
    });
    eventually("the Secret is written", async || {
        it.api().update(&path, |secret| secret["data"] = data.clone()).await
    })
    .await?;
    restored().await?;
    stream.wait_for(50).await?;
    let seen = stream.stop().await;
    all_created(&seen)?;
    Ok(format!("{} pods: 0 failed", seen.len()))
}

pub(super) async fn overwritten(it: &mut Installed) -> Outcome<String> {
    let repairs = "injectd_ca_bundle_repairs_total";
    let mut windows = Vec::new();
    let foreign = BASE64_STANDARD.encode(Ca::new()?.issue("istiod", [127, 0, 0, 1].into())?.ca);
    for (bundle, how) in [(foreign.as_str(), "another CA"), ("", "nothing")] {
        let before = it.sum(repairs, &[]).await?;
        let stream = it.stream();
        stream.wait_for(20).await?;
        let began = Instant::now();
        for name in CONFIGURATIONS {
            let path = format!("{WEBHOOK_CONFIGURATIONS}/{name}?fieldManager=gitops");
            eventually("the webhook is written", async || {
                it.api().update(&path, |object| set_bundle(object, bundle)).await
            })
            .await?;
        }
        let wrote = began.elapsed();
        eventually("the caBundle is repaired", async || {
            let count = it.sum(repairs, &[]).await?;
            expect("whether the counter rose", true, count > before)?;
            for name in CONFIGURATIONS {
                let path = format!("{WEBHOOK_CONFIGURATIONS}/{name}");
                let found = it.api().get(&path).await?.ok()?;
                let found =
                    found["webhooks"][0]["clientConfig"]["caBundle"].as_str().map(str::to_owned);
                let secret = it.secret("ca.crt").await?;
                expect("the caBundle", Some(secret), found)?;
            }
            Ok(())
        })
        .await?;
        stream.wait_for(100).await?;
        let seen = stream.stop().await;
        let refused: Vec<_> = seen.iter().filter(|it| it.result.is_err()).collect();
        let window = outage(&refused, began);
        expect("whether the outage is short", true, window < wrote + Duration::from_secs(2))?;
        windows.push(format!(
            "{how}: {} of {} pods refused, until {} ms after the first write",
            refused.len(),
            seen.len(),
            window.as_millis()
        ));
    }
    let log: String = it.replicas.iter().map(injectd_e2e::injectd::Injectd::log).collect();
    expect_contains("the log", "which gitops had changed", &log)?;
    Ok(windows.join("; "))
}

/// From the overwrite to the last refused pod.
fn outage(refused: &[&Seen], began: Instant) -> Duration {
    let last = refused.iter().map(|seen| seen.end).max();
    last.map_or(Duration::ZERO, |last| last.saturating_duration_since(began))
}

fn set_bundle(object: &mut Value, bundle: &str) {
    for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
        let config = &mut webhook["clientConfig"];
        if bundle.is_empty() {
            config.as_object_mut().map(|config| config.remove("caBundle"));
        } else {
            config["caBundle"] = json!(bundle);
        }
    }
}

pub(super) async fn forbidden(it: &mut Installed) -> Outcome<String> {
    let role =
        format!("{}/{SECRET}", collection("rbac.authorization.k8s.io/v1", "Role", Some(NAMESPACE)));
    let allowed = it.api().get(&role).await?.ok()?["rules"].clone();
    let stream = it.stream();
    it.api()
        .update(&role, |role| role["rules"][0]["verbs"] = json!(["get", "list", "watch"]))
        .await?;
    let failures = [("step", "write_secret"), ("result", "failed")];
    let failed_writes = async {
        let mut ticks = interval(Duration::from_millis(200));
        while it.sum(MANAGED, &failures).await? == 0 {
            ticks.tick().await;
        }
        stream.wait_for(20).await
    };
    timeout(LIMIT, failed_writes).await.map_err(|_| failed("no write was forbidden"))??;
    let log: String = it.replicas.iter().map(injectd_e2e::injectd::Injectd::log).collect();
    expect_contains("the log", "cannot write the Secret injectd-certificates", &log)?;
    expect_contains("the log", "cannot update resource", &log)?;
    it.api().update(&role, |role| role["rules"] = allowed).await?;
    let first = it.secret("tls.crt").await?;
    let renewed = async {
        let mut ticks = interval(Duration::from_millis(200));
        while it.secret("tls.crt").await? == first {
            ticks.tick().await;
        }
        stream.wait_for(20).await
    };
    timeout(LIMIT, renewed).await.map_err(|_| failed("no renewal afterwards"))??;
    let seen = stream.stop().await;
    all_created(&seen)?;
    Ok(format!("{} pods: 0 failed", seen.len()))
}

/// The earliest end of the certificates that are served.
async fn metric_expiry(it: &Installed) -> Outcome<u64> {
    let mut ends = Vec::new();
    for replica in &it.replicas {
        let name = "injectd_certificate_expiry_timestamp_seconds";
        ends.push(super::installed::metric_of(replica, name, &[]).await?);
    }
    Ok(ends.into_iter().min().unwrap_or_default())
}
