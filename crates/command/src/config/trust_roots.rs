//! Checks the trust roots of a mesh. With wrong trust roots, proxies start and then fail to
//! connect; the checks report the problem earlier.

use injectd_tls::PemError;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use x509_parser::{certificate::X509Certificate, parse_x509_certificate, time::ASN1Time};

/// Warnings for one file. A bundle of 10 MiB holds thousands of certificates; the first warnings
/// show the problem.
const MAX_WARNINGS: usize = 10;

/// The line that only a `ConfigMap` has, in YAML and JSON.
const CONFIG_MAP: [&[u8]; 2] = [b"kind: ConfigMap", b"\"kind\": \"ConfigMap\""];

/// Checks a bundle of PEM certificates and returns warnings.
///
/// # Errors
/// The bundle contains no certificate, or invalid PEM.
pub(super) fn check(bundle: &[u8]) -> Result<Vec<String>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bundle).collect();
    let problem = match certificates {
        _ if is_config_map(bundle) => {
            "found a whole ConfigMap; write only the text of the key ca-bundle.crt into the file"
                .to_owned()
        }
        Ok(certificates) if certificates.is_empty() => {
            "the file contains no certificate".to_owned()
        }
        Ok(certificates) => return Ok(warnings(&certificates)),
        Err(error) => PemError::from(error).to_string(),
    };
    Err(format!("expected PEM certificates: {problem}"))
}

/// Whether it is the `ConfigMap` linkerd-identity-trust-roots as kubectl prints it. PEM may have lines
/// of text around its sections, but no text of a manifest.
fn is_config_map(bundle: &[u8]) -> bool {
    let lines = bundle.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.map(|line| line.strip_suffix(b",").unwrap_or(line)).any(|line| CONFIG_MAP.contains(&line))
}

fn warnings(certificates: &[CertificateDer<'_>]) -> Vec<String> {
    let now = ASN1Time::now();
    let mut warnings = Vec::new();
    for (index, der) in certificates.iter().enumerate() {
        let number = index + 1;
        match parse_x509_certificate(der) {
            Ok((_, certificate)) => add_warnings(number, &certificate, now, &mut warnings),
            Err(_) => warnings.push(format!(
                "certificate {number} is not a valid X.509 certificate: proxies cannot use it"
            )),
        }
    }
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    if more > 0 {
        warnings.truncate(MAX_WARNINGS);
        warnings.push(format!("{more} more warnings about certificates in this file"));
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
            "{name} expired on {date}: proxies reject the certificates it signed; use current \
             trust roots"
        ));
    }
    if !certificate.is_ca() {
        warnings.push(format!(
            "{name} is not a CA certificate: proxies cannot verify peers with it; use the \
             certificate of the CA that signed it"
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
    fn warnings_name_expired_and_leaf_certificates() {
        let bundle = [
            certificate("good", true, 2999),
            certificate("old", true, 2021),
            certificate("leaf\n", false, 2999),
        ];
        let warnings = check(bundle.concat().as_bytes()).expect("must contain certificates");
        let [old, leaf] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(old.starts_with(r#"certificate 2 "CN=old" expired on 2021-02-03: "#), "{old}");
        assert!(leaf.starts_with(r#"certificate 3 "CN=leaf\n" is not a CA"#), "{leaf}");
    }

    #[test]
    fn warnings_per_file_are_limited() {
        let bundle = certificate("old", false, 2021).repeat(20);
        let warnings = check(bundle.as_bytes()).expect("must contain certificates");
        assert_eq!(warnings.len(), MAX_WARNINGS + 1);
        assert_eq!(warnings[MAX_WARNINGS], "30 more warnings about certificates in this file");
    }

    #[test]
    fn a_file_without_certificates_is_an_error() {
        let problem = "expected PEM certificates: the file contains no certificate";
        assert_eq!(check(b"hello"), Err(problem.to_owned()));
        let problem = "expected PEM certificates: the section \"CERTIFICATE\" has no end";
        let torn = check(b"-----BEGIN CERTIFICATE-----\nAAAA\n");
        assert_eq!(torn, Err(problem.to_owned()));
        for whole in ["a: b\nkind: ConfigMap\n", "{\n    \"kind\": \"ConfigMap\",\n"] {
            let problem = check(whole.as_bytes()).expect_err("must be rejected");
            assert!(problem.contains("found a whole ConfigMap"), "{problem}");
        }
    }
}
