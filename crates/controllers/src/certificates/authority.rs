//! The CA and the certificates that it signs.

use std::{fmt, time::Duration};

use injectd_cluster::digest::hex;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _, SerialNumber, SigningKey as _,
};
use rustls::{
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, alg_id, pem::PemObject as _},
};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use x509_parser::parse_x509_certificate;

/// Certificates are valid from this long before they are made: the clocks of API servers and
/// replicas may differ by as much.
const CLOCK_SKEW: Duration = Duration::from_hours(1);
/// Common name of every CA of injectd. Anyone can give a CA this name: alone it proves nothing.
const CA_NAME: &str = "injectd webhook CA";
/// Signatures of a CA over others begin so: a signature of a certificate does not.
const VOUCHER: &[u8] = b"injectd: this CA is of the same Secret\0";
/// A certificate is renewed when less than this part of its lifetime remains.
// Of the default of 30 days, ten are left to a person to repair what prevents a renewal.
const RENEWAL_PART: i64 = 3;
/// The serial number of a certificate ends with as many random bytes; before them it counts.
// Authorities of the web must use 64 bits that cannot be guessed (Baseline Requirements, 7.1).
const RANDOM_BYTES: usize = 8;

/// How long certificates are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// A CA.
    pub ca: Duration,
    /// A certificate of the webhook; at most half of `ca`.
    pub leaf: Duration,
}

/// A certificate, and what is read of it.
#[derive(Debug, Clone)]
pub(super) struct Certificate {
    der: CertificateDer<'static>,
    begins: i64,
    ends: i64,
    has_our_name: bool,
    public_key: Vec<u8>,
    sequence: u64,
}

/// A certificate of the webhook and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Leaf {
    pub(super) certificate: Certificate,
    /// PKCS#8 as PEM.
    pub(super) key: String,
}

/// A CA and its key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Ca {
    pub(super) certificate: Certificate,
    /// PKCS#8 as PEM.
    pub(super) key: String,
}

impl Certificate {
    /// Parses a certificate; `None` if it is not one.
    pub(super) fn parse(der: &CertificateDer<'static>) -> Option<Self> {
        let (_, parsed) = parse_x509_certificate(der).ok()?;
        let name = parsed.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
        let has_our_name = parsed.is_ca() && name == Some(CA_NAME);
        let validity = parsed.validity();
        let (begins, ends) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        let public_key = parsed.public_key().subject_public_key.data.to_vec();
        let sequence = sequence(parsed.raw_serial());
        Some(Self { der: der.clone(), begins, ends, has_our_name, public_key, sequence })
    }

    /// The certificates in a PEM text. Other parts of it are skipped, in which other parsers may find
    /// further ones.
    pub(super) fn of_pem(pem: &[u8]) -> Vec<Self> {
        let found = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
        found.filter_map(|der| Self::parse(&der.into_owned())).collect()
    }

    pub(super) fn pem(&self) -> String {
        pem::encode(&pem::Pem::new("CERTIFICATE", self.der.to_vec()))
    }

    pub(super) fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// Whether it is a CA with the name of injectd's. Whose it is, a key shows or a voucher.
    pub(super) fn has_our_name(&self) -> bool {
        self.has_our_name
    }

    /// The certificate of a CA, which counts as ended when one of this lifetime would have.
    pub(super) fn limited(self, lifetime: Duration) -> Self {
        let last = self.begins.saturating_add(seconds(lifetime) + seconds(CLOCK_SKEW));
        Self { ends: self.ends.min(last), ..self }
    }

    /// Its SHA-256 in hexadecimal.
    pub(super) fn fingerprint(&self) -> String {
        hex(&Sha256::digest(&self.der))
    }

    /// Whether a signature is that of this CA over another one.
    pub(super) fn vouches(&self, for_ca: &Self, signature: &[u8]) -> bool {
        let algorithms = default_provider().signature_verification_algorithms;
        let is_of_our_keys =
            |algorithm: &&&dyn rustls::pki_types::SignatureVerificationAlgorithm| {
                algorithm.public_key_alg_id() == alg_id::ECDSA_P256
                    && algorithm.signature_alg_id() == alg_id::ECDSA_SHA256
            };
        let algorithm = algorithms.all.iter().find(is_of_our_keys);
        algorithm.is_some_and(|algorithm| {
            algorithm.verify_signature(&self.public_key, &voucher(for_ca), signature).is_ok()
        })
    }

