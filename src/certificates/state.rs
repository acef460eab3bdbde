//! The content of the Secret.

use std::collections::BTreeMap;

use super::authority::{Ca, Certificate, Leaf, is_key};
use crate::tls::{self, TlsError};

/// The CAs as PEM: the one that signs first, then the next one, then previous ones that have not
/// ended.
const CA_CERTIFICATES: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
/// Key of the CA that signs next, while there is one.
const NEXT_CA_KEY: &str = "next-ca.key";
const LEAF_CERTIFICATE: &str = "tls.crt";
const LEAF_KEY: &str = "tls.key";

/// Maximum number of CAs in a `caBundle`. There are two or three while one replaces the other.
pub(super) const MAX_CAS: usize = 8;

/// The CAs, and the webhook's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    /// It signed the certificate.
    pub(super) ca: Ca,
    /// It signs next, once every `caBundle` has it.
    pub(super) next: Option<Ca>,
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
        let next = self.next.iter().map(|next| &next.certificate);
        [&self.ca.certificate].into_iter().chain(next).chain(&self.previous)
    }

    /// Whether its certificate was made before that of another state: it is from a backup.
    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        self.leaf.certificate.sequence() < other.leaf.certificate.sequence()
    }

    /// The newer one of this state and a remembered one, with the CAs of both.
    pub(super) fn remembering(self, earlier: Option<Self>, now: i64) -> Self {
        let Some(earlier) = earlier else { return self };
        let (mut kept, other) =
            if self.is_older_than(&earlier) { (earlier, self) } else { (self, earlier) };
        kept.keep(other.cas().cloned(), now);
        kept
    }

    /// Keeps CAs of injectd that have not ended: certificates of theirs may be served. Returns whether
    /// there are new ones.
    pub(super) fn keep(&mut self, cas: impl IntoIterator<Item = Certificate>, now: i64) -> bool {
        let before = self.previous.len();
        for ca in cas {
            let is_known = self.cas().any(|known| *known == ca);
            let has_room = self.cas().count() < MAX_CAS;
            if ca.is_our_ca() && !ca.has_ended(now) && !is_known && has_room {
                self.previous.push(ca);
            }
        }
        self.previous.len() > before
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
        cas.retain(Certificate::is_our_ca);
        let next = key(NEXT_CA_KEY).ok().and_then(|key| take_pair(&mut cas, &key));
        let mut leaves = certificates(LEAF_CERTIFICATE)?;
        let leaf = Leaf { certificate: leaves.remove(0), key: key(LEAF_KEY)? };
        Self { ca, next, previous: cas, leaf }.checked(names)
    }

    fn checked(self, names: &[String]) -> Result<Self, InvalidSecret> {
        if !self.ca.certificate.is_our_ca() || !self.ca.is_pair() {
            return Err(InvalidSecret::Ca);
        }
        for name in names {
            let Err(error) = verify(&[&self.ca.certificate], &self.leaf, name) else { continue };
            return Err(InvalidSecret::Leaf { name: name.clone(), problem: error.to_string() });
        }
        if !is_pair(&self.leaf) {
            return Err(InvalidSecret::Pair);
        }
        Ok(self)
    }

    /// Writes the keys into the data of a Secret; other keys stay.
    pub(super) fn encode(&self, data: &mut Data) {
        data.remove(NEXT_CA_KEY);
        let next = self.next.as_ref().map(|next| (NEXT_CA_KEY, next.key.clone()));
        let values = [
            (CA_CERTIFICATES, self.bundle()),
            (CA_KEY, self.ca.key.clone()),
            (LEAF_CERTIFICATE, self.leaf.chain()),
            (LEAF_KEY, self.leaf.key.clone()),
        ];
        let values = values.into_iter().chain(next);
        data.extend(values.map(|(key, value)| (key.to_owned(), value.into_bytes())));
    }

    /// The CAs as PEM, for a `caBundle`.
    pub(super) fn bundle(&self) -> String {
        self.cas().map(Certificate::pem).collect()
    }
}

/// Takes the CA of a key out of a list.
fn take_pair(cas: &mut Vec<Certificate>, key: &str) -> Option<Ca> {
    let pair =
        |certificate: &Certificate| Ca { certificate: certificate.clone(), key: key.to_owned() };
    let index = cas.iter().position(|certificate| pair(certificate).is_pair())?;
    Some(Ca { certificate: cas.remove(index), key: key.to_owned() })
}

/// Checks that an API server with these CAs accepts the certificate for this name, just before its
/// end: whether it has begun or ended is for others to ask.
pub(super) fn verify(cas: &[&Certificate], leaf: &Leaf, name: &str) -> Result<(), TlsError> {
    let roots = cas.iter().map(|ca| ca.der().clone());
    let at = leaf.certificate.ends() - 1;
    tls::verify_server(roots, (leaf.certificate.der(), &[]), name, at)
}

fn is_pair(leaf: &Leaf) -> bool {
    let identity = tls::Identity::from_pem(leaf.chain().as_bytes(), leaf.key.as_bytes());
    identity.and_then(|it| tls::server_config(it, tls::ClientAuth::None, &tls::HTTP)).is_ok()
}
