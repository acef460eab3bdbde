//! Which items of a list stay, which are new.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

/// With so many new items, an item that goes is compared.
// Each with each would be quadratic in a list of which everything was replaced.
const MAX_COMPARED: usize = 16;

/// A step from the items of one list to those of another. Indexes are of the old and the new list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Keep(usize, usize),
    Remove(usize),
    Insert(usize),
}

/// The steps, in the order of the new list. Items with the same name, or without one the same value,
/// are the same item; linear in the items.
pub(super) fn align(before: &[Value], after: &[Value]) -> Vec<Step> {
    let names: Vec<String> = before.iter().map(name).collect();
    let mut places: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        places.entry(name).or_default().push_back(index);
    }
    let mut steps = Vec::new();
    let mut next = 0;
    for (new, item) in after.iter().enumerate() {
        let place = places.get_mut(name(item).as_str()).and_then(VecDeque::pop_front);
        match place.filter(|&old| old >= next) {
            Some(old) => {
                steps.extend((next..old).map(Step::Remove));
                steps.push(Step::Keep(old, new));
                next = old + 1;
            }
            None => steps.push(Step::Insert(new)),
        }
    }
    steps.extend((next..before.len()).map(Step::Remove));
    with_alike(&steps, before, after)
}

/// The steps, where items that are alike and go and come at the same place are the same item.
fn with_alike(steps: &[Step], before: &[Value], after: &[Value]) -> Vec<Step> {
    let mut found = Vec::with_capacity(steps.len());
    for run in steps.split_inclusive(|step| matches!(step, Step::Keep(..))) {
        let (kept, run) = match run.split_last() {
            Some((kept @ Step::Keep(..), run)) => (Some(*kept), run),
            _ => (None, run),
        };
        let inserted = |step: &Step| match step {
            Step::Insert(new) => Some(*new),
            _ => None,
        };
        let mut new: VecDeque<usize> = run.iter().filter_map(inserted).collect();
        for step in run {
            let Step::Remove(old) = *step else { continue };
            let near = new.iter().take(MAX_COMPARED);
            let alike = near.copied().position(|new| are_alike(&before[old], &after[new]));
            match alike {
                Some(place) => {
                    found.extend(new.drain(..place).map(Step::Insert));
                    found.extend(new.pop_front().map(|new| Step::Keep(old, new)));
                }
                None => found.push(Step::Remove(old)),
            }
        }
        found.extend(new.into_iter().map(Step::Insert));
        found.extend(kept);
    }
    found
}

/// Whether a mapping or list without a name has a part of another one.
fn are_alike(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) if !old.contains_key("name") => {
            let alike = |old, new| old == new || are_alike(old, new);
            old.iter().any(|(key, old)| new.get(key).is_some_and(|new| alike(old, new)))
        }
        (Value::Array(old), Value::Array(new)) => {
            old.iter().zip(new).any(|(old, new)| old == new || are_alike(old, new))
        }
        _ => false,
    }
}

/// What distinguishes an item from its neighbours: the name of a container, the kind and name of an object,
/// else all of it.
fn name(item: &Value) -> String {
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str);
    if let Some(name) = text("/name") {
        return format!("name {name}");
    }
    let object = ["/kind", "/metadata/namespace", "/metadata/name"].map(text);
    if object[0].is_some() || item.get("metadata").is_some() {
        return format!("object {object:?}");
    }
    item.to_string()
}

#[cfg(test)]
mod tests {
    use super::{Step::*, *};
    use serde_json::json;

    fn steps(before: &Value, after: &Value) -> Vec<Step> {
        align(before.as_array().expect("list"), after.as_array().expect("list"))
    }

    #[test]
    fn items_of_the_same_name_are_kept() {
        let found = steps(
            &json!([{"name": "a", "x": 1}, {"name": "b"}]),
            &json!([{"name": "new"}, {"name": "a", "x": 2}, {"name": "b"}, 5]),
        );
        assert_eq!(found, [Insert(0), Keep(0, 1), Keep(1, 2), Insert(3)]);
        assert_eq!(
            steps(&json!([1, 2, 3]), &json!([3, 1])),
            [Remove(0), Remove(1), Keep(2, 0), Insert(1)]
        );
        assert_eq!(
            steps(&json!([{"port": 1}, 2]), &json!([0, {"port": 1, "more": 2}, 2])),
            [Insert(0), Keep(0, 1), Keep(1, 2)]
        );
    }

    #[test]
    fn objects_of_a_list_are_known_by_kind_and_name() {
        let web = |image: &str| json!({"kind": "Pod", "metadata": {"name": "web"}, "image": image});
        let found = steps(&json!([web("a"), web("b")]), &json!([web("c"), web("d")]));
        assert_eq!(found, [Keep(0, 0), Keep(1, 1)]);
    }
}
