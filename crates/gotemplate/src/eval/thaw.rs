//! Copies of the maps of the data for templates that change maps.
//!
//! In Go, `set .Values …` changes the values for all renderings that follow. Here each rendering
//! has its own copy, made when it first sees the map.

use std::collections::HashMap;

use crate::{
    context::{Context, MAX_DEPTH},
    value::{List, Map, Value},
};

/// The copies by the places of the originals, which are kept so that no place is used again.
#[derive(Debug, Default)]
pub(super) struct Thaw {
    copies: HashMap<usize, (Value, Value)>,
    depth: usize,
}

impl Thaw {
    /// The value with copies of its maps.
    pub(super) fn value(
        &mut self,
        value: Value,
        context: &mut Context<'_>,
    ) -> Result<Value, String> {
        let identity = match &value {
            Value::Map(map) if map.is_frozen() && map.element().is_any() => map.identity(),
            Value::List(list) if list.iter().any(is_container) => list.identity(),
            _ => return Ok(value),
        };
        // One copy of each: a change that is made by one way to a map must be seen by every other
        // way.
        if let Some((_, copy)) = self.copies.get(&identity) {
            return Ok(copy.clone());
        }
        if self.depth >= MAX_DEPTH {
            return Err(format!("the data is nested deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let copy = match &value {
            Value::Map(map) => {
                context.spend(map.len())?;
                let mut entries = map.entries().as_ref().clone();
                for value in entries.values_mut() {
                    *value = self.value(std::mem::take(value), context)?;
                }
                Value::Map(Map::new(entries))
            }
            Value::List(list) => {
                context.spend(list.len())?;
                let items: Result<Vec<_>, _> =
                    list.iter().map(|item| self.value(item.clone(), context)).collect();
                Value::List(List::of(list.element(), items?))
            }
            _ => value.clone(),
        };
        self.depth -= 1;
        self.copies.insert(identity, (value, copy.clone()));
        Ok(copy)
    }
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::List(_))
}
