//! The way from one pod to the other as a JSON patch (RFC 6902).

use std::collections::HashMap;

use injectd_merge::schema::{Kind, POD};
use injectd_templates::named::NamedList;
use serde_json::{Map, Value, json};

/// A JSON patch that makes `after` of `before`; empty if they are equal.
///
/// It adds and removes single entries of lists, and goes into those that stay: entries of lists with names
/// are the same if their names are, other entries if their values are. No list is written again because of
/// an entry. The cost is that of sorting the entries.
#[must_use]
pub fn patch(before: &Value, after: &Value) -> Vec<Value> {
    let mut patch = Patch::default();
    patch.value(before, after, Some(&POD));
    patch.operations
}

#[derive(Default)]
struct Patch {
    /// Where the values are that are compared: a JSON pointer.
    path: String,
    operations: Vec<Value>,
}

impl Patch {
    fn value(&mut self, before: &Value, after: &Value, kind: Option<&'static Kind>) {
        match (before, after) {
            _ if before == after => {}
            (Value::Object(before), Value::Object(after)) => self.object(before, after, kind),
            (Value::Array(before), Value::Array(after)) => {
                let element = match kind {
                    Some(Kind::List(element)) => Some(&**element),
                    _ => None,
                };
                self.list(before, after, &Entries { list: None, kind: element });
            }
            _ => self.push("replace", Some(after)),
        }
    }

    fn object(
        &mut self,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
        kind: Option<&'static Kind>,
    ) {
        for key in before.keys().filter(|key| !after.contains_key(*key)) {
            self.inside(key, |patch| patch.push("remove", None));
        }
        for (key, value) in after {
            let field = match kind {
                Some(Kind::Struct(types)) => types.get().field(key),
                _ => None,
            };
            let inner = match kind {
                Some(Kind::Map(_, inner)) => Some(&**inner),
                _ => field.map(|field| &field.kind),
            };
            self.inside(key, |patch| {
                match (before.get(key), value, field.and_then(NamedList::of)) {
                    (None, ..) => patch.push("add", Some(value)),
                    (Some(Value::Array(before)), Value::Array(after), Some(list)) => {
                        let element = match inner {
                            Some(Kind::List(element)) => Some(&**element),
                            _ => None,
                        };
                        patch.list(before, after, &Entries { list: Some(list), kind: element });
                    }
                    (Some(before), ..) => patch.value(before, value, inner),
                }
            });
        }
    }

    fn list(&mut self, before: &[Value], after: &[Value], entries: &Entries) {
        let kept = kept(&entries.identities(before), &entries.identities(after));
        let mut is_kept = vec![false; before.len()];
        for pair in &kept {
            is_kept[pair.before] = true;
        }
        for at in (0..before.len()).rev().filter(|at| !is_kept[*at]) {
            self.inside(&at.to_string(), |patch| patch.push("remove", None));
        }
        let mut length = kept.len();
        let mut pairs = kept.iter().peekable();
        for (at, value) in after.iter().enumerate() {
            if pairs.next_if(|pair| pair.after == at).is_none() {
                let key = if at == length { "-".to_owned() } else { at.to_string() };
                self.inside(&key, |patch| patch.push("add", Some(value)));
                length += 1;
            }
        }
        for pair in &kept {
            let (before, after) = (&before[pair.before], &after[pair.after]);
            self.inside(&pair.after.to_string(), |patch| patch.value(before, after, entries.kind));
        }
    }

    /// Goes on at a key or an index of the present place.
    fn inside(&mut self, key: &str, go_on: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        go_on(self);
        self.path.truncate(length);
    }

    fn push(&mut self, operation: &str, value: Option<&Value>) {
        let mut entry = json!({"op": operation, "path": self.path});
        if let Some(value) = value {
            entry["value"] = value.clone();
        }
        self.operations.push(entry);
    }
}

/// What the entries of a list are.
struct Entries {
    /// Names of the entries, if they have them.
    list: Option<NamedList>,
    kind: Option<&'static Kind>,
}

impl Entries {
    /// By which entries are known again. Equal ones are counted, so that each is one of its own.
    fn identities(&self, list: &[Value]) -> Vec<(String, usize)> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let identity = |entry: &Value| {
            let name = self.list.and_then(|list| list.name(entry));
            name.unwrap_or_else(|| entry.to_string())
        };
        let counted = list.iter().map(identity).map(|identity| {
            let count = counts.entry(identity.clone()).or_default();
            *count += 1;
            (identity, *count)
        });
        counted.collect()
    }
}

/// An entry that stays: its index before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    before: usize,
    after: usize,
}

/// The entries that stay: as many as have one order in both lists.
fn kept(before: &[(String, usize)], after: &[(String, usize)]) -> Vec<Pair> {
    let places: HashMap<_, _> = before.iter().enumerate().map(|(at, name)| (name, at)).collect();
    let pair = |(after, name)| Some(Pair { before: *places.get(name)?, after });
    let pairs: Vec<Pair> = after.iter().enumerate().filter_map(pair).collect();
    longest_rising(&pairs)
}

/// The longest part of the pairs in which `before` rises; `after` does already.
fn longest_rising(pairs: &[Pair]) -> Vec<Pair> {
    // For each length, the pair with the least end of a part of that length; and for each pair, the one
    // before it.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::new();
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].before < pair.before);
        previous.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut rising = Vec::new();
    let mut next = ends.last().copied();
    while let Some(at) = next {
        rising.push(pairs[at]);
        next = previous[at];
    }
    rising.reverse();
    rising
}
