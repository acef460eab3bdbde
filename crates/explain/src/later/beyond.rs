//! Amounts of more digits than are judged. Not for how they are compared: that is `resources::amount`.

use serde_json::Value;

use super::{
    Checks, containers, items, present,
    resources::{MOST_DIGITS, amounts},
    text, types,
};

/// The fields of a limit range's item that have amounts.
const OF_ITEMS: [&str; 5] =
    ["/default", "/defaultRequest", "/max", "/maxLimitRequestRatio", "/min"];

/// Those of a quota.
const OF_QUOTAS: [&str; 3] = ["/spec/hard", "/status/hard", "/status/used"];

/// Those of a container.
const OF_CONTAINERS: [&str; 2] = ["/resources/limits", "/resources/requests"];

/// Those of a pod, besides its containers.
const OF_PODS: [&str; 3] = ["/spec/resources/limits", "/spec/resources/requests", "/spec/overhead"];

/// A note on the first amount of a pod, or of what checks it, that has more digits than are judged.
#[must_use]
pub fn note_on_amounts(checks: Checks<'_>, pod: &Value) -> Option<String> {
    if !types::objections(pod).is_empty() {
        return None;
    }
    let (place, value) = places(checks, pod).find_map(|(who, object, fields)| {
        fields.iter().find_map(|field| {
            let map = present(object, field);
            let (name, _) = amounts(map).into_iter().find(|(_, amount)| amount.is_beyond())?;
            let path = field.trim_start_matches('/').replace('/', ".");
            Some((format!("{who}: {path}.{name}"), map?.get(&name)?))
        })
    })?;
    Some(format!(
        "{place} is {}: amounts of more than {MOST_DIGITS} digits are not told apart, so that what is said \
         about them may be wrong; an API server does not answer in time for very long ones",
        types::shown(value)
    ))
}

/// What has amounts: its name, and its fields.
fn places<'c>(
    checks: Checks<'c>,
    pod: &'c Value,
) -> impl Iterator<Item = (String, &'c Value, &'static [&'static str])> {
    let name = |value| text(value, "/name").unwrap_or_default();
    let named = |value| text(value, "/metadata/name").unwrap_or_default();
    let of_containers = containers(pod).map(move |container| {
        (format!("container {}", name(container)), container, &OF_CONTAINERS[..])
    });
    let of_ranges = checks.limit_ranges.iter().flat_map(move |range| {
        let who = format!("LimitRange {}", named(range));
        let items = items(range.pointer("/spec/limits")).iter();
        items.map(move |item| (who.clone(), item, &OF_ITEMS[..]))
    });
    let quotas = checks.quotas.iter();
    let of_quotas =
        quotas.map(move |quota| (format!("ResourceQuota {}", named(quota)), quota, &OF_QUOTAS[..]));
    let of_pod = [("the pod".to_owned(), pod, &OF_PODS[..])];
    of_containers.chain(of_pod).chain(of_ranges).chain(of_quotas)
}
