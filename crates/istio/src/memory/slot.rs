//! The name of a pod's owner in an answer: a slot, if templates only copy it.
//!
//! Most pods of a kind differ in that name alone. A pod is evaluated with a placeholder for it, which
//! is itself a plain name. If the record says that templates only copied the name, and if the patch
//! has the placeholder only where nothing compares it, then the patch for another plain name is the
//! same with that name.

#![expect(clippy::disallowed_types, reason = "patches are trees")]

use injectd_gotemplate::is_plain_name;
use memchr::memmem;
use serde_json::Value as Json;

use crate::patch::{Operation, encode};

/// The name in place of the owner's. It is a plain name.
pub(crate) const PLACEHOLDER: &str = "injectd-name-of-the-owner";

/// Plain names that YAML 1.1 reads as other values than texts.
const YAML_WORDS: [&str; 9] = ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];

/// Whether a name may be replaced by another such name.
pub(super) fn is_exchangeable(name: &str) -> bool {
    is_plain_name(name.as_bytes()) && !YAML_WORDS.contains(&name)
}

/// A patch as JSON, with slots for the owner's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlottedPatch {
    /// The patch without the names.
    text: Box<[u8]>,
    /// Where in `text` the names are left out, in rising order.
    slots: Box<[usize]>,
}

impl SlottedPatch {
    /// A patch without slots.
    pub(crate) fn fixed(operations: &[Operation<'_>]) -> Self {
        Self { text: encode(operations).into(), slots: [].into() }
    }

    /// A patch with a slot for each placeholder; `None` if one of them is where the result may
    /// depend on the name itself, such as in a key or in a value that replaces another.
    pub(crate) fn of(operations: &[Operation<'_>]) -> Option<Self> {
        let mut copies = 0;
        for operation in operations {
            match operation {
                Operation::Add(path, value) => {
                    let mut keys = path.rsplit('/');
                    let (key, parent) = (keys.next()?, keys.next()?);
                    copies += copies_in(value, key, is_copied_at(parent, key));
                }
                Operation::Replace(..) => {}
                Operation::Remove(_) => return None,
            }
        }
        let text = encode(operations);
        let places: Vec<_> = memmem::find_iter(&text, PLACEHOLDER).collect();
        if places.len() != copies {
            return None;
        }
        let mut fixed = Vec::with_capacity(text.len());
        let mut rest = 0;
        let mut slots = Vec::with_capacity(places.len());
        for place in places {
            fixed.extend_from_slice(&text[rest..place]);
            slots.push(fixed.len());
            rest = place + PLACEHOLDER.len();
        }
        fixed.extend_from_slice(&text[rest..]);
        Some(Self { text: fixed.into(), slots: slots.into() })
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.slots)
    }

    /// Bytes of the patch with this name.
    pub(crate) fn length(&self, name: &str) -> usize {
        self.text.len() + self.slots.len() * name.len()
    }

    /// Writes the patch with this name, which needs no escapes.
    pub(crate) fn write(&self, name: &str, out: &mut Vec<u8>) {
        let mut rest = 0;
        for slot in &self.slots {
            out.extend_from_slice(&self.text[rest..*slot]);
            out.extend_from_slice(name.as_bytes());
            rest = *slot;
        }
        out.extend_from_slice(&self.text[rest..]);
    }
}

/// Whether later steps neither compare nor merge by a text at this key: the value of a variable, an
/// argument, a label or an annotation.
fn is_copied_at(parent: &str, key: &str) -> bool {
    key == "value" || key == "args" || ["args", "labels", "annotations"].contains(&parent)
}

/// How many placeholders a value has where they are only copied.
fn copies_in(value: &Json, key: &str, is_copied: bool) -> usize {
    match value {
        Json::String(text) if is_copied => text.matches(PLACEHOLDER).count(),
        Json::Array(items) => {
            let is_copied = is_copied && items.iter().all(Json::is_string);
            items.iter().map(|item| copies_in(item, key, is_copied)).sum()
        }
        Json::Object(members) => {
            members.iter().map(|(own, value)| copies_in(value, own, is_copied_at(key, own))).sum()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(operations: &[Operation<'_>], name: &str) -> Option<String> {
        let patch = SlottedPatch::of(operations)?;
        let mut out = Vec::new();
        patch.write(name, &mut out);
        assert_eq!(out.len(), patch.length(name));
        Some(String::from_utf8(out).expect("a text"))
    }

    fn add(path: &str, value: &Json) -> Option<String> {
        written(&[Operation::Add(path.to_owned(), value)], "web")
    }

    #[test]
    fn the_placeholder_is_exchangeable() {
        assert!(is_exchangeable(PLACEHOLDER));
        let long = "a".repeat(64);
        for name in ["", "5", "a-", "-a", "A", "a.b", "true", "y", "1e3", "ä", &long] {
            assert!(!is_exchangeable(name), "{name}");
        }
        for name in ["a", "web", "backup-28374650", "e1", &long[1..]] {
            assert!(is_exchangeable(name), "{name}");
        }
    }

    #[test]
    fn every_copy_is_a_slot() {
        let url = format!("a/{PLACEHOLDER}/b/{PLACEHOLDER}");
        let container = json!({"name": "istio-proxy", "args": ["-n", PLACEHOLDER],
            "env": [{"name": "A", "value": PLACEHOLDER}, {"name": "B", "value": url}]});
        let labels = json!({"app": PLACEHOLDER});
        let operations = [
            Operation::Add("/spec/containers/0".to_owned(), &container),
            Operation::Add("/metadata/labels".to_owned(), &labels),
        ];
        let found = written(&operations, "x").expect("slots");
        assert_eq!(found, String::from_utf8_lossy(&encode(&operations)).replace(PLACEHOLDER, "x"));
        assert!(found.contains(r#""value":"a/x/b/x""#), "{found}");
        let name = json!(PLACEHOLDER);
        for path in ["/metadata/labels/a", "/spec/containers/0/args/3"] {
            assert!(add(path, &name).expect("a slot").contains(r#""value":"web""#), "{path}");
        }
    }

    #[test]
    fn a_placeholder_elsewhere_is_refused() {
        let name = json!(PLACEHOLDER);
        let unrelated = json!("x");
        for (path, value) in [
            ("/spec/containers/0", json!({"name": PLACEHOLDER})),
            ("/metadata/labels", json!({PLACEHOLDER: "x"})),
            ("/spec/volumes/0", json!({"name": "a", "configMap": {"name": PLACEHOLDER}})),
            ("/spec/x", json!({"value": {"a": PLACEHOLDER}})),
            ("/spec/serviceAccountName", name.clone()),
            (&format!("/metadata/labels/{PLACEHOLDER}"), unrelated.clone()),
        ] {
            assert_eq!(add(path, &value), None, "{path} {value}");
        }
        let replaced = [Operation::Replace("/metadata/labels/a".to_owned(), &name)];
        assert_eq!(written(&replaced, "a"), None);
        let removed = [Operation::Remove("/spec/containers/0".to_owned())];
        assert_eq!(written(&removed, "a"), None);
        let other = [Operation::Replace("/spec/a".to_owned(), &unrelated)];
        assert!(written(&other, "a").is_some());
    }
}
