//! Rows about text and numbers in a patch (L§2.7, L§7-2 to 5, T§10).

use serde_json::Value;

use super::leaves::{Leaf, replace};
use super::{Context, Seen, recorded_message};
use injectd_gocompat::number;
use injectd_testkit::yaml;

/// Upstream's patch is not JSON, so there is no answer to match. Some edges read their patch again, and
/// deny the pod.
pub(crate) fn invalid_patch(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let invalid = seen.verdict == "invalid-patch" && seen.patch.is_none();
    (invalid || is_denied_as_no_json(context, seen)).then(|| context.reference.clone())
}

/// edge-25.7.2 to edge-25.8.2 decode the patch and encode it again.
fn is_denied_as_no_json(context: &Context<'_>, seen: &Seen) -> bool {
    let reads_again = context.release.since((25, 7, 2)) && !context.release.since((25, 8, 3));
    let message = recorded_message(context);
    let is_syntax = ["invalid character", "unexpected end of JSON"];
    reads_again
        && seen.allowed == Some(false)
        && is_syntax.iter().any(|problem| message.contains(problem))
}

/// Upstream's container is `{"Error": …}`; injectd writes a valid one. The rest of the patch is
/// equal.
pub(crate) fn invalid_container(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let ours = context.reference.patch.as_ref()?;
    if seen.verdict != "invalid-container" {
        return None;
    }
    let mut seen = seen.clone();
    for (operation, ours) in seen.patch.as_mut()?.iter_mut().zip(ours) {
        let value = operation["value"].as_object();
        let error = value.is_some_and(|value| value.len() == 1 && value.contains_key("Error"));
        if error && operation["path"] == ours["path"] {
            *operation = ours.clone();
        }
    }
    "injected".clone_into(&mut seen.verdict);
    Some(seen)
}

/// Numbers in strings are plain decimals; upstream formats them as Go formats a float.
pub(crate) fn scientific_numbers(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    replace(context, seen, |leaf| {
        let same = |(theirs, ours)| same_but_for_numbers(theirs, ours);
        is_number_place(leaf.place) && texts(leaf).is_some_and(same)
    })
}

/// L§7-5, T§10.3: cores, addresses, parameters, the numeric arguments, sleep and await.
fn is_number_place(place: &str) -> bool {
    let variable = place.strip_prefix("linkerd-proxy/env/LINKERD2_PROXY_");
    let variable = variable.and_then(|name| name.strip_suffix("/value"));
    let args = [
        "--incoming-proxy-port",
        "--outgoing-proxy-port",
        "--proxy-uid",
        "--proxy-gid",
        "--inbound-ports-to-ignore",
        "--timeout-close-wait-secs",
    ];
    let option = place.strip_prefix("linkerd-init/args/");
    variable.is_some_and(|name| {
        name.starts_with("CORES")
            || name.ends_with("_LISTEN_ADDR")
            || name == "OUTBOUND_LISTEN_ADDRS"
            || name.starts_with("INBOUND_")
            || name.starts_with("OUTBOUND_")
    }) || option.is_some_and(|option| args.contains(&option))
        || place.starts_with("linkerd-proxy/lifecycle/")
}

/// Whether all pieces are equal, or upstream's piece is the floating-point form of our decimal.
fn same_but_for_numbers(theirs: &str, ours: &str) -> bool {
    let between = [',', ':', '=', '[', ']'];
    let (mut theirs, mut ours) = (theirs.split(between), ours.split(between));
    loop {
        match (theirs.next(), ours.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one == other || is_float_of(one, other) => {}
            _ => return false,
        }
    }
}

fn is_float_of(float: &str, decimal: &str) -> bool {
    let plain = decimal.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    let value = number::parse_float(decimal);
    plain && float.contains('e') && value.is_some_and(|value| number::format_float(value) == float)
}

/// Numbers are exact; upstream converts them to a 64-bit float and back.
pub(crate) fn exact_integers(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    replace(context, seen, |leaf| {
        let numbers = leaf.theirs.is_number() && leaf.ours.is_number();
        numbers && leaf.theirs.as_f64() == leaf.ours.as_f64()
    })
}

