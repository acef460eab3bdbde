//! Whether the values of a Pod have Kubernetes' types, without a tree.

use injectd_core::json::{Node, Shape};
use injectd_merge::schema::{Kind, POD, Struct};

use crate::Reading;

/// Keys of an object whose repetition is looked for pair by pair.
// For so few keys, pairs are compared faster than a set of them is made.
const MAX_PAIRED: usize = 32;

/// Reads of a Pod what a path of keys names, in which `*` is each item of a list or each member of a map:
/// all of the value, or of a path of presence whether it is there.
pub fn read_path<'s>(
    reading: &mut Reading,
    steps: impl IntoIterator<Item = &'s str>,
    is_presence: bool,
) {
    let (mut reading, mut kind) = (reading, Some(&POD));
    for step in steps {
        if step == "*" {
            // A reading knows items of lists, but no way to read a part of every member of a map.
            let Some(Kind::List(inner)) = kind else { return reading.read_whole() };
            (reading, kind) = (reading.item(), Some(&**inner));
            continue;
        }
        kind = match kind {
            Some(Kind::Struct(of)) => of.get().field(step).map(|field| &field.kind),
            Some(Kind::Map(_, inner)) => Some(&**inner),
            _ => None,
        };
        reading = reading.member(step);
    }
    if !is_presence {
        reading.read_whole();
    }
}

/// Whether every value of a Pod surely has its type, and no object has a key twice, in another case
/// or with escapes. For other Pods [`injectd_merge::check_pod`] names what is wrong, if anything is.
#[must_use]
pub fn has_kubernetes_types(pod: Node<'_, '_>) -> bool {
    pod.shape() == Shape::Object && fits(pod, &POD)
}

fn fits(node: Node<'_, '_>, kind: &'static Kind) -> bool {
    match (kind, node.shape()) {
        // Go reads null into the zero value of any type.
        (_, Shape::Null) | (Kind::Any, _) | (Kind::Text(_) | Kind::IntOrString, Shape::Text) => {
            true
        }
        (Kind::Struct(fields), Shape::Object) => fields_fit(node, fields.get()),
        (Kind::Map(_, inner), Shape::Object) => {
            is_without_repetition(node) && node.members().all(|(_, value)| fits(value, inner))
        }
        (Kind::List(inner), Shape::List) => node.items().all(|item| fits(item, inner)),
        (kind, Shape::Text | Shape::Escaped) => {
            node.text().is_some_and(|text| kind.accepts_text(&text))
        }
        (kind, Shape::Number) => kind.accepts_number(node.raw()),
        (kind, Shape::Bool) => matches!(kind, Kind::Boolean),
        (_, Shape::List | Shape::Object) => false,
    }
}

fn fields_fit(node: Node<'_, '_>, of: &'static Struct) -> bool {
    // No struct has more fields than bits.
    let mut seen = 0_u64;
    node.members().all(|(key, value)| {
        // Go also reads a key in another case. Such a key needs the slow check, an unknown one is
        // ignored.
        let Some((index, field)) = of.indexed(key) else {
            return !key.contains('\\') && of.field_ignoring_case(key).is_none();
        };
        // Index 64 and above have no bit; such a field would count as repeated, and the slow check
        // decides.
        let bit = 1_u64.checked_shl(index.try_into().unwrap_or(u32::MAX)).unwrap_or(0);
        let is_first = bit != 0 && seen & bit == 0;
        seen |= bit;
        is_first && fits(value, &field.kind)
    })
}

/// Whether the keys of an object differ, and are written without escapes.
fn is_without_repetition(node: Node<'_, '_>) -> bool {
    let keys = || node.members().map(|(key, _)| key);
    // The same key may be written in two ways: comparing their texts would not find it.
    if node.indexed().any(|(key, _)| key.shape() == Shape::Escaped) {
        return false;
    }
    if node.indexed().nth(MAX_PAIRED).is_none() {
        let mut rest = keys();
        while let Some(key) = rest.next() {
            if rest.clone().any(|other| other == key) {
                return false;
            }
        }
        return true;
    }
    let mut sorted: Vec<_> = keys().collect();
    sorted.sort_unstable();
    sorted.is_sorted_by(|before, key| before < key)
}

