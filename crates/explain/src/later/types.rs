//! Values of another type than that of their field, such as `limits: []`. The API server cannot decode
//! such an object, and refuses it before it calls webhooks.
//!
//! The types of pods are those of `injectd_merge::schema`. Those of policies and namespaces are here, as
//! far as the checks read them.

use std::sync::LazyLock;

use injectd_merge::{
    Misfit, misfits,
    schema::{Kind, POD},
};
use serde_json::Value;

use super::{Cause, DECODING, Effect, Found};

/// The most values that are named; the API server names the first one. The last text says if there are
/// more.
// A chart whose values are indented wrongly has the same mistake in each container.
const MOST: usize = 10;

/// Texts longer than so many characters are cut.
// A wrong value may be a whole list or mapping; its beginning shows which.
const LONGEST: usize = 60;

/// Fields of an object: each path, in which `*` is an element of a list, and what it holds.
type Fields = [(&'static str, Kind)];

static LIMIT_RANGE: LazyLock<Vec<(&str, Kind)>> = LazyLock::new(|| {
    vec![
        ("metadata.name", text()),
        ("spec.limits.*.type", text()),
        ("spec.limits.*.default", amounts()),
        ("spec.limits.*.defaultRequest", amounts()),
        ("spec.limits.*.max", amounts()),
        ("spec.limits.*.maxLimitRequestRatio", amounts()),
        ("spec.limits.*.min", amounts()),
    ]
});

static RESOURCE_QUOTA: LazyLock<Vec<(&str, Kind)>> = LazyLock::new(|| {
    vec![
        ("metadata.name", text()),
        ("spec.hard", amounts()),
        ("spec.scopes.*", text()),
        ("spec.scopeSelector.matchExpressions.*.scopeName", text()),
        ("spec.scopeSelector.matchExpressions.*.operator", text()),
        ("spec.scopeSelector.matchExpressions.*.values.*", text()),
        ("status.hard", amounts()),
        ("status.used", amounts()),
    ]
});

static NAMESPACE: LazyLock<Vec<(&str, Kind)>> = LazyLock::new(|| {
    vec![("metadata.name", text()), ("metadata.labels", texts()), ("metadata.annotations", texts())]
});

fn text() -> Kind {
    Kind::Text("string")
}

fn texts() -> Kind {
    Kind::Map("map[string]string", Box::new(text()))
}

fn amounts() -> Kind {
    Kind::Map("v1.ResourceList", Box::new(Kind::Quantity))
}

/// What of a pod the API server cannot decode.
pub(super) fn objections(pod: &Value) -> Vec<Found> {
    // One more shows that there are more, without a search for all.
    let mut found = misfits(pod, &POD, "", MOST + 1);
    let are_more = found.len() > MOST;
    found.truncate(MOST);
    let texts = found.into_iter().map(|(path, misfit)| (path.clone(), sentence(&path, misfit)));
    let mut texts: Vec<_> = texts.collect();
    if let Some((_, last)) = texts.last_mut().filter(|_| are_more) {
        last.push_str("; and more values have a wrong type");
    }
    texts
        .into_iter()
        .map(|(path, text)| Found::new(Effect::Refuses, Cause::Types, DECODING, path, text))
        .collect()
}

/// The first value of the wrong type in a `Namespace`, `LimitRange` or `ResourceQuota`.
#[must_use]
pub fn unreadable(kind: &str, object: &Value) -> Option<String> {
    let fields: &Fields = match kind {
        "Namespace" => &NAMESPACE,
        "LimitRange" => &LIMIT_RANGE,
        "ResourceQuota" => &RESOURCE_QUOTA,
        _ => return None,
    };
    fields.iter().find_map(|(path, kind)| wrong(object, "", path, kind))
}

/// The first value of the wrong type at a path, of which the first part is done.
fn wrong(value: &Value, done: &str, rest: &str, kind: &Kind) -> Option<String> {
    if value.is_null() {
        return None;
    }
    if rest.is_empty() {
        let found = misfits(value, kind, done, 1);
        return found.first().map(|(path, misfit)| sentence(path, *misfit));
    }
    let (key, rest) = rest.split_once('.').unwrap_or((rest, ""));
    match value {
        Value::Array(list) if key == "*" => list
            .iter()
            .enumerate()
            .find_map(|(at, value)| wrong(value, &format!("{done}[{at}]"), rest, kind)),
        Value::Object(members) if key != "*" => {
            let dot = if done.is_empty() { "" } else { "." };
            members
                .get(key)
                .and_then(|value| wrong(value, &format!("{done}{dot}{key}"), rest, kind))
        }
        _ => {
            let expected = if key == "*" { "a list" } else { "an object" };
            let done = if done.is_empty() { "it" } else { done };
            Some(format!("{done} is {}, but must be {expected}", shown(value)))
        }
    }
}

fn sentence(path: &str, Misfit { value, expected }: Misfit<'_>) -> String {
    let path = if path.is_empty() { "it" } else { path };
    format!("{path} is {}, but must be {}", shown(value), asked(expected, value))
}

/// A value, short.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        value => {
            let text = value.to_string();
            let cut = text.char_indices().nth(LONGEST).map(|(at, _)| format!("{}…", &text[..at]));
            cut.unwrap_or(text)
        }
    }
}

/// What ends the text about a value that lacks its quotes.
pub const IN_QUOTES: &str = "a string: put it in quotes";

/// What to write in place of a value.
fn asked(expected: &Kind, value: &Value) -> &'static str {
    let is_quoted = |is: fn(&str) -> bool| value.as_str().is_some_and(is);
    match expected {
        Kind::Text(_) if value.is_number() || value.is_boolean() => IN_QUOTES,
        Kind::Text(_) => "a string",
        Kind::Boolean if is_quoted(|text| matches!(text, "true" | "false")) => {
            "true or false without quotes"
        }
        Kind::Boolean => "true or false",
        Kind::Int32 | Kind::Int64 if is_quoted(|text| text.parse::<i32>().is_ok()) => {
            "an integer: write it without quotes"
        }
        Kind::Int32 => "an integer of 32 bits",
        Kind::Int64 => "an integer of 64 bits",
        Kind::IntOrString => "an integer of 32 bits or a string",
        Kind::Quantity => "a quantity such as 100m or 64Mi",
        Kind::Time => "a time such as 2026-01-31T12:00:00Z",
        Kind::Map(_, inner) => match **inner {
            Kind::Quantity => "an object such as {cpu: 100m, memory: 64Mi}",
            _ => "an object with a string for each key",
        },
        Kind::Struct(_) => "an object",
        Kind::List(_) => "a list",
        Kind::Any => "any value",
    }
}