    /// Which certificate of the webhook it is: a later one has a higher number, whatever the clocks
    /// of those who made them.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// When it ends, in seconds since 1970.
    pub(super) fn ends(&self) -> i64 {
        self.ends
    }

    pub(super) fn has_ended(&self, now: i64) -> bool {
        self.ends <= now
    }

    /// Whether a CA may be used: it has not ended, and begins no later than clocks differ. One that
    /// begins later would outlast the limit of its lifetime.
    pub(super) fn is_usable(&self, now: i64) -> bool {
        !self.has_ended(now) && self.begins <= now.saturating_add(seconds(CLOCK_SKEW))
    }

    /// When it begins, in seconds since 1970.
    pub(super) fn begins(&self) -> i64 {
        self.begins
    }

    /// Whether API servers with this clock accept it.
    pub(super) fn is_valid(&self, now: i64) -> bool {
        self.begins <= now && !self.has_ended(now)
    }

    /// How long ago it was made, in seconds.
    pub(super) fn age(&self, now: i64) -> i64 {
        now - self.begins - seconds(CLOCK_SKEW)
    }

    /// When it should be renewed: a third of its lifetime, or `at_least` seconds, before its end.
    pub(super) fn renewal(&self, at_least: i64) -> i64 {
        let lifetime = (self.ends - self.begins - seconds(CLOCK_SKEW)).max(0);
        self.ends - (lifetime / RENEWAL_PART).max(at_least)
    }
}

impl PartialEq for Certificate {
    /// The rest follows from the bytes, except the lifetime that was allowed.
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for Certificate {}

impl Leaf {
    /// The chain as PEM.
    #[must_use]
    pub fn chain(&self) -> String {
        self.certificate.pem()
    }

    /// The key as PEM.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl Ca {
    pub(super) fn make(now: i64, lifetime: Duration) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = ca_params();
        set_validity(&mut params, now, now + seconds(lifetime));
        let certificate = params.self_signed(&key)?;
        let certificate =
            Certificate::parse(certificate.der()).ok_or(rcgen::Error::CouldNotParseCertificate)?;
        Ok(Self { certificate, key: key.serialize_pem() })
    }

    /// Signs a certificate for these names that comes after the one with this `sequence`. It does not
    /// outlast the CA.
    pub(super) fn sign(
        &self,
        names: &[String],
        now: i64,
        lifetime: Duration,
        sequence: u64,
    ) -> Result<Leaf, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = named("injectd webhook");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        // The time, so that it also comes after those of a state that was lost.
        let sequence = sequence.saturating_add(1).max(u64::try_from(now).unwrap_or_default());
        params.serial_number = Some(serial(sequence, key.der_bytes()));
        set_validity(&mut params, now, (now + seconds(lifetime)).min(self.certificate.ends));
        let issuer = Issuer::new(ca_params(), KeyPair::from_pem(&self.key)?);
        let certificate = params.signed_by(&key, &issuer)?;
        let certificate =
            Certificate::parse(certificate.der()).ok_or(rcgen::Error::CouldNotParseCertificate)?;
        Ok(Leaf { certificate, key: key.serialize_pem() })
    }

    /// A signature that says: the other CA is of the same Secret.
    pub(super) fn vouch(&self, for_ca: &Certificate) -> Result<Vec<u8>, rcgen::Error> {
        KeyPair::from_pem(&self.key)?.sign(&voucher(for_ca))
    }

    /// Whether the key belongs to the certificate.
    pub(super) fn is_pair(&self) -> bool {
        let key = KeyPair::from_pem(&self.key);
        key.is_ok_and(|key| key.der_bytes() == self.certificate.public_key)
    }
}

/// What a CA signs about another one.
fn voucher(for_ca: &Certificate) -> Vec<u8> {
    [VOUCHER, &for_ca.der].concat()
}

