//! What the API server refuses before any policy looks at a pod: resources, and fields of security
//! contexts, that are not valid.
//!
//! From k8s.io/kubernetes v1.37.2, `pkg/apis/core/validation/validation.go`, the same since 1.34. Not for
//! other fields: they do not change by injection or defaults.

use serde_json::Value;

use super::{
    Cause, Effect, Found, VALIDATION,
    resources::{
        Amount, Resources, Side,
        names::{
            is_compute, is_extended, is_huge_page, is_native, is_of_pods, may_overcommit, page,
        },
        pod::PodResources,
    },
};

mod contexts;

/// What is wrong: a key of the check, and a text.
type Problem = (String, String);

/// What is not valid in a pod, whose resources have their defaults.
pub(super) fn objections(pod: &Value, resources: &PodResources) -> Vec<Found> {
    let mut found: Vec<Problem> = Vec::new();
    for container in resources.all() {
        let who = format!("container {}", container.name);
        found.extend(of_resources(&who, &container.resources, CONTAINER));
    }
    if let Some(own) = &resources.own {
        found.extend(of_resources("the pod", own, POD));
        found.extend(of_pod(own, resources));
    }
    found.extend(contexts::problems(pod).into_iter().map(|text| (text.clone(), text)));
    found
        .into_iter()
        .map(|(check, text)| {
            Found::new(Effect::Refuses, Cause::Validation, VALIDATION, check, text)
        })
        .collect()
}

/// Where resources are set: what may be set there, and what to write in place of another name.
#[derive(Debug, Clone, Copy)]
struct Place {
    is_known: fn(&str) -> bool,
    known: &'static str,
}

const CONTAINER: Place = Place {
    is_known: is_of_containers,
    known: "is not a resource of containers: these are cpu, memory, ephemeral-storage, hugepages-SIZE, \
            and names with a domain such as nvidia.com/gpu",
};

const POD: Place = Place {
    is_known: is_of_pods,
    known: "is not a resource of whole pods: these are cpu, memory and hugepages-SIZE",
};

fn is_of_containers(name: &str) -> bool {
    is_compute(name)
        || name == "ephemeral-storage"
        || is_huge_page(name)
        || is_extended(name)
        || (name.contains('/') && is_native(name))
}

/// What is wrong with requests and limits (`validateResourceRequirements`).
fn of_resources(who: &str, resources: &Resources, place: Place) -> Vec<Problem> {
    let mut found = Vec::new();
    for side in Side::BOTH {
        for (name, amount) in resources.side(side) {
            let field = format!("{}.{name}", side.as_str());
            let wrong = of_amount(name, amount, place);
            found.extend(
                wrong.map(|why| (format!("{who} {field}"), format!("{who}: {field} {why}"))),
            );
        }
    }
    for (name, request) in &resources.requests {
        let wrong = above_limit(name, request, resources.limits.get(name));
        found.extend(wrong.map(|why| (format!("{who} {name} limit"), format!("{who}: {why}"))));
    }
    let mut names = resources.requests.keys().chain(resources.limits.keys());
    if names.clone().any(|name| is_huge_page(name)) && !names.any(|name| is_compute(name)) {
        let text = format!("{who}: huge pages need a request or limit of cpu or memory");
        found.push((text.clone(), text));
    }
    found
}

/// What is wrong with one amount.
fn of_amount(name: &str, amount: &Amount, place: Place) -> Option<String> {
    if !(place.is_known)(name) {
        return Some(place.known.to_owned());
    }
    if amount.is_negative() {
        return Some(format!("is {amount}: it must not be negative"));
    }
    if is_extended(name) && !amount.is_whole() {
        return Some(format!("is {amount}: it must be a whole number"));
    }
    let is_page = || page(name).is_some_and(|page| amount.is_multiple_of(&page));
    (is_huge_page(name) && !is_page())
        .then(|| format!("is {amount}: it must be a multiple of the page size"))
}

/// What is wrong between a request and its limit.
fn above_limit(name: &str, request: &Amount, limit: Option<&Amount>) -> Option<String> {
    let Some(limit) = limit else {
        let text = format!(
            "{name} has a request and no limit, but must have both, and they must be equal"
        );
        return (!may_overcommit(name)).then_some(text);
    };
    let origin = |amount: &Amount| match &amount.given_by {
        Some(range) => format!("{amount} (default of LimitRange {range})"),
        None => amount.to_string(),
    };
    let (request_text, limit_text) = (origin(request), origin(limit));
    if !may_overcommit(name) && request != limit {
        return Some(format!(
            "the {name} request of {request_text} must be equal to the limit of {limit_text}"
        ));
    }
    (request > limit)
        .then(|| format!("the {name} request of {request_text} is above the limit of {limit_text}"))
}

/// What is wrong between the pod's own resources and those of its containers
/// (`validatePodResourceConsistency`).
fn of_pod(own: &Resources, pod: &PodResources) -> Vec<Problem> {
    let mut found = Vec::new();
    for side in Side::BOTH {
        for (name, sum) in pod.of_containers(side) {
            // Limits of containers may be more together than the pod's; only huge pages are
            // reserved by theirs.
            let counts = side == Side::Requests || is_huge_page(&name);
            let Some(most) = own.side(side).get(&name).filter(|most| counts && sum > **most) else {
                continue;
            };
            let field = format!("{}.{name}", side.as_str());
            let text = format!(
                "the pod: {field} is {most}, less than the {sum} that its containers have together"
            );
            found.push((format!("{field} of the containers"), text));
        }
    }
    for container in &pod.containers {
        for (name, limit) in &container.resources.limits {
            let Some(most) = own.limits.get(name).filter(|most| limit > *most) else { continue };
            let who = &container.name;
            let text = format!(
                "container {who}: the {name} limit of {limit} is above that of the pod, {most}"
            );
            found.push((format!("{who} {name} of the pod"), text));
        }
    }
    found
}
