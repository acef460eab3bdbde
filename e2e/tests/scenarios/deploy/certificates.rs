//! `serve --manage-certs`: rotations by leaders with different clocks, a lost Secret, overwritten
//! webhooks, and missing permissions, while pods are created with the failure policy Fail.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_cluster::digest::hex;
use injectd_harness::{
    api::WEBHOOK_CONFIGURATIONS,
    certificates::Ca,
    expect::{Outcome, eventually, expect, expect_contains, failed},
    injectd::Injectd,
    objects::RBAC_VERSION,
    stream::Seen,
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, interval, timeout};

use super::installed::{AHEAD, BEHIND, Installed, RIGHT};

/// Who leads while a certificate is renewed; every second renewal has a new CA.
const TURNS: [usize; 5] = [BEHIND, AHEAD, RIGHT, BEHIND, AHEAD];
const SHORT_TURNS: [usize; 2] = [BEHIND, AHEAD];
/// How long a wait for rotations may take.
const LIMIT: Duration = Duration::from_mins(5);
const MANAGED: &str = "injectd_certificates_managed_total";
/// The name of injectd's CAs.
const CA_NAME: &str = "injectd webhook CA";
/// The end of a certificate in PEM.
const PEM_END: &str = "-----END CERTIFICATE-----";

pub(super) async fn rotations(it: &mut Installed<'_>) -> Outcome<String> {
    let turns: &[usize] = if it.it.lab.is_long { &TURNS } else { &SHORT_TURNS };
    let (before, served) = (made_cas(it).await?, it.expiry().await?);
    it.balance();
    let load = it.load();
    for &index in turns {
        it.lead(index).await?;
        let before = made_certificates(it, index).await?;
        let rotated = async {
            let mut ticks = interval(Duration::from_millis(200));
            while made_certificates(it, index).await? == before {
                ticks.tick().await;
            }
            load.wait_for(50).await
        };
        timeout(LIMIT, rotated).await.map_err(|_| failed("no rotation in time"))??;
    }
    let note = load.stop().await?;
    let (rotations, cas) = (turns.len(), made_cas(it).await? - before);
    expect("whether the CA rotated too", true, cas >= rotations as u64 / 2)?;
    expect("whether replicas serve new certificates", true, it.expiry().await? > served)?;
    Ok(format!("{rotations} certificates, {cas} CAs, {}; {note}", it.clocks()))
}

/// Certificates that a replica has made since it started.
async fn made_certificates(it: &Installed<'_>, index: usize) -> Outcome<u64> {
    it.replicas[index].metric(MANAGED, &[("step", "create_leaf"), ("result", "ok")]).await
}

pub(super) async fn made_cas(it: &Installed<'_>) -> Outcome<u64> {
    it.sum(MANAGED, &[("step", "create_ca"), ("result", "ok")]).await
}

pub(super) async fn lost_secret(it: &mut Installed<'_>) -> Outcome<String> {
    let load = it.load();
    load.wait_for(20).await?;
    let path = it.secret_path();
    it.api().delete(&path).await?.ok()?;
    it.restored().await?;
    eventually("the Secret is written", async || {
        it.api().update(&path, |secret| secret["data"] = Value::Null).await
    })
    .await?;
    it.restored().await?;
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
    it.restored().await?;
    load.wait_for(50).await?;
    load.stop().await
}

pub(super) async fn overwritten(it: &mut Installed<'_>) -> Outcome<String> {
    let repairs = "injectd_ca_bundle_repairs_total";
    let mut windows = Vec::new();
    let foreign = BASE64_STANDARD.encode(Ca::new()?.issue("istiod", [127, 0, 0, 1].into())?.ca);
    for (bundle, how) in [(foreign.as_str(), "another CA"), ("", "nothing")] {
        let before = it.sum(repairs, &[]).await?;
        let stream = it.stream();
        stream.wait_for(20).await?;
        let began = Instant::now();
        for name in it.release.configurations() {
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
            for name in it.release.configurations() {
                let secret = it.secret("ca.crt").await?;
                expect("the caBundle", secret, it.ca_bundle(&name).await?)?;
            }
            Ok(())
        })
        .await?;
        stream.wait_for(100).await?;
        let seen = stream.stop().await;
        let refused: Vec<_> = seen.iter().filter(|created| created.result.is_err()).collect();
        let window = outage(&refused, began);
        expect("whether the outage is short", true, window < wrote + Duration::from_secs(2))?;
        windows.push(format!(
            "{how}: {} of {} pods refused, until {} ms after the first write",
            refused.len(),
            seen.len(),
            window.as_millis()
        ));
    }
    let log: String = it.replicas.iter().map(Injectd::log).collect();
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

