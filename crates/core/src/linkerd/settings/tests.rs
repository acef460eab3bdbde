use super::*;
use crate::linkerd::{
    overrides::{Overrides, Rules},
    pod::TextMap,
    release::Release,
    values::{self, DEFAULT_VALUES},
};

fn settings_in(release: Release, annotations: &[(&str, &str)]) -> Settings {
    let tree = values::parse_tree(DEFAULT_VALUES).expect("YAML");
    let values = Values::from_tree(&tree, release).expect("values");
    let map: serde_json::Map<_, _> =
        annotations.iter().map(|&(key, value)| (key.to_owned(), value.into())).collect();
    let json = serde_json::to_string(&map).expect("JSON");
    let pod: TextMap<'_> = crate::json::read(&json).expect("annotations");
    let overrides = Overrides::new(&Rules::of(release), &pod, None, [].into_iter());
    overrides.apply(&values, release)
}

fn settings(annotations: &[(&str, &str)]) -> Settings {
    settings_in(Release::NEWEST, annotations)
}

#[test]
fn durations_become_whole_milliseconds_or_seconds() {
    let settings = settings(&[
        ("config.linkerd.io/proxy-inbound-connect-timeout", "6s5ms"),
        ("config.linkerd.io/proxy-outbound-connect-timeout", "1.005s"),
        ("config.linkerd.io/proxy-inbound-discovery-cache-unused-timeout", "500ms"),
        ("config.linkerd.io/shutdown-grace-period", "30"),
    ]);
    let proxy = &settings.values.proxy;
    assert_eq!(proxy.inbound_connect_timeout, "6005ms");
    assert_eq!(proxy.outbound_connect_timeout, "1004ms");
    assert_eq!(proxy.inbound_discovery_cache_unused_timeout, "0s");
    assert_eq!(proxy.shutdown_grace_period, "");
    assert_eq!(settings.warnings.total(), 1);
}

#[test]
fn the_first_native_sidecar_annotation_decides_even_if_it_is_invalid() {
    let stable = "config.linkerd.io/proxy-enable-native-sidecar";
    let alpha = "config.alpha.linkerd.io/proxy-enable-native-sidecar";
    assert!(!settings(&[(alpha, "false")]).values.proxy.native_sidecar);
    assert!(settings(&[(alpha, "false"), (stable, "true")]).values.proxy.native_sidecar);
    assert!(settings(&[(alpha, "false"), (stable, "yes")]).values.proxy.native_sidecar);
}

#[test]
fn cpu_counts_as_text_and_as_whole_cores() {
    let settings = settings(&[
        ("config.linkerd.io/proxy-cpu-request", "1001m"),
        ("config.linkerd.io/proxy-cpu-limit", "1.5Gi"),
    ]);
    let proxy = &settings.values.proxy;
    assert_eq!((proxy.resources.cpu.request.as_str(), proxy.workers.minimum), ("1001m", 2));
    assert_eq!((proxy.resources.cpu.limit.as_str(), proxy.workers.maximum), ("1.5Gi", 0));
    assert_eq!(settings.warnings.total(), 1);
}

#[test]
fn before_workers_the_cpu_limit_sets_cores() {
    let limit = [("config.linkerd.io/proxy-cpu-limit", "2500m")];
    assert_eq!(settings_in(Release::edge(24, 11, 8), &limit).values.proxy.cores, 3);
    assert_eq!(settings_in(Release::edge(25, 4, 4), &limit).values.proxy.cores, 0);
}

#[test]
fn a_ratio_is_between_0_and_1_and_nan_is_denied() {
    let ratio = |text| settings(&[("config.linkerd.io/proxy-cpu-ratio-limit", text)]);
    assert!((ratio("0.10").values.proxy.workers.maximum_cpu_ratio - 0.1).abs() < f64::EPSILON);
    for text in ["0", "1", "-0.5", "half"] {
        assert_eq!(ratio(text).warnings.total(), 1, "{text}");
    }
    assert!(ratio("NaN").denial.is_some());
}

#[test]
fn an_invalid_value_is_ignored_with_a_warning_that_names_the_annotation() {
    for (key, value) in [
        ("config.linkerd.io/admin-port", "0x10"),
        ("config.linkerd.io/proxy-uid", " 1"),
        ("config.linkerd.io/proxy-await", "Enabled"),
        ("config.linkerd.io/default-inbound-policy", "open"),
        ("config.linkerd.io/proxy-memory-limit", "1 Gi"),
        ("config.linkerd.io/enable-debug-sidecar", "on"),
        ("config.alpha.linkerd.io/proxy-wait-before-exit-seconds", "+1"),
    ] {
        let changed = settings(&[(key, value)]);
        assert_eq!(changed.values, settings(&[]).values, "{key}");
        assert_eq!(changed.warnings.total(), 1, "{key}");
        assert!(changed.warnings.kept()[0].to_string().starts_with(key));
    }
}

#[test]
fn empty_debug_and_close_wait_annotations_cause_no_warning() {
    let settings = settings(&[
        ("config.linkerd.io/enable-debug-sidecar", ""),
        ("config.linkerd.io/close-wait-timeout", ""),
    ]);
    assert!(settings.warnings.is_empty());
}

#[test]
fn a_long_value_is_shortened_in_its_warning() {
    let long = "x".repeat(10_000);
    let settings = settings(&[("config.linkerd.io/proxy-uid", long.as_str())]);
    assert!(settings.warnings.kept()[0].to_string().len() < 200);
}