/// The names under which an API server calls a Service, and further ones of it.
pub(super) fn service_names(service: &str, namespace: &str) -> Vec<String> {
    ["", ".svc", ".svc.cluster.local"].map(|end| format!("{service}.{namespace}{end}")).to_vec()
}

/// Seconds of a duration.
pub(super) fn seconds(duration: Duration) -> i64 {
    // Small enough that sums with times do not overflow.
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX / 4)
}

/// Whether a text is a private key as PEM.
pub(super) fn is_key(pem: &str) -> bool {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).is_ok()
}

/// The serial number: a count, and bytes of a random key, since two leaders may count the same.
fn serial(sequence: u64, random: &[u8]) -> SerialNumber {
    let random = &random[random.len().saturating_sub(RANDOM_BYTES)..];
    let all = sequence.to_be_bytes().into_iter().chain(random.iter().copied());
    // An integer of DER has no zeros before it.
    let digits: Vec<_> = all.skip_while(|byte| *byte == 0).collect();
    SerialNumber::from_slice(&digits)
}

/// The count in a serial number; 0 in one that is shorter.
fn sequence(serial: &[u8]) -> u64 {
    let count = &serial[..serial.len().saturating_sub(RANDOM_BYTES)];
    count.iter().fold(0, |all, byte| (all << 8) | u64::from(*byte))
}

/// The same for each CA, so that an issuer can be made of the key alone.
fn ca_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(CA_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

fn set_validity(params: &mut CertificateParams, now: i64, ends: i64) {
    let at = |seconds| OffsetDateTime::from_unix_timestamp(seconds);
    // Out of range only beyond the year 9999, which rcgen would refuse.
    params.not_before = at(now - seconds(CLOCK_SKEW)).unwrap_or(params.not_before);
    params.not_after = at(ends).unwrap_or(params.not_after);
}

// Neither has its key in a log.

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leaf").field(&self.certificate).finish_non_exhaustive()
    }
}

impl fmt::Debug for Ca {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ca").field(&self.certificate).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_key_vouches_for_a_ca() {
        let [one, other, third] =
            [(); 3].map(|()| Ca::make(1_800_000_000, Duration::from_hours(1)).expect("a CA"));
        let signature = one.vouch(&other.certificate).expect("a signature");
        let vouches = |by: &Ca, of: &Ca| by.certificate.vouches(&of.certificate, &signature);
        assert!(vouches(&one, &other));
        assert!(!vouches(&other, &other) && !vouches(&one, &third) && !vouches(&third, &other));
    }

    #[test]
    fn a_ca_ends_after_its_lifetime_whatever_it_says() {
        let now = 1_800_000_000;
        let of = |lifetime| Ca::make(now, lifetime).expect("a CA").certificate;
        let (hour, century) = (Duration::from_hours(1), Duration::from_hours(876_000));
        assert_eq!(of(century).limited(hour).ends(), of(hour).ends());
        assert_eq!(of(hour).limited(century).ends(), of(hour).ends());
    }

    #[test]
    fn a_ca_that_begins_later_than_clocks_differ_is_not_used() {
        let (now, lifetime) = (1_800_000_000, Duration::from_hours(1));
        // It begins before it is made.
        let limit = now + 2 * seconds(CLOCK_SKEW);
        for (made, expected) in [(now, true), (limit, true), (limit + 1, false)] {
            let ca = Ca::make(made, lifetime).expect("a CA").certificate;
            assert_eq!(ca.is_usable(now), expected, "{made}");
            assert!(!ca.is_usable(made + seconds(lifetime)), "it has ended");
        }
    }

    #[test]
    fn certificates_count_and_their_keys_are_not_printed() {
        let lifetime = Duration::from_hours(1);
        let ca = Ca::make(1_800_000_000, lifetime).expect("a CA");
        let names = service_names("injectd", "mesh");
        for (sequence, expected) in [(0, 1_800_000_000), (1_800_000_000, 1_800_000_001)] {
            let leaf = ca.sign(&names, 1_800_000_000, lifetime, sequence).expect("a certificate");
            assert_eq!(leaf.certificate.sequence(), expected);
            assert!(!format!("{leaf:?} {ca:?}").contains("PRIVATE"));
        }
    }
}