#[cfg(test)]
mod tests {
    use injectd_core::json::Tape;
    use serde_json::Value;

    use super::*;

    fn fits_as_tape(text: &str) -> bool {
        Tape::of(text).is_some_and(|tape| has_kubernetes_types(tape.root()))
    }

    #[test]
    fn paths_are_read_by_the_types_of_a_pod() {
        let read = |path: &str, is_presence| {
            let mut reading = Reading::default();
            read_path(&mut reading, path.split('/'), is_presence);
            reading
        };
        let mut expected = Reading::default();
        expected.member("spec").member("containers").item().member("image").read_whole();
        assert_eq!(read("spec/containers/*/image", false), expected);
        let mut expected = Reading::default();
        expected.member("metadata").member("labels").read_whole();
        assert_eq!(read("metadata/labels/*", true), expected, "which keys a map has");
        let mut expected = Reading::default();
        expected.member("spec").member("x").member("y");
        assert_eq!(read("spec/x/y", true), expected);
    }

    #[test]
    fn pods_of_the_right_types_fit() {
        for text in [
            "{}",
            r#"{"metadata":{"labels":{"a":"b"},"creationTimestamp":null},"unknown":{"a":[1]},
               "spec":{"containers":[{"name":"a","ports":[{"containerPort":80}],"resources":
               {"limits":{"cpu":"1","memory":5}},"livenessProbe":{"httpGet":{"port":"web"}}}],
               "terminationGracePeriodSeconds":30,"hostNetwork":false}}"#,
        ] {
            assert!(fits_as_tape(text), "{text}");
        }
    }

    #[test]
    fn what_may_not_fit_is_left_to_the_tree() {
        for text in [
            "5",
            "[]",
            r#"{"spec":[]}"#,
            r#"{"spec":{"hostNetwork":"true"}}"#,
            r#"{"spec":{"containers":{"name":"a"}}}"#,
            r#"{"spec":{"containers":[{"name":5}]}}"#,
            r#"{"spec":{"containers":[{"ports":[{"containerPort":80.0}]}]}}"#,
            r#"{"spec":{"containers":[{"ports":[{"containerPort":-0}]}]}}"#,
            r#"{"spec":{"containers":[{"ports":[{"containerPort":3000000000}]}]}}"#,
            r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":"much"}}}]}}"#,
            r#"{"metadata":{"creationTimestamp":"yesterday"}}"#,
            r#"{"metadata":{"labels":{"a":"b","a":"c"}}}"#,
            r#"{"metadata":{},"metadata":{}}"#,
            r#"{"Metadata":{}}"#,
            r#"{"\u006detadata":{}}"#,
            r#"{"metadata":{"labels":{"a\/b":"c"}}}"#,
        ] {
            assert!(!fits_as_tape(text), "{text}");
        }
    }

    #[test]
    fn what_fits_passes_the_check_of_trees() {
        let scalars = ["1", "-1", "1.5", "true", "null", r#""1""#, r#""a\"b""#, "[]", "{}"];
        let mut count = 0;
        for field in POD.as_struct().expect("a struct").fields() {
            let Some(of) = field.kind.as_struct() else { continue };
            for inner in of.fields() {
                for scalar in scalars {
                    let text = format!(r#"{{"{}":{{"{}":{scalar}}}}}"#, field.name, inner.name);
                    let tree: Value = serde_json::from_str(&text).expect("JSON");
                    if fits_as_tape(&text) {
                        count += 1;
                        injectd_merge::check_pod(&tree).expect(&text);
                    }
                }
            }
        }
        assert!(count > 100, "{count}");
    }
}
