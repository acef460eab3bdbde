//! The invariants of the model.

use super::*;

impl World {
    /// Invariant 1, by the clock of the leader.
    pub(super) fn check_kept(
        &self,
        leader: usize,
        before: &[Certificate],
        after: &[Certificate],
    ) -> Checked {
        let clock = self.clock(leader);
        let is_kept = |ca: &&Certificate| {
            ca.has_ended(clock) || after.contains(ca) || self.revoked.contains(ca)
        };
        let lost = before.iter().find(|ca| !is_kept(ca));
        prop_assert!(lost.is_none(), "a CA that has not ended is removed");
        Ok(())
    }

    /// Invariants 1, 2 and 5 of a write of the Secret.
    pub(super) fn check_secret(&mut self, leader: usize, new: &State, read: &Read) -> Checked {
        self.check_revoked(leader, new)?;
        let Some(old) = self.state() else { return Ok(()) };
        let [before, after] = [old, new].map(|state| state.cas().cloned().collect::<Vec<_>>());
        self.check_kept(leader, &before, &after)?;
        let is_restored =
            self.replicas[leader].memory.as_ref().is_some_and(|memory| old.is_older_than(memory));
        let is_replaced = new.revoked.has(&old.ca.certificate) && !is_restored;
        let is_free = !before.iter().any(|ca| after.contains(ca));
        prop_assert!(!is_replaced || is_free, "a CA of one that is revoked is kept");
        let is_last = !old.ca.certificate.is_valid(self.clock(leader) + LAST_SECONDS);
        let is_revoked = self.revoked.contains(&old.ca.certificate);
        if old.ca == new.ca || is_restored || is_last || is_revoked {
            return Ok(());
        }
        let is_behind = |entry: &Entry| {
            entry.cas.contains(&old.ca.certificate) && !entry.cas.contains(&new.ca.certificate)
        };
        prop_assert!(!read.entries.iter().any(is_behind), "a CA signs that is not published");
        Ok(())
    }

    /// Invariant 5: a CA is revoked by an administrator, or with one that signs.
    fn check_revoked(&mut self, leader: usize, new: &State) -> Checked {
        let known: Vec<_> = self.state().into_iter().chain(&self.replicas[leader].memory).collect();
        let is_replaced = known.iter().any(|state| new.revoked.has(&state.ca.certificate));
        let cas = known.iter().flat_map(|state| state.cas());
        let is_new = |ca: &&Certificate| new.revoked.has(ca) && !self.revoked.contains(ca);
        let with_it: Vec<_> = cas.filter(is_new).cloned().collect();
        prop_assert!(is_replaced || with_it.is_empty(), "a CA is revoked that was not");
        self.revoked.extend(with_it);
        Ok(())
    }

    /// Whether a text has a CA, wherever it is.
    fn holds(bundle: &[u8], ca: &Certificate) -> bool {
        let pem = ca.pem();
        let body = pem.split("-----").nth(2).expect("a PEM text must have a body");
        String::from_utf8_lossy(bundle).contains(body)
    }

    /// The CAs that others made and a `caBundle` has.
    pub(super) fn published_forgeries(&self) -> Vec<Forgery> {
        let is_held =
            |ca: &Certificate| self.webhooks.iter().any(|webhook| Self::holds(&webhook.bundle, ca));
        let held = self.forged.iter().filter(|(ca, _)| is_held(ca));
        held.map(|(_, forgery)| *forgery).collect()
    }

    /// Invariant 3: checks every replica that serves a certificate with every API server.
    pub(super) fn check(&self) -> Checked {
        if self.is_ca_lost {
            return Ok(());
        }
        for (index, replica) in self.replicas.iter().enumerate() {
            let Some(served) = &replica.served else { continue };
            // A replica whose clock is behind takes a backup for valid, until it is renewed.
            let is_valid = self.is_secret_lost || !served.leaf.certificate.has_ended(self.now);
            prop_assert!(is_valid, "replica {index} serves an expired certificate");
            for webhook in &self.webhooks {
                let late = webhook.late.iter().map(|(bundle, ..)| bundle);
                for bundle in [&webhook.bundle].into_iter().chain(late) {
                    let cas = Certificate::of_pem(bundle);
                    // One that may not be written verifies nothing once its CAs have ended.
                    let is_last =
                        |ca: &Certificate| ca.has_ended(self.now + MAX_SKEW + LAST_SECONDS + 2);
                    let is_over = webhook.is_forbidden && cas.iter().all(is_last);
                    let seconds = self.now - BEGIN;
                    prop_assert!(
                        webhook.is_overwritten || is_over || cas.contains(&served.ca),
                        "replica {index} is not verified at {seconds} s by {} CAs",
                        cas.len()
                    );
                }
            }
        }
        Ok(())
    }

    /// Invariants 4 and 5.
    pub(super) fn check_strangers(&self) -> Checked {
        let Some(state) = self.state() else { return Ok(()) };
        let is_settled = self.replicas[0].unsettled_until <= self.now;
        let is_forged = |ca| self.forged.iter().any(|(forged, _)| forged == ca);
        prop_assert!(!state.cas().any(is_forged), "the Secret has a forged CA");
        let may_be = |forgery: &Forgery| !is_settled && *forgery == Forgery::Plain;
        prop_assert!(self.published_forgeries().iter().all(may_be), "a forged CA is published");
        for ca in self.webhooks.iter().flat_map(|webhook| Certificate::of_pem(&webhook.bundle)) {
            prop_assert!(!state.revoked.has(&ca), "a revoked CA is published");
        }
        prop_assert!(!state.cas().any(|ca| state.revoked.has(ca)), "a revoked CA is kept");
        Ok(())
    }
}
