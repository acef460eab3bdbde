//! Made certificates are read back with foreign code; keys of Go come from sprig.

use std::time::{Duration, SystemTime};

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use x509_parser::{certificate::X509Certificate, extensions::GeneralName};

use super::{Key, first_block};
use crate::{Context, Functions, Template, Value};

/// A key of OpenSSL, and what Go made of it. It protects nothing.
const EC_PKCS8: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgSTXztTtdHKi1Y8Zf
VTq4LjfPJFYpMLk1fvVjQMTWvkmhRANCAAR+2+NgJiYHqUPy2QGRBgyEH1XG6BaA
yBxK0dw7hAVK3obMFteK7aykRFbdqSAgt6dxp86ZklKg4PBYX5w2V0AE
-----END PRIVATE KEY-----
";
const EC_SEC1: &str = "-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIEk187U7XRyotWPGX1U6uC43zyRWKTC5NX71Y0DE1r5JoAoGCCqGSM49
AwEHoUQDQgAEftvjYCYmB6lD8tkBkQYMhB9VxugWgMgcStHcO4QFSt6GzBbXiu2s
pERW3akgILencafOmZJSoODwWF+cNldABA==
-----END EC PRIVATE KEY-----
";

fn render(template: &str) -> Result<String, String> {
    let template = Template::parse("t", template, &Functions::sprig()).expect("it must parse");
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let mut context = Context { now: Some(now), ..Context::default() };
    template.execute(&Value::Nil, &mut context).map_err(|problem| problem.to_string())
}

/// The certificates of a text, in DER.
fn certificates(text: &str) -> Vec<Vec<u8>> {
    let blocks = pem::parse_many(text).expect("it must be PEM");
    let blocks = blocks.into_iter().filter(|block| block.tag() == "CERTIFICATE");
    blocks.map(pem::Pem::into_contents).collect()
}

fn read(der: &[u8]) -> X509Certificate<'_> {
    super::parsed(der).expect("it must be a certificate")
}

fn assert_signed(
    certificate: &X509Certificate<'_>,
    by: &X509Certificate<'_>,
    algorithm: &'static dyn VerificationAlgorithm,
) {
    let public = by.public_key().subject_public_key.data.as_ref();
    let text = certificate.tbs_certificate.as_ref();
    let signature = certificate.signature_value.data.as_ref();
    let verified = UnparsedPublicKey::new(algorithm, public).verify(text, signature);
    verified.expect("the signature must be that of the key");
    assert_eq!(certificate.signature_algorithm, certificate.tbs_certificate.signature);
    assert_eq!(certificate.issuer().as_raw(), by.subject().as_raw());
}

