//! What the leader does next. Pure: it is given what was read, and the time.

use super::{
    authority::{Ca, Certificate, Lifetimes, seconds},
    revoked::Revoked,
    state::{InvalidSecret, MAX_CAS, State},
};

/// A CA with this many seconds left is replaced even if a `caBundle` lacks the next one: that webhook
/// fails either way. Long enough to write the Secret and each webhook.
const LAST_SECONDS: i64 = 10;

/// How long a leader goes on publishing CAs with the name of ours that only a `caBundle` has, after it
/// has started or the Secret was lost: replicas that know them may serve certificates of theirs, until
/// they change to one of the Secret. In seconds: longer than they wait at most.
pub(super) const HANDOVER: i64 = 60;

/// What the leader has read: first the webhooks, then the Secret. A webhook is written only at the
/// `resourceVersion` that was read. So no leader overwrites newer CAs with those of an older Secret.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    /// The Secret; `None` if it does not exist.
    pub(super) secret: Option<Result<&'a State, &'a InvalidSecret>>,
    /// The webhook configurations that were read.
    pub(super) published: &'a [Published<'a>],
    /// Whether these are all.
    pub(super) is_all_read: bool,
    /// The last state that this process saw, for a Secret that was lost.
    pub(super) memory: Option<&'a State>,
    /// Whether a CA of injectd may be known to others only, since this process started or the Secret was
    /// lost less than [`HANDOVER`] ago.
    pub(super) is_unsettled: bool,
}

/// A webhook configuration: its entries that lead to the Service.
#[derive(Debug, Clone, Copy)]
pub(super) struct Published<'a> {
    pub(super) configuration: &'a str,
    pub(super) entries: &'a [Entry],
    /// Whether it may be written now.
    pub(super) is_writable: bool,
}

/// An entry of a webhook configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Name of the webhook.
    pub(super) webhook: String,
    pub(super) index: usize,
    /// The certificates that injectd reads in its `caBundle`. API servers may read others.
    pub(super) cas: Vec<Certificate>,
    /// Its `caBundle` as it is.
    bundle: Vec<u8>,
}

impl Entry {
    pub(super) fn new(webhook: &str, index: usize, bundle: &[u8]) -> Self {
        let cas = Certificate::of_pem(bundle);
        Self { webhook: webhook.to_owned(), index, cas, bundle: bundle.to_vec() }
    }
}

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Writes the Secret.
    Secret(Box<State>, Vec<Change>),
    /// Writes a `caBundle`.
    Bundles(Bundles),
}

/// A `caBundle` to write, and where: configurations with indices of their entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bundles {
    pub(super) pem: String,
    pub(super) wrong: Vec<(String, Vec<usize>)>,
}

/// What a write of the Secret changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// A new CA, which signs at once or next.
    NewCa,
    /// The next CA signs from now on.
    NextCaSigns,
    /// A new certificate.
    NewLeaf,
    /// The Secret was lost, or others changed it or restored an older one; the last state is written
    /// again.
    Restored,
    /// Previous CAs of a state that was replaced are there, too.
    KeptCa,
    /// The CA that signed was revoked; a new one signs.
    RevokedCa,
    /// A CA that was revoked before is revoked there, too.
    KeptRevoked,
    /// A CA that does not sign has ended, or begins too late, and is removed.
    RemovedCa,
}

/// The next write; `None` if there is nothing to do now.
///
/// Invariants, which `model.rs` checks:
/// - A CA of the Secret leaves Secret and `caBundle` only when it has ended, or is revoked. All CAs of a
///   Secret go with the one that signs.
/// - A `caBundle` is what the leader would write, byte by byte: nothing that others read otherwise.
/// - A CA that only a `caBundle` has never gets into the Secret, and is not published for longer than
///   [`HANDOVER`].
/// - A CA begins to sign when each `caBundle` that has its predecessor has it, too, or when that ends.
pub(super) fn next(
    observed: &Observed<'_>,
    names: &[String],
    now: i64,
    lifetimes: Lifetimes,
) -> Result<Option<Step>, rcgen::Error> {
    let (mut state, mut changes) = last(observed, names, now, lifetimes)?;
    if state.revoked.has(&state.ca.certificate) {
        replace_revoked(&mut state, observed, names, now, lifetimes)?;
        changes.extend([Change::RevokedCa, Change::NewCa, Change::NewLeaf]);
    }
    if state.drop_unusable(now) {
        changes.push(Change::RemovedCa);
    }
    if state.keep(known_cas(observed), now) {
        changes.push(Change::KeptCa);
    }
    if changes.is_empty()
        && let Some(bundles) = publish(&state, observed, now, lifetimes)
    {
        return Ok(Some(Step::Bundles(bundles)));
    }
    if changes.is_empty() {
        changes = renew(&mut state, observed, names, now, lifetimes)?;
    }
    Ok((!changes.is_empty()).then(|| Step::Secret(Box::new(state), changes)))
}

