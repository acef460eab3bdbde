//! TLS of the servers: identity and server configuration. TLS 1.3 only, one provider everywhere.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use rustls::{
    RootCertStore, ServerConfig,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _, verify_server_name},
    crypto::aws_lc_rs,
    pki_types::{
        CertificateDer, InvalidDnsNameError, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName,
        UnixTime, pem::PemObject as _,
    },
    server::{
        NoServerSessionStorage, ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier,
    },
};
use x509_parser::parse_x509_certificate;

mod any_certificate;
mod pem_error;

pub use any_certificate::AnyCertificate;
pub use pem_error::PemError;

/// The host name under which an API server calls Linkerd's injector.
const SERVICE_HOST: &str = "linkerd-proxy-injector.linkerd.svc";
/// Names in a self-signed certificate.
const SELF_SIGNED_NAMES: [&str; 4] = ["localhost", "127.0.0.1", "::1", SERVICE_HOST];

/// A certificate chain, leaf first, and its key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why TLS cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate chain is not valid PEM.
    #[error("the certificate chain cannot be read; expected PEM, leaf first")]
    Chain(#[source] PemError),
    /// The certificate file contains no certificate.
    #[error("the certificate file contains no certificate; expected PEM, leaf first")]
    NoCertificate,
    /// The private key is not valid PEM.
    #[error("the private key cannot be read; expected PKCS#8, PKCS#1 or SEC1 as PEM")]
    Key(#[source] PemError),
    /// The certificate and the key do not match, or the key has an unknown type.
    #[error("the certificate and the private key cannot be used together")]
    Pair(#[source] rustls::Error),
    /// The client CA is not valid PEM.
    #[error("the client CA cannot be read; expected PEM certificates")]
    ClientRoots(#[source] PemError),
    /// A certificate of the client CA is not valid.
    #[error("a certificate of the client CA is not valid")]
    ClientRoot(#[source] rustls::Error),
    /// The client CA contains no certificate.
    #[error("the client CA cannot be used; expected at least one certificate")]
    ClientCa(#[source] VerifierBuilderError),
    /// The name of a server is not a DNS name.
    #[error("the name of the server is not a DNS name")]
    Name(#[source] InvalidDnsNameError),
    /// A client would not accept the certificate of a server.
    #[error("the certificate is not accepted")]
    Server(#[source] rustls::Error),
    /// The self-signed certificate could not be created.
    #[error("cannot create a self-signed certificate")]
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
            .map_err(|error| TlsError::Chain(PemError::from(error)))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key);
        Ok(Self { chain, key: key.map_err(|error| TlsError::Key(error.into()))? })
    }

    /// When the leaf expires, in seconds since 1970; `None` if it cannot be parsed.
    #[must_use]
    pub fn expires(&self) -> Option<i64> {
        let (_, leaf) = parse_x509_certificate(self.chain.first()?).ok()?;
        Some(leaf.validity().not_after.timestamp())
    }

    /// Creates a self-signed certificate for this machine.
    ///
    /// # Errors
    /// When the system provides no randomness.
    pub fn self_signed() -> Result<Self, TlsError> {
        let names: Vec<_> = SELF_SIGNED_NAMES.map(str::to_owned).to_vec();
        let made = rcgen::generate_simple_self_signed(names).map_err(TlsError::SelfSigned)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Self { chain: vec![made.cert.der().clone()], key: key.into() })
    }
}

/// The client certificate that a server requests; a CA consists of PEM certificates.
#[derive(Debug, Clone, Copy)]
pub enum ClientAuth<'a> {
    /// No certificate.
    None,
    /// A certificate of that CA is required.
    Required(&'a [u8]),
    /// A certificate of that CA is optional.
    Offered(&'a [u8]),
}

/// ALPN protocols of a server for API servers, browsers and gRPC clients.
pub const HTTP: [&str; 2] = ["h2", "http/1.1"];
/// ALPN protocol of a server for gRPC only.
pub const HTTP2: [&str; 1] = ["h2"];

/// The configuration of a server with this identity and these ALPN protocols.
///
/// # Errors
/// When the key does not belong to the certificate, or the CA cannot be read.
///
/// # Panics
/// Never: the provider supports TLS 1.3.
pub fn server_config(
    identity: Identity,
    client_auth: ClientAuth<'_>,
    protocols: &[&str],
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        // Go has it by default since 1.13, and so has every API server that is supported. Earlier
        // versions of TLS would only add choices for an attacker.
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider must support TLS 1.3");
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
        // A resumed session skips the check of the client's certificate, which may have expired.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
    }
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Ok(Arc::new(config))
}

/// The remaining validity of a certificate; `None` if it cannot be parsed.
#[must_use]
pub fn remaining_validity(certificate: &CertificateDer<'_>) -> Option<Duration> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    let not_after = certificate.validity().not_after.timestamp();
    // A date before 1970 has passed either way.
    let not_after = Duration::from_secs(u64::try_from(not_after).unwrap_or_default());
    Some(not_after.saturating_sub(UNIX_EPOCH.elapsed().unwrap_or_default()))
}

/// Checks that a client with these CAs accepts the certificate of a server, which is followed by its
/// intermediate ones, for this name, at this time in seconds since 1970.
///
/// # Errors
/// Why it does not.
pub fn verify_server(
    cas: impl IntoIterator<Item = CertificateDer<'static>>,
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    name: &str,
    at: i64,
) -> Result<(), TlsError> {
    let mut roots = RootCertStore::empty();
    for ca in cas {
        roots.add(ca).map_err(TlsError::ClientRoot)?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = verifier.build().map_err(TlsError::ClientCa)?;
    let name = ServerName::try_from(name.to_owned()).map_err(TlsError::Name)?;
    let at = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(at).unwrap_or_default()));
    verifier
        .verify_server_cert(leaf, intermediates, &name, &[], at)
        .map(drop)
        .map_err(TlsError::Server)
}

/// Checks that the certificate of a server has this name.
///
/// # Errors
/// It has not.
pub fn verify_name(leaf: &CertificateDer<'_>, name: &str) -> Result<(), TlsError> {
    let leaf = ParsedCertificate::try_from(leaf).map_err(TlsError::Server)?;
    let name = ServerName::try_from(name.to_owned()).map_err(TlsError::Name)?;
    verify_server_name(&leaf, &name).map_err(TlsError::Server)
}

fn roots(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| TlsError::ClientRoots(error.into()))?;
        roots.add(certificate).map_err(TlsError::ClientRoot)?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_certificate_is_rejected() {
        let (one, other) = (Identity::self_signed(), Identity::self_signed());
        let (one, other) = (one.expect("identity"), other.expect("identity"));
        let torn = Identity { chain: one.chain, key: other.key };
        assert!(matches!(server_config(torn, ClientAuth::None, &HTTP), Err(TlsError::Pair(_))));
    }

    #[test]
    fn a_client_ca_needs_a_certificate() {
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
    fn a_file_without_pem_is_an_error() {
        assert!(matches!(Identity::from_pem(b"", b""), Err(TlsError::NoCertificate)));
        let identity = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).expect("identity");
        let chain = identity.cert.pem();
        assert!(matches!(Identity::from_pem(chain.as_bytes(), b"x"), Err(TlsError::Key(_))));
    }
}
