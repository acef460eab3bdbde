//! Recognises the deliberate differences in a patch from upstream's value and ours, and names the
//! row of `docs/differences.md` that explains each.
//!
//! Each row is a transformation that must turn our value into upstream's. Differences of whole
//! answers are in `crates/tools/src/compare/meaning.rs`.

#![expect(clippy::disallowed_types, reason = "compares answers after the fact")]

use injectd_gocompat::number;
use serde_json::Value;

use crate::yaml;

/// The row that explains a difference at `place`, if there is one.
///
/// A place is the path of an operation, or `container/field/…` in a container. List items are named
/// by their name or by the option before them: `linkerd-init/args/--proxy-uid`.
#[must_use]
pub fn explain(place: &str, theirs: &Value, ours: &Value) -> Option<&'static str> {
    let both = theirs.as_str().zip(ours.as_str());
    let texts = |explains: fn(&str, &str) -> bool| both.is_some_and(|(t, o)| explains(t, o));
    if is_number_place(place) && texts(is_same_but_for_numbers) {
        Some("scientific-numbers")
    } else if theirs.is_number() && ours.is_number() && theirs.as_f64() == ours.as_f64() {
        Some("exact-integers")
    } else if (is_metadata(place) && texts(|t, o| pasted_into_json(o).as_deref() == Some(t)))
        || (is_quoted_place(place) && texts(is_pasted_into_yaml))
    {
        Some("unescaped-text")
    } else if is_metadata(place) && texts(|t, o| pasted_into_json(&html(o)).as_deref() == Some(t)) {
        Some("html-escapes")
    } else if texts(|t, o| o.contains('\u{85}') && o.replace('\u{85}', " ") == t) {
        Some("line-breaks")
    } else if !is_metadata(place)
        && ours.as_str().is_some_and(|ours| is_typed_by_yaml(theirs, ours))
    {
        Some("yaml-typed-text")
    } else {
        None
    }
}

fn is_metadata(place: &str) -> bool {
    place.contains("/metadata/annotations/") || place.contains("/metadata/labels/")
}

/// `docs/spec/linkerd/template.md` §10.3: cores, addresses, parameters, numeric arguments, sleep and
/// await.
fn is_number_place(place: &str) -> bool {
    place.starts_with("linkerd-proxy/env/LINKERD2_PROXY_")
        || place.starts_with("linkerd-proxy/lifecycle/")
        || place.starts_with("linkerd-init/args/--")
}

/// Values that upstream pastes between double quotes without escaping.
fn is_quoted_place(place: &str) -> bool {
    matches!(
        place,
        "linkerd-init/args/--inbound-ports-to-ignore"
            | "linkerd-proxy/env/LINKERD2_PROXY_LOG/value"
    )
}

/// Whether all pieces are equal, or upstream's piece is the floating-point form of our decimal.
fn is_same_but_for_numbers(theirs: &str, ours: &str) -> bool {
    let between = [',', ':', '=', '[', ']'];
    let is_float_of = |float: &str, decimal: &str| {
        let value = number::parse_float(decimal);
        float.contains('e') && value.is_some_and(|value| number::format_float(value) == float)
    };
    let (mut theirs, mut ours) = (theirs.split(between), ours.split(between));
    loop {
        match (theirs.next(), ours.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one == other || is_float_of(one, other) => {}
            _ => return false,
        }
    }
}

fn pasted_into_json(text: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{text}\"")).ok()
}

fn is_pasted_into_yaml(theirs: &str, ours: &str) -> bool {
    let indented = ours.replace('\n', "\n  ");
    let tree = yaml::parse(&format!("k: \"{indented}\"\n"));
    tree.is_ok_and(|tree| {
        tree["k"].as_str().is_some_and(|text| is_same_but_for_numbers(theirs, text))
    })
}

fn is_typed_by_yaml(theirs: &Value, ours: &str) -> bool {
    let ours = without_anchor(ours);
    yaml::parse(&format!("k: {ours}\n")).is_ok_and(|tree| {
        let typed = &tree["k"];
        typed == theirs || (typed.is_number() && typed.as_f64() == theirs.as_f64())
    })
}

/// The text after an anchor. Go's parser ends the name of an anchor at a colon: `&a:v1` is `:v1`.
fn without_anchor(text: &str) -> &str {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let Some(name) = text.trim_start_matches(' ').strip_prefix('&') else { return text };
    let rest = name.trim_start_matches(is_of_name);
    if rest.len() < name.len() { rest } else { text }
}

/// Escapes as Go's `html/template` does.
fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('+', "&#43;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_row_is_a_transformation_and_nothing_else() {
        let annotation = "/metadata/annotations/config.linkerd.io~1skip-subnets";
        for (place, theirs, ours, row) in [
            (
                "linkerd-init/args/--proxy-uid",
                json!("1.00065e+09"),
                json!("1000650000"),
                Some("scientific-numbers"),
            ),
            ("linkerd-init/args/--proxy-uid", json!("1.00065e+09"), json!("1000650001"), None),
            ("linkerd-proxy/image", json!("p:v1"), json!("p:v1 # x"), Some("yaml-typed-text")),
            ("linkerd-proxy/image", json!("p:v2"), json!("p:v1 # x"), None),
            ("linkerd-proxy/image", json!(":v1"), json!("&a:v1"), Some("yaml-typed-text")),
            ("linkerd-proxy/image", json!(null), json!("&a:v1"), None),
            ("linkerd-proxy/image", json!("p:v1"), json!("&a_-1 p:v1"), Some("yaml-typed-text")),
            ("linkerd-proxy/image", json!(":v1"), json!("  :v1"), Some("yaml-typed-text")),
            ("linkerd-proxy/imagePullPolicy", json!(null), json!("&a"), Some("yaml-typed-text")),
            ("linkerd-proxy/imagePullPolicy", json!(null), json!("  "), Some("yaml-typed-text")),
            ("linkerd-proxy/env/_l5d_ns/value", json!(123), json!("123"), Some("yaml-typed-text")),
            (annotation, json!("a\u{8}"), json!("a\\b"), Some("unescaped-text")),
            (annotation, json!("&#43;80"), json!("+80"), Some("html-escapes")),
            (annotation, json!("a b"), json!("a\u{85}b"), Some("line-breaks")),
            (annotation, json!("a"), json!("b"), None),
            (
                "linkerd-proxy/securityContext/runAsUser",
                json!(9_007_199_254_740_992_i64),
                json!(9_007_199_254_740_993_i64),
                Some("exact-integers"),
            ),
        ] {
            assert_eq!(explain(place, &theirs, &ours), row, "{place} {theirs} {ours}");
        }
    }
}
