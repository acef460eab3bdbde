//! The certificates of webhooks: those of the `caBundle`, and the one that is served.

#![expect(clippy::disallowed_types, reason = "objects of any shape")]

use std::{io, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_webhooks::check::{Finding, Severity};
use rustls::{
    ClientConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, InvalidDnsNameError, ServerName, pem::PemObject as _},
};
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;
use x509_parser::parse_x509_certificate;

use crate::{
    causes::with_causes,
    tls::{self, AnyCertificate},
};

/// A certificate that ends sooner is reported.
const SOON: Duration = Duration::from_hours(7 * 24);
/// How long a server may take for the handshake.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why the served certificate cannot be seen.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("expected HOST:PORT")]
    Address(#[source] InvalidDnsNameError),
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    #[error("no TLS handshake in time")]
    Timeout,
    #[error("the server sent no certificate")]
    NoCertificate,
}

/// The certificate that a server sends.
pub(super) async fn served(addr: &str) -> Result<CertificateDer<'static>, ConnectError> {
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host).to_owned();
    let host = ServerName::try_from(host).map_err(ConnectError::Address)?;
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .expect("the provider must support TLS 1.2 and 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate::default()))
        .with_no_client_auth();
    let connect = async {
        let stream = TcpStream::connect(addr).await?;
        TlsConnector::from(Arc::new(config)).connect(host, stream).await
    };
    let connected = timeout(TIMEOUT, connect).await.map_err(|_| ConnectError::Timeout)?;
    let stream = connected.map_err(ConnectError::Connect)?;
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    chain.first().cloned().map(CertificateDer::into_owned).ok_or(ConnectError::NoCertificate)
}

/// Checks every `caBundle`, and that it verifies the served certificate.
pub(super) fn check(
    configurations: &[&Value],
    served: Option<&CertificateDer<'static>>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for object in configurations {
        for webhook in object["webhooks"].as_array().into_iter().flatten() {
            let text = |pointer: &str| object_text(object, webhook, pointer);
            let mut add = |severity, problem: String, advice: &str| {
                found.push(Finding {
                    severity,
                    configuration: text("metadata/name"),
                    webhook: Some(text("/name")),
                    field: "clientConfig.caBundle".to_owned(),
                    problem,
                    advice: advice.to_owned(),
                });
            };
            check_one(webhook, served, &mut add);
        }
    }
    found
}

fn object_text(object: &Value, webhook: &Value, pointer: &str) -> String {
    let value = match pointer {
        "metadata/name" => object.pointer("/metadata/name"),
        pointer => webhook.pointer(pointer),
    };
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn check_one(
    webhook: &Value,
    served: Option<&CertificateDer<'static>>,
    add: &mut impl FnMut(Severity, String, &str),
) {
    let config = &webhook["clientConfig"];
    let Some(bundle) = config["caBundle"].as_str().filter(|bundle| !bundle.is_empty()) else {
        return;
    };
    // That it is base64 is checked with the other fields.
    let Ok(pem) = BASE64_STANDARD.decode(bundle) else { return };
    let cas: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    if cas.is_empty() {
        let advice = "Use base64 of PEM certificates.";
        return add(Severity::Error, "it has no PEM certificate".to_owned(), advice);
    }
    let ends: Vec<_> = cas.iter().filter_map(ends).collect();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let soon = now + i64::try_from(SOON.as_secs()).unwrap_or(i64::MAX);
    let renew = "Renew the CA, and write both CAs while both are in use.";
    match ends.iter().max() {
        Some(last) if *last <= now => {
            add(Severity::Danger, "every CA in it has expired".to_owned(), renew);
        }
        Some(last) if *last <= soon => {
            let hours = (last - now) / 3600;
            add(Severity::Danger, format!("its last CA ends in {hours} h"), renew);
        }
        _ => {}
    }
    let text = |pointer| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (name, namespace) = (text("/service/name"), text("/service/namespace"));
    let Some(leaf) = served.filter(|_| !name.is_empty()) else { return };
    let host = format!("{name}.{namespace}.svc");
    if let Err(error) = tls::verify_server(cas, leaf, &host, now) {
        let problem = format!(
            "it does not verify the served certificate for {host}: {}",
            with_causes(&error)
        );
        let advice =
            "Write the CA of the served certificate into caBundle, or serve one of this CA.";
        add(Severity::Danger, problem, advice);
    }
}

fn ends(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, parsed) = parse_x509_certificate(certificate).ok()?;
    Some(parsed.validity().not_after.timestamp())
}
