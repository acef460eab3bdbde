//! A leader that is killed, that hangs, or that dies between its two writes, while pods are created
//! with the failure policy Fail.
//!
//! The leader's clock is ahead, so that it renews early: certificates live a minute, and its Lease ends
//! only after 15 s.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_harness::{
    api::collection,
    client::wait_until_ready,
    expect::{Outcome, eventually, expect, failed},
    objects::RBAC_VERSION,
};
use jiff::Timestamp;
use serde_json::json;
use tokio::time::{Instant, interval, timeout};

use super::{
    installed::{AHEAD, Installed, REPLICAS},
    requests::written,
};

/// How long a wait for a renewal may take.
const LIMIT: Duration = Duration::from_mins(5);
/// A certificate with more seconds left does not end before two leaders have died and a third one has
/// acted.
const LONG_SECONDS: u64 = 40;
/// How often the leader hangs at full length.
const HANGS: usize = 3;
const NO_LONGER: &str = "no longer manages the certificates";
/// Resources that the leader writes.
const STATE: [&str; 2] = ["secrets", "mutatingwebhookconfigurations"];

pub(super) async fn killed(it: &mut Installed<'_>) -> Outcome<String> {
    it.lead(AHEAD).await?;
    // It gets no reviews: a process that is killed breaks the connections that it has.
    it.balance_without(AHEAD).await?;
    let load = it.load();
    load.wait_for(20).await?;
    let began = Instant::now();
    it.kill(AHEAD).await?;
    it.start_again(AHEAD).await?;
    // The new leader renews as the old one did.
    renewed(it).await?;
    let after = began.elapsed().as_secs();
    wait_until_ready(it.replicas[AHEAD].admin).await?;
    it.balance();
    load.wait_for(20).await?;
    let note = load.stop().await?;
    Ok(format!("{note}; its successor renewed the certificate after {after} s"))
}

pub(super) async fn hung(it: &mut Installed<'_>) -> Outcome<String> {
    let times = if it.it.lab.is_long { HANGS } else { 1 };
    let (mut within, mut notes) = (0, Vec::new());
    for _ in 0..times {
        it.lead(AHEAD).await?;
        // Its readiness probe would fail.
        it.balance_without(AHEAD).await?;
        let load = it.load();
        load.wait_for(20).await?;
        within += usize::from(hang_and_resume(it).await?);
        it.balance();
        load.wait_for(50).await?;
        notes.push(load.stop().await?);
    }
    let notes = notes.join("; ");
    Ok(format!("{notes}; it hung {times} times, {within} of them before a write that was due"))
}

/// The leader hangs while another one leads. Returns whether it did before it could write.
async fn hang_and_resume(it: &mut Installed<'_>) -> Outcome<bool> {
    let path = it.secret_path();
    let credential = it.credential(AHEAD)?;
    let given_up = it.replicas[AHEAD].log().matches(NO_LONGER).count();
    // It is about to write the Secret again.
    it.api().delete(&path).await?.ok()?;
    it.replicas[AHEAD].hang().await?;
    let is_within = it.api().get(&path).await?.status == 404;
    let successor = it.leader_but(Some(AHEAD)).await?;
    it.restored().await?;
    if it.it.lab.is_long {
        renewed(it).await?;
    }
    // When it goes on, the Secret is not the one that it has seen, or there is none.
    it.api().delete(&path).await?.ok()?;
    let resumed = Timestamp::now();
    it.replicas[AHEAD].resume()?;
    it.restored().await?;
    eventually("the former leader gives up", async || {
        let found = it.replicas[AHEAD].log().matches(NO_LONGER).count();
        expect("how often it gave up", given_up + 1, found)?;
        expect("the leader", successor, it.leader().await?)
    })
    .await?;
    same_certificate(it).await?;
    wait_until_ready(it.replicas[AHEAD].admin).await?;
    let mut writes = written(it, &credential, resumed, &[STATE[0], STATE[1], "leases"])?;
    // Perhaps no replica has taken the Lease of the audit yet.
    let audit = it.release.audit();
    writes.retain(|write| !write.ends_with(&audit));
    expect("what the former leader wrote", [""; 0].as_slice(), writes.as_slice())?;
    Ok(is_within)
}

