//! What later templates and rules leave in a pod as it is, so that earlier ones do so, too.
//!
//! A pod without its mark has what all templates wrote together. A template that replaces what an earlier one
//! wrote is behind it again: what the pod has there is no conflict for the earlier one, and is not removed by
//! it. So injecting such a pod again changes nothing.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use injectd_merge::schema::{Kind, POD, Struct};
use injectd_templates::named::NamedList;
use serde_json::Value;

use super::{
    layer::{self, Path},
    section::LISTS,
};

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

impl Others<'_> {
    /// Records that a place has what would be written there.
    pub(super) fn claim(&self, place: &[String], claim: Claim) {
        let Some(claims) = self.claims.filter(|_| self.records) else { return };
        let mut claims = claims.0.borrow_mut();
        let turns = claims.entry(place.to_vec()).or_default();
        let turn = Some(self.turn);
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

    /// An entry of a list of containers or volumes without what later turns replace in it.
    pub(super) fn without_replaced(
        &self,
        entry: &Value,
        place: &[String],
        types: &'static Struct,
    ) -> Value {
        let mut entry = entry.clone();
        let Some(claims) = self.claims else { return entry };
        for (claimed, turns) in claims.0.borrow().iter() {
            if let Some(rest) = claimed.strip_prefix(place)
                && turns.replaced > Some(self.turn)
            {
                remove(&mut entry, rest, types);
            }
        }
        entry
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

/// Places outside of containers and volumes that have what is expected.
pub(super) fn same_places(pod: &Value, expected: &Value) -> BTreeSet<Path> {
    let types = POD.as_struct().expect("a Pod must be a struct");
    let mut places = Vec::new();
    leaves(expected, types, &mut Path::new(), &mut places);
    let is_same = |place: &Path| at(pod, place, types) == at(expected, place, types);
    places.into_iter().filter(is_same).collect()
}

/// The places in an object that are kept or replaced as a whole.
fn leaves(object: &Value, types: &'static Struct, place: &mut Path, found: &mut Vec<Path>) {
    for (key, value) in object.as_object().into_iter().flatten() {
        let field = types.field(key);
        place.push(key.clone());
        let named = field.and_then(NamedList::of);
        match (field.map(|field| &field.kind), value, named) {
            (Some(Kind::Struct(inner)), Value::Object(_), _) => {
                leaves(value, inner.get(), place, found);
            }
            (Some(Kind::Map(..)), Value::Object(map), _) => {
                found.extend(map.keys().map(|key| below(place, key.clone())));
            }
            (_, Value::Array(_), Some(_)) if is_of_own(place) => {}
            (_, Value::Array(entries), Some(list)) => {
                let names = entries.iter().filter_map(|entry| list.name(entry));
                found.extend(names.map(|name| below(place, layer::entry(&name))));
            }
            _ => found.push(place.clone()),
        }
        place.pop();
    }
}

/// Whether a list has containers or volumes.
fn is_of_own(place: &[String]) -> bool {
    matches!(place, [spec, list] if spec == "spec" && LISTS.iter().any(|known| known.key() == list))
}

fn below(place: &[String], key: String) -> Path {
    place.iter().cloned().chain([key]).collect()
}

/// What is at a place of an object.
fn at<'v>(object: &'v Value, place: &[String], types: &'static Struct) -> Option<&'v Value> {
    let [key, rest @ ..] = place else { return Some(object) };
    let (value, field) = (object.get(key)?, types.field(key));
    let [next, after @ ..] = rest else { return Some(value) };
    match &field?.kind {
        Kind::Struct(inner) => at(value, rest, inner.get()),
        Kind::Map(..) => value.get(next),
        Kind::List(_) => {
            let list = NamedList::of(field?)?;
            let is_named =
                |entry: &&Value| list.name(entry).is_some_and(|name| layer::entry(&name) == *next);
            at(value.as_array()?.iter().find(is_named)?, after, list.types)
        }
        _ => None,
    }
}

/// Removes what is at a place of an object.
fn remove(object: &mut Value, place: &[String], types: &'static Struct) {
    let (Value::Object(fields), [key, rest @ ..]) = (object, place) else { return };
    if rest.is_empty() {
        fields.shift_remove(key);
        return;
    }
    let Some(field) = types.field(key) else { return };
    match (&field.kind, fields.get_mut(key)) {
        (Kind::Struct(inner), Some(value)) => remove(value, rest, inner.get()),
        (Kind::Map(..), Some(Value::Object(map))) => {
            map.shift_remove(&rest[0]);
        }
        (Kind::List(_), Some(Value::Array(entries))) => {
            let Some(list) = NamedList::of(field) else { return };
            let is_named =
                |entry: &Value| list.name(entry).is_some_and(|name| layer::entry(&name) == rest[0]);
            if rest.len() == 1 {
                entries.retain(|entry| !is_named(entry));
            } else if let Some(entry) = entries.iter_mut().find(|entry| is_named(entry)) {
                remove(entry, &rest[1..], list.types);
            }
        }
        _ => {}
    }
}
