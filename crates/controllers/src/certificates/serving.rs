//! Which certificate a replica serves. Pure: it is given what was read, and the time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    authority::{Certificate, Leaf},
    plan::Published,
    state::State,
};

/// How long a CA is in the `caBundle` before a certificate of it replaces another one: by then every
/// API server knows it.
pub(super) const PROPAGATION: Duration = Duration::from_secs(5);
/// The CA of a certificate of this age in seconds was in the `caBundle` long before a replica that
/// starts saw it.
const OLD: i64 = 60;
/// How long a replica without a certificate waits for the leader: until a `caBundle` has the CA, and
/// until an overdue certificate is renewed.
const PATIENCE: Duration = Duration::from_secs(30);
/// A certificate counts as expired this many seconds before its end: the time of a handshake.
const MARGIN: i64 = 2;
/// Longest time to wait in seconds, which the clock of the process can add.
const MAX_WAIT: u64 = 86_400;

/// A certificate that is served, and its CA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) leaf: Leaf,
    pub(super) ca: Certificate,
}

/// Since when a CA is in a `caBundle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Since {
    at: Instant,
    /// It was there when this process looked first, and may have been there for long.
    is_first: bool,
}

/// The CAs in the `caBundle` of each entry, and since when.
#[derive(Debug, Default)]
pub(super) struct Trusted(BTreeMap<(String, String), Vec<(Certificate, Since)>>);

/// Whether a replica serves the certificate of the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// It does from now on.
    Now,
    /// Not before this time, if nothing changes.
    At(Instant),
    /// Not before something changes.
    No,
}

impl Trusted {
    /// Takes note of the entries as they are now.
    pub(super) fn update(&mut self, published: &[Published<'_>], now: Instant) {
        let before = std::mem::take(&mut self.0);
        let is_first = before.is_empty();
        for Published { configuration, entries, .. } in published {
            for entry in *entries {
                let key = ((*configuration).to_owned(), entry.webhook.clone());
                let known = before.get(&key).map(Vec::as_slice).unwrap_or_default();
                let since = entry.cas.iter().map(|ca| {
                    let of = known.iter().find(|(known, _)| known == ca).map(|(_, since)| *since);
                    (ca.clone(), of.unwrap_or(Since { at: now, is_first }))
                });
                self.0.insert(key, since.collect());
            }
        }
    }

    /// For each entry: since when it verifies certificates of a CA.
    fn of(&self, ca: &Certificate) -> impl Iterator<Item = Option<Since>> {
        self.0.values().map(move |cas| cas.iter().find(|(it, _)| it == ca).map(|(_, since)| *since))
    }
}

impl Served {
    /// What follows from the Secret.
    pub(super) fn of(state: &State) -> Self {
        Self { leaf: state.leaf.clone(), ca: state.ca.certificate.clone() }
    }
}

/// The time, by two clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    /// Seconds since 1970.
    pub(super) now: i64,
    /// By the clock of the process.
    pub(super) instant: Instant,
}

/// Chooses between the served certificate and that of the Secret. `seen` is when the Secret was seen
/// as it is.
pub(super) fn choose(
    served: Option<&Served>,
    state: &State,
    seen: Instant,
    trusted: &Trusted,
    clock: Clock,
) -> Choice {
    let Clock { now, instant } = clock;
    let leaf = &state.leaf.certificate;
    if leaf.has_ended(now) {
        // The leader renews it.
        return Choice::No;
    }
    if leaf.begins() > now {
        // The clock of the leader or of this replica is wrong.
        return at(instant, Some(instant + secs(leaf.begins() - now)));
    }
    if trusted.0.is_empty() {
        return Choice::Now;
    }
    let Some(served) = served.filter(|served| served.leaf.certificate.is_valid(now + MARGIN))
    else {
        return at(instant, first(state, seen, trusted, now));
    };
    if served.leaf.certificate.sequence() > leaf.sequence() {
        // The Secret is from a backup, and the leader restores it.
        return at_end(served, clock);
    }
    if served.ca == state.ca.certificate {
        // What verifies one verifies the other.
        return Choice::Now;
    }
    let [before, after] = [&served.ca, &state.ca.certificate].map(|ca| trusted.of(ca));
    let (before, after): (Vec<_>, Vec<_>) = (before.collect(), after.collect());
    if before.iter().all(Option::is_none) && after.iter().any(Option::is_some) {
        // API servers reject the served one everywhere.
        return Choice::Now;
    }
    // Entries that do not verify the served certificate cannot lose by the change.
    let working = before.iter().zip(&after).filter_map(|(before, after)| before.map(|_| *after));
    match working.collect::<Option<Vec<_>>>() {
        Some(since) if !since.is_empty() => {
            at(instant, since.iter().map(|since| since.at + PROPAGATION).max())
        }
        _ => at_end(served, clock),
    }
}

/// When a replica that serves nothing begins.
fn first(state: &State, seen: Instant, trusted: &Trusted, now: i64) -> Option<Instant> {
    let leaf = &state.leaf.certificate;
    let patience = seen + PATIENCE;
    let since: Vec<_> = trusted.of(&state.ca.certificate).collect();
    let others: Vec<_> = state.cas().skip(1).filter(|ca| !ca.has_ended(now + MARGIN)).collect();
    let has_other = |entry: &Vec<(Certificate, Since)>| {
        others.iter().any(|ca| entry.iter().any(|(it, _)| it == *ca))
    };
    let mut entries = trusted.0.values().zip(&since);
    // An entry that verifies what others serve, but not this one: the leader is about to write it.
    let is_behind = entries.any(|(entry, since)| since.is_none() && has_other(entry));
    let verifying: Vec<_> = since.into_iter().flatten().collect();
    if verifying.is_empty() {
        // Ready before it is verified, it would replace replicas that are.
        let is_empty = trusted.0.values().all(Vec::is_empty);
        return is_empty.then_some(patience);
    }
    if is_behind || leaf.renewal(0) <= now {
        return Some(patience);
    }
    let is_settled = leaf.age(now) >= OLD && verifying.iter().all(|since| since.is_first);
    let propagated = verifying.iter().map(|since| since.at + PROPAGATION).max();
    if is_settled { Some(seen) } else { propagated }
}

fn at(now: Instant, time: Option<Instant>) -> Choice {
    match time {
        Some(time) if time <= now => Choice::Now,
        Some(time) => Choice::At(time),
        None => Choice::No,
    }
}

/// Looks again when the served certificate ends.
fn at_end(served: &Served, clock: Clock) -> Choice {
    Choice::At(clock.instant + secs(served.leaf.certificate.ends() - MARGIN - clock.now))
}

fn secs(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default().clamp(1, MAX_WAIT))
}
