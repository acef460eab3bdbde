//! What the replicas of the model do.

use super::*;
use crate::certificates::plan::Change;

impl World {
    pub(super) fn watch(&mut self, replica: usize) {
        let read = self.read_webhooks();
        let published = self.published(&read);
        let (now, clock, version) = (self.instant(), self.clock(replica), self.secret.0);
        let state = self.state().cloned();
        self.note_secret(replica);
        let replica = &mut self.replicas[replica];
        replica.trusted.update(&published, now);
        let Some(state) = state else { return };
        let seen = replica.seen.filter(|(seen, _)| *seen == version).map_or(now, |(_, at)| at);
        replica.seen = Some((version, seen));
        let earlier = replica.memory.take();
        replica.memory = Some(state.clone().remembering(earlier, clock));
        let clock = Clock { now: clock, instant: now };
        let choice = choose(replica.served.as_ref(), &state, seen, &replica.trusted, clock);
        if choice == Choice::Now {
            replica.served = Some(Served::of(&state));
        }
    }

    /// A replica sees the Secret, and whether it was lost.
    fn note_secret(&mut self, replica: usize) {
        let clock = self.clock(replica);
        let memory = self.replicas[replica].memory.as_ref();
        let is_settled = self
            .state()
            .is_some_and(|state| memory.is_none_or(|memory| state.continues(memory, clock)));
        if !is_settled {
            self.replicas[replica].unsettled_until = self.now + HANDOVER;
        }
    }

    /// A leader reads the Secret after what it saw of the webhooks.
    pub(super) fn read_secret(&mut self, replica: usize) {
        let Some(read) = self.replicas[replica].webhooks.take() else { return };
        self.note_secret(replica);
        let invalid = InvalidSecret::Ca;
        let secret = match &self.secret.1 {
            Secret::Absent => None,
            Secret::Foreign => Some(Err(&invalid)),
            Secret::Good(state) => Some(Ok(&**state)),
        };
        let memory = self.replicas[replica].memory.as_ref();
        let published = self.published(&read);
        let is_unsettled = self.now < self.replicas[replica].unsettled_until;
        let published = &published;
        let observed = Observed { secret, published, is_all_read: true, memory, is_unsettled };
        let step = next(&observed, &self.terms.names, self.clock(replica), LIFETIMES);
        let step = step.expect("keys can be made");
        self.replicas[replica].planned = Some((self.secret.0, read, step));
    }

    pub(super) fn write(&mut self, replica: usize) -> Checked {
        let Some((version, read, step)) = self.replicas[replica].planned.take() else {
            return Ok(());
        };
        self.is_ca_lost |=
            self.is_secret_lost && self.was_overwritten && !self.knows(replica, &read);
        match step {
            Some(Step::Secret(state, changes)) if version == self.secret.0 => {
                // API servers do not verify what is served, until it is replaced.
                self.is_ca_lost |= changes
                    .iter()
                    .any(|change| matches!(change, Change::RevokedCa | Change::KeptRevoked));
                self.check_secret(replica, &state, &read)?;
                self.replicas[replica].memory = Some((*state).clone());
                self.set_secret(Secret::Good(state));
            }
            Some(Step::Bundles(bundles)) => {
                for (name, _) in &bundles.wrong {
                    let index = usize::from(name == CONFIGURATIONS[1]);
                    let webhook = &self.webhooks[index];
                    if webhook.version == read.versions[index] && !webhook.is_forbidden {
                        let mut before = Certificate::of_pem(&webhook.bundle);
                        before.retain(|ca| {
                            self.state().is_some_and(|state| state.cas().any(|known| known == ca))
                        });
                        let after = Certificate::of_pem(bundles.pem.as_bytes());
                        self.check_kept(replica, &before, &after)?;
                        self.set_bundle(index, bundles.pem.clone().into_bytes(), false);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a leader knows the CA of each certificate that is served.
    fn knows(&self, leader: usize, read: &Read) -> bool {
        let states = self.replicas[leader].memory.as_ref().into_iter().chain(self.state());
        let known: Vec<_> = states.flat_map(State::cas).collect();
        let in_bundles = |ca| read.entries.iter().any(|entry| entry.cas.contains(ca));
        let mut served =
            self.replicas.iter().filter_map(|replica| Some(&replica.served.as_ref()?.ca));
        served.all(|ca| ca.has_ended(self.now) || known.contains(&ca) || in_bundles(ca))
    }
}
