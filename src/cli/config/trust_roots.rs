//! What is wrong with a mesh's trust roots: proxies cannot join a mesh with anything else than the
//! certificates of its CAs, and show that late.

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use x509_parser::{certificate::X509Certificate, parse_x509_certificate, time::ASN1Time};

/// Warnings for one file. A bundle of 10 MiB holds thousands of certificates, and the first ones
/// show what is wrong with all.
const MAX_WARNINGS: usize = 10;

/// Checks a bundle of certificates as PEM and returns warnings.
///
/// # Errors
/// Why it holds no certificates.
pub(super) fn check(bundle: &[u8]) -> Result<Vec<String>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bundle).collect();
    let problem = match certificates {
        Ok(certificates) if certificates.is_empty() => "found none".to_owned(),
        Ok(certificates) => return Ok(warnings(&certificates)),
        Err(error) => error.to_string(),
    };
    Err(format!("expected certificates as PEM: {problem}"))
}

fn warnings(certificates: &[CertificateDer<'_>]) -> Vec<String> {
    let now = ASN1Time::now();
    let mut warnings = Vec::new();
    for (index, der) in certificates.iter().enumerate() {
        let number = index + 1;
        match parse_x509_certificate(der) {
            Ok((_, certificate)) => add_warnings(number, &certificate, now, &mut warnings),
            Err(_) => warnings.push(format!(
                "certificate {number} is not an X.509 certificate: proxies cannot use it"
            )),
        }
    }
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    if more > 0 {
        warnings.truncate(MAX_WARNINGS);
        warnings.push(format!("{more} more warnings about certificates of this file"));
    }
    warnings
}

fn add_warnings(
    number: usize,
    certificate: &X509Certificate<'_>,
    now: ASN1Time,
    warnings: &mut Vec<String>,
) {
    // Quoted: a subject may hold any characters.
    let name = format!("certificate {number} {:?}", certificate.subject().to_string());
    let expiry = certificate.validity().not_after;
    if expiry < now {
        let date = expiry.to_datetime().date();
        warnings.push(format!(
            "{name} expired on {date}: proxies trust no peer of it; give the current trust roots"
        ));
    }
    if !certificate.is_ca() {
        warnings.push(format!(
            "{name} is not a CA certificate: proxies trust no peer of it; give the certificate of \
             the CA that signed it"
        ));
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};

    use super::*;

    fn certificate(name: &str, is_ca: bool, last_year: i32) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = if is_ca { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
        params.not_after = rcgen::date_time_ymd(last_year, 2, 3);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").pem()
    }

    #[test]
    fn expired_certificates_and_leaves_are_named() {
        let bundle = [
            certificate("good", true, 2999),
            certificate("old", true, 2021),
            certificate("leaf\n", false, 2999),
        ];
        let warnings = check(bundle.concat().as_bytes()).expect("must hold certificates");
        let [old, leaf] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(old.starts_with(r#"certificate 2 "CN=old" expired on 2021-02-03: "#), "{old}");
        assert!(leaf.starts_with(r#"certificate 3 "CN=leaf\n" is not a CA"#), "{leaf}");
    }

    #[test]
    fn warnings_of_one_file_are_bounded() {
        let bundle = certificate("old", false, 2021).repeat(20);
        let warnings = check(bundle.as_bytes()).expect("must hold certificates");
        assert_eq!(warnings.len(), MAX_WARNINGS + 1);
        assert_eq!(warnings[MAX_WARNINGS], "30 more warnings about certificates of this file");
    }

    #[test]
    fn a_file_without_certificates_is_an_error() {
        assert_eq!(check(b"hello"), Err("expected certificates as PEM: found none".to_owned()));
        assert!(check(b"-----BEGIN CERTIFICATE-----\nAAAA\n").is_err());
    }
}
