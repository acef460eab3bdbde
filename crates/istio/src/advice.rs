//! What the author of an injected pod should know, although the pod is injected as Istio does it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    annotations,
    config::Config,
    fields::{annotations as annotations_of, text},
    release::Release,
};

/// The prefixes of keys that only Istio gives a meaning.
pub(crate) const PREFIXES: [&str; 7] = [
    "inject.istio.io",
    "prometheus.istio.io",
    "proxy.istio.io",
    "readiness.status.sidecar.istio.io",
    "sidecar.istio.io",
    "status.sidecar.istio.io",
    "traffic.sidecar.istio.io",
];

/// The domain of all keys of Istio.
const DOMAIN: &str = "istio.io";

/// The annotations that Istio reads outside of the templates: the injector, its CNI plugin, and the
/// agent, which has the annotations of its pod (`pkg/model/proxy.go`, `BootstrapNodeMetadata`).
const READ: [&str; 26] = [
    "inject.istio.io/templates",
    "prometheus.istio.io/merge-metrics",
    "prometheus.istio.io/scrape-targets",
    "prometheus.istio.io/secure-port",
    "proxy.istio.io/config",
    "proxy.istio.io/overrides",
    "sidecar.istio.io/extraStatTags",
    "sidecar.istio.io/inject",
    "sidecar.istio.io/interceptionMode",
    "sidecar.istio.io/nativeSidecar",
    "sidecar.istio.io/proxyImageType",
    "sidecar.istio.io/rewriteAppHTTPProbers",
    "sidecar.istio.io/statsCompression",
    "sidecar.istio.io/statsHistogramBuckets",
    "sidecar.istio.io/statsInclusionPrefixes",
    "sidecar.istio.io/statsInclusionRegexps",
    "sidecar.istio.io/statsInclusionSuffixes",
    "sidecar.istio.io/status",
    "status.sidecar.istio.io/port",
    "traffic.sidecar.istio.io/excludeInboundPorts",
    "traffic.sidecar.istio.io/excludeInterfaces",
    "traffic.sidecar.istio.io/excludeOutboundIPRanges",
    "traffic.sidecar.istio.io/excludeOutboundPorts",
    "traffic.sidecar.istio.io/includeInboundPorts",
    "traffic.sidecar.istio.io/includeOutboundIPRanges",
    "traffic.sidecar.istio.io/includeOutboundPorts",
];

/// The end of the warning about an annotation without effect.
pub(crate) const NOTHING_READS_IT: &str = ": nothing reads it";

/// The annotations with a known prefix that a configuration reads.
#[derive(Debug)]
pub(crate) struct KnownAnnotations {
    read: BTreeSet<String>,
    /// Those that templates write, too: into the metadata of the pod.
    written: BTreeSet<String>,
    /// All keys of Istio's domain that templates may write: labels have other prefixes.
    labels: BTreeSet<String>,
}

impl KnownAnnotations {
    /// Those of Istio, and all whose keys the texts of the templates have.
    pub(crate) fn of(config: &Config) -> Self {
        let is_key = |c: char| c.is_ascii_alphanumeric() || "./-_".contains(c);
        let words = config.templates.values().flat_map(|text| text.split(|c| !is_key(c)));
        let keys = words.filter(|word| has_known_prefix(word)).chain(READ);
        let read = keys.map(str::to_owned).collect();
        // What stands before a colon, as a key of YAML does.
        let key_before = |text: &str, colon: usize| {
            let before = text[..colon].trim_end_matches(['"', '\'']);
            let word = before.rsplit(|c| !is_key(c)).next().unwrap_or_default();
            is_of_istio(word).then(|| word.to_owned())
        };
        let labels = config.templates.values().flat_map(|text| {
            text.match_indices(':').filter_map(move |(colon, _)| key_before(text, colon))
        });
        let labels: BTreeSet<_> = labels.collect();
        let written = labels.iter().filter(|key| has_known_prefix(key)).cloned().collect();
        Self { read, written, labels }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.read.iter().map(String::as_str)
    }

    /// Whether a key with a known prefix is read.
    pub(crate) fn reads(&self, key: &str) -> bool {
        self.read.contains(key)
    }

    /// Whether templates may write a key with a known prefix.
    pub(crate) fn writes(&self, key: &str) -> bool {
        self.written.contains(key)
    }