/// A setting stays a string; upstream pastes it into YAML without quotes, which gives it another
/// type.
pub(crate) fn yaml_typed_text(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    replace(context, seen, |leaf| {
        let read = |text: &str| yaml::tree(&format!("k: {text}\n")).ok()?.get("k").cloned();
        let typed = leaf.ours.as_str().map(behind_anchor).and_then(read);
        is_plain_place(leaf.place) && typed.is_some_and(|typed| is_same_scalar(&typed, leaf.theirs))
    })
}

/// The text that Go's parser reads after `&name`. A name has only letters, digits, `-` and `_`.
fn behind_anchor(text: &str) -> &str {
    let Some(anchor) = text.trim_start().strip_prefix('&') else {
        return text;
    };
    let end = anchor.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    match end.unwrap_or(anchor.len()) {
        0 => text,
        end => &anchor[end..],
    }
}

/// Compares scalars; numbers by their 64-bit float.
fn is_same_scalar(one: &Value, other: &Value) -> bool {
    one == other || one.is_number() && one.as_f64() == other.as_f64()
}

/// T§10.2: places where upstream writes no quotes.
fn is_plain_place(place: &str) -> bool {
    let Some((container, place)) = place.split_once('/') else {
        return false;
    };
    let env = [
        "LINKERD2_PROXY_DESTINATION_SVC_ADDR",
        "LINKERD2_PROXY_POLICY_SVC_ADDR",
        "LINKERD2_PROXY_INBOUND_DEFAULT_POLICY",
        "LINKERD2_PROXY_IDENTITY_SVC_ADDR",
        "LINKERD2_PROXY_IDENTITY_LOCAL_NAME",
        "LINKERD2_PROXY_IDENTITY_SVC_NAME",
        "LINKERD2_PROXY_DESTINATION_SVC_NAME",
        "LINKERD2_PROXY_POLICY_SVC_NAME",
        "LINKERD2_PROXY_INBOUND_GATEWAY_SUFFIXES",
        "LINKERD2_PROXY_DESTINATION_PROFILE_SUFFIXES",
        "LINKERD2_PROXY_TRACE_PROTOCOL",
        "LINKERD2_PROXY_TRACE_SERVICE_NAME",
        "LINKERD2_PROXY_TRACE_COLLECTOR_SVC_ADDR",
        "LINKERD2_PROXY_TRACE_COLLECTOR_SVC_NAME",
        "_l5d_ns",
        "_l5d_trustdomain",
    ];
    let args = match container {
        "linkerd-init" => ["--log-format", "--log-level"].as_slice(),
        "linkerd-network-validator" => {
            &["--log-format", "--log-level", "--connect-addr", "--listen-addr", "--timeout"]
        }
        _ => &[],
    };
    let variable = place.strip_prefix("env/").and_then(|rest| rest.strip_suffix("/value"));
    let mount = place.starts_with("volumeMounts/");
    place == "image"
        || place == "imagePullPolicy"
        || mount && (place.ends_with("/name") || place.ends_with("/mountPath"))
        || variable.is_some_and(|name| env.contains(&name))
        || place.strip_prefix("args/").is_some_and(|option| args.contains(&option))
}

/// A setting stays as it is; upstream pastes it between double quotes, so that a backslash begins
/// an escape and line breaks are folded.
pub(crate) fn unescaped_text(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let release = context.release;
    replace(context, seen, |leaf| {
        let Some((theirs, ours)) = texts(leaf) else {
            return false;
        };
        let in_json = leaf.place.contains("/metadata/annotations/")
            || leaf.place.contains("/metadata/labels/");
        let log = leaf.place == "linkerd-proxy/env/LINKERD2_PROXY_LOG/value"
            && release.since((24, 6, 2))
            && !release.since((25, 1, 1));
        let in_yaml = log || leaf.place == "linkerd-init/args/--inbound-ports-to-ignore";
        if in_json {
            pasted_into_json(ours).as_deref() == Some(theirs)
        } else {
            let pasted = pasted_into_yaml(ours);
            in_yaml && pasted.is_some_and(|pasted| same_but_for_numbers(theirs, &pasted))
        }
    })
}

fn pasted_into_json(text: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{text}\"")).ok()
}

fn pasted_into_yaml(text: &str) -> Option<String> {
    let text = text.replace('\n', "\n  ");
    let tree = yaml::tree(&format!("k: \"{text}\"\n")).ok()?;
    tree["k"].as_str().map(str::to_owned)
}

