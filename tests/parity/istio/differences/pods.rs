//! Rows about patched pods.

use json_patch::{Patch, PatchOperation, jsonptr::Pointer};
use serde_json::{Value, json};

use super::{
    super::{
        answer::{Answer, Verdict},
        corpus::Set,
        run::recorded,
    },
    Context,
};

/// Integers up to this size are exact in a float.
const MAX_EXACT: u64 = 1 << 53;

/// The fields of a pod.
const FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// Functions of sprig that make or use keys, certificates and passwords. A name that begins with another
/// comes before it.
const OF_SECRETS: [&str; 13] = [
    "bcrypt",
    "buildCustomCert",
    "decryptAES",
    "derivePassword",
    "encryptAES",
    "genCAWithKey",
    "genCA",
    "genPrivateKey",
    "genSelfSignedCertWithKey",
    "genSelfSignedCert",
    "genSignedCertWithKey",
    "genSignedCert",
    "htpasswd",
];

/// Fields of templates that came to Kubernetes after the types of the oldest release.
const NEWEST: [&str; 2] = ["sleep", "resourceClaimName"];

/// Templates may use every field of the data that a later release has; the answer is that of the
/// first release that has it, with this release's values.
pub(crate) fn later_fields(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    if !seen.denial()?.contains("can't evaluate field") {
        return None;
    }
    let (later, mut pod) = context.later.iter().find_map(|later| {
        let pod = recorded(later.case(&context.case.id)?).pod()?.clone();
        Some((later, pod))
    })?;
    let hub = |set: &Set| {
        let values: Value = serde_json::from_str(&set.values).ok()?;
        values["global"]["hub"].as_str().map(str::to_owned)
    };
    let theirs = hub(later.sets.get(&context.case.config)?)?;
    replace_text(&mut pod, &theirs, &hub(context.set)?);
    if !context.is_native_by_default() {
        // The only cases of a truth value are those of `.NativeSidecars`.
        replace_text(&mut pod, "|true|", "|false|");
    }
    seen.with_verdict(Verdict::Injected(pod))
}

fn replace_text(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| replace_text(value, from, to)),
        Value::Array(items) => items.iter_mut().for_each(|value| replace_text(value, from, to)),
        Value::String(text) => *text = text.replace(from, to),
        _ => {}
    }
}

/// The key `SPEC` is not `spec`: the pod has no containers, and the key stays.
pub(crate) fn exact_keys(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    let mut review = context.review.clone()?;
    let object = review.pointer_mut("/request/object")?.as_object_mut()?;
    let is_other_case = |key: &str| {
        FIELDS.iter().any(|field| field.eq_ignore_ascii_case(key)) && !FIELDS.contains(&key)
    };
    let keys: Vec<_> = object.keys().filter(|key| is_other_case(key)).cloned().collect();
    let others: Vec<_> = keys.iter().filter_map(|key| object.remove_entry(key)).collect();
    if others.is_empty() {
        return None;
    }
    let mut pod = (context.answer)(&review).pod()?.clone();
    pod.as_object_mut()?.extend(others);
    seen.with_verdict(Verdict::Injected(pod))
}

/// A template of the pod calls a function that makes or uses a secret.
pub(crate) fn no_secrets(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    seen.pod()?;
    let config = injectd_yaml::parse(&context.set.config, injectd_yaml::Options::default()).ok()?;
    let review = context.review.as_ref()?;
    let names = "/request/object/metadata/annotations/inject.istio.io~1templates";
    let mut names = review.pointer(names)?.as_str()?.split(',').map(str::trim);
    let message = names.find_map(|name| {
        let lines = config["templates"][name].as_str()?.lines().zip(1..);
        let (function, line) = lines.into_iter().find_map(|(text, line)| {
            let function = OF_SECRETS.iter().find(|function| text.contains(**function))?;
            Some((function, line))
        })?;
        Some(format!(
            "failed to run injection template: {name}: template: inject:{line}: function \"{function}\" \
             is not available: no key, certificate or password is made for each pod; read it from a Secret"
        ))
    })?;
    seen.with_verdict(Verdict::Denied(message))
}

