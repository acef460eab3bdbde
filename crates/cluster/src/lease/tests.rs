use std::{
    future::ready,
    sync::atomic::{AtomicUsize, Ordering},
};

use kube::client::Body;
use tokio::time::timeout;

use super::*;

/// An elector whose client is never called.
fn elector(identity: &str) -> Elector {
    let uri = "http://127.0.0.1:1".parse().expect("a URI");
    let client = Client::try_from(kube::Config::new(uri)).expect("a client");
    Elector::new(client, options(identity))
}

fn options(identity: &str) -> LeaseOptions {
    LeaseOptions::new("injectd", "restart", identity)
}

/// A client of an API server that answers with this status, and how many requests it got.
fn refusing(status: u16) -> (Client, Arc<AtomicUsize>) {
    let requests = Arc::<AtomicUsize>::default();
    let seen = Arc::clone(&requests);
    let service = tower::service_fn(move |_: hyper::Request<Body>| {
        seen.fetch_add(1, Ordering::Relaxed);
        let body = format!(
            r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"no","code":{status}}}"#
        );
        ready(hyper::Response::builder().status(status).body(Body::from(body.into_bytes())))
    });
    (Client::new(service, "default"), requests)
}

#[tokio::test(start_paused = true)]
async fn a_refused_lease_is_asked_for_less_and_less_often() {
    // 0, 4, 12, 28, then each 30 s; without an answer that would be each 2 s.
    for (status, attempts) in [(403, 4 + 9), (500, 150)] {
        let (client, requests) = refusing(status);
        let mut elector = Elector::new(client, options("a"));
        let acquired = timeout(Duration::from_secs(299), elector.acquire()).await;
        assert!(acquired.is_err(), "no permission, no lease");
        assert_eq!(requests.load(Ordering::Relaxed), attempts, "{status}");
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn renewed(lease: &Lease, at: Timestamp) -> Lease {
    let mut lease = lease.clone();
    lease.spec.as_mut().expect("a spec").renew_time = Some(MicroTime(at));
    lease
}

#[tokio::test]
async fn a_lease_expires_by_the_clock_of_the_observer() {
    let (holder, mut other) = (elector("a"), elector("b"));
    // The holder's clock is a year ahead. Other processes do not read it.
    let lease = holder.next(None, at("2027-11-29T12:00:00Z"));
    let begin = Instant::now();
    let after = |seconds| begin + Duration::from_secs(seconds);
    other.observe(lease.clone(), begin);
    assert!(!other.may_take(&lease, after(15)));
    assert!(other.may_take(&lease, after(16)));
    // A renewal starts the time anew; the same Lease again does not.
    let lease = renewed(&lease, at("2027-11-29T12:00:02Z"));
    other.observe(lease.clone(), after(10));
    other.observe(lease.clone(), after(20));
    assert!(!other.may_take(&lease, after(25)));
    assert!(other.may_take(&lease, after(26)));
    assert!(holder.may_take(&lease, begin), "its holder renews it at any time");
}

#[tokio::test]
async fn a_released_lease_is_free() {
    let (holder, other) = (elector("a"), elector("b"));
    let mut lease = holder.next(None, at("2026-11-29T12:00:00Z"));
    lease.spec.as_mut().expect("a spec").holder_identity = Some(String::new());
    assert!(other.may_take(&lease, Instant::now()));
}

#[tokio::test]
async fn a_new_holder_counts_a_transition_and_a_renewal_does_not() {
    let (holder, other) = (elector("a"), elector("b"));
    let first = holder.next(None, at("2026-11-29T12:00:00Z"));
    let again = holder.next(Some(&first), at("2026-11-29T12:00:02Z")).spec.expect("a spec");
    assert_eq!(again.lease_transitions, Some(0));
    assert_eq!(again.acquire_time, Some(MicroTime(at("2026-11-29T12:00:00Z"))));
    assert_eq!(again.renew_time, Some(MicroTime(at("2026-11-29T12:00:02Z"))));
    let taken = other.next(Some(&first), at("2026-11-29T12:01:00Z")).spec.expect("a spec");
    assert_eq!(taken.lease_transitions, Some(1));
    assert_eq!(taken.acquire_time, Some(MicroTime(at("2026-11-29T12:01:00Z"))));
    assert_eq!(taken.holder_identity.as_deref(), Some("b"));
}

#[tokio::test]
async fn a_term_ends_by_itself() {
    let elector = elector("a");
    let term = elector.term();
    assert!(!term.is_current());
    elector.until.send_replace(Some(Instant::now() + Duration::from_hours(1)));
    assert!(term.is_current());
    elector.until.send_replace(Some(Instant::now()));
    assert!(!term.is_current());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_the_lease_expires() {
    let mut elector = elector("a");
    let begin = Instant::now();
    elector.seen = Some((elector.next(None, Timestamp::now()), begin));
    elector.until.send_replace(Some(begin + elector.options.renew_deadline));
    elector.keep().await;
    assert!(!elector.term().is_current());
    let took = begin.elapsed();
    assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(15), "{took:?}");
}