/// No HTML escapes in the patch that only annotates (T§1, L§2.7-4).
pub(crate) fn html_escapes(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    if seen.verdict != "annotated" {
        return None;
    }
    replace(context, seen, |leaf| {
        let annotation = leaf.place == "/metadata/annotations/config.linkerd.io~1opaque-ports";
        let escaped = |(theirs, ours)| pasted_into_json(&html(ours)).as_deref() == Some(theirs);
        annotation && texts(leaf).is_some_and(escaped)
    })
}

fn html(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '+' => out.push_str("&#43;"),
            '\0' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// U+0085 stays; in YAML it is a line break, which becomes a space between two texts.
pub(crate) fn line_breaks(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    replace(context, seen, |leaf| {
        let folded = |(theirs, ours): (&str, &str)| ours.contains('\u{85}') && fold(ours) == theirs;
        texts(leaf).is_some_and(folded)
    })
}

/// Removes white space around line breaks; one break becomes a space, each further one a line feed.
fn fold(text: &str) -> String {
    let mut out = String::new();
    let mut breaks = 0;
    let last = text.split('\u{85}').count() - 1;
    for (at, line) in text.split('\u{85}').enumerate() {
        let line = if at > 0 { line.trim_start_matches([' ', '\t']) } else { line };
        let line = if at < last { line.trim_end_matches([' ', '\t']) } else { line };
        if at > 0 {
            breaks += 1;
        }
        if !line.is_empty() || at == last {
            match breaks {
                0 => {}
                1 => out.push(' '),
                more => out.push_str(&"\n".repeat(more - 1)),
            }
            breaks = 0;
            out.push_str(line);
        }
    }
    out
}

fn texts<'a>(leaf: &Leaf<'a>) -> Option<(&'a str, &'a str)> {
    Some((leaf.theirs.as_str()?, leaf.ours.as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        behind_anchor, fold, html, pasted_into_json, pasted_into_yaml, same_but_for_numbers,
    };

    #[test]
    fn numbers_match_their_float_and_nothing_else() {
        assert!(same_but_for_numbers("1.00065e+09", "1000650000"));
        assert!(same_but_for_numbers("9.007199254740992e+15", "9007199254740993"));
        assert!(same_but_for_numbers("[::]:1e+06", "[::]:1000000"));
        assert!(same_but_for_numbers("1e-05", "0.00001"));
        assert!(!same_but_for_numbers("1e+06", "1000001"));
        assert!(!same_but_for_numbers("1000000", "1e+06"));
        assert!(!same_but_for_numbers("1e+06,22", "1000000"));
    }

    #[test]
    fn text_pasted_between_quotes_is_decoded() {
        assert_eq!(pasted_into_json(r"a\u0041").as_deref(), Some("aA"));
        assert_eq!(pasted_into_json("a\"b"), None);
        assert_eq!(pasted_into_yaml(r"a\tb").as_deref(), Some("a\tb"));
        assert_eq!(pasted_into_yaml("one\ntwo").as_deref(), Some("one two"));
        assert_eq!(pasted_into_yaml(r"a\q"), None);
    }

    #[test]
    fn an_anchor_ends_before_a_colon() {
        for (text, read) in [
            ("&a", ""),
            ("&a:v1", ":v1"),
            (" &a-1_ p:v1", " p:v1"),
            ("&", "&"),
            ("&:v1", "&:v1"),
            ("a&b", "a&b"),
        ] {
            assert_eq!(behind_anchor(text), read, "{text}");
        }
        let typed = |text| injectd_testkit::yaml::tree(&format!("k: {text}\n"));
        for (text, expected) in [("", json!(null)), ("  ", json!(null)), (":v1", json!(":v1"))] {
            assert_eq!(typed(text), Ok(json!({"k": expected})), "{text}");
        }
        assert_eq!(typed("  :v1"), Ok(json!({"k": ":v1"})));
    }

    #[test]
    fn html_has_six_escapes() {
        assert_eq!(html("+80<'&'>\""), "&#43;80&lt;&#39;&amp;&#39;&gt;&#34;");
    }

    #[test]
    fn one_break_is_a_space_and_two_are_a_line_feed() {
        assert_eq!(fold("a \u{85} b"), "a b");
        assert_eq!(fold("a\u{85}\u{85}b"), "a\nb");
        assert_eq!(fold("plain"), "plain");
    }
}
