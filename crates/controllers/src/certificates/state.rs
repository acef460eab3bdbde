//! The content of the Secret.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_tls::TlsError;

use super::{
    authority::{Ca, Certificate, Leaf, is_key},
    revoked::{self, Revoked},
};

/// The CAs as PEM: the one that signs first, then the next one, then previous ones that have not
/// ended.
const CA_CERTIFICATES: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
/// Key of the CA that signs next, while there is one.
const NEXT_CA_KEY: &str = "next-ca.key";
const LEAF_CERTIFICATE: &str = "tls.crt";
const LEAF_KEY: &str = "tls.key";
/// For each CA of `ca.crt` but the first its fingerprint and, after a space, the signature of the first
/// one as base64: others who add a CA have no such signature.
const VOUCHERS: &str = "ca.sig";

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
    /// CAs that are not used any more, whatever has them.
    pub(super) revoked: Revoked,
}

/// What the content of a Secret must have.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// The names of the certificate.
    pub(super) names: Vec<String>,
    /// The longest time that a CA is used, whatever it says.
    pub(super) ca_lifetime: Duration,
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

    /// Whether it goes on from another state: it is not older, and has the CA that signed.
    pub(super) fn continues(&self, other: &Self, now: i64) -> bool {
        let signed = &other.ca.certificate;
        let has_it = self.cas().any(|ca| ca == signed);
        !self.is_older_than(other) && (has_it || signed.has_ended(now) || self.revoked.has(signed))
    }

    /// The newer one of this state and a remembered one, with the CAs of both, but for those that are
    /// revoked in one of them.
    pub(super) fn remembering(self, earlier: Option<Self>, now: i64) -> Self {
        let Some(earlier) = earlier else { return self };
        let (mut kept, other) =
            if self.is_older_than(&earlier) { (earlier, self) } else { (self, earlier) };
        kept.revoked.add(&other.revoked);
        kept.drop_revoked();
        kept.keep(other.cas().cloned(), now);
        kept
    }

    /// Drops revoked CAs that do not sign.
    pub(super) fn drop_revoked(&mut self) {
        let Self { next, previous, revoked, .. } = self;
        next.take_if(|next| revoked.has(&next.certificate));
        previous.retain(|ca| !revoked.has(ca));
    }

    /// Drops CAs that do not sign and have ended, or begin too late. Returns whether there were any.
    pub(super) fn drop_unusable(&mut self, now: i64) -> bool {
        let before = self.cas().count();
        self.next.take_if(|next| !next.certificate.is_usable(now));
        self.previous.retain(|ca| ca.is_usable(now));
        self.cas().count() < before
    }

    /// Keeps CAs of another state that may be used: certificates of theirs may be served. Returns
    /// whether there are new ones.
    pub(super) fn keep(&mut self, cas: impl IntoIterator<Item = Certificate>, now: i64) -> bool {
        let before = self.previous.len();
        for ca in cas {
            let is_known = self.cas().any(|known| *known == ca);
            let has_room = self.cas().count() < MAX_CAS;
            let is_usable = ca.is_usable(now) && !self.revoked.has(&ca);
            if is_usable && !is_known && has_room {
                self.previous.push(ca);
            }
        }
        self.previous.len() > before
    }

    /// Reads the data of a Secret. CAs without a key, and the next one, count only if the one that
    /// signs vouches for them.
    pub(super) fn decode(data: &Data, terms: &Terms) -> Result<Self, InvalidSecret> {
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
        let text = |key| data.get(key).map_or(&[][..], Vec::as_slice);
        let cas = certificates(CA_CERTIFICATES)?.into_iter().take(MAX_CAS);
        let mut cas: Vec<_> = cas.map(|ca| ca.limited(terms.ca_lifetime)).collect();
        let ca = Ca { certificate: cas.remove(0), key: key(CA_KEY)? };
        let vouchers = vouchers(text(VOUCHERS));
        cas.retain(|of| {
            let voucher = vouchers.get(&of.fingerprint());
            of.has_our_name() && voucher.is_some_and(|voucher| ca.certificate.vouches(of, voucher))
        });
        let next = key(NEXT_CA_KEY).ok().and_then(|key| take_pair(&mut cas, &key));
        let mut leaves = certificates(LEAF_CERTIFICATE)?;
        let leaf = Leaf { certificate: leaves.remove(0), key: key(LEAF_KEY)? };
        let revoked = Revoked::parse(text(revoked::KEY));
        let mut state = Self { ca, next, previous: cas, leaf, revoked };
        state.drop_revoked();
        state.checked(&terms.names)
    }

    fn checked(self, names: &[String]) -> Result<Self, InvalidSecret> {
        if !self.ca.certificate.has_our_name() || !self.ca.is_pair() {
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
    pub(super) fn encode(&self, data: &mut Data) -> Result<(), rcgen::Error> {
        let mut vouchers = String::new();
        for ca in self.cas().skip(1) {
            let signature = BASE64_STANDARD.encode(self.ca.vouch(ca)?);
            vouchers.extend([&*ca.fingerprint(), " ", &*signature, "\n"]);
        }
        let revoked = self.revoked.text(data.get(revoked::KEY).map_or(&[], Vec::as_slice));
        for (key, text) in
            [(NEXT_CA_KEY, String::new()), (revoked::KEY, revoked), (VOUCHERS, vouchers)]
        {
            // What is not needed any more must go, above all the key of a CA that signs no more.
            data.remove(key);
            if !text.is_empty() {
                data.insert(key.to_owned(), text.into_bytes());
            }
        }
        let next = self.next.as_ref().map(|next| (NEXT_CA_KEY, next.key.clone()));
        let values = [
            (CA_CERTIFICATES, self.bundle()),
            (CA_KEY, self.ca.key.clone()),
            (LEAF_CERTIFICATE, self.leaf.chain()),
            (LEAF_KEY, self.leaf.key.clone()),
        ];
        let values = values.into_iter().chain(next);
        data.extend(values.map(|(key, value)| (key.to_owned(), value.into_bytes())));
        Ok(())
    }

    /// The CAs as PEM, for a `caBundle`.
    pub(super) fn bundle(&self) -> String {
        self.cas().map(Certificate::pem).collect()
    }
}

/// Signatures by the fingerprint of the CA that they are for.
fn vouchers(text: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let text = String::from_utf8_lossy(text);
    let of_line = |line: &str| {
        let (fingerprint, signature) = line.split_once(' ')?;
        Some((fingerprint.to_owned(), BASE64_STANDARD.decode(signature.trim()).ok()?))
    };
    text.lines().filter_map(of_line).collect()
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
    injectd_tls::verify_server(roots, leaf.certificate.der(), &[], name, at)
}

fn is_pair(leaf: &Leaf) -> bool {
    let identity = injectd_tls::Identity::from_pem(leaf.chain().as_bytes(), leaf.key.as_bytes());
    identity
        .and_then(|identity| {
            injectd_tls::server_config(identity, injectd_tls::ClientAuth::None, &injectd_tls::HTTP)
        })
        .is_ok()
}
