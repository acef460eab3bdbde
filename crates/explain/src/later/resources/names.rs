//! Kinds of resource names (k8s.io/kubernetes v1.37.2, `pkg/apis/core/v1/helper/helpers.go`).

use injectd_k8s::names::{MAX_LABEL_BYTES, MAX_SUBDOMAIN_BYTES};
use serde_json::Value;

use super::Amount;

/// The prefix of huge pages, before their size.
pub(in super::super) const HUGE_PAGES: &str = "hugepages-";

/// The prefix that a quota writes before a request.
pub(in super::super) const REQUESTS: &str = "requests.";

/// Names of device classes, which request a device without a claim.
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

pub(in super::super) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Whether Kubernetes itself defines the resource; nodes offer the others.
pub(in super::super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether requests may be below limits, and alone.
pub(in super::super) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// A resource that nodes offer, such as `nvidia.com/gpu`.
pub(in super::super) fn is_extended(name: &str) -> bool {
    // With the prefix of a quota the name must be valid too.
    let parts = name.split_once('/');
    let fits = parts.is_some_and(|(prefix, name)| {
        REQUESTS.len() + prefix.len() <= MAX_SUBDOMAIN_BYTES && name.len() <= MAX_LABEL_BYTES
    });
    !is_native(name) && !name.starts_with(REQUESTS) && fits
}

/// Whether a quota counts requests of the resource under `requests.NAME`.
pub(in super::super) fn is_counted_by_quotas(name: &str) -> bool {
    is_extended(name) || name.starts_with(DEVICE_CLASS)
}

/// Whether a name in a quota is that of requests which [`is_counted_by_quotas`] means.
pub(in super::super) fn is_extended_request(name: &str) -> bool {
    let request = name.strip_prefix(REQUESTS);
    request.is_some_and(|request| !is_native(name) || request.starts_with(DEVICE_CLASS))
}

/// Whether `resources` of a pod may have it (k8s.io/component-helpers v0.37.2,
/// `resource/helpers.go`).
pub(in super::super) fn is_of_pods(name: &str) -> bool {
    is_compute(name) || is_huge_page(name)
}

/// The resources that decide the quality of service.
pub(in super::super) fn is_compute(name: &str) -> bool {
    matches!(name, "cpu" | "memory")
}

/// The size of a huge page, from the name of its resource.
pub(in super::super) fn page(name: &str) -> Option<Amount> {
    Amount::read(&Value::from(name.strip_prefix(HUGE_PAGES)?))
}
