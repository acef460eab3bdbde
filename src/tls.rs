//! TLS of the doors: identity and server configuration. TLS 1.3 only, one provider everywhere.

use std::sync::Arc;

use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{
        CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer,
        pem::{self, PemObject as _},
    },
};

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

/// The configuration of a door that shows this identity and speaks HTTP/2 and HTTP/1.1.
///
/// # Errors
/// When the key does not belong to the certificate.
///
/// # Panics
/// Never: the provider knows TLS 1.3.
pub fn server_config(identity: Identity) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider must know TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(identity.chain, identity.key)
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let (one, other) = (Identity::self_signed(), Identity::self_signed());
        let (one, other) = (one.expect("identity"), other.expect("identity"));
        let torn = Identity { chain: one.chain, key: other.key };
        assert!(matches!(server_config(torn), Err(TlsError::Pair(_))));
    }

    #[test]
    fn what_is_no_pem_is_told() {
        assert!(matches!(Identity::from_pem(b"", b""), Err(TlsError::NoCertificate)));
        let identity = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).expect("identity");
        let chain = identity.cert.pem();
        assert!(matches!(Identity::from_pem(chain.as_bytes(), b"x"), Err(TlsError::Key(_))));
    }
}