pub(super) async fn forbidden(it: &mut Installed<'_>) -> Outcome<String> {
    let role = it.it.path(RBAC_VERSION, "Role", &it.release.certificates());
    let allowed = it.api().get(&role).await?.ok()?["rules"].clone();
    let load = it.load();
    it.api()
        .update(&role, |role| role["rules"][0]["verbs"] = json!(["get", "list", "watch"]))
        .await?;
    let failures = [("step", "write_secret"), ("result", "failed")];
    let failed_writes = async {
        let mut ticks = interval(Duration::from_millis(200));
        while it.sum(MANAGED, &failures).await? == 0 {
            ticks.tick().await;
        }
        load.wait_for(20).await
    };
    timeout(LIMIT, failed_writes).await.map_err(|_| failed("no write was forbidden"))??;
    let log: String = it.replicas.iter().map(Injectd::log).collect();
    let failure = format!("cannot write the Secret {}", it.release.certificates());
    expect_contains("the log", &failure, &log)?;
    expect_contains("the log", "cannot update resource", &log)?;
    it.api().update(&role, |role| role["rules"] = allowed).await?;
    let first = it.secret("tls.crt").await?;
    let renewed = async {
        let mut ticks = interval(Duration::from_millis(200));
        while it.secret("tls.crt").await? == first {
            ticks.tick().await;
        }
        load.wait_for(20).await
    };
    timeout(LIMIT, renewed).await.map_err(|_| failed("no renewal afterwards"))??;
    load.stop().await
}

/// Others add a CA with the name of ours to Secret and `caBundle`; then an administrator revokes the one
/// that signs.
pub(super) async fn strangers(it: &mut Installed<'_>) -> Outcome<String> {
    let forged = Ca::named(CA_NAME)?.issue("injectd", [127, 0, 0, 1].into())?.ca;
    let forged = forged.replace('\r', "");
    let append = |bundle: &mut Value| {
        let text = bundle.as_str().unwrap_or_default();
        let before = BASE64_STANDARD.decode(text).unwrap_or_default();
        *bundle = json!(BASE64_STANDARD.encode([&before, forged.as_bytes()].concat()));
    };
    let secret = it.secret_path();
    eventually("the Secret is written", async || {
        it.api().update(&secret, |secret| append(&mut secret["data"]["ca.crt"])).await
    })
    .await?;
    for name in it.release.configurations() {
        let add = |configuration: &mut Value| {
            for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
                append(&mut webhook["clientConfig"]["caBundle"]);
            }
        };
        let path = format!("{WEBHOOK_CONFIGURATIONS}/{name}");
        eventually("the webhook is written", async || it.api().update(&path, add).await).await?;
    }
    let began = Instant::now();
    unpublished(it, &forged).await?;
    let after = began.elapsed();
    let signing = text(&it.secret("ca.crt").await?);
    let signing = signing.split_inclusive(PEM_END).next().unwrap_or_default().to_owned();
    let der = CertificateDer::from_pem_slice(signing.as_bytes());
    let der = der.map_err(|error| failed(format!("the CA that signs: {error}")))?;
    let revoked = BASE64_STANDARD.encode(hex(&Sha256::digest(&der)));
    eventually("the Secret is written", async || {
        it.api().update(&secret, |secret| secret["data"]["revoked"] = json!(revoked)).await
    })
    .await?;
    unpublished(it, &signing).await?;
    let cas = text(&it.secret("ca.crt").await?);
    expect("whether the Secret has the revoked CA", false, cas.contains(&signing))?;
    eventually("both webhooks take effect", async || it.inject().await).await?;
    Ok(format!("the CA of others was published for {} ms", after.as_millis()))
}

/// Waits until no `caBundle` has a CA.
async fn unpublished(it: &Installed<'_>, ca: &str) -> Outcome {
    let gone = async {
        let mut ticks = interval(Duration::from_millis(200));
        for name in it.release.configurations() {
            while text(&it.ca_bundle(&name).await?).contains(ca.trim()) {
                ticks.tick().await;
            }
        }
        Ok(())
    };
    timeout(LIMIT, gone).await.map_err(|_| failed("the CA is still published"))?
}

/// A text of the API, with the line ends of Unix.
fn text(base64: &str) -> String {
    let bytes = BASE64_STANDARD.decode(base64).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\r', "")
}
