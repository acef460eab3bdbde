//! A certificate for a server, of a CA of its own.

use std::net::IpAddr;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::expect::Outcome;

/// PEM of a server's certificate and key, and of the CA that signed it.
#[derive(Debug)]
pub struct Certificate {
    /// The certificate of the CA.
    pub ca: String,
    /// The certificate of the server.
    pub certificate: String,
    /// The key of the server.
    pub key: String,
}

impl Certificate {
    /// A new CA, and a certificate for a name and an address.
    ///
    /// # Errors
    ///
    /// Fails if the name is not one that a certificate may have.
    pub fn new(host: &str, ip: IpAddr) -> Outcome<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "e2e");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let mut params = CertificateParams::new(vec![host.to_owned(), ip.to_string()])?;
        params.distinguished_name.push(DnType::CommonName, host);
        params.is_ca = IsCa::ExplicitNoCa;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &ca)?;
        Ok(Self { ca: ca.pem(), certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
