//! Changes of the certificate and the client CA while a process serves.

use rustls::{pki_types::CertificateDer, version::TLS13};

use super::{
    client::{Answer, Connection, REVIEW, config, try_connect},
    files::{Authority, Folder, Pair},
    process::{Process, until},
};

const APPLIED: &str = r#"injectd_reloads_total{what="tls",result="applied"}"#;
const REJECTED: &str = r#"injectd_reloads_total{what="tls",result="rejected"}"#;
const OFTEN: [&str; 2] = ["--reload-interval", "20ms"];

async fn on_pair(folder: &Folder, more: &[&str]) -> Process {
    let (certificate, key) = (folder.path("tls.crt"), folder.path("tls.key"));
    let files = ["--tls-cert", &certificate, "--tls-key", &key];
    Process::serve(&[&files, &OFTEN[..], more].concat()).await
}

fn write_pair(folder: &Folder, pair: &Pair) {
    folder.write("tls.crt", &pair.certificate);
    folder.write("tls.key", &pair.key);
}

async fn shown(process: &Process) -> CertificateDer<'static> {
    let mut connection = Connection::open(process.webhook).await;
    connection.must_inject().await;
    connection.certificate
}

async fn shows(process: &Process, pair: &Pair) {
    until("new certificate", async || (shown(process).await == pair.der).then_some(())).await;
}

/// A review with a client's certificate, or without.
async fn review_as(process: &Process, identity: Option<&Pair>) -> Option<Answer> {
    let config = config(&TLS13, identity, "http/1.1");
    // With TLS 1.3, the client's handshake ends before the server has checked its certificate.
    let stream = try_connect(process.webhook, &config).await.ok()?;
    Connection::over(stream).await.try_review(REVIEW).await.ok()
}

async fn is_served(process: &Process, identity: Option<&Pair>) -> bool {
    review_as(process, identity).await.is_some_and(|answer| answer.is_injection())
}

#[tokio::test]
async fn new_connections_get_a_changed_certificate_and_old_ones_stay_open() {
    let folder = Folder::new();
    let pairs = [Pair::self_signed(), Pair::self_signed()];
    write_pair(&folder, &pairs[0]);
    let process = on_pair(&folder, &[]).await;
    let mut old = Connection::open(process.webhook).await;
    assert_eq!(old.certificate, pairs[0].der);
    write_pair(&folder, &pairs[1]);
    shows(&process, &pairs[1]).await;
    old.must_inject().await;
    process.counts(APPLIED, 1.0).await;
}

#[tokio::test]
async fn a_certificate_swapped_as_a_kubelet_does_is_applied_immediately() {
    let folder = Folder::new();
    let swap = |version: &str, pair: &Pair| {
        folder.swap(version, &[("tls.crt", &pair.certificate), ("tls.key", &pair.key)]);
    };
    swap("..first", &Pair::self_signed());
    let process = on_pair(&folder, &[]).await;
    let mut old = Connection::open(process.webhook).await;
    for version in ["..second", "..third"] {
        let pair = Pair::self_signed();
        swap(version, &pair);
        shows(&process, &pair).await;
    }
    old.must_inject().await;
    assert_eq!(process.metric(REJECTED).await, Some(0.0));
}

#[tokio::test]
async fn a_certificate_without_its_key_is_rejected_and_the_previous_pair_stays_in_use() {
    let folder = Folder::new();
    let pairs = [Pair::self_signed(), Pair::self_signed()];
    write_pair(&folder, &pairs[0]);
    let process = on_pair(&folder, &[]).await;
    folder.write("tls.crt", &pairs[1].certificate);
    process.counts(REJECTED, 1.0).await;
    process.logs("the certificate and the private key cannot be used together").await;
    assert!(process.log().contains("--tls-cert"), "the log must name the files");
    assert_eq!(shown(&process).await, pairs[0].der);
    assert_eq!(process.page("/ready").await.0, 200);
    folder.write("tls.key", &pairs[1].key);
    shows(&process, &pairs[1]).await;
}

