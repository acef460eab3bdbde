//! Documents with hostile text at each place in turn.

use serde_json::{Map, Value};

/// The tree once for each of its strings and keys, with one of the texts behind it or, every second
/// time, the other one in place of it.
pub(super) fn mutants(tree: &Value, [behind, instead]: [&str; 2]) -> Vec<Value> {
    let mut mutants = Vec::new();
    loop {
        let place = mutants.len();
        let mut change = |old: &str| match place % 2 {
            0 => format!("{old}{behind}"),
            _ => instead.to_owned(),
        };
        let mut left = Some(place);
        let mutant = with(tree, &mut left, &mut change);
        if left.is_some() {
            return mutants;
        }
        mutants.push(mutant);
    }
}

/// The tree with the string or key changed that `left` counts down to; it is `None` then.
fn with(tree: &Value, left: &mut Option<usize>, change: &mut impl FnMut(&str) -> String) -> Value {
    match tree {
        Value::String(old) if is_here(left) => change(old).into(),
        Value::Array(items) => items.iter().map(|item| with(item, left, change)).collect(),
        Value::Object(map) => {
            let mut out = Map::new();
            for (key, value) in map {
                let key = if is_here(left) { change(key) } else { key.clone() };
                out.insert(key, with(value, left, change));
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

fn is_here(left: &mut Option<usize>) -> bool {
    let is_here = *left == Some(0);
    *left = left.and_then(|left| left.checked_sub(1));
    is_here
}
