//! What other writers do in the model.

use super::*;

/// The beginning of a certificate that has no end.
const UNFINISHED: &[u8] = b"-----BEGIN CERTIFICATE-----\nAAAA\n";
/// When a CA that begins later is made, in seconds from now: more than twice the difference of clocks
/// that is allowed, of which one is taken off its beginning.
const LATER: i64 = 3 * 3600;

impl World {
    /// A CA of others, for a hundred years.
    fn forge(&mut self, forgery: Forgery) -> Ca {
        let century = Duration::from_hours(876_000);
        let made = self.now + if forgery == Forgery::Later { LATER } else { 0 };
        let forged = Ca::make(made, century).expect("a CA can be made");
        self.forged.push((forged.certificate.clone(), forgery));
        forged
    }

    pub(super) fn forge_bundle(&mut self, index: usize, forgery: Forgery) {
        let mut bundle = self.webhooks[index].bundle.clone();
        if forgery == Forgery::Hidden {
            bundle.extend(UNFINISHED);
        }
        bundle.extend(self.forge(forgery).certificate.pem().into_bytes());
        let is_overwritten = self.webhooks[index].is_overwritten;
        self.set_bundle(index, bundle, true);
        self.webhooks[index].is_overwritten = is_overwritten;
    }

    pub(super) fn forge_secret(&mut self) -> Checked {
        let Some(state) = self.state().cloned() else { return Ok(()) };
        let forged = self.forge(Forgery::Plain);
        let read = self.written(&state, |data| {
            data.entry("ca.crt".to_owned()).or_default().extend(forged.certificate.pem().bytes());
            data.insert("next-ca.key".to_owned(), forged.key.into_bytes());
        });
        prop_assert!(state.cas().all(|ca| read.cas().any(|known| known == ca)), "a CA is lost");
        prop_assert!(
            read.cas().all(|ca| state.cas().any(|known| known == ca)),
            "a forged CA is read"
        );
        self.set_secret(Secret::Good(Box::new(read)));
        Ok(())
    }

    pub(super) fn revoke(&mut self, index: usize) {
        let Some(state) = self.state().cloned() else { return };
        let Some(ca) = state.cas().nth(index) else { return };
        let read = self.written(&state, |data| {
            let text = data.entry(revoked::KEY.to_owned()).or_default();
            text.extend(format!("\n{}", ca.fingerprint()).bytes());
        });
        self.revoked.push(ca.clone());
        self.is_ca_lost = true;
        self.set_secret(Secret::Good(Box::new(read)));
    }

    /// What is read of a Secret that others changed.
    pub(super) fn written(&self, state: &State, change: impl FnOnce(&mut Data)) -> State {
        let mut data = Data::new();
        state.encode(&mut data).expect("the CA can sign");
        change(&mut data);
        State::decode(&data, &self.terms).expect("the state must be valid")
    }

    pub(super) fn lose(&mut self, secret: Secret) {
        self.is_secret_lost = true;
        self.set_secret(secret);
    }
}