#[tokio::test]
async fn an_expired_certificate_does_not_replace_a_valid_one() {
    let folder = Folder::new();
    let pairs = [Pair::self_signed(), Pair::self_signed()];
    write_pair(&folder, &pairs[0]);
    let process = on_pair(&folder, &[]).await;
    write_pair(&folder, &Pair::expired());
    process.logs("the certificate has expired, and the one in use has not").await;
    process.has(r#"injectd_reload_rejected{what="tls"}"#, 1.0).await;
    assert_eq!(shown(&process).await, pairs[0].der);
    write_pair(&folder, &pairs[1]);
    shows(&process, &pairs[1]).await;
    process.has(r#"injectd_reload_rejected{what="tls"}"#, 0.0).await;
}

#[tokio::test]
async fn a_pipe_in_place_of_the_certificate_is_rejected_and_the_previous_pair_stays_in_use() {
    let folder = Folder::new();
    let pairs = [Pair::self_signed(), Pair::self_signed()];
    write_pair(&folder, &pairs[0]);
    let process = on_pair(&folder, &[]).await;
    folder.pipe("tls.crt");
    process.logs("not a regular file").await;
    assert!(process.log().contains("--tls-cert"), "the log must name the flag");
    process.has(r#"injectd_reload_rejected{what="tls"}"#, 1.0).await;
    assert_eq!(shown(&process).await, pairs[0].der);
    write_pair(&folder, &pairs[1]);
    shows(&process, &pairs[1]).await;
    process.has(r#"injectd_reload_rejected{what="tls"}"#, 0.0).await;
}

#[tokio::test]
async fn an_expired_certificate_is_used_with_a_warning() {
    let folder = Folder::new();
    let expired = Pair::expired();
    write_pair(&folder, &expired);
    let process = on_pair(&folder, &[]).await;
    process.logs("the certificate has expired").await;
    assert_eq!(shown(&process).await, expired.der);
    let expiry = process.metric("injectd_certificate_expiry_timestamp_seconds").await;
    assert_eq!(expiry, Some(1_609_459_200.0));
    let fresh = Pair::self_signed();
    write_pair(&folder, &fresh);
    shows(&process, &fresh).await;
}

#[tokio::test]
async fn only_clients_of_the_ca_are_served() {
    let folder = Folder::new();
    let (ours, theirs) = (Authority::new(), Authority::new());
    let ca = folder.write("ca.crt", &ours.certificate);
    let process = Process::serve(&["--client-ca", &ca]).await;
    assert!(!is_served(&process, None).await, "no certificate");
    assert!(!is_served(&process, Some(&theirs.client())).await, "a certificate of another CA");
    assert!(!is_served(&process, Some(&Pair::self_signed())).await, "a self-signed certificate");
    assert!(is_served(&process, Some(&ours.client())).await);
    process
        .counts(r#"injectd_handshakes_failed_total{server="webhook",reason="error"}"#, 3.0)
        .await;
    process.has_connections(0).await;
}

#[tokio::test]
async fn a_changed_ca_applies_to_new_connections() {
    let folder = Folder::new();
    let (before, after) = (Authority::new(), Authority::new());
    write_pair(&folder, &Pair::self_signed());
    let ca = folder.write("ca.crt", &before.certificate);
    let process = on_pair(&folder, &["--client-ca", &ca]).await;
    let (old, new) = (before.client(), after.client());
    assert!(is_served(&process, Some(&old)).await);
    folder.write("ca.crt", &after.certificate);
    until("new CA", async || is_served(&process, Some(&new)).await.then_some(())).await;
    assert!(!is_served(&process, Some(&old)).await, "a client of the previous CA");
    folder.write("ca.crt", "");
    process.counts(REJECTED, 1.0).await;
    assert!(is_served(&process, Some(&new)).await);
    assert!(!is_served(&process, None).await, "no certificate");
}
