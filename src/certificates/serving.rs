//! Which certificate a replica serves. Pure: it is given what was read, and the time.

use std::time::{Duration, Instant};

use super::{
    authority::{Certificate, Leaf},
    plan::Entry,
    state::{State, verify},
};

/// How long a CA is in the `caBundle` before a certificate of it replaces another one: by then every
/// API server knows it.
pub const PROPAGATION: Duration = Duration::from_secs(5);
/// A CA of this age in seconds that is alone in the `caBundle` was there long before a replica that
/// starts saw it.
const OLD: i64 = 60;
/// How long a replica without a certificate waits for the leader: until the `caBundle` has the CA, and
/// until an overdue certificate is renewed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Since when a CA is in the `caBundle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Since {
    at: Instant,
    /// It was there when this process looked first, and may have been there for long.
    is_first: bool,
}

/// The CAs that are in the `caBundle` of every entry, and since when.
#[derive(Debug)]
pub(super) struct Trusted {
    cas: Vec<(Certificate, Since)>,
    /// Whether it is the first look.
    is_new: bool,
    /// Whether any entry leads to the Service.
    has_entries: bool,
}

/// Whether a replica serves the certificate of the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// It does from now on.
    Now,
    /// It does at this time, if nothing changes.
    At(Instant),
    /// It does not: API servers would reject it now.
    No,
}

impl Default for Trusted {
    fn default() -> Self {
        Self { cas: Vec::new(), is_new: true, has_entries: false }
    }
}

impl Trusted {
    /// Takes note of the entries as they are now.
    pub(super) fn update(&mut self, entries: &[Entry], now: Instant) {
        let mut bundles = entries.iter().map(|entry| Certificate::of_pem(&entry.ca_bundle));
        let mut cas = bundles.next().unwrap_or_default();
        for bundle in bundles {
            cas.retain(|ca| bundle.contains(ca));
        }
        let before = std::mem::take(&mut self.cas);
        let since = |ca: &Certificate| {
            let known = before.iter().find(|(known, _)| known == ca);
            let new = Since { at: now, is_first: self.is_new };
            known.map_or(new, |(_, since)| *since)
        };
        self.cas = cas.into_iter().map(|ca| (ca.clone(), since(&ca))).collect();
        self.has_entries = !entries.is_empty();
        self.is_new = false;
    }

    /// Whether API servers with these CAs accept a certificate, whatever its name.
    fn verifies(&self, leaf: &Leaf) -> bool {
        self.cas.iter().any(|(ca, _)| is_of(ca, leaf))
    }

    /// Whether there is one CA alone, and for long.
    fn is_settled(&self, now: i64) -> bool {
        matches!(&*self.cas, [(ca, _)] if ca.age(now) >= OLD)
    }

    fn since(&self, ca: &Certificate) -> Option<Since> {
        self.cas.iter().find(|(known, _)| known == ca).map(|(_, since)| *since)
    }
}

/// Whether a CA signed a certificate.
fn is_of(ca: &Certificate, leaf: &Leaf) -> bool {
    let names = leaf.certificate.names();
    names.first().is_some_and(|name| verify(&[ca], leaf, name).is_ok())
}

/// Chooses between the served certificate and that of the Secret. `seen` is when the Secret was seen
/// as it is, `now` in seconds since 1970 and by the clock of the process.
pub(super) fn choose(
    served: Option<&Leaf>,
    state: &State,
    seen: Instant,
    trusted: &Trusted,
    now: (i64, Instant),
) -> Choice {
    if state.leaf.certificate.has_ended(now.0) {
        // The leader renews it.
        return Choice::No;
    }
    if !trusted.has_entries {
        return Choice::Now;
    }
    let since = trusted.since(&state.ca.certificate);
    let ends = |leaf: &Leaf| leaf.certificate.ends();
    let is_usable = |leaf: &Leaf| !leaf.certificate.has_ended(now.0) && trusted.verifies(leaf);
    let at = match (since, served) {
        // The Secret is from a backup. The leader restores it.
        (_, Some(served)) if is_usable(served) && ends(served) > ends(&state.leaf) => {
            return Choice::No;
        }
        // What verifies one verifies the other.
        (Some(_), Some(served)) if is_of(&state.ca.certificate, served) => return Choice::Now,
        (Some(since), Some(served)) if is_usable(served) => since.at + PROPAGATION,
        // API servers reject the served one.
        (Some(_), Some(_)) => return Choice::Now,
        // Overdue, or from a backup: the leader is about to replace it.
        (_, None) if state.leaf.certificate.renewal(0) <= now.0 => seen + PATIENCE,
        (Some(since), None) if since.is_first && trusted.is_settled(now.0) => return Choice::Now,
        (Some(since), None) => since.at + PROPAGATION,
        (None, Some(served)) if !served.certificate.has_ended(now.0) => return Choice::No,
        (None, _) => seen + PATIENCE,
    };
    if at <= now.1 { Choice::Now } else { Choice::At(at) }
}
