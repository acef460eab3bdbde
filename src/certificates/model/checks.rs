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

    /// Invariants 1 and 2 of a write of the Secret.
    pub(super) fn check_secret(&self, leader: usize, new: &State, read: &Read) -> Checked {
        let Some(old) = self.state() else { return Ok(()) };
        let [before, after] = [old, new].map(|it| it.cas().cloned().collect::<Vec<_>>());
        self.check_kept(leader, &before, &after)?;
        let is_restored =
            self.replicas[leader].memory.as_ref().is_some_and(|it| old.is_older_than(it));
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
        prop_assert!(!state.cas().any(|ca| self.forged.contains(ca)), "the Secret has a forged CA");
        for ca in self.webhooks.iter().flat_map(|it| Certificate::of_pem(&it.bundle)) {
            prop_assert!(!is_settled || !self.forged.contains(&ca), "a forged CA is published");
            prop_assert!(!state.revoked.has(&ca), "a revoked CA is published");
        }
        prop_assert!(!state.cas().any(|ca| state.revoked.has(ca)), "a revoked CA is kept");
        Ok(())
    }
}
