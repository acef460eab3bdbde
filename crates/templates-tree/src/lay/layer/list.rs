//! Entries of a list with names: variables, mounts, ports, host aliases.

use injectd_templates::{named::NamedList, object::Existing};
use serde_json::{Map, Value};

use super::{Layer, env};
use crate::lay::{
    claims::Claim,
    directive::{self, Directive},
    path::{self, shown},
    same::same_fields,
};

impl Layer<'_> {
    /// Lays entries of an overlay on a list of an object.
    pub(super) fn list(
        &mut self,
        current: &mut Map<String, Value>,
        key: &str,
        overlay: &[Value],
        list: NamedList,
    ) -> Result<(), String> {
        let mut entries = match current.get_mut(key) {
            Some(Value::Array(entries)) => std::mem::take(entries),
            _ => Vec::new(),
        };
        let was_empty = entries.is_empty();
        if directive::replaces_list(overlay) {
            self.replace_list(&mut entries, overlay, list)?;
        } else {
            self.entries(&mut entries, overlay, list)?;
        }
        match current.get_mut(key) {
            _ if entries.is_empty() && !was_empty => {
                current.shift_remove(key);
            }
            Some(slot @ Value::Array(_)) => *slot = entries.into(),
            _ if entries.is_empty() => {}
            _ => {
                current.insert(key.to_owned(), entries.into());
            }
        }
        Ok(())
    }

    fn replace_list(
        &mut self,
        entries: &mut Vec<Value>,
        overlay: &[Value],
        list: NamedList,
    ) -> Result<(), String> {
        let marked = overlay.iter().filter(|entry| !directive::is_mark(entry));
        let new: Vec<Value> = marked.map(directive::plain).collect();
        let of_earlier = entries.iter().filter(|entry| !self.is_written_later(entry, list));
        if of_earlier.eq(&new) {
            self.others.claim(&self.place, Claim::Replaced);
        }
        if *entries != new {
            if !entries.is_empty() {
                self.check_removal()?;
            }
            *entries = new;
            self.write();
        }
        Ok(())
    }

    /// Whether a later turn would write what an entry is.
    fn is_written_later(&self, entry: &Value, list: NamedList) -> bool {
        let name = list.name(entry);
        name.is_some_and(|name| {
            let place = [&self.place[..], &[path::entry(&name)]].concat();
            self.others.has(&place, Claim::Written)
        })
    }

    fn entries(
        &mut self,
        entries: &mut Vec<Value>,
        overlay: &[Value],
        list: NamedList,
    ) -> Result<(), String> {
        let mut changed = Vec::new();
        // The end of the new variables in front.
        let mut front = (self.env_first && list.is_env()).then_some(0);
        for (name, entry) in self.named(overlay, list)? {
            self.place.push(path::entry(&name));
            let is_changed = match list.position(entries, &name) {
                Some(at) => self.meet(entries, at, entry, list)?,
                None => self.add(entries, entry, &mut front),
            };
            self.place.pop();
            if is_changed {
                changed.push(name);
            }
        }
        if list.is_env() {
            env::arrange(entries, changed);
        }
        Ok(())
    }

    /// Entries of an overlay with their names, each once.
    fn named<'v>(
        &self,
        overlay: &'v [Value],
        list: NamedList,
    ) -> Result<Vec<(String, &'v Value)>, String> {
        let mut named: Vec<(String, &Value)> = Vec::new();
        for entry in overlay {
            let Some(name) = list.name(entry) else {
                let (place, key) = (shown(&self.place), list.key);
                return Err(format!(
                    "{place}: an entry of the overlay has no `{key}`; it needs one"
                ));
            };
            if named.iter().any(|(earlier, _)| *earlier == name) {
                let place = shown(&self.place);
                return Err(format!("{place}: the overlay has two entries {name:?}; rename one"));
            }
            named.push((name, entry));
        }
        Ok(named)
    }

    /// Adds an entry that the list does not have. The answer is whether the list has it now.
    fn add(&mut self, entries: &mut Vec<Value>, entry: &Value, front: &mut Option<usize>) -> bool {
        if directive::of(entry) == Some(Directive::Delete) {
            self.others.claim(&self.place, Claim::Replaced);
            return false;
        }
        let new = directive::plain(entry);
        match front {
            Some(front) => {
                entries.insert((*front).min(entries.len()), new);
                *front += 1;
            }
            None => entries.push(new),
        }
        self.write();
        true
    }

    /// Meets an entry of the same name. The answer is whether it is another one now.
    fn meet(
        &mut self,
        entries: &mut Vec<Value>,
        at: usize,
        entry: &Value,
        list: NamedList,
    ) -> Result<bool, String> {
        let directive = directive::of(entry);
        if directive == Some(Directive::Delete) {
            if self.others.has(&self.place, Claim::Written) {
                self.others.claim(&self.place, Claim::Replaced);
                return Ok(false);
            }
            self.check_removal()?;
            let name = list.name(entry);
            entries.retain(|other| list.name(other) != name);
            return Ok(false);
        }
        let Some(met) = entries.get_mut(at) else { return Ok(false) };
        if directive.is_none() && self.is_written() {
            let before = met.clone();
            self.merge(met, entry, list)?;
            return Ok(*met != before);
        }
        let new = directive::plain(entry);
        let is_same = match (&*met, &new) {
            (Value::Object(met), Value::Object(new)) => same_fields(met, new, list.types),
            (met, new) => met == new,
        };
        let existing = self.existing_of(entry, list);
        self.claim(is_same, existing);
        if is_same {
            return Ok(false);
        }
        match existing {
            _ if self.is_met() => {}
            Existing::Keep => return Ok(false),
            Existing::Fail => return Err(self.met()),
            Existing::Replace => {}
        }
        if directive.is_some() {
            self.check_removal()?;
        }
        *met = new;
        self.write();
        Ok(true)
    }

    fn existing_of(&self, entry: &Value, list: NamedList) -> Existing {
        let name = if list.is_env() { list.name(entry) } else { None };
        let exception = name.and_then(|name| self.existing_env.get(&name));
        match (exception, directive::of(entry)) {
            // A directive says itself that the other value goes.
            (_, Some(_)) => Existing::Replace,
            (Some(existing), None) => self.unless_claimed(*existing),
            (None, None) => self.unless_claimed(self.existing),
        }
    }

    /// Merges an entry with one that is the template's.
    fn merge(&mut self, met: &mut Value, entry: &Value, list: NamedList) -> Result<(), String> {
        let (Value::Object(met), Value::Object(entry)) = (met, entry) else { return Ok(()) };
        self.fields(met, entry, list.types)
    }
}
