//! How clients verify a webhook.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    client::Resumption,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use crate::expect::Outcome;

/// How a client verifies a webhook with this CA. Sessions are not resumed: a resumed one has no
/// certificate of its own.
///
/// # Errors
///
/// Fails if the CA is no certificate.
pub fn tls_config(
    ca: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> Outcome<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes())?)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}
