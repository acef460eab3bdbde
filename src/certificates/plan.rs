//! What the leader does next. Pure: it is given what was read, and the time.

use super::{
    authority::{Ca, Certificate, Leaf, Lifetimes, seconds},
    state::{InvalidSecret, MAX_CAS, State},
};

/// What the leader has read. Webhooks are read before the Secret: then no leader writes a `caBundle`
/// of an older Secret over that of a newer one.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    /// The Secret; `None` if it does not exist.
    pub(super) secret: Option<Result<&'a State, &'a InvalidSecret>>,
    /// The entries of webhook configurations that lead to the Service.
    pub(super) entries: &'a [Entry],
    /// The last state that this process saw, for a Secret that was lost.
    pub(super) memory: Option<&'a State>,
    /// Whether the webhooks can be read and written.
    pub(super) can_publish: bool,
}

/// An entry of a webhook configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) configuration: String,
    pub(super) index: usize,
    /// PEM, as the API server has it.
    pub(super) ca_bundle: Vec<u8>,
}

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Writes the Secret.
    Secret(Box<State>, Vec<Change>),
    /// Writes the `caBundle` of entries of one configuration: index and PEM.
    Bundles { configuration: String, bundles: Vec<(usize, String)> },
}

/// What a write of the Secret changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// A new CA signs.
    NewCa,
    /// A new certificate.
    NewLeaf,
    /// The Secret was lost, or others changed it or restored an older one; the last state is written
    /// again.
    Restored,
    /// Previous CAs that others removed are there again.
    KeptCa,
    /// A previous CA has ended and is removed.
    RemovedCa,
}

/// The next write; `None` if there is nothing to do now.
///
/// Invariants, which `model.rs` checks:
/// - A CA of ours leaves Secret and `caBundle` only when it has ended.
/// - A CA that has not ended is replaced only while every `caBundle` has all CAs.
pub(super) fn next(
    observed: &Observed<'_>,
    names: &[String],
    now: i64,
    lifetimes: Lifetimes,
) -> Result<Option<Step>, rcgen::Error> {
    let mut changes = Vec::new();
    let mut state = match (observed.secret, observed.memory) {
        (Some(Ok(state)), Some(memory)) if state.is_older_than(memory) => {
            changes.push(Change::Restored);
            memory.clone()
        }
        (Some(Ok(state)), _) => state.clone(),
        (_, Some(memory)) => {
            changes.push(Change::Restored);
            memory.clone()
        }
        _ => {
            changes.extend([Change::NewCa, Change::NewLeaf]);
            made(names, now, lifetimes)?
        }
    };
    keep_cas(&mut state, observed, now, &mut changes);
    if changes.is_empty()
        && observed.can_publish
        && let Some(step) = publish(&state, observed.entries)
    {
        return Ok(Some(step));
    }
    let ca = &state.ca.certificate;
    let is_due = ca.renewal(seconds(lifetimes.leaf)) <= now;
    if is_due && (observed.can_publish || ca.has_ended(now)) {
        let new = made(names, now, lifetimes)?;
        let old = std::mem::replace(&mut state.ca, new.ca);
        state.leaf = new.leaf;
        if !old.certificate.has_ended(now) {
            state.previous.insert(0, old.certificate);
        }
        changes.extend([Change::NewCa, Change::NewLeaf]);
    } else if state.leaf.certificate.renewal(0) <= now {
        state.leaf = state.ca.sign(names, now, lifetimes.leaf)?;
        changes.push(Change::NewLeaf);
    }
    state.previous.truncate(MAX_CAS - 1);
    Ok((!changes.is_empty()).then(|| Step::Secret(Box::new(state), changes)))
}

/// When the next renewal or removal is due, in seconds since 1970.
pub(super) fn due(state: &State, lifetimes: Lifetimes) -> i64 {
    let renewals =
        [state.ca.certificate.renewal(seconds(lifetimes.leaf)), state.leaf.certificate.renewal(0)];
    let ends = state.previous.iter().map(Certificate::ends);
    renewals.into_iter().chain(ends).min().unwrap_or_default()
}

fn made(names: &[String], now: i64, lifetimes: Lifetimes) -> Result<State, rcgen::Error> {
    let ca = Ca::make(now, lifetimes.ca)?;
    let leaf: Leaf = ca.sign(names, now, lifetimes.leaf)?;
    Ok(State { ca, previous: Vec::new(), leaf })
}

/// Keeps previous CAs, of memory and of the webhooks too, until they end: other replicas may serve a
/// certificate of one of them.
fn keep_cas(state: &mut State, observed: &Observed<'_>, now: i64, changes: &mut Vec<Change>) {
    let before = state.previous.len();
    state.previous.retain(|ca| !ca.has_ended(now));
    if state.previous.len() < before {
        changes.push(Change::RemovedCa);
    }
    let published = observed.entries.iter().flat_map(|it| Certificate::of_pem(&it.ca_bundle));
    let found = observed.secret.and_then(Result::ok);
    let remembered = observed.memory.into_iter().chain(found).flat_map(State::cas).cloned();
    for ca in remembered.chain(published) {
        let is_known = state.cas().any(|known| *known == ca);
        let has_room = state.previous.len() < MAX_CAS - 1;
        if ca.is_our_ca() && !ca.has_ended(now) && !is_known && has_room {
            state.previous.push(ca);
            changes.push(Change::KeptCa);
        }
    }
}

/// The first configuration with an entry whose `caBundle` is not that of the state.
fn publish(state: &State, entries: &[Entry]) -> Option<Step> {
    let expected: Vec<_> = state.cas().collect();
    let is_right = |entry: &Entry| {
        let found = Certificate::of_pem(&entry.ca_bundle);
        found.len() == expected.len() && expected.iter().all(|ca| found.contains(ca))
    };
    let configuration = &entries.iter().find(|entry| !is_right(entry))?.configuration;
    let bundle: String = expected.iter().map(|ca| ca.pem()).collect();
    let wrong = entries.iter().filter(|it| it.configuration == *configuration && !is_right(it));
    let bundles = wrong.map(|entry| (entry.index, bundle.clone())).collect();
    Some(Step::Bundles { configuration: configuration.clone(), bundles })
}