/// When the next renewal or removal is due, in seconds since 1970.
pub(super) fn due(state: &State, lifetimes: Lifetimes) -> i64 {
    let (ca, leaf) = (&state.ca.certificate, &state.leaf.certificate);
    let last = ca.ends() - LAST_SECONDS;
    let of_ca = if state.next.is_some() { last } else { ca.renewal(seconds(lifetimes.leaf)) };
    let of_leaf = if leaf.ends() < ca.ends() { leaf.renewal(0) } else { last };
    let ends = state.previous.iter().map(Certificate::ends);
    [of_ca, of_leaf].into_iter().chain(ends).min().unwrap_or_default()
}

/// The state to go on from: the newer one of Secret and memory, or a new one.
fn last(
    observed: &Observed<'_>,
    names: &[String],
    now: i64,
    lifetimes: Lifetimes,
) -> Result<(State, Vec<Change>), rcgen::Error> {
    Ok(match (observed.secret, observed.memory) {
        (Some(Ok(state)), memory) if !memory.is_some_and(|memory| state.is_older_than(memory)) => {
            let (mut state, mut changes) = (state.clone(), Vec::new());
            if memory.is_some_and(|memory| state.revoked.add(&memory.revoked)) {
                state.drop_revoked();
                changes.push(Change::KeptRevoked);
            }
            (state, changes)
        }
        (_, Some(memory)) => (memory.clone(), vec![Change::Restored]),
        _ => {
            let ca = Ca::make(now, lifetimes.ca)?;
            let leaf = ca.sign(names, now, lifetimes.leaf, 0)?;
            let revoked = Revoked::default();
            let state = State { ca, next: None, previous: Vec::new(), leaf, revoked };
            (state, vec![Change::NewCa, Change::NewLeaf])
        }
    })
}

/// Replaces the CA that signs at once: what it signed is not to be trusted, and reviews fail until
/// API servers know the new one. The next one goes, too, and the previous ones, also of a Secret that
/// is remembered: only the revoked one vouches for them.
fn replace_revoked(
    state: &mut State,
    observed: &Observed<'_>,
    names: &[String],
    now: i64,
    lifetimes: Lifetimes,
) -> Result<(), rcgen::Error> {
    for known in known_states(observed) {
        if state.revoked.has(&known.ca.certificate) {
            state.revoked.revoke(known.cas());
        }
    }
    let sequence = state.leaf.certificate.sequence();
    state.ca = Ca::make(now, lifetimes.ca)?;
    state.leaf = state.ca.sign(names, now, lifetimes.leaf, sequence)?;
    state.drop_revoked();
    Ok(())
}

/// Memory and the Secret.
fn known_states<'a>(observed: &Observed<'a>) -> impl Iterator<Item = &'a State> {
    observed.memory.into_iter().chain(observed.secret.and_then(Result::ok))
}

/// CAs of the Secret and of memory: other replicas may serve a certificate of one of them.
fn known_cas(observed: &Observed<'_>) -> Vec<Certificate> {
    known_states(observed).flat_map(State::cas).cloned().collect()
}

