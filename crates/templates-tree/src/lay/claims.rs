//! What later templates and rules leave in a pod as it is, so that earlier ones do so, too.
//!
//! A pod without its mark has what all templates wrote together. A template that replaces what an earlier one
//! wrote is behind it again: what the pod has there is no conflict for the earlier one, and is not removed by
//! it. So injecting such a pod again changes nothing.

use std::{cell::RefCell, collections::BTreeMap};

use injectd_merge::schema::{Kind, Struct};
use serde_json::Value;

use super::path::{self, Path};

/// When something is applied to a pod, compared with all else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// Whether it is a rule for what other templates add: these come last.
    pub is_last: bool,
    /// The place of its template among all templates.
    pub template: usize,
    /// The place of a rule in its template, from 1; the overlays come before the rules.
    pub rule: usize,
}

/// What a pod has at a place, and would be written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// Whatever was there would be replaced.
    Replaced,
    /// It would be written if nothing were there.
    Written,
}

/// The last turns that claim a place.
#[derive(Debug, Clone, Copy, Default)]
struct Turns {
    replaced: Option<Turn>,
    written: Option<Turn>,
}

/// Places of a pod that have just what later turns would write.
#[derive(Debug, Default)]
pub struct Claims(RefCell<BTreeMap<Path, Turns>>);

/// What is known about other turns where an overlay is laid.
#[derive(Debug, Clone, Copy, Default)]
pub struct Others<'a> {
    /// Whose turn it is.
    pub turn: Turn,
    /// The claims of later turns; `None` if nothing is claimed.
    pub claims: Option<&'a Claims>,
    /// Whether claims are recorded: nothing is denied then.
    pub records: bool,
}

impl Claims {
    /// Whether nothing is claimed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

impl Others<'_> {
    /// Records that a place has what would be written there.
    pub(super) fn claim(&self, place: &[String], claim: Claim) {
        let Some(claims) = self.claims.filter(|_| self.records) else { return };
        let mut claims = claims.0.borrow_mut();
        let turns = claims.entry(place.to_vec()).or_default();
        let turn = Some(self.turn);
        // What replaces would also write.
        turns.written = turns.written.max(turn);
        if claim == Claim::Replaced {
            turns.replaced = turns.replaced.max(turn);
        }
    }

    /// Whether a later turn claims a place, or what it is in.
    pub(super) fn has(&self, place: &[String], claim: Claim) -> bool {
        let Some(claims) = self.claims else { return false };
        let claims = claims.0.borrow();
        (1..=place.len()).any(|end| {
            let turns = place.get(..end).and_then(|place| claims.get(place));
            turns.is_some_and(|turns| turns.of(claim) > Some(self.turn))
        })
    }

    /// Whether a later turn claims a place, or something in it.
    pub(super) fn has_within(&self, place: &[String], claim: Claim) -> bool {
        let mut has_some = false;
        self.each_later(place, claim, |_| has_some = true);
        has_some
    }

    /// An entry of a list of containers or volumes without what later turns replace in it.
    pub(super) fn without_replaced(
        &self,
        entry: &Value,
        place: &[String],
        types: &'static Struct,
    ) -> Value {
        let mut entry = entry.clone();
        self.each_later(place, Claim::Replaced, |rest| path::remove(&mut entry, rest, types));
        entry
    }

    /// Whether an object has just what is expected, besides what later turns would write in it.
    pub(super) fn is_besides(
        &self,
        object: &Value,
        expected: &Value,
        place: &[String],
        kind: &'static Kind,
    ) -> bool {
        let mut object = object.clone();
        self.each_later(place, Claim::Written, |rest| match (kind, &mut object, rest) {
            (Kind::Struct(types), object, rest) => path::remove(object, rest, types.get()),
            (Kind::Map(..), Value::Object(entries), [key, ..]) => drop(entries.shift_remove(key)),
            _ => {}
        });
        path::without_empty(object) == path::without_empty(expected.clone())
    }

    /// Calls a function with the claimed places in a place, each without it.
    fn each_later(&self, place: &[String], claim: Claim, mut then: impl FnMut(&[String])) {
        let Some(claims) = self.claims else { return };
        for (claimed, turns) in claims.0.borrow().iter() {
            if let Some(rest) = claimed.strip_prefix(place)
                && turns.of(claim) > Some(self.turn)
            {
                then(rest);
            }
        }
    }
}

impl Turns {
    fn of(&self, claim: Claim) -> Option<Turn> {
        match claim {
            Claim::Replaced => self.replaced,
            Claim::Written => self.written,
        }
    }
}
