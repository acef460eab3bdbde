//! Fields of an overlay are laid on an object: a pod, a container, an entry of a list.

mod env;
mod list;

use std::collections::{BTreeMap, BTreeSet};

use injectd_merge::schema::{Field, Kind, POD, Struct};
use injectd_templates::{named::NamedList, object::Existing, union};
use serde_json::{Map, Value};

use super::{
    StepOverlay,
    claims::{Claim, Others},
    directive::{self, Directive, PATCH},
    path::{Path, shown},
    same::{is_unset, same},
};

pub(super) use env::{arrange_all, names_others};

/// No exceptions for variables.
pub(super) static NO_EXCEPTIONS: BTreeMap<String, Existing> = BTreeMap::new();

/// The kind of a field that the table does not know.
static ANY: Kind = Kind::Any;

/// How an overlay is laid on an object.
#[derive(Debug)]
pub(super) struct Layer<'a> {
    /// What happens to what somebody else wrote.
    pub(super) existing: Existing,
    /// Exceptions for variables, by name.
    pub(super) existing_env: &'a BTreeMap<String, Existing>,
    /// Whether new variables are put in front.
    pub(super) env_first: bool,
    /// Whether all that the overlay meets is the template's: it is merged.
    pub(super) is_own: bool,
    /// Whether `$patch` may remove what is not the template's.
    pub(super) may_remove: bool,
    /// Places that the template wrote, if they are recorded.
    pub(super) written: Option<&'a mut BTreeSet<Path>>,
    /// Places that had all that the steps of the template would write, if that is known.
    pub(super) met: Option<&'a BTreeSet<Path>>,
    /// What is known about later templates and rules.
    pub(super) others: Others<'a>,
    /// The later steps of the template.
    pub(super) following: &'a [&'a StepOverlay<'a>],
    /// Where the object is.
    pub(super) place: Path,
}

/// What a place can hold.
#[derive(Clone, Copy)]
struct Slot {
    kind: &'static Kind,
    /// Whether zero is a value and not absence.
    is_pointer: bool,
}

impl Slot {
    fn of(field: Option<&'static Field>) -> Self {
        match field {
            Some(field) => Self { kind: &field.kind, is_pointer: field.pointer },
            // Of a field that is not known, zero may mean something.
            None => Self { kind: &ANY, is_pointer: true },
        }
    }
}

