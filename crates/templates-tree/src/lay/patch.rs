//! The way from one pod to the other as a JSON patch (RFC 6902).

use std::{borrow::Cow, collections::HashMap, fmt::Write as _};

use injectd_core::json;
use injectd_merge::schema::{Kind, POD};
use injectd_templates::named::{NamedList, has_twice};
use serde_json::{Map, Value};

/// A JSON patch that makes `after` of `before`; empty if they are equal.
///
/// It adds and removes single entries of lists, and goes into those that stay: entries of lists with names
/// are the same if their names are, other entries if their values are. No list is written again because of
/// an entry. The cost is that of sorting the entries.
#[must_use]
pub fn patch(before: &Value, after: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    Patch::new(|operation| operations.push(operation.value())).pod(before, after);
    operations
}

/// The text of that patch; `None` if it is empty.
#[must_use]
pub fn patch_text(before: &Value, after: &Value) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let each = |operation: Operation<'_>| {
        if text.is_empty() {
            text.reserve(USUAL_BYTES);
        }
        text.push(if text.is_empty() { b'[' } else { b',' });
        operation.write(&mut text);
    };
    Patch::new(each).pod(before, after);
    if text.is_empty() {
        return None;
    }
    text.push(b']');
    Some(text)
}

/// Bytes of most patches.
const USUAL_BYTES: usize = 2 << 10;

/// An operation of a patch.
struct Operation<'o> {
    name: &'static str,
    path: &'o str,
    value: Option<&'o Value>,
}

impl Operation<'_> {
    fn value(&self) -> Value {
        let mut entry = serde_json::json!({"op": self.name, "path": self.path});
        if let Some(value) = self.value {
            entry["value"] = value.clone();
        }
        entry
    }

    fn write(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(br#"{"op":""#);
        text.extend_from_slice(self.name.as_bytes());
        text.extend_from_slice(br#"","path":"#);
        json::write_string(text, self.path);
        if let Some(value) = self.value {
            text.extend_from_slice(br#","value":"#);
            write(text, value);
        }
        text.push(b'}');
    }
}

fn write(text: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(value) => json::write_string(text, value),
        Value::Array(items) => {
            text.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                write(text, item);
            }
            text.push(b']');
        }
        Value::Object(fields) => {
            text.push(b'{');
            for (at, (key, field)) in fields.iter().enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                json::write_string(text, key);
                text.push(b':');
                write(text, field);
            }
            text.push(b'}');
        }
        scalar => serde_json::to_writer(text, scalar).expect("a scalar must be JSON"),
    }
}

struct Patch<F> {
    /// Where the values are that are compared: a JSON pointer.
    path: String,
    /// What is done with each operation.
    each: F,
}

/// Bytes of most paths.
const USUAL_PATH: usize = 128;

impl<F: FnMut(Operation<'_>)> Patch<F> {
    fn new(each: F) -> Self {
        Self { path: String::with_capacity(USUAL_PATH), each }
    }

    fn pod(mut self, before: &Value, after: &Value) {
        self.value(before, after, Some(&POD));
    }

    fn value(&mut self, before: &Value, after: &Value, kind: Option<&'static Kind>) {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => self.object(before, after, kind),
            _ if is_equal(before, after) => {}
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
        // Most objects have the keys of before, and new ones behind them.
        let begins =
            before.len() <= after.len() && before.keys().eq(after.keys().take(before.len()));
        if !begins {
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                self.inside(key, |patch| patch.push("remove", None));
            }
        }
        let mut in_order = before.values();
        for (key, value) in after {
            let before = if begins { in_order.next() } else { before.get(key) };
            self.field(key, before, value, kind);
        }
    }

    fn field(
        &mut self,
        key: &str,
        before: Option<&Value>,
        after: &Value,
        kind: Option<&'static Kind>,
    ) {
        let scalar = |value: &Value| !value.is_object() && !value.is_array();
        if before.is_some_and(|before| scalar(before) && before == after) {
            return;
        }
        let field = match kind {
            Some(Kind::Struct(types)) => types.get().field(key),
            _ => None,
        };
        let inner = match kind {
            Some(Kind::Map(_, inner)) => Some(&**inner),
            _ => field.map(|field| &field.kind),
        };
        self.inside(key, |patch| match (before, after, field.and_then(NamedList::of)) {
            (None, ..) => patch.push("add", Some(after)),
            (Some(Value::Array(before)), Value::Array(after), Some(list)) => {
                let element = match inner {
                    Some(Kind::List(element)) => Some(&**element),
                    _ => None,
                };
                patch.list(before, after, &Entries { list: Some(list), kind: element });
            }
            (Some(before), ..) => patch.value(before, after, inner),
        });
    }

    fn list(&mut self, before: &[Value], after: &[Value], entries: &Entries) {
        if before.len() == after.len()
            && before.iter().zip(after).all(|(before, after)| is_equal(before, after))
        {
            return;
        }
        if entries.begin(before, after) {
            for value in &after[before.len()..] {
                self.inside("-", |patch| patch.push("add", Some(value)));
            }
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                self.at(at, |patch| patch.value(before, after, entries.kind));
            }
            return;
        }
        let kept = entries.kept(before, after);
        let mut is_kept = vec![false; before.len()];
        for pair in &kept {
            is_kept[pair.before] = true;
        }
        // From the end, so that the places before stay as they are.
        for at in (0..before.len()).rev().filter(|at| !is_kept[*at]) {
            self.at(at, |patch| patch.push("remove", None));
        }
        let mut length = kept.len();
        let mut pairs = kept.iter().peekable();
        for (at, value) in after.iter().enumerate() {
            if pairs.next_if(|pair| pair.after == at).is_none() {
                let add = |patch: &mut Self| patch.push("add", Some(value));
                if at == length {
                    self.inside("-", add);
                } else {
                    self.at(at, add);
                }
                length += 1;
            }
        }
        for pair in &kept {
            let (before, after) = (&before[pair.before], &after[pair.after]);
            self.at(pair.after, |patch| patch.value(before, after, entries.kind));
        }
    }

    /// Goes on at a key or an index of the present place.
    fn inside(&mut self, key: &str, go_on: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        if key.bytes().any(|byte| byte == b'~' || byte == b'/') {
            for letter in key.chars() {
                match letter {
                    '~' => self.path.push_str("~0"),
                    '/' => self.path.push_str("~1"),
                    letter => self.path.push(letter),
                }
            }
        } else {
            self.path.push_str(key);
        }
        go_on(self);
        self.path.truncate(length);
    }

    /// Goes on at an index of the present place.
    fn at(&mut self, index: usize, go_on: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        match u8::try_from(index) {
            Ok(digit) if digit < 10 => self.path.push(char::from(b'0' + digit)),
            _ => write!(self.path, "{index}").expect("a number must be a text"),
        }
        go_on(self);
        self.path.truncate(length);
    }

    fn push(&mut self, name: &'static str, value: Option<&Value>) {
        (self.each)(Operation { name, path: &self.path, value });
    }
}

