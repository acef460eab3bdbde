//! TLS of the doors: identity and server configuration. TLS 1.3 only, one provider everywhere.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{
        CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer,
        pem::{self, PemObject as _},
    },
    server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier},
};
use x509_parser::parse_x509_certificate;

mod any_certificate;

pub use any_certificate::AnyCertificate;

/// Names that a self-signed certificate is good for.
const SELF_SIGNED_NAMES: [&str; 4] =
    ["localhost", "127.0.0.1", "::1", "linkerd-proxy-injector.linkerd.svc"];

/// A certificate chain, leaf first, and its key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate's file holds none.
    #[error("the certificate chain cannot be read; expected PEM, leaf first")]
    Chain(#[source] pem::Error),
    /// The certificate's file is empty.
    #[error("the certificate's file holds no certificate; expected PEM, leaf first")]
    NoCertificate,
    /// The key's file holds none.
    #[error("the private key cannot be read; expected PKCS#8, PKCS#1 or SEC1 as PEM")]
    Key(#[source] pem::Error),
    /// Certificate and key do not go together, or the key is of an unknown kind.
    #[error("the certificate and the private key cannot be used together")]
    Pair(#[source] rustls::Error),
    /// The file of the clients' CA is no PEM.
    #[error("the CA of clients cannot be read; expected certificates as PEM")]
    ClientRoots(#[source] pem::Error),
    /// A certificate of the clients' CA cannot be used.
    #[error("a certificate of the CA of clients cannot be used")]
    ClientRoot(#[source] rustls::Error),
    /// The clients' CA cannot be used.
    #[error("the CA of clients cannot be used; expected one certificate at least")]
    ClientCa(#[source] VerifierBuilderError),
    /// No certificate could be made.
    #[error("no self-signed certificate could be made")]
    SelfSigned(#[source] rcgen::Error),
}

impl Identity {
    /// Reads a chain and its key.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(TlsError::Chain)?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        Ok(Self { chain, key: PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)? })
    }

    /// When the leaf expires, in seconds since 1970; `None` if that cannot be read.
    #[must_use]
    pub fn expires(&self) -> Option<i64> {
        let (_, leaf) = parse_x509_certificate(self.chain.first()?).ok()?;
        Some(leaf.validity().not_after.timestamp())
    }

    /// Makes a certificate for this machine.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn self_signed() -> Result<Self, TlsError> {
        let names: Vec<_> = SELF_SIGNED_NAMES.map(str::to_owned).to_vec();
        let made = rcgen::generate_simple_self_signed(names).map_err(TlsError::SelfSigned)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Self { chain: vec![made.cert.der().clone()], key: key.into() })
    }
}

/// What a door asks of its clients; a CA is certificates as PEM.
#[derive(Debug, Clone, Copy)]
pub enum ClientAuth<'a> {
    /// Nothing.
    None,
    /// A certificate of that CA.
    Required(&'a [u8]),
    /// A certificate of that CA, or none.
    Offered(&'a [u8]),
}

/// Protocols of a door for browsers, API servers and gRPC alike.
pub const HTTP: [&str; 2] = ["h2", "http/1.1"];
/// The protocol of a door for gRPC alone.
pub const HTTP2: [&str; 1] = ["h2"];

/// The configuration of a door that shows this identity and speaks these protocols.
///
/// # Errors
/// When the key does not belong to the certificate, or the CA cannot be read.
///
/// # Panics
/// Never: the provider knows TLS 1.3.
pub fn server_config(
    identity: Identity,
    client_auth: ClientAuth<'_>,
    protocols: &[&str],
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider must know TLS 1.3");
    let builder = match client_auth {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::Required(ca) | ClientAuth::Offered(ca) => {
            let roots = Arc::new(roots(ca)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = match client_auth {
                ClientAuth::Offered(_) => verifier.allow_unauthenticated(),
                _ => verifier,
            };
            builder.with_client_cert_verifier(verifier.build().map_err(TlsError::ClientCa)?)
        }
    };
    let mut config =
        builder.with_single_cert(identity.chain, identity.key).map_err(TlsError::Pair)?;
    if !matches!(client_auth, ClientAuth::None) {
        // A session that is resumed skips the client's certificate, which may have expired since.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
    }
    config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    Ok(Arc::new(config))
}

/// How long a certificate is still valid; `None` if it cannot be read.
#[must_use]
pub fn remaining_validity(certificate: &CertificateDer<'_>) -> Option<Duration> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    let not_after = certificate.validity().not_after.timestamp();
    let not_after = Duration::from_secs(u64::try_from(not_after).unwrap_or_default());
    Some(not_after.saturating_sub(UNIX_EPOCH.elapsed().unwrap_or_default()))
}

fn roots(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(TlsError::ClientRoots)?;
        roots.add(certificate).map_err(TlsError::ClientRoot)?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let (one, other) = (Identity::self_signed(), Identity::self_signed());
        let (one, other) = (one.expect("identity"), other.expect("identity"));
        let torn = Identity { chain: one.chain, key: other.key };
        assert!(matches!(server_config(torn, ClientAuth::None, &HTTP), Err(TlsError::Pair(_))));
    }

    #[test]
    fn a_ca_of_clients_holds_a_certificate() {
        let config = |ca: &[u8]| {
            let identity = Identity::self_signed().expect("identity");
            server_config(identity, ClientAuth::Required(ca), &HTTP)
        };
        assert!(matches!(config(b""), Err(TlsError::ClientCa(_))));
        let ca = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).expect("identity");
        assert!(config(ca.cert.pem().as_bytes()).is_ok());
    }

    #[test]
    fn the_end_of_a_certificate_is_known() {
        let expires = Identity::self_signed().expect("identity").expires();
        assert!(expires.is_some_and(|seconds| seconds > 0));
    }

    #[test]
    fn what_is_no_pem_is_told() {
        assert!(matches!(Identity::from_pem(b"", b""), Err(TlsError::NoCertificate)));
        let identity = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).expect("identity");
        let chain = identity.cert.pem();
        assert!(matches!(Identity::from_pem(chain.as_bytes(), b"x"), Err(TlsError::Key(_))));
    }
}
