//! The name of a pod's owner in an answer: a slot, if templates only copy it.
//!
//! Most pods of a kind differ in that name alone. A pod is evaluated with a placeholder for it, which
//! is itself a plain name. The patch for another plain name is the same with that name if
//!
//! - the record says that templates only copied the name
//! - the texts of the templates have it only where YAML reads every plain name as a text
//! - the patch has it only in new labels and in new values of variables, which no later step compares.

#![expect(clippy::disallowed_types, reason = "patches are trees")]

use injectd_gotemplate::is_plain_name;
use injectd_memory::Slotted;
use memchr::memmem;
use serde_json::Value as Json;

use crate::{
    marker::owner_name as placeholder,
    patch::{Operation, encode},
};

/// Plain names that YAML 1.1 reads as other values than texts.
const YAML_WORDS: [&str; 9] = ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];

/// Whether a name may be replaced by another such name.
pub(super) fn is_exchangeable(name: &str) -> bool {
    // A number or a word such as `no` would be another value than a text where it stands unquoted.
    is_plain_name(name.as_bytes()) && !YAML_WORDS.contains(&name)
}

/// Whether YAML reads a text alike with every plain name in place of the placeholder: it is all of a
/// value, or in a value in double quotes, or in a plain one with a slash, each to the end of its line.
pub(super) fn is_text_only(text: &str) -> bool {
    // Most texts have none.
    memmem::find(text.as_bytes(), placeholder().as_bytes()).is_none()
        || text.lines().filter(|line| line.contains(placeholder())).all(is_text_value)
}

/// Whether a line is `key: value`, or an item of a list, with such a value.
fn is_text_value(line: &str) -> bool {
    let line = line.trim();
    let item = line.strip_prefix("- ").map(str::trim_start);
    let is_part = |c: char| c.is_ascii_alphanumeric() || "./-_".contains(c);
    let is_key =
        |key: &str| key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(is_part);
    let value = match (item.unwrap_or(line).split_once(": "), item) {
        (Some((key, value)), _) if is_key(key) && !key.contains(placeholder()) => {
            value.trim_start()
        }
        (None, Some(item)) => item,
        _ => return false,
    };
    let is_plain =
        |text: &str| text.chars().all(|c| is_part(c) || c == ':') && !text.ends_with(':');
    if let Some(quoted) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return is_plain(quoted);
    }
    let is_path = value.contains('/') && value.starts_with(|c: char| c.is_ascii_alphabetic());
    value == placeholder() || is_path && is_plain(value)
}

/// A patch as JSON without slots.
pub(crate) fn fixed(operations: &[Operation<'_>]) -> Slotted {
    Slotted::fixed(encode(operations))
}

/// A patch as JSON with a slot for each placeholder; `None` if one of them is where the result may
/// depend on the name itself, such as in a key or in a value that replaces another.
pub(crate) fn slotted(operations: &[Operation<'_>]) -> Option<Slotted> {
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
    let patch = Slotted::new(&encode(operations), placeholder());
    (patch.count() == copies).then_some(patch)
}

/// Whether no later step compares a text at this key, or merges by it: the value of a variable, or a
/// label.
fn is_copied_at(parent: &str, key: &str) -> bool {
    key == "value" || parent == "labels"
}

/// How many placeholders a value has where they are only copied.
fn copies_in(value: &Json, key: &str, is_copied: bool) -> usize {
    match value {
        Json::String(text) if is_copied => text.matches(placeholder()).count(),
        Json::Array(items) => items.iter().map(|item| copies_in(item, key, false)).sum(),
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
        let mut out = Vec::new();
        slotted(operations)?.write(name, &mut out);
        Some(String::from_utf8(out).expect("a text"))
    }

    fn add(path: &str, value: &Json) -> Option<String> {
        written(&[Operation::Add(path.to_owned(), value)], "web")
    }

    #[test]
    fn the_placeholder_is_exchangeable() {
        assert!(is_exchangeable(placeholder()));
        let long = "a".repeat(64);
        for name in ["", "5", "a-", "-a", "A", "a.b", "true", "y", "1e3", "ä", &long] {
            assert!(!is_exchangeable(name), "{name}");
        }
        for name in ["a", "web", "backup-28374650", "e1", &long[1..]] {
            assert!(is_exchangeable(name), "{name}");
        }
    }

    #[test]
    fn yaml_reads_every_name_as_a_text_in_some_places_only() {
        let is_text_only = |line: &str| is_text_only(&line.replace('@', placeholder()));
        for line in [
            "a: b",
            "  value: \"@\"",
            "  - \"@\"",
            "- name: @",
            "value: kubernetes://apis/apps/v1/namespaces/a/deployments/@",
            "service.istio.io/canonical-name: \"@\"",
            "value: \"1@\"",
        ] {
            assert!(is_text_only(line), "{line}");
        }
        for line in [
            "@",
            "value: 1@",
            "value: 0x@",
            "value: .@",
            "value: t@",
            "value: @s",
            "value: *@",
            "value: !!@",
            "@: a",
            "\"@\": a",
            "{a: @}",
            "[@]",
            "a: {\"@\": null}",
            "value: '@'",
            "value: \"a\\n@\"",
            "containerPort: 80@",
            "a: @ # b",
            "a: 1/@",
            "value: \"@\" b",
            "? @",
            "- - @",
            "a: a/@:",
            "a: @/@ b",
        ] {
            assert!(!is_text_only(line), "{line}");
        }
    }

    #[test]
    fn every_copy_is_a_slot() {
        let url = format!("a/{0}/b/{0}", placeholder());
        let container = json!({"name": "istio-proxy", "env": [{"name": "A", "value": placeholder()}, {"name": "B", "value": url}]});
        let labels = json!({"app": placeholder()});
        let operations = [
            Operation::Add("/spec/containers/0".to_owned(), &container),
            Operation::Add("/metadata/labels".to_owned(), &labels),
        ];
        let found = written(&operations, "x").expect("slots");
        assert_eq!(
            found,
            String::from_utf8_lossy(&encode(&operations)).replace(placeholder(), "x")
        );
        assert!(found.contains(r#""value":"a/x/b/x""#), "{found}");
        let name = json!(placeholder());
        let added = add("/metadata/labels/a", &name).expect("a slot");
        assert!(added.contains(r#""value":"web""#), "{added}");
    }

    #[test]
    fn a_placeholder_elsewhere_is_refused() {
        let name = json!(placeholder());
        let unrelated = json!("x");
        for (path, value) in [
            ("/spec/containers/0", json!({"name": placeholder()})),
            ("/metadata/labels", json!({placeholder(): "x"})),
            ("/spec/volumes/0", json!({"name": "a", "configMap": {"name": placeholder()}})),
            ("/spec/x", json!({"value": {"a": placeholder()}})),
            ("/spec/serviceAccountName", name.clone()),
            ("/spec/containers/0", json!({"args": [placeholder()]})),
            ("/metadata/annotations/prometheus.io~1scrape", name.clone()),
            (&format!("/metadata/labels/{}", placeholder()), unrelated.clone()),
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