#[test]
fn an_authority_signs_a_certificate() {
    let text = render(
        "{{ $ca := genCA \"an authority\" 365 }}{{ $ca.Cert }}\
         {{ $c := genSignedCert \"*.example.com\" (list \"10.0.0.1\" \"::1\" \"::ffff:1.2.3.4\") \
         (list \"a.example.com\" \"b\") 30 $ca }}{{ $c.Cert }}{{ $c.Key }}",
    )
    .expect("it must render");
    let ders = certificates(&text);
    let [authority, certificate] = [&ders[0], &ders[1]].map(|der| read(der));
    assert_signed(&authority, &authority, &RSA_PKCS1_2048_8192_SHA256);
    assert_signed(&certificate, &authority, &RSA_PKCS1_2048_8192_SHA256);
    assert!(authority.is_ca());
    assert!(!certificate.is_ca());
    assert_eq!(authority.subject().to_string(), "CN=an authority");
    assert_eq!(certificate.subject().to_string(), "CN=*.example.com");
    let validity = certificate.validity();
    assert_eq!(validity.not_before.timestamp(), 1_700_000_000);
    assert_eq!(validity.not_after.timestamp(), 1_700_000_000 + 30 * 86_400);
    let usage = authority.key_usage().expect("it must be DER").expect("it must be there").value;
    assert!(usage.key_cert_sign() && usage.digital_signature() && usage.key_encipherment());
    let usage = certificate.key_usage().expect("it must be DER").expect("it must be there").value;
    assert!(!usage.key_cert_sign() && usage.digital_signature() && usage.key_encipherment());
    let names = certificate.subject_alternative_name().expect("DER").expect("names").value;
    assert_eq!(
        names.general_names,
        [
            GeneralName::DNSName("a.example.com"),
            GeneralName::DNSName("b"),
            GeneralName::IPAddress(&[10, 0, 0, 1]),
            GeneralName::IPAddress(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            GeneralName::IPAddress(&[1, 2, 3, 4]),
        ]
    );
}

#[test]
fn each_kind_of_key_signs() {
    let kinds: [(&str, &'static dyn VerificationAlgorithm); 2] =
        [("ecdsa", &ECDSA_P256_SHA256_ASN1), ("ed25519", &ED25519)];
    for (kind, algorithm) in kinds {
        let text = render(&format!(
            "{{{{ $k := genPrivateKey \"{kind}\" }}}}{{{{ $ca := genCAWithKey \"ca\" 1 $k }}}}\
             {{{{ if ne $ca.Key $k }}}}{{{{ fail \"another key\" }}}}{{{{ end }}}}{{{{ $ca.Cert }}}}\
             {{{{ (genSignedCertWithKey \"x\" nil nil 1 $ca $k).Cert }}}}\
             {{{{ (genSelfSignedCertWithKey \"\" nil (list \"x\") 1 $k).Cert }}}}"
        ))
        .expect("it must render");
        let ders = certificates(&text);
        let [authority, signed, self_signed] = [0, 1, 2].map(|at: usize| read(&ders[at]));
        assert_signed(&authority, &authority, algorithm);
        assert_signed(&signed, &authority, algorithm);
        assert_signed(&self_signed, &self_signed, algorithm);
        // Without a subject the names are critical.
        let names = self_signed.subject_alternative_name().expect("DER").expect("names");
        assert!(names.critical);
    }
}

#[test]
fn keys_are_written_as_go_writes_them() {
    let key = Key::of_pem(EC_PKCS8.as_bytes()).expect("it must be a key");
    assert_eq!(key.pem().as_deref(), Ok(EC_SEC1));
    let key = Key::of_pem(EC_SEC1.as_bytes()).expect("it must be a key");
    assert_eq!(key.pem().as_deref(), Ok(EC_SEC1));
    for key in [Key::rsa(super::keys::RSA_2048), Key::ecdsa(), Key::ed25519()] {
        let text = key.and_then(|key| key.pem()).expect("a key must be made");
        let again = Key::of_pem(text.as_bytes()).expect("it must be a key");
        assert_eq!(again.pem(), Ok(text));
    }
}

#[test]
fn days_of_more_than_292_years_wrap_around() {
    assert_eq!(super::x509::validity(106_752, 0), [0, -9_223_371_274]);
    let text = render("{{ (genCAWithKey \"x\" 36500 (genPrivateKey \"ecdsa\")).Cert }}");
    let ders = certificates(&text.expect("it must render"));
    let not_after = read(&ders[0]).validity().not_after;
    assert!(not_after.is_generalizedtime());
    assert_eq!(not_after.timestamp(), 1_700_000_000 + 36_500 * 86_400);
}

#[test]
fn a_key_that_is_cut_off_is_no_key() {
    let der = first_block(EC_PKCS8.as_bytes()).expect("it must be PEM");
    for length in 0..der.len() {
        for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY"] {
            let text = super::keys::pem(kind, der[..length].to_vec());
            let problem = Key::of_pem(text.as_bytes()).expect_err("it must not be a key");
            let truncated = ["truncated", "no PEM data"];
            assert!(truncated.iter().any(|text| problem.contains(text)), "{length}: {problem}");
        }
    }
}