impl Layer<'_> {
    /// A layer on what the template put there.
    pub(super) fn own(place: Path) -> Self {
        Layer {
            existing: Existing::Replace,
            existing_env: &NO_EXCEPTIONS,
            env_first: false,
            is_own: true,
            may_remove: true,
            written: None,
            met: None,
            others: Others::default(),
            following: &[],
            place,
        }
    }

    /// Lays the fields of an overlay on an object of a type.
    pub(super) fn fields(
        &mut self,
        current: &mut Map<String, Value>,
        overlay: &Map<String, Value>,
        types: &'static Struct,
    ) -> Result<(), String> {
        let mut fields = overlay.iter().filter(|(key, _)| *key != PATCH);
        fields.try_for_each(|(key, value)| self.one(current, key, value, types))
    }

    /// Lays a field of an overlay on an object of a type.
    pub(super) fn one(
        &mut self,
        current: &mut Map<String, Value>,
        key: &str,
        value: &Value,
        types: &'static Struct,
    ) -> Result<(), String> {
        self.place.push(key.to_owned());
        let removes = directive::of(value) == Some(Directive::Delete);
        if removes || self.makes_room(current, key, types)? {
            self.field(current, key, value, types.field(key))?;
        }
        self.place.pop();
        Ok(())
    }

    /// Whether a field may be laid here: what cannot stay beside it is removed, is kept, or is a failure.
    fn makes_room(
        &mut self,
        current: &mut Map<String, Value>,
        key: &str,
        types: &'static Struct,
    ) -> Result<bool, String> {
        let rivals: Vec<_> = union::rivals(types, key, current).cloned().collect();
        if rivals.is_empty() {
            return Ok(true);
        }
        match self.existing_here() {
            Existing::Keep => return Ok(false),
            // A later turn put it there, in the place of what this one writes.
            Existing::Fail if rivals.iter().all(|rival| self.is_replaced_by(rival)) => {
                return Ok(false);
            }
            Existing::Fail => return Err(self.met()),
            Existing::Replace => {}
        }
        for rival in rivals {
            current.shift_remove(&rival);
        }
        Ok(true)
    }

    /// Whether a later turn writes another field of the object at this place.
    fn is_replaced_by(&self, rival: &str) -> bool {
        let mut place = self.place.clone();
        place.pop();
        place.push(rival.to_owned());
        self.others.has_within(&place, Claim::Replaced)
    }

    fn field(
        &mut self,
        current: &mut Map<String, Value>,
        key: &str,
        value: &Value,
        field: Option<&'static Field>,
    ) -> Result<(), String> {
        let slot = Slot::of(field);
        match (slot.kind, value) {
            (Kind::Struct(_) | Kind::Map(..), Value::Object(_)) => {
                self.object(current, key, value, slot)
            }
            (Kind::List(_), Value::Array(entries)) => match field.and_then(NamedList::of) {
                Some(list) => self.list(current, key, entries, list),
                None => self.leaf(current, key, value, slot),
            },
            _ => self.leaf(current, key, value, slot),
        }
    }

    fn object(
        &mut self,
        current: &mut Map<String, Value>,
        key: &str,
        value: &Value,
        slot: Slot,
    ) -> Result<(), String> {
        if directive::of(value).is_some() {
            return self.directed(current, key, value, slot.kind);
        }
        match (slot.kind, current.get_mut(key), value) {
            (Kind::Struct(inner), Some(Value::Object(current)), Value::Object(overlay)) => {
                self.fields(current, overlay, inner.get())
            }
            (Kind::Map(_, inner), Some(Value::Object(current)), Value::Object(overlay)) => {
                for (key, value) in overlay {
                    self.place.push(key.clone());
                    // An empty text is a value of a map, not its absence.
                    self.leaf(current, key, value, Slot { kind: inner, is_pointer: true })?;
                    self.place.pop();
                }
                Ok(())
            }
            _ => self.leaf(current, key, value, slot),
        }
    }

    /// An object of the overlay with `$patch`.
    fn directed(
        &mut self,
        current: &mut Map<String, Value>,
        key: &str,
        value: &Value,
        kind: &'static Kind,
    ) -> Result<(), String> {
        let removes = directive::of(value) == Some(Directive::Delete);
        let new = (!removes).then(|| directive::plain(value));
        let met = current.get(key).filter(|met| !met.is_null());
        let is_later = removes && met.is_some() && self.others.has(&self.place, Claim::Written);
        // What later turns write may be there: what this one removes was removed before.
        let expected = new.as_ref().unwrap_or(&Value::Null);
        let is_besides = |met| self.others.is_besides(met, expected, &self.place, kind);
        if is_later || met.map_or(removes, is_besides) {
            self.others.claim(&self.place, Claim::Replaced);
        }
        if is_later || met == new.as_ref() {
            return Ok(());
        }
        if met.is_some() {
            self.check_removal()?;
        }
        match new {
            Some(new) => self.set(current, key, new),
            None => drop(current.shift_remove(key)),
        }
        Ok(())
    }

    /// A value that is kept or replaced as a whole.
    fn leaf(
        &mut self,
        current: &mut Map<String, Value>,
        key: &str,
        value: &Value,
        slot: Slot,
    ) -> Result<(), String> {
        let new = directive::plain(value);
        let Some(met) = current.get(key).filter(|met| !is_unset(met, slot.is_pointer)) else {
            // An empty object that is left of directives is nothing to add.
            let is_empty = is_unset(&new, slot.is_pointer && new == *value);
            if !is_empty || self.is_own && !current.contains_key(key) {
                self.set(current, key, new);
            }
            return Ok(());
        };
        let is_same = same(met, &new, slot.kind);
        self.claim(is_same, self.existing);
        if is_same {
            return Ok(());
        }
        match self.existing_here() {
            Existing::Keep => {}
            Existing::Replace => self.set(current, key, new),
            Existing::Fail => return Err(self.met()),
        }
        Ok(())
    }

    fn set(&mut self, current: &mut Map<String, Value>, key: &str, new: Value) {
        current.insert(key.to_owned(), new);
        self.write();
    }

    /// Records that the template wrote this place.
    fn write(&mut self) {
        if let Some(written) = &mut self.written {
            written.insert(self.place.clone());
        }
    }

    /// Whether the template wrote this place, or what it is in.
    fn is_written(&self) -> bool {
        let has = |end: usize| {
            let place = self.place.get(..end).unwrap_or_default();
            self.written.as_ref().is_some_and(|written| written.contains(place))
        };
        self.is_own || (1..=self.place.len()).any(has)
    }

    /// What happens to the other value at this place.
    fn existing_here(&self) -> Existing {
        match self.existing {
            _ if self.is_written() || self.is_met() => Existing::Replace,
            Existing::Replace if self.is_label() => Existing::Keep,
            existing => self.unless_claimed(existing),
        }
    }

    /// Whether the steps of the template together would write what is at this place.
    fn is_met(&self) -> bool {
        self.met.is_some_and(|met| met.contains(&self.place))
    }

    /// What a later turn replaces anyway is no failure, nor is what a later step of the template removes.
    fn unless_claimed(&self, existing: Existing) -> Existing {
        if existing != Existing::Fail {
            return existing;
        }
        let is_claimed = self.others.records || self.others.has(&self.place, Claim::Replaced);
        if is_claimed || self.is_removed_later() { Existing::Keep } else { Existing::Fail }
    }

    fn is_removed_later(&self) -> bool {
        let types = POD.as_struct().expect("a Pod must be a struct");
        self.following.iter().any(|step| directive::removes(step.overlay, &self.place, types))
    }

    /// Records that this place has what the template would write there.
    fn claim(&self, is_same: bool, existing: Existing) {
        // A later step of the template may write another value.
        let is_final = if self.met.is_some() { self.is_met() } else { is_same };
        let claim = match existing {
            Existing::Replace if !self.is_label() => Claim::Replaced,
            _ => Claim::Written,
        };
        if is_final && !self.is_own {
            self.others.claim(&self.place, claim);
        }
    }

    fn is_label(&self) -> bool {
        matches!(&self.place[..], [metadata, labels, ..] if metadata == "metadata" && labels == "labels")
    }

    /// Whether `$patch` may remove what is at this place.
    fn check_removal(&self) -> Result<(), String> {
        let place = shown(&self.place);
        if self.is_written() {
            return Ok(());
        }
        if self.is_label() {
            return Err(format!(
                "{place}: labels of a pod can only be added; remove `$patch` there"
            ));
        }
        if self.may_remove {
            return Ok(());
        }
        Err(format!(
            "{place}: `$patch` of a SidecarTemplate removes only what the template added, and this \
             is not its own; a ClusterSidecarTemplate may remove it"
        ))
    }

    /// The text of a denial because of `existing: Fail`.
    fn met(&self) -> String {
        let place = shown(&self.place);
        format!(
            "{place}: the pod has another value there, and `existing` is Fail; remove it from the pod, \
             or set `existing` to Keep or Replace"
        )
    }
}