pub(super) async fn lost_leases(it: &mut Installed<'_>) -> Outcome<String> {
    let load = it.load();
    load.wait_for(20).await?;
    for name in [it.release.certificates(), it.release.audit()] {
        it.api().delete(&it.lease_path(&name)).await?.ok()?;
        it.held(&name).await?;
    }
    it.leader().await?;
    load.wait_for(50).await?;
    load.stop().await
}

pub(super) async fn half_way(it: &mut Installed<'_>) -> Outcome<String> {
    let role = format!("{}-{}", it.it.name, it.release.certificates());
    let role = format!("{}/{role}", collection(RBAC_VERSION, "ClusterRole", None));
    let allowed = it.api().get(&role).await?.ok()?["rules"].clone();
    it.lead(AHEAD).await?;
    eventually("the certificate is new", async || {
        let left = it.expiry().await?.saturating_sub(Timestamp::now().as_second().try_into()?);
        expect(format!("whether {left} s are enough"), true, left > LONG_SECONDS)
    })
    .await?;
    it.balance_without(AHEAD).await?;
    let load = it.load();
    load.wait_for(20).await?;
    // A leader that starts without a Secret makes a CA, and may not publish it.
    let verbs = json!(["get", "list", "watch"]);
    it.api().update(&role, |role| role["rules"][0]["verbs"] = verbs).await?;
    it.kill(AHEAD).await?;
    it.api().delete(&it.secret_path()).await?.ok()?;
    it.start_again(AHEAD).await?;
    let (begin, credential) = (Timestamp::now(), it.credential(AHEAD)?);
    it.hand_over(AHEAD).await?;
    it.restored().await?;
    it.kill(AHEAD).await?;
    let died = Instant::now();
    let new = first_ca(&it.secret("ca.crt").await?)?;
    for name in it.release.configurations() {
        let bundle = pem(&it.ca_bundle(&name).await?)?;
        expect("whether its CA is published", false, bundle.contains(&new))?;
    }
    let writes = written(it, &credential, begin, &STATE)?;
    let expected = [format!("patch secrets {}", it.release.certificates())];
    expect("what it wrote", expected.as_slice(), writes.as_slice())?;
    it.api().update(&role, |role| role["rules"] = allowed).await?;
    eventually("another one publishes the CA", async || {
        let cas = it.secret("ca.crt").await?;
        for name in it.release.configurations() {
            expect("the caBundle", &cas, &it.ca_bundle(&name).await?)?;
        }
        expect("whether the CA is in it", true, pem(&cas)?.contains(&new))
    })
    .await?;
    let after = died.elapsed().as_secs();
    it.start_again(AHEAD).await?;
    same_certificate(it).await?;
    wait_until_ready(it.replicas[AHEAD].admin).await?;
    it.balance();
    load.wait_for(50).await?;
    let note = load.stop().await?;
    Ok(format!("{note}; another one published the CA after {after} s"))
}

fn pem(base64: &str) -> Outcome<String> {
    Ok(String::from_utf8(BASE64_STANDARD.decode(base64)?)?)
}

/// The first certificate of a list, as PEM.
fn first_ca(base64: &str) -> Outcome<String> {
    let cas = pem(base64)?;
    let end = cas.find("-----END").ok_or_else(|| failed("no CA in the Secret"))?;
    Ok(cas[..end].to_owned())
}

/// Waits until all replicas serve the same certificate.
async fn same_certificate(it: &Installed<'_>) -> Outcome {
    eventually("all serve the same certificate", async || {
        let first = it.expiry_of(0).await?;
        for index in 1..REPLICAS.len() {
            expect("the end of the certificate", first, it.expiry_of(index).await?)?;
        }
        Ok(())
    })
    .await
}

/// Waits until the Secret has another certificate.
async fn renewed(it: &Installed<'_>) -> Outcome {
    let renewed = async {
        let mut ticks = interval(Duration::from_millis(200));
        let first = it.secret("tls.crt").await?;
        while it.secret("tls.crt").await? == first {
            ticks.tick().await;
        }
        Outcome::Ok(())
    };
    timeout(LIMIT, renewed).await.map_err(|_| failed("the new leader renews nothing"))?
}
