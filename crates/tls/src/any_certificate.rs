//! A verifier for clients of servers with self-signed certificates.

use std::sync::Arc;

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    version::{TLS12, TLS13},
};

/// Accepts any certificate whose key the server has.
///
/// For a user's requests to their own server, and for tests.
#[derive(Debug)]
pub struct AnyCertificate(Arc<CryptoProvider>);

impl Default for AnyCertificate {
    fn default() -> Self {
        Self(Arc::new(aws_lc_rs::default_provider()))
    }
}

impl AnyCertificate {
    /// The configuration of a client that accepts any certificate.
    ///
    /// # Panics
    ///
    /// Never: the provider supports both versions of TLS.
    #[must_use]
    pub fn client_config() -> ClientConfig {
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("the provider must support TLS 1.2 and 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Self::default()))
            .with_no_client_auth()
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
