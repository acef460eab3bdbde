//! Compares upstream's patch and the reference's, value by value.

use serde_json::Value;

use super::{Context, Seen};
use crate::compare::same;

/// A different value.
pub(crate) struct Leaf<'a> {
    /// The place: `linkerd-proxy/env/LINKERD2_PROXY_LOG/value`, `linkerd-init/args/--proxy-uid`,
    /// or the path of an operation without a container.
    pub(crate) place: &'a str,
    /// Upstream's value.
    pub(crate) theirs: &'a Value,
    /// The reference's value.
    pub(crate) ours: &'a Value,
}

/// Replaces upstream's value with ours in every different leaf that `explains` accepts.
pub(crate) fn replace(
    context: &Context<'_>,
    seen: &Seen,
    explains: impl Fn(&Leaf<'_>) -> bool,
) -> Option<Seen> {
    let ours = context.reference.patch.as_ref()?;
    if seen.patch.as_ref() == Some(ours) {
        return None;
    }
    let mut seen = seen.clone();
    for (theirs, ours) in seen.patch.as_mut()?.iter_mut().zip(ours) {
        if theirs["path"] != ours["path"] {
            break;
        }
        let path = ours["path"].as_str().unwrap_or_default().to_owned();
        let place = match ours["value"]["name"].as_str() {
            Some(container) => container.to_owned(),
            None => path,
        };
        walk(&place, &mut theirs["value"], &ours["value"], &explains);
    }
    Some(seen)
}

fn walk(place: &str, theirs: &mut Value, ours: &Value, explains: &impl Fn(&Leaf<'_>) -> bool) {
    match (&mut *theirs, ours) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, ours) in right {
                if let Some(theirs) = left.get_mut(key) {
                    walk(&format!("{place}/{key}"), theirs, ours, explains);
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (theirs, item)) in left.iter_mut().zip(right).enumerate() {
                let step = step(right, at);
                walk(&format!("{place}/{step}"), theirs, item, explains);
            }
        }
        _ => {
            let leaf = Leaf { place, theirs, ours };
            if !same(leaf.theirs, ours) && explains(&leaf) {
                *theirs = ours.clone();
            }
        }
    }
}

/// The path step of a list item: its name, the option before it, or its index.
fn step(list: &[Value], at: usize) -> String {
    if let Some(name) = list[at]["name"].as_str() {
        return name.to_owned();
    }
    let before = at.checked_sub(1).and_then(|before| list[before].as_str());
    match before {
        Some(option) if option.starts_with("--") => option.to_owned(),
        _ => at.to_string(),
    }
}
