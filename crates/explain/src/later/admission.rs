//! The resources that a pod has when the API server checks it: defaults of the API itself, of limit
//! ranges before and after the webhooks, and of the pod as a whole.
//!
//! The order is that of k8s.io/kubernetes and k8s.io/apiserver v1.34.4 to v1.37.2: a pod gets its
//! defaults when it is read (`SetDefaults_Pod`), then `LimitRanger` adds its own, then webhooks are
//! called. A patched pod is read again. If a webhook has changed the pod, all plugins before the
//! webhooks act once more (`pkg/admission/reinvocation.go`), whatever its `reinvocationPolicy` says.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    limits::LimitRange,
    resources::{
        Amounts, Resources, Side, add_missing,
        names::{is_huge_page, is_of_pods, may_overcommit},
        pod::PodResources,
    },
    version::Version,
};

/// The resources of a pod that came through the webhooks; `before` is what was sent.
pub(super) fn admitted(
    ranges: &[LimitRange],
    version: Version,
    before: &Value,
    injected: &Value,
) -> PodResources {
    let sent = PodResources::read(before);
    // `injected` was made of what was sent. In a cluster the webhook gets this pod with its
    // defaults, which then stay with the containers that the patch leaves alone.
    let mut pod = mutated(ranges, version, sent.clone());
    if injected != before {
        let patched = PodResources::read(injected);
        pod = mutated(ranges, version, carried_over(&sent, &pod, patched));
    }
    if version.defaults_pods_last() {
        default_pod_last(&mut pod);
    }
    pod
}

/// A pod that was read, and then changed by limit ranges.
fn mutated(ranges: &[LimitRange], version: Version, mut pod: PodResources) -> PodResources {
    for container in pod.all_mut() {
        let Resources { requests, limits } = &mut container.resources;
        add_missing(requests, limits);
    }
    if !version.defaults_pods_last() {
        default_pod_first(&mut pod);
    }
    for range in ranges {
        for container in pod.all_mut() {
            add_missing(&mut container.resources.limits, &range.default);
            add_missing(&mut container.resources.requests, &range.default_request);
        }
    }
    pod
}

/// The patched pod with the defaults that it had when the webhook saw it.
fn carried_over(sent: &PodResources, seen: &PodResources, mut pod: PodResources) -> PodResources {
    if pod.own == sent.own {
        pod.own.clone_from(&seen.own);
    }
    let known = sent.all().zip(seen.all()).map(|(sent, seen)| (&*sent.name, (sent, seen)));
    let known: HashMap<_, _> = known.collect();
    for container in pod.all_mut() {
        match known.get(&*container.name) {
            Some((sent, seen)) if **sent == *container => {
                container.resources.clone_from(&seen.resources);
            }
            _ => {}
        }
    }
    pod
}

/// `defaultHugePagePodLimits` and `defaultPodRequests`, up to 1.36: whenever the pod is read.
fn default_pod_first(pod: &mut PodResources) {
    let (requests, limits) = sums(pod);
    let Some(own) = pod.own.as_mut().filter(|own| !own.is_empty()) else { return };
    limit_huge_pages(own, &limits);
    if !own.limits.is_empty() {
        request(own, &requests);
    }
}

/// `DefaultPodLevelResources`, from 1.37 on: after all webhooks.
fn default_pod_last(pod: &mut PodResources) {
    let (requests, limits) = sums(pod);
    let is_limited =
        |name: &String| pod.all().all(|container| container.resources.limits.contains_key(name));
    let limited: Vec<_> = limits.iter().filter(|(name, _)| is_limited(name)).collect();
    let Some(own) = pod.own.as_mut().filter(|own| !own.is_empty()) else { return };
    limit_huge_pages(own, &limits);
    request(own, &requests);
    for (name, limit) in limited {
        let Some(request) = own.requests.get(name).filter(|_| is_of_pods(name)) else { continue };
        let limit = request.max(limit).clone();
        own.limits.entry(name.clone()).or_insert(limit);
    }
}

fn sums(pod: &PodResources) -> (Amounts, Amounts) {
    (pod.of_containers(Side::Requests), pod.of_containers(Side::Limits))
}

/// Limits of huge pages are those of the containers.
fn limit_huge_pages(own: &mut Resources, of_containers: &Amounts) {
    let mut missing = of_containers.clone();
    missing.retain(|name, _| is_huge_page(name) && !own.requests.contains_key(name));
    add_missing(&mut own.limits, &missing);
}

/// Requests are those of the containers, else the pod's own limits.
fn request(own: &mut Resources, of_containers: &Amounts) {
    let mut missing = of_containers.clone();
    missing.retain(|name, _| is_of_pods(name) && may_overcommit(name));
    add_missing(&mut own.requests, &missing);
    let mut limits = own.limits.clone();
    limits.retain(|name, _| is_of_pods(name));
    add_missing(&mut own.requests, &limits);
}
