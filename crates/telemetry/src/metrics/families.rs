//! The families of metrics and their help texts.
//!
//! Not for labels: they belong to the struct that counts.

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

use Kind::{Counter, Gauge, Histogram};

/// Name, kind and help of every family except `process_*`.
pub(super) const FAMILIES: [(&str, Kind, &str); 64] = [
    ("injectd_accept_errors_total", Counter, "Connections that could not be accepted."),
    ("injectd_audit_is_leader", Gauge, "1 while this replica audits and restarts."),
    (
        "injectd_audit_last_success_timestamp_seconds",
        Gauge,
        "When the last audit ended, in seconds since 1970.",
    ),
    ("injectd_audit_pods", Gauge, "Pods of the last audit, by judgement."),
    ("injectd_audits_total", Counter, "Audits, by result."),
    ("injectd_build_info", Gauge, "The version of injectd."),
    (
        "injectd_ca_bundle_repair_seconds",
        Histogram,
        "How long a caBundle was wrong that others had changed.",
    ),
    (
        "injectd_ca_bundle_repairs_total",
        Counter,
        "Webhook entries whose caBundle others had changed.",
    ),
    ("injectd_cache_entries", Gauge, "Entries in a cache."),
    ("injectd_cache_hits_total", Counter, "Entries found in a cache."),
    ("injectd_cache_misses_total", Counter, "Entries not found in a cache."),
    (
        "injectd_certificate_expiry_timestamp_seconds",
        Gauge,
        "When the webhook's certificate expires, in seconds since 1970.",
    ),
    ("injectd_certificates_managed_total", Counter, "Steps of managed certificates, by result."),
    ("injectd_config_generation", Gauge, "Configurations applied so far."),
    ("injectd_config_info", Gauge, "The release of the mesh in use, and where it comes from."),
    ("injectd_connections", Gauge, "Open connections."),
    ("injectd_connections_failed_total", Counter, "Connections that failed."),
    ("injectd_connections_rejected_total", Counter, "Connections over --max-connections."),
    ("injectd_connections_total", Counter, "Connections accepted."),
    ("injectd_evaluation_memory_bytes", Gauge, "Memory that evaluations have taken, by estimate."),
    (
        "injectd_evaluations_last_turn_timestamp_seconds",
        Gauge,
        "When an evaluation last began or ended, in seconds since 1970.",
    ),
    ("injectd_evaluations_waiting", Gauge, "Reviews that wait for their evaluation, by threads."),
    ("injectd_events_total", Counter, "Kubernetes events for pods, by result."),
    ("injectd_handshakes_failed_total", Counter, "TLS handshakes that failed."),
    ("injectd_managed_certificate_leader", Gauge, "1 while this replica manages the certificates."),
    ("injectd_panics_total", Counter, "Reviews that failed because of a bug."),
    ("injectd_release_unknown", Gauge, "1 while the Linkerd release of the values is unknown."),
    ("injectd_reload_rejected", Gauge, "1 while a changed configuration is rejected."),
    ("injectd_reloads_total", Counter, "Reloads of files and ConfigMaps, by kind and result."),
    ("injectd_requests_rejected_total", Counter, "Requests that were rejected, by reason."),
    (
        "injectd_restart_stuck",
        Gauge,
        "1 while a rollout that does not finish, or is paused, stops restarts of its namespace.",
    ),
    ("injectd_restarts_failed_total", Counter, "Requests of restarts that failed."),
    ("injectd_restarts_in_flight", Gauge, "Restarted workloads whose rollout is not finished."),
    (
        "injectd_restarts_stopped",
        Gauge,
        "1 while all restarts are stopped: those in several namespaces did not help.",
    ),
    ("injectd_restarts_total", Counter, "Workloads that were restarted."),
    ("injectd_restarts_waiting", Gauge, "Workloads that are not restarted yet, by reason."),
    ("injectd_review_duration_seconds", Histogram, "Time from the request's header to the answer."),
    ("injectd_reviews_in_flight", Gauge, "Reviews in flight."),
    ("injectd_reviews_total", Counter, "Reviews answered, by server, kind and verdict."),
    ("injectd_skips_total", Counter, "Reasons for which pods were not injected."),
    (
        "injectd_tainted_values_total",
        Counter,
        "Values of pods that changed more of a template's YAML than their own place, by annotation and outcome.",
    ),
    (
        "injectd_template_keeper_leader",
        Gauge,
        "1 while this replica keeps revisions and status of sidecar templates.",
    ),
    (
        "injectd_template_keeper_steps_total",
        Counter,
        "Steps that keep revisions and status of sidecar templates, by result.",
    ),
    (
        "injectd_template_pods_total",
        Counter,
        "Pods for which a sidecar template is, by template and result.",
    ),
    (
        "injectd_template_rejected",
        Gauge,
        "1 for each problem of a sidecar template that is not used, with its place.",
    ),
    ("injectd_templates", Gauge, "Sidecar templates in use."),
    ("injectd_warnings_total", Counter, "Annotations that were ignored."),
    ("injectd_watch_errors_total", Counter, "Failures of a watch."),
    ("injectd_watch_failing", Gauge, "1 while a watch fails."),
    (
        "injectd_watch_last_event_timestamp_seconds",
        Gauge,
        "When a watch last succeeded, in seconds since 1970.",
    ),
    (
        "injectd_webhook_configurations",
        Gauge,
        "1 while a webhook configuration exists and leads to injectd.",
    ),
    (
        "injectd_webhook_scope_all_pods",
        Gauge,
        "1 while the templates cannot say for which pods they are: all pods are called for.",
    ),
    (
        "injectd_webhook_scope_in_step",
        Gauge,
        "1 while the webhook configuration of templates selects the pods of the templates.",
    ),
    (
        "injectd_webhook_scope_leader",
        Gauge,
        "1 while this replica keeps the webhook configuration of templates.",
    ),
    (
        "injectd_webhook_scope_repairs_total",
        Counter,
        "Writes of the webhook configuration of templates after others had changed it.",
    ),
    (
        "injectd_webhook_scope_writes_total",
        Counter,
        "Writes of the webhook configuration of templates, by result.",
    ),
    (
        "injectd_webhook_selectors_changed",
        Gauge,
        "1 while a webhook configuration selects other objects than it should.",
    ),
    (
        "proxy_inject_admission_requests_total",
        Counter,
        "Admission requests, as Linkerd's injector counts them.",
    ),
    (
        "proxy_inject_admission_responses_total",
        Counter,
        "Admission responses, as Linkerd's injector counts them.",
    ),
    ("sidecar_injection_failure_total", Counter, "Failures, as Istio's injector counts them."),
    ("sidecar_injection_requests_total", Counter, "Requests, as Istio's injector counts them."),
    ("sidecar_injection_skip_total", Counter, "Skipped pods, as Istio's injector counts them."),
    ("sidecar_injection_success_total", Counter, "Successes, as Istio's injector counts them."),
    (
        "sidecar_injection_time_seconds",
        Histogram,
        "Time of a request, as Istio's injector measures it.",
    ),
];
