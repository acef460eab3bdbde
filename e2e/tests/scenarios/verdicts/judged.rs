//! Verdicts: what the API server did with a pod, and what `injectd explain` says of it.

use std::collections::{BTreeMap, BTreeSet};

use injectd_harness::{
    api::Answer,
    expect::{Outcome, failed},
};
use serde_json::Value;

/// A check that refuses pods. The API server applies them in this order, and names only the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Check {
    /// The types of fields: the API server cannot decode the pod.
    Decoding,
    /// The fields of the pod themselves.
    Validation,
    LimitRange,
    PodSecurity,
    ResourceQuota,
}

/// The words of the API server's messages by which a check is known.
const MARKERS: [(&str, Check); 6] = [
    (" usage per Container is ", Check::LimitRange),
    (" usage per Pod is ", Check::LimitRange),
    (" limit to request ratio per ", Check::LimitRange),
    ("violates PodSecurity ", Check::PodSecurity),
    ("exceeded quota: ", Check::ResourceQuota),
    ("failed quota: ", Check::ResourceQuota),
];

/// A part of the API server's message on a pod that it cannot decode.
const UNDECODED: &str = " cannot be handled as a Pod: ";

/// A part of the API server's message on a request above its limit.
const ABOVE_LIMIT: &str = " limit of ";

/// Who objects in `explain` to a pod that the API server cannot decode.
const DECODING: &str = "the decoding of pods";

/// The names of resources that limit ranges and quotas of the table use, in a text.
fn resources(text: &str) -> BTreeSet<&str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "./-".contains(letter);
    let words = text.split(|letter| !is_of_name(letter)).map(|word| word.trim_matches('.'));
    words.filter(|word| RESOURCES.contains(&amount_of(word))).collect()
}

/// The resource of a name such as `requests.cpu`.
fn amount_of(word: &str) -> &str {
    match word.split_once('.') {
        Some(("limits" | "requests", resource)) => resource,
        _ => word,
    }
}

const RESOURCES: [&str; 6] =
    ["cpu", "memory", "ephemeral-storage", "example.com/gpu", "pods", "count/pods"];

/// The checks that refuse a pod, with their words. None of them: it is created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Verdict(BTreeMap<Check, Vec<String>>);

impl Verdict {
    /// The API server's verdict, from its answer to a dry run.
    pub(super) fn of_server(answer: &Answer) -> Outcome<Self> {
        let message = answer.body["message"].as_str().unwrap_or_default();
        let check = match answer.status {
            201 => return Ok(Self::default()),
            400 if message.contains(UNDECODED) => Some(Check::Decoding),
            400 | 422 => Some(Check::Validation),
            403 => MARKERS.iter().find(|(words, _)| message.contains(words)).map(|marker| marker.1),
            _ => None,
        };
        let unknown = || failed(format!("no verdict: status {}: {message}", answer.status));
        let check = check.ok_or_else(unknown)?;
        let reason = message.split_once(" is forbidden: ").map_or(message, |(_, reason)| reason);
        Ok(Self([(check, vec![reason.to_owned()])].into()))
    }

    /// The verdict of an item of `injectd explain`.
    pub(super) fn of_item(item: &Value) -> Self {
        let mut checks = BTreeMap::<_, Vec<_>>::new();
        for objection in item["later"].as_array().into_iter().flatten() {
            if objection["effect"] != "refuses" {
                continue;
            }
            let [by, text] = ["by", "text"].map(|key| objection[key].as_str().unwrap_or_default());
            let check = match by.split_whitespace().next() {
                Some("LimitRange") => Check::LimitRange,
                Some("PodSecurity") => Check::PodSecurity,
                Some("ResourceQuota") => Check::ResourceQuota,
                _ if by == DECODING => Check::Decoding,
                _ => Check::Validation,
            };
            checks.entry(check).or_default().push(format!("{by}: {text}"));
        }
        Self(checks)
    }

    /// Whether another verdict is that of the API server, which is this one: the same check refuses the
    /// pod first, for the resources that the API server names, or also for more of them.
    pub(super) fn agrees(&self, explained: &Self) -> bool {
        let texts = |of: &Self| of.0.first_key_value().map(|(_, texts)| texts.concat());
        let (named, explained_texts) = (texts(self), texts(explained));
        let [named, explained_named] =
            [&named, &explained_texts].map(|text| resources(text.as_deref().unwrap_or_default()));
        // Validation names the resource beside the field, explain both in one word.
        let is_named = |name: &&str| {
            explained_named.contains(name)
                || explained_named.iter().any(|word| amount_of(word) == *name)
        };
        self.first() == explained.first() && named.iter().all(is_named)
    }

    /// The check that refuses the pod first.
    pub(super) fn first(&self) -> Option<Check> {
        self.0.keys().next().copied()
    }

    /// Whether the API server refuses fields that `explain` does not look at: all but requests above
    /// limits.
    pub(super) fn is_out_of_scope(&self) -> bool {
        let validation = self.0.get(&Check::Validation);
        validation.is_some_and(|texts| !texts.iter().any(|text| text.contains(ABOVE_LIMIT)))
    }

    /// The verdict in words.
    pub(super) fn text(&self) -> String {
        if self.0.is_empty() {
            return "created".to_owned();
        }
        let of_check = |(check, texts): (&Check, &Vec<String>)| format!("{check:?}: {texts:?}");
        self.0.iter().map(of_check).collect::<Vec<_>>().join("; ")
    }
}
