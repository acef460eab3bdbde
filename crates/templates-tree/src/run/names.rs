//! A name twice is an error: in a list of an overlay, and among the items of a `forEach`.

use std::collections::BTreeSet;

use injectd_merge::schema::{Kind, Struct};
use injectd_templates::named::NamedList;
use serde_json::{Map, Value};

use crate::lay::{entry, shown};

/// The entries of lists that overlays of one step write: places in a pod or a container.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Those of the items before.
    earlier: BTreeSet<Vec<String>>,
    /// Those of the present item.
    present: BTreeSet<Vec<String>>,
    place: Vec<String>,
}

/// Whether an overlay, an object of a type, has no name twice in a list.
pub(super) fn has_each_once(overlay: &Value, types: &'static Struct) -> bool {
    let Value::Object(fields) = overlay else { return true };
    fields.iter().all(|(key, value)| {
        let field = || types.field(key);
        match value {
            Value::Object(_) => match field().map(|field| &field.kind) {
                Some(Kind::Struct(inner)) => has_each_once(value, inner.get()),
                _ => true,
            },
            Value::Array(entries) if !entries.is_empty() => match field().and_then(NamedList::of) {
                Some(list) => has_entries_once(entries, list),
                None => true,
            },
            _ => true,
        }
    })
}

fn has_entries_once(entries: &[Value], list: NamedList) -> bool {
    let mut names = BTreeSet::new();
    let is_new = |entry: &Value, names: &mut BTreeSet<_>| {
        entries.len() == 1 || list.name(entry).is_none_or(|name| names.insert(name))
    };
    entries.iter().all(|entry| is_new(entry, &mut names) && has_each_once(entry, list.types))
}

impl Names {
    /// Adds the entries of the next item's overlay, an object of a type.
    pub(super) fn add(&mut self, overlay: &Value, types: &'static Struct) -> Result<(), String> {
        self.earlier.append(&mut self.present);
        match overlay {
            Value::Object(fields) => self.fields(fields, types),
            _ => Ok(()),
        }
    }

    fn fields(
        &mut self,
        fields: &Map<String, Value>,
        types: &'static Struct,
    ) -> Result<(), String> {
        for (key, value) in fields {
            let Some(field) = types.field(key) else { continue };
            self.place.push(key.clone());
            match (&field.kind, value) {
                (Kind::Struct(inner), Value::Object(fields)) => self.fields(fields, inner.get())?,
                (Kind::List(_), Value::Array(entries)) => {
                    if let Some(list) = NamedList::of(field) {
                        self.list(entries, list)?;
                    }
                }
                _ => {}
            }
            self.place.pop();
        }
        Ok(())
    }

    fn list(&mut self, entries: &[Value], list: NamedList) -> Result<(), String> {
        for value in entries {
            let Some(name) = list.name(value) else { continue };
            self.place.push(entry(&name));
            let place = shown(&self.place);
            if self.earlier.contains(&self.place) {
                return Err(format!(
                    "{place}: another item of forEach has this name already; a name needs a part that \
                     differs, such as tail-${{index}}"
                ));
            }
            if !self.present.insert(self.place.clone()) {
                return Err(format!("{place}: the overlay has this name twice; use another name"));
            }
            if let Value::Object(fields) = value {
                self.fields(fields, list.types)?;
            }
            self.place.pop();
        }
        Ok(())
    }
}