    /// Whether templates may write a label.
    pub(crate) fn writes_label(&self, key: &str) -> bool {
        self.labels.contains(key)
    }

    /// Whether nothing reads a key that looks like Istio's.
    pub(crate) fn ignores(&self, key: &str, release: Release) -> bool {
        has_known_prefix(key) && !self.reads(key) && !annotations::validates(key, release)
    }
}

/// Whether the domain of a key is Istio's, or below it.
fn is_of_istio(key: &str) -> bool {
    let domain = key.split_once('/').and_then(|(prefix, _)| prefix.strip_suffix(DOMAIN));
    domain.is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

fn has_known_prefix(key: &str) -> bool {
    key.split_once('/').is_some_and(|(prefix, _)| PREFIXES.contains(&prefix))
}

/// The warnings about a pod before its injection.
pub(crate) fn of_pod(pod: &Value, known: &KnownAnnotations, release: Release) -> Vec<String> {
    let mut warnings = Vec::new();
    let policy = pod.pointer("/spec/dnsPolicy").and_then(Value::as_str).unwrap_or_default();
    if !matches!(policy, "" | "ClusterFirst") {
        warnings.push(format!(
            "dnsPolicy is {policy:?}, not ClusterFirst: istio-proxy may not find istiod"
        ));
    }
    for key in annotations_of(pod).into_iter().flat_map(serde_json::Map::keys) {
        if known.ignores(key, release) {
            warnings.push(format!("annotation {key} has no effect{NOTHING_READS_IT}"));
        }
    }
    for failure in annotations::later_failures(annotations_of(pod), release) {
        warnings.push(format!("later releases of Istio deny the pod: {failure}"));
    }
    warnings
}

/// The warnings about the volumes of an injected pod.
pub(crate) fn of_volumes(injected: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let volumes = injected.pointer("/spec/volumes").and_then(Value::as_array);
    for volume in volumes.into_iter().flatten() {
        let is_source = |(key, value): &(&String, &Value)| *key != "name" && !value.is_null();
        if volume.as_object().is_some_and(|map| map.iter().filter(is_source).count() > 1) {
            warnings.push(format!(
                "volume {:?} has the pod's source and that of Istio: the API server refuses the pod",
                text(volume, "name")
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn warnings_of(pod: &Value, injected: &Value, release: Release) -> Vec<String> {
        let text =
            "templates: {sidecar: '{{ annotation .ObjectMeta `sidecar.istio.io/proxyImage` }}'}";
        let config = Config::parse(text).expect("a configuration");
        let mut warnings = of_pod(pod, &KnownAnnotations::of(&config), release);
        warnings.extend(of_volumes(injected));
        warnings
    }

    #[test]
    fn annotations_that_nothing_reads_are_named() {
        let pod = json!({"metadata": {"annotations": {
            "sidecar.istio.io/proxyImage": "read by the template",
            "sidecar.istio.io/inject": "true",
            "sidecar.istio.io/discoveryAddress": "istiod:15012",
            "example.com/any": "",
        }}});
        let expected =
            ["annotation sidecar.istio.io/discoveryAddress has no effect: nothing reads it"];
        assert_eq!(warnings_of(&pod, &pod, Release::NEWEST), expected);
    }

    #[test]
    fn a_dns_policy_that_may_hide_istiod_is_named() {
        for (policy, count) in [("", 0), ("ClusterFirst", 0), ("Default", 1), ("None", 1)] {
            let pod = json!({"spec": {"dnsPolicy": policy}});
            assert_eq!(warnings_of(&pod, &pod, Release::NEWEST).len(), count, "{policy}");
        }
    }

    #[test]
    fn validation_of_later_releases_is_named() {
        let key = "traffic.sidecar.istio.io/excludeInterfaces";
        let pod = json!({"metadata": {"annotations": {key: "a/b"}}});
        let found = warnings_of(&pod, &pod, Release::new(28, 0));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("later releases of Istio deny the pod: invalid value"));
        assert_eq!(warnings_of(&pod, &pod, Release::NEWEST), [""; 0]);
    }

    #[test]
    fn a_volume_with_two_sources_is_named() {
        let volume = json!({"name": "istio-token", "emptyDir": {}, "projected": {}});
        let injected = json!({"spec": {"volumes": [volume, {"name": "a", "emptyDir": {}}]}});
        let found = warnings_of(&json!({}), &injected, Release::NEWEST);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("volume \"istio-token\" has"));
    }
}
