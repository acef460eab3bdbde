//! The content of the Secret.

use std::collections::BTreeMap;

use super::authority::{Ca, Certificate, Leaf, is_key};
use crate::tls::{self, TlsError};

/// The CAs as PEM: the one that signs first, then previous ones that have not ended.
const CA_CERTIFICATES: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const LEAF_CERTIFICATE: &str = "tls.crt";
const LEAF_KEY: &str = "tls.key";

/// Maximum number of CAs in a `caBundle`. There are two while one replaces the other.
pub(super) const MAX_CAS: usize = 8;

/// A CA, those before it, and the webhook's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) ca: Ca,
    /// Previous CAs, whose keys are gone.
    pub(super) previous: Vec<Certificate>,
    pub(super) leaf: Leaf,
}

/// Why a Secret cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidSecret {
    /// It has no data yet.
    #[error("the Secret is empty")]
    Empty,
    /// A key is missing, or its value is not PEM.
    #[error("{0} is missing or is not PEM")]
    Value(&'static str),
    /// The first certificate of `ca.crt` is not a CA that injectd made, or `ca.key` is of another.
    #[error("ca.crt and ca.key are not a CA of injectd")]
    Ca,
    /// API servers would reject the certificate.
    #[error("tls.crt is not a certificate for {name} of the CA: {problem}")]
    Leaf { name: String, problem: String },
    /// The key belongs to another certificate.
    #[error("tls.key does not belong to tls.crt")]
    Pair,
}

/// Data of a Secret.
pub(super) type Data = BTreeMap<String, Vec<u8>>;

impl State {
    /// All CAs, the one that signs first.
    pub(super) fn cas(&self) -> impl Iterator<Item = &Certificate> {
        [&self.ca.certificate].into_iter().chain(&self.previous)
    }

    /// Whether its certificate ends before that of another state: it is from a backup.
    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        self.leaf.certificate.ends() < other.leaf.certificate.ends()
    }

    /// The newer one of this state and a remembered one, with the CAs of both that have not ended:
    /// certificates of theirs may be served.
    pub(super) fn remembering(self, earlier: Option<Self>, now: i64) -> Self {
        let Some(earlier) = earlier else { return self };
        let (mut kept, other) =
            if self.is_older_than(&earlier) { (earlier, self) } else { (self, earlier) };
        for ca in other.cas() {
            let is_known = kept.cas().any(|known| known == ca);
            if !is_known && !ca.has_ended(now) && kept.previous.len() < MAX_CAS - 1 {
                kept.previous.push(ca.clone());
            }
        }
        kept
    }

    /// Reads the data of a Secret; `names` are those that the certificate must have.
    pub(super) fn decode(data: &Data, names: &[String]) -> Result<Self, InvalidSecret> {
        if data.values().all(Vec::is_empty) {
            return Err(InvalidSecret::Empty);
        }
        let certificates = |key| {
            let found = Certificate::of_pem(data.get(key).map_or(&[], Vec::as_slice));
            if found.is_empty() { Err(InvalidSecret::Value(key)) } else { Ok(found) }
        };
        let key = |key| {
            let text = data.get(key).and_then(|value| String::from_utf8(value.clone()).ok());
            text.filter(|text| is_key(text)).ok_or(InvalidSecret::Value(key))
        };
        let mut cas = certificates(CA_CERTIFICATES)?;
        cas.truncate(MAX_CAS);
        let ca = Ca { certificate: cas.remove(0), key: key(CA_KEY)? };
        let mut leaves = certificates(LEAF_CERTIFICATE)?;
        let leaf = Leaf { certificate: leaves.remove(0), key: key(LEAF_KEY)? };
        let previous = cas.into_iter().filter(Certificate::is_our_ca).collect();
        Self { ca, previous, leaf }.checked(names)
    }

    fn checked(self, names: &[String]) -> Result<Self, InvalidSecret> {
        if !self.ca.certificate.is_our_ca() || !self.ca.is_pair() {
            return Err(InvalidSecret::Ca);
        }
        for name in names {
            // Expired or not is not asked here: an expired certificate is renewed.
            let problem = match verify(&[&self.ca.certificate], &self.leaf, name) {
                Ok(()) => continue,
                Err(error) => error.to_string(),
            };
            return Err(InvalidSecret::Leaf { name: name.clone(), problem });
        }
        if !is_pair(&self.leaf) {
            return Err(InvalidSecret::Pair);
        }
        Ok(self)
    }

    /// Writes the keys into the data of a Secret; other keys stay.
    pub(super) fn encode(&self, data: &mut Data) {
        let cas: String = self.cas().map(Certificate::pem).collect();
        let values = [
            (CA_CERTIFICATES, cas),
            (CA_KEY, self.ca.key.clone()),
            (LEAF_CERTIFICATE, self.leaf.chain()),
            (LEAF_KEY, self.leaf.key.clone()),
        ];
        data.extend(values.map(|(key, value)| (key.to_owned(), value.into_bytes())));
    }
}

/// Checks that an API server with these CAs accepts the certificate for this name, at the time of its
/// end.
pub(super) fn verify(cas: &[&Certificate], leaf: &Leaf, name: &str) -> Result<(), TlsError> {
    let roots = cas.iter().map(|ca| ca.der().clone());
    let at = leaf.certificate.ends() - 1;
    tls::verify_server(roots, (leaf.certificate.der(), &[]), name, at)
}

fn is_pair(leaf: &Leaf) -> bool {
    let identity = tls::Identity::from_pem(leaf.chain().as_bytes(), leaf.key.as_bytes());
    identity.and_then(|it| tls::server_config(it, tls::ClientAuth::None, &tls::HTTP)).is_ok()
}