/// CAs that may be of a state that was lost: replicas may serve certificates of theirs. Who wrote them
/// there is not known, so that they stay for a while only.
fn handed_over<'a>(
    state: &'a State,
    observed: &'a Observed<'_>,
    now: i64,
    lifetimes: Lifetimes,
) -> Vec<&'a Certificate> {
    let mut found: Vec<&Certificate> = Vec::new();
    if !observed.is_unsettled {
        return found;
    }
    let room = MAX_CAS.saturating_sub(state.cas().count());
    let entries = observed.published.iter().flat_map(|configuration| configuration.entries);
    for ca in entries.flat_map(|entry| &entry.cas) {
        let is_in_time = ca.clone().limited(lifetimes.ca).is_usable(now);
        let is_known = state.cas().any(|known| known == ca) || found.contains(&ca);
        let is_usable = ca.has_our_name() && is_in_time && !state.revoked.has(ca);
        if is_usable && !is_known && found.len() < room {
            found.push(ca);
        }
    }
    found
}

/// The entries whose `caBundle` is not exactly that of the state. Its bytes are compared: API servers may
/// find a CA where injectd reads none.
fn publish(
    state: &State,
    observed: &Observed<'_>,
    now: i64,
    lifetimes: Lifetimes,
) -> Option<Bundles> {
    let published = observed.published;
    let others = handed_over(state, observed, now, lifetimes);
    let pem: String = state.cas().chain(others).map(Certificate::pem).collect();
    let is_wrong = |entry: &&Entry| entry.bundle != pem.as_bytes();
    let wrong = |published: &Published<'_>| {
        let indices: Vec<_> =
            published.entries.iter().filter(is_wrong).map(|entry| entry.index).collect();
        (!indices.is_empty()).then(|| (published.configuration.to_owned(), indices))
    };
    let writable = published.iter().filter(|published| published.is_writable);
    let wrong: Vec<_> = writable.filter_map(wrong).collect();
    (!wrong.is_empty()).then_some(Bundles { pem, wrong })
}

/// Makes the next CA, lets it sign, or renews the certificate, whichever is due.
fn renew(
    state: &mut State,
    observed: &Observed<'_>,
    names: &[String],
    now: i64,
    lifetimes: Lifetimes,
) -> Result<Vec<Change>, rcgen::Error> {
    let at_least = seconds(lifetimes.leaf);
    let is_due = |ca: &Certificate| !ca.is_valid(now) || ca.renewal(at_least) <= now;
    let mut changes = Vec::new();
    let sequence = state.leaf.certificate.sequence();
    if is_due(&state.ca.certificate) {
        if state.next.as_ref().is_none_or(|next| is_due(&next.certificate)) {
            let next = Ca::make(now, lifetimes.ca)?;
            // The signing CA and the next one need room.
            state.previous.truncate(MAX_CAS - 2);
            let unused = state.next.replace(next);
            state.keep(unused.map(|unused| unused.certificate), now);
            changes.push(Change::NewCa);
        }
        let is_last = !state.ca.certificate.is_valid(now + LAST_SECONDS);
        let may_sign = is_last || is_published(state, observed);
        if let Some(next) = state.next.take_if(|_| may_sign) {
            state.leaf = next.sign(names, now, lifetimes.leaf, sequence)?;
            let old = std::mem::replace(&mut state.ca, next).certificate;
            state.keep([old], now);
            changes.extend([Change::NextCaSigns, Change::NewLeaf]);
        }
    }
    let (ca, leaf) = (&state.ca, &state.leaf.certificate);
    // One that ends with its CA cannot be made to last longer.
    let is_short = leaf.renewal(0) <= now && leaf.ends() < ca.certificate.ends();
    if changes.is_empty() && (is_short || leaf.begins() > now) {
        state.leaf = ca.sign(names, now, lifetimes.leaf, sequence)?;
        changes.push(Change::NewLeaf);
    }
    Ok(changes)
}

/// Whether all configurations were read, and the next CA is in each `caBundle` that has the one that
/// signs. Others verify nothing of it anyway.
fn is_published(state: &State, observed: &Observed<'_>) -> bool {
    let Some(next) = state.next.as_ref().filter(|_| observed.is_all_read) else { return false };
    let mut entries = observed.published.iter().flat_map(|configuration| configuration.entries);
    entries.all(|entry| {
        !entry.cas.contains(&state.ca.certificate) || entry.cas.contains(&next.certificate)
    })
}
