//! Certificates for servers, of a CA of their own.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};

use crate::expect::Outcome;

/// PEM of a server's certificate and key, and of the CA that signed it.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The name of the server.
    pub host: String,
    /// The certificate of the CA.
    pub ca: String,
    /// The certificate of the server.
    pub certificate: String,
    /// The key of the server.
    pub key: String,
}

/// A CA with its key.
#[derive(Debug)]
pub struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    /// A new CA.
    ///
    /// # Errors
    ///
    /// Fails if there is no key for it.
    pub fn new() -> Outcome<Self> {
        Self::named("e2e")
    }

    /// A new CA with a name.
    ///
    /// # Errors
    ///
    /// Fails if there is no key for it.
    pub fn named(name: &str) -> Outcome<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// A certificate for a name and an address.
    ///
    /// # Errors
    ///
    /// Fails if the name is not one that a certificate may have.
    pub fn issue(&self, host: &str, ip: IpAddr) -> Outcome<Certificate> {
        self.sign(host, &params(host, ip)?)
    }

    /// As [`Ca::issue`], and expired.
    ///
    /// # Errors
    ///
    /// As [`Ca::issue`].
    pub fn issue_expired(&self, host: &str, ip: IpAddr) -> Outcome<Certificate> {
        let mut params = params(host, ip)?;
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 2, 1);
        self.sign(host, &params)
    }

    fn sign(&self, host: &str, params: &CertificateParams) -> Outcome<Certificate> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?.pem();
        let (host, key) = (host.to_owned(), key.serialize_pem());
        Ok(Certificate { host, ca: self.0.pem(), certificate, key })
    }
}

fn params(host: &str, ip: IpAddr) -> Outcome<CertificateParams> {
    let mut params = CertificateParams::new(vec![host.to_owned(), ip.to_string()])?;
    params.distinguished_name.push(DnType::CommonName, host);
    params.is_ca = IsCa::ExplicitNoCa;
    Ok(params)
}

impl Certificate {
    /// A certificate for a name and an address, of a new CA.
    ///
    /// # Errors
    ///
    /// Fails if the name is not one that a certificate may have.
    pub fn new(host: &str, ip: IpAddr) -> Outcome<Self> {
        Ca::new()?.issue(host, ip)
    }
}
