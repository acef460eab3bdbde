//! `merge` of sprig. Go: `dario.cat/mergo` 1.0.

use crate::{
    context::{MAX_DEPTH, STEP_ITEMS},
    function::{Call, Outcome},
    text::Text,
    value::{Element, Entries, Map, Value},
};

/// Sets a key of a map.
pub(super) fn set(
    call: &mut Call<'_, '_>,
    target: &Map,
    key: &Text,
    value: Value,
) -> Result<(), String> {
    let looked_through = target.set(key.clone(), value)?;
    call.spend(looked_through / STEP_ITEMS)
}

/// Merges the maps after the first into the first.
pub(super) fn run(call: &mut Call<'_, '_>, overwrite: bool) -> Outcome {
    let mut target = call.map(0);
    if target.is_nil() {
        target = Map::new(Entries::new());
    }
    for index in 1..call.count() {
        let source = call.map(index);
        merge(call, &target, &source, overwrite, 0)?;
    }
    Ok(target.into())
}

fn merge(
    call: &mut Call<'_, '_>,
    target: &Map,
    source: &Map,
    overwrite: bool,
    depth: usize,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("values are nested deeper than {MAX_DEPTH} levels"));
    }
    // A map merged into itself stays as it is.
    if target.identity() == source.identity() {
        return Ok(());
    }
    for (key, value) in source.entries().iter() {
        call.spend(1)?;
        let found = target.get(key);
        // mergo writes nil only where it overwrites.
        if matches!(value, Value::Nil) {
            if overwrite {
                set(call, target, key, Value::Nil)?;
            }
            continue;
        }
        if let (Some(Value::Map(inner)), Value::Map(value)) = (&found, value)
            && !inner.is_empty()
        {
            // Labels and annotations are shared with the pod: a merged copy takes their place.
            if matches!(inner.element(), Element::Text) && inner.is_frozen() {
                set(call, target, key, merged_texts(inner, value, overwrite))?;
            } else {
                merge(call, inner, value, overwrite, depth + 1)?;
            }
            continue;
        }
        let is_set = found.as_ref().is_some_and(Value::is_true);
        if overwrite || !is_set {
            set(call, target, key, value.clone())?;
        }
    }
    Ok(())
}

/// A `map[string]string` with the texts of another map.
fn merged_texts(target: &Map, source: &Map, overwrite: bool) -> Value {
    let mut entries = target.entries().as_ref().clone();
    for (key, value) in source.entries().iter().filter(|(_, value)| matches!(value, Value::Text(_)))
    {
        let is_set = entries.get(key).is_some_and(Value::is_true);
        if overwrite || !is_set {
            entries.insert(key.clone(), value.clone());
        }
    }
    Map::of("string", Element::Text, entries).into()
}