/// Whether two values are equal. Keys in the same order are not looked up.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && if one.keys().eq(other.keys()) {
                    one.values().zip(other.values()).all(|(one, other)| is_equal(one, other))
                } else {
                    one == other
                }
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (one, other) => one == other,
    }
}

/// What the entries of a list are.
struct Entries {
    /// Names of the entries, if they have them.
    list: Option<NamedList>,
    kind: Option<&'static Kind>,
}

/// Entries that are compared one by one.
const FEW: usize = 16;

impl Entries {
    /// Whether a list begins with entries of the same names: these stay, and the others are new.
    fn begin(&self, before: &[Value], after: &[Value]) -> bool {
        let Some(list) = self.list else { return false };
        let has_one_name = |(before, after): (&Value, &Value)| {
            let name = list.identity(before);
            name.is_some() && name == list.identity(after)
        };
        before.len() <= after.len() && before.iter().zip(after).all(has_one_name)
    }

    /// The entries that stay: as many as have one order in both lists.
    fn kept(&self, before: &[Value], after: &[Value]) -> Vec<Pair> {
        let (before, after) = (self.identities(before), self.identities(after));
        in_order(&before, &after).unwrap_or_else(|| kept(&counted(&before), &counted(&after)))
    }

    /// By which entries are known again.
    fn identities<'v>(&self, list: &'v [Value]) -> Vec<Cow<'v, str>> {
        let identity = |entry: &'v Value| {
            let name = self.list.and_then(|list| list.identity(entry));
            name.unwrap_or_else(|| entry.to_string().into())
        };
        list.iter().map(identity).collect()
    }
}

/// The entries that stay if all of few do, in their order, and no two of those afterwards are alike.
fn in_order(before: &[Cow<'_, str>], after: &[Cow<'_, str>]) -> Option<Vec<Pair>> {
    if after.len() > FEW || before.len() > after.len() || has_twice(after) {
        return None;
    }
    let mut rest = after.iter().enumerate();
    let pair = |(before, one): (usize, &Cow<'_, str>)| {
        let after = rest.find(|(_, other)| *other == one)?.0;
        Some(Pair { before, after })
    };
    before.iter().enumerate().map(pair).collect()
}

/// Equal identities are counted, so that each is one of its own.
fn counted<'i>(identities: &'i [Cow<'_, str>]) -> Vec<(&'i str, usize)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let number = |identity: &'i Cow<'_, str>| {
        let count = counts.entry(&**identity).or_default();
        *count += 1;
        (&**identity, *count)
    };
    identities.iter().map(number).collect()
}

/// An entry that stays: its index before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    before: usize,
    after: usize,
}

/// The entries that stay: as many as have one order in both lists.
fn kept(before: &[(&str, usize)], after: &[(&str, usize)]) -> Vec<Pair> {
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
