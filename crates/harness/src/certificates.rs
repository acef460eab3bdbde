//! Certificates of servers and clients, of a CA of their own.

use std::{
    io::Write as _,
    net::IpAddr,
    process::{Command, Stdio},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SanType, SignatureAlgorithm, date_time_ymd,
};

use crate::{
    expect::{Outcome, expect_contains, failed},
    volume::{Files, files},
};

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

/// The forms of a private key that Linkerd's injector accepts.
#[derive(Clone, Copy, Debug)]
pub enum KeyForm {
    /// RSA, in its traditional form.
    Pkcs1Rsa,
    /// An elliptic curve, in its traditional form.
    Sec1Ec,
    /// RSA.
    Pkcs8Rsa,
    /// An elliptic curve.
    Pkcs8Ec,
}

impl KeyForm {
    /// All forms.
    pub const ALL: [Self; 4] = [Self::Pkcs1Rsa, Self::Sec1Ec, Self::Pkcs8Rsa, Self::Pkcs8Ec];

    fn algorithm(self) -> &'static SignatureAlgorithm {
        match self {
            Self::Pkcs1Rsa | Self::Pkcs8Rsa => &PKCS_RSA_SHA256,
            Self::Sec1Ec | Self::Pkcs8Ec => &PKCS_ECDSA_P256_SHA256,
        }
    }

    fn is_traditional(self) -> bool {
        matches!(self, Self::Pkcs1Rsa | Self::Sec1Ec)
    }

    fn header(self) -> &'static str {
        match self {
            Self::Pkcs1Rsa => "BEGIN RSA PRIVATE KEY",
            Self::Sec1Ec => "BEGIN EC PRIVATE KEY",
            Self::Pkcs8Rsa | Self::Pkcs8Ec => "BEGIN PRIVATE KEY",
        }
    }
}

/// A CA with its key.
#[derive(Debug)]
pub struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    /// PEM of the CA.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

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
        expire(&mut params);
        self.sign(host, &params)
    }

    /// As [`Ca::issue`], with a key of this form.
    ///
    /// # Errors
    ///
    /// As [`Ca::issue`], and without openssl, which writes the traditional forms.
    pub fn issue_with(&self, host: &str, ip: IpAddr, form: KeyForm) -> Outcome<Certificate> {
        let key = KeyPair::generate_for(form.algorithm())?;
        let mut made = self.sign_with(host, &params(host, ip)?, &key)?;
        if form.is_traditional() {
            made.key = traditional(&made.key)?;
        }
        expect_contains("the key", form.header(), &made.key)?;
        Ok(made)
    }

    /// A certificate of a client with one name: a DNS name, or a URI such as a SPIFFE ID.
    ///
    /// # Errors
    ///
    /// As [`Ca::issue`].
    pub fn issue_client(&self, name: &str) -> Outcome<Certificate> {
        self.sign(name, &client_params(name)?)
    }

    /// As [`Ca::issue_client`], and expired.
    ///
    /// # Errors
    ///
    /// As [`Ca::issue`].
    pub fn issue_expired_client(&self, name: &str) -> Outcome<Certificate> {
        let mut params = client_params(name)?;
        expire(&mut params);
        self.sign(name, &params)
    }

    fn sign(&self, host: &str, params: &CertificateParams) -> Outcome<Certificate> {
        self.sign_with(host, params, &KeyPair::generate()?)
    }

    fn sign_with(
        &self,
        host: &str,
        params: &CertificateParams,
        key: &KeyPair,
    ) -> Outcome<Certificate> {
        let certificate = params.signed_by(key, &self.0)?.pem();
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

/// PEM of a key in its traditional form.
fn traditional(key: &str) -> Outcome<String> {
    let mut command = Command::new("openssl");
    command.args(["pkey", "-traditional"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|why| failed(format!("openssl: {why}")))?;
    // It reads all before it writes.
    child.stdin.take().map_or(Ok(()), |mut input| input.write_all(key.as_bytes()))?;
    Ok(String::from_utf8(child.wait_with_output()?.stdout)?)
}

fn client_params(name: &str) -> Outcome<CertificateParams> {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![if name.contains("://") {
        SanType::URI(name.try_into()?)
    } else {
        SanType::DnsName(name.try_into()?)
    }];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.is_ca = IsCa::ExplicitNoCa;
    Ok(params)
}

fn expire(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2020, 2, 1);
}

impl Certificate {
    /// The files of a Secret with it.
    #[must_use]
    pub fn files(&self) -> Files {
        files([("tls.crt", &self.certificate), ("tls.key", &self.key)])
    }

    /// A certificate for a name and an address, of a new CA.
    ///
    /// # Errors
    ///
    /// Fails if the name is not one that a certificate may have.
    pub fn new(host: &str, ip: IpAddr) -> Outcome<Self> {
        Ca::new()?.issue(host, ip)
    }
}