/// Templates may use every field of the newest Kubernetes. The release has older types, which drop
/// it: it is taken from the first later release whose answer has it.
pub(crate) fn newest_types(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    let later = context.later.iter().filter_map(|later| later.case(&context.case.id));
    let mut pod = seen.pod()?.clone();
    for later in later.map(recorded) {
        if let Some(later) = later.pod() {
            take_newest(&mut pod, later);
        }
    }
    seen.with_verdict(Verdict::Injected(pod))
}

fn take_newest(ours: &mut Value, later: &Value) {
    match (ours, later) {
        (Value::Object(ours), Value::Object(later)) => {
            for (key, value) in later {
                let is_newest = NEWEST.contains(&&**key) || has_newest(value);
                match ours.get_mut(key) {
                    Some(ours) => take_newest(ours, value),
                    None if is_newest => {
                        ours.insert(key.clone(), value.clone());
                        // In the place of `resourceClaimName`.
                        ours.remove("source");
                    }
                    None => {}
                }
            }
        }
        (Value::Array(ours), Value::Array(later)) => {
            for value in ours.iter_mut().filter(|value| value.is_object()) {
                if let Some(later) = later.iter().find(|later| later["name"] == value["name"]) {
                    take_newest(value, later);
                }
            }
        }
        _ => {}
    }
}

fn has_newest(value: &Value) -> bool {
    let Some(map) = value.as_object() else { return false };
    map.iter().any(|(key, value)| NEWEST.contains(&&**key) || has_newest(value))
}

/// Upstream's patch changes fields of objects that the pod does not have. Ours creates the objects.
pub(crate) fn patch_does_not_apply(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    let Verdict::BrokenPatch(patch) = &seen.review()?.verdict else { return None };
    let mut pod = context.request()?["object"].clone();
    for operation in &patch.0 {
        add_parents(&mut pod, operation.path());
        let operation = match operation.clone() {
            // Of a field with its zero value, which Go's types do not distinguish from none.
            PatchOperation::Remove(remove) if pod.pointer(remove.path.as_str()).is_none() => {
                continue;
            }
            PatchOperation::Replace(replace) => PatchOperation::Add(json_patch::AddOperation {
                path: replace.path,
                value: replace.value,
            }),
            other => other,
        };
        json_patch::patch(&mut pod, &Patch(vec![operation])).ok()?;
    }
    seen.with_verdict(Verdict::Injected(pod))
}

fn add_parents(pod: &mut Value, path: &Pointer) {
    let mut at = pod;
    let parents: Vec<_> = path.tokens().map(|token| token.decoded().into_owned()).collect();
    for parent in &parents[..parents.len().saturating_sub(1)] {
        let next = match at {
            Value::Object(map) => Some(map.entry(parent.clone()).or_insert_with(|| json!({}))),
            Value::Array(items) => {
                parent.parse().ok().and_then(|index: usize| items.get_mut(index))
            }
            _ => None,
        };
        let Some(next) = next else { return };
        at = next;
    }
}

/// Integers above 2^53 stay exact. Upstream rounds those of templates, and from 1.26 on those of
/// the pod.
pub(crate) fn exact_integers(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    let mut exact = Vec::new();
    integers_in_text(&context.set.config, &mut exact);
    integers_in_text(std::str::from_utf8(&context.case.body).ok()?, &mut exact);
    let mut pod = seen.pod()?.clone();
    restore(&mut pod, &exact);
    seen.with_verdict(Verdict::Injected(pod))
}

fn integers_in_text(text: &str, integers: &mut Vec<u64>) {
    let runs = text.split(|character: char| !character.is_ascii_digit());
    let large = runs.filter(|run| run.len() > 15).filter_map(|run| run.parse::<u64>().ok());
    integers.extend(large.filter(|integer| *integer > MAX_EXACT));
}

#[expect(clippy::cast_precision_loss, reason = "the loss is upstream's")]
fn restore(value: &mut Value, exact: &[u64]) {
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| restore(value, exact)),
        Value::Array(items) => items.iter_mut().for_each(|value| restore(value, exact)),
        Value::Number(number) => {
            let Some(found) = number.as_u64().filter(|found| !exact.contains(found)) else {
                return;
            };
            let original =
                exact.iter().find(|exact| (**exact as f64).to_bits() == (found as f64).to_bits());
            if let Some(original) = original {
                *value = (*original).into();
            }
        }
        _ => {}
    }
}
