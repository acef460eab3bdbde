//! The factors of the table and their values: one source for the objects that the API server gets, and
//! for those that `injectd explain` reads.
//!
//! A value is its name, its weight in random cells, and JSON. An empty text leaves the field out.

use injectd_testkit::pairs;

/// A value of a factor: its name, its weight and what it is.
type Value<T> = (&'static str, u32, T);

/// Changes of a pod: pointers and JSON. `*` begins the pointer of a field of every container, and an
/// empty text removes the field.
pub(super) type Changes = &'static [(&'static str, &'static str)];

/// The limits of the first container.
pub(super) const LIMITS: [Value<&str>; 13] = [
    ("absent", 2, ""),
    ("null", 1, "null"),
    ("empty", 1, "{}"),
    ("cpu", 3, r#"{"cpu": "400m"}"#),
    ("both", 8, r#"{"cpu": "400m", "memory": "256Mi"}"#),
    ("above", 2, r#"{"cpu": "4", "memory": "4Gi"}"#),
    ("below", 2, r#"{"cpu": "10m", "memory": "8Mi"}"#),
    ("extended", 1, r#"{"cpu": "400m", "memory": "256Mi", "example.com/gpu": 1}"#),
    ("ephemeral", 1, r#"{"cpu": 0.4, "memory": "256M", "ephemeral-storage": "1Gi"}"#),
    ("huge", 1, r#"{"cpu": "1e41", "memory": "10E"}"#),
    // Values of another type.
    ("list", 1, "[]"),
    ("text", 1, r#""5""#),
    ("unreadable", 1, r#"{"cpu": "much", "memory": "256Mi"}"#),
];

/// The requests of the first container.
pub(super) const REQUESTS: [Value<&str>; 10] = [
    ("absent", 4, ""),
    ("null", 1, "null"),
    ("empty", 1, "{}"),
    ("both", 6, r#"{"cpu": "100m", "memory": "64Mi"}"#),
    ("near", 3, r#"{"cpu": "300m", "memory": "200Mi"}"#),
    ("memory", 2, r#"{"memory": "64Mi"}"#),
    ("high", 1, r#"{"cpu": "3", "memory": "3Gi"}"#),
    ("zero", 1, r#"{"cpu": "0", "memory": "0"}"#),
    ("huge", 1, r#"{"cpu": "1e40", "memory": "18446744073709551617"}"#),
    ("unreadable", 1, r#"{"memory": [5]}"#),
];

/// Another container: whether it is an init container, and its fields besides name and image.
pub(super) const OTHERS: [Value<(bool, &str)>; 9] = [
    ("none", 6, (true, "")),
    ("init", 2, (true, SMALL)),
    ("init-bare", 1, (true, "{}")),
    ("init-large", 1, (true, LARGE)),
    (
        "restartable",
        2,
        (
            true,
            r#"{"restartPolicy": "Always", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"},
                "limits": {"cpu": "100m", "memory": "64Mi"}}}"#,
        ),
    ),
    ("restartable-bare", 1, (true, r#"{"restartPolicy": "Always", "resources": null}"#)),
    ("second", 2, (false, SMALL)),
    ("second-bare", 1, (false, "{}")),
    ("second-large", 1, (false, LARGE)),
];

const SMALL: &str = r#"{"resources": {"requests": {"cpu": "200m", "memory": "128Mi"},
    "limits": {"cpu": "200m", "memory": "128Mi"}}}"#;
const LARGE: &str = r#"{"resources": {"requests": {"cpu": "1800m", "memory": "1Gi"},
    "limits": {"cpu": "2", "memory": "2Gi"}}}"#;

/// The resources of the whole pod.
pub(super) const POD_LEVEL: [Value<&str>; 9] = [
    ("absent", 12, ""),
    ("null", 1, "null"),
    ("empty", 1, "{}"),
    ("list", 1, "[]"),
    ("null-lists", 1, r#"{"requests": null, "limits": null}"#),
    ("requests", 1, r#"{"requests": {"cpu": "2500m", "memory": "2Gi"}}"#),
    ("limits", 1, r#"{"limits": {"cpu": "5", "memory": "5Gi"}}"#),
    ("cpu", 1, r#"{"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}"#),
    (
        "both",
        2,
        r#"{"requests": {"cpu": "4", "memory": "4Gi"}, "limits": {"cpu": "6", "memory": "6Gi"}}"#,
    ),
];

/// The lists `limits` of the `LimitRange`s.
pub(super) const LIMIT_RANGE: [Value<&[&str]>; 16] = [
    ("none", 8, &[]),
    ("default", 2, &[r#"[{"type": "Container", "default": {"cpu": "400m", "memory": "256Mi"}}]"#]),
    (
        "default-request",
        2,
        &[r#"[{"type": "Container", "defaultRequest": {"cpu": "200m", "memory": "128Mi"}}]"#],
    ),
    ("max", 2, &[r#"[{"type": "Container", "max": {"cpu": "1", "memory": "1Gi"}}]"#]),
    ("min", 1, &[r#"[{"type": "Container", "min": {"cpu": "50m", "memory": "32Mi"}}]"#]),
    (
        "min-max",
        2,
        &[r#"[{"type": "Container", "min": {"cpu": "50m", "memory": "32Mi"},
            "max": {"cpu": "1", "memory": "1Gi"}, "default": null}]"#],
    ),
    ("ratio", 2, &[r#"[{"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}]"#]),
    (
        "ratio-default",
        1,
        &[r#"[{"type": "Container", "maxLimitRequestRatio": {"memory": "1500m"},
            "default": {"memory": "256Mi"}, "defaultRequest": {"memory": "192Mi"}}]"#],
    ),
    ("pod-max", 2, &[r#"[{"type": "Pod", "max": {"cpu": "1", "memory": "1Gi"}}]"#]),
    ("pod-min", 1, &[r#"[{"type": "Pod", "min": {"cpu": "150m"}}]"#]),
    ("pod-ratio", 1, &[r#"[{"type": "Pod", "maxLimitRequestRatio": {"cpu": "3"}}]"#]),
    ("ephemeral", 1, &[r#"[{"type": "Container", "max": {"ephemeral-storage": "512Mi"}}]"#]),
    (
        "container-and-pod",
        1,
        &[r#"[{"type": "Container", "default": {"cpu": "300m", "memory": "128Mi"}},
            {"type": "Pod", "max": {"cpu": "500m", "memory": "512Mi"}}]"#],
    ),
    (
        "two",
        1,
        &[
            r#"[{"type": "Container", "default": {"cpu": "250m"}, "max": {"cpu": "2"}}]"#,
            // The API server applies them in any order: both give one default.
            r#"[{"type": "Container", "max": {"cpu": "500m"}, "default": {"cpu": "250m"}, "min": null},
                {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]"#,
        ],
    ),
    (
        "huge",
        1,
        &[
            r#"[{"type": "Container", "max": {"cpu": "1e39", "memory": "9E"}, "default": {"cpu": "1"}}]"#,
        ],
    ),
    ("empty", 1, &["[]"]),
];

/// The specs of the `ResourceQuota`s. With `used`, a pod is there that requests 900m of cpu.
pub(super) const QUOTA: [Value<&[&str]>; 20] = [
    ("none", 10, &[]),
    ("requests", 2, &[r#"{"hard": {"requests.cpu": "2", "requests.memory": "2Gi"}}"#]),
    ("limits", 2, &[r#"{"hard": {"limits.cpu": "2", "limits.memory": "2Gi"}}"#]),
    ("short", 1, &[r#"{"hard": {"cpu": "1", "memory": "1Gi"}}"#]),
    ("two", 1, &[r#"{"hard": {"limits.cpu": "3"}}"#, r#"{"hard": {"requests.memory": "100Mi"}}"#]),
    ("pods", 1, &[r#"{"hard": {"pods": "0"}}"#]),
    ("count", 1, &[r#"{"hard": {"count/pods": 0}}"#]),
    ("exhausted", 1, &[r#"{"hard": {"requests.cpu": "50m"}}"#]),
    ("huge", 1, &[r#"{"hard": {"requests.cpu": "1e40", "requests.memory": "9E"}}"#]),
    ("used", 2, &[r#"{"hard": {"requests.cpu": "1100m", "pods": "5"}}"#]),
    ("extended", 1, &[r#"{"hard": {"requests.example.com/gpu": "0"}}"#]),
    ("ephemeral", 1, &[r#"{"hard": {"limits.ephemeral-storage": "512Mi"}}"#]),
    ("other", 1, &[r#"{"hard": {"services": "0", "count/configmaps": "1"}}"#]),
    ("terminating", 2, &[r#"{"hard": {"pods": "0"}, "scopes": ["Terminating"]}"#]),
    (
        "not-terminating",
        1,
        &[r#"{"hard": {"requests.cpu": "150m"}, "scopes": ["NotTerminating"]}"#],
    ),
    ("best-effort", 2, &[r#"{"hard": {"pods": "0"}, "scopes": ["BestEffort"]}"#]),
    (
        "not-best-effort",
        1,
        &[r#"{"hard": {"limits.memory": "200Mi"}, "scopes": ["NotBestEffort"]}"#],
    ),
    (
        "class",
        2,
        &[r#"{"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["verdicts-high"]}]}}"#],
    ),
    (
        "no-class",
        1,
        &[r#"{"hard": {"requests.cpu": "150m"}, "scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["verdicts-high"]}]}}"#],
    ),
    (
        "affinity",
        1,
        &[r#"{"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [
            {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}]}}"#],
    ),
];

/// The level and the version of Pod Security; without a level the namespace has no label.
pub(super) const SECURITY: [Value<(&str, &str)>; 16] = [
    ("none", 20, ("", "")),
    ("baseline", 2, ("baseline", "")),
    ("baseline-latest", 1, ("baseline", "latest")),
    ("baseline-1.24", 1, ("baseline", "v1.24")),
    ("baseline-1.28", 1, ("baseline", "v1.28")),
    ("baseline-1.31", 1, ("baseline", "v1.31")),
    ("baseline-1.33", 1, ("baseline", "v1.33")),
    ("baseline-1.34", 1, ("baseline", "v1.34")),
    ("restricted", 3, ("restricted", "")),
    ("restricted-1.0", 1, ("restricted", "v1.0")),
    ("restricted-1.18", 1, ("restricted", "v1.18")),
    ("restricted-1.24", 1, ("restricted", "v1.24")),
    ("restricted-1.25", 1, ("restricted", "v1.25")),
    ("restricted-1.33", 1, ("restricted", "v1.33")),
    ("restricted-1.34", 1, ("restricted", "v1.34")),
    ("restricted-1.99", 1, ("restricted", "v1.99")),
];

/// What else quotas look at.
pub(super) const LIFE: [Value<Changes>; 5] = [
    ("plain", 4, &[]),
    ("deadline", 1, &[("/spec/activeDeadlineSeconds", "600")]),
    ("no-deadline", 1, &[("/spec/activeDeadlineSeconds", "null")]),
    ("class", 2, &[("/spec/priorityClassName", r#""verdicts-high""#)]),
    (
        "affinity",
        1,
        &[(
            "/spec/affinity",
            r#"{"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "namespaces": ["other"]}]}}"#,
        )],
    ),
];

/// The pod's annotations, which ask for a sidecar or do not.
pub(super) const SIDECAR: [Value<&str>; 4] = [
    ("off", 6, "{}"),
    ("disabled", 1, r#"{"linkerd.io/inject": "disabled"}"#),
    ("on", 1, r#"{"linkerd.io/inject": "enabled"}"#),
    (
        "limits",
        1,
        r#"{"linkerd.io/inject": "enabled", "config.linkerd.io/proxy-cpu-request": "100m",
            "config.linkerd.io/proxy-cpu-limit": "600m", "config.linkerd.io/proxy-memory-request": "20Mi",
            "config.linkerd.io/proxy-memory-limit": "250Mi"}"#,
    ),
];

/// A cell: the number of a value for each factor. The first ones are the plainest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) limits: usize,
    pub(super) requests: usize,
    pub(super) others: usize,
    pub(super) pod_level: usize,
    pub(super) limit_range: usize,
    pub(super) quota: usize,
    pub(super) security: usize,
    pub(super) life: usize,
    pub(super) sidecar: usize,
    pub(super) kind: usize,
}

/// The cells of the table, at least so many.
pub(super) fn cells(count: usize) -> Vec<Cell> {
    let weights = [
        weights(&LIMITS),
        weights(&REQUESTS),
        weights(&OTHERS),
        weights(&POD_LEVEL),
        weights(&LIMIT_RANGE),
        weights(&QUOTA),
        weights(&SECURITY),
        weights(&LIFE),
        weights(&SIDECAR),
        weights(&super::kinds::KINDS),
    ];
    let weights: Vec<_> = weights.iter().map(Vec::as_slice).collect();
    let rows = pairs::rows(&weights, count, 1);
    rows.iter().filter_map(|row| Cell::new(row)).collect()
}

fn weights<T>(values: &[Value<T>]) -> Vec<u32> {
    values.iter().map(|(_, weight, _)| *weight).collect()
}

impl Cell {
    fn new(row: &[usize]) -> Option<Self> {
        let &[
            limits,
            requests,
            others,
            pod_level,
            limit_range,
            quota,
            security,
            life,
            sidecar,
            kind,
        ] = row
        else {
            return None;
        };
        Some(Self {
            limits,
            requests,
            others,
            pod_level,
            limit_range,
            quota,
            security,
            life,
            sidecar,
            kind,
        })
    }

    /// The names of its values.
    pub(super) fn title(&self) -> String {
        format!(
            "limits {}, requests {}, others {}, pod {}, LimitRange {}, quota {}, security {}, life {}, \
             sidecar {}, kind {}",
            LIMITS[self.limits].0,
            REQUESTS[self.requests].0,
            OTHERS[self.others].0,
            POD_LEVEL[self.pod_level].0,
            LIMIT_RANGE[self.limit_range].0,
            QUOTA[self.quota].0,
            SECURITY[self.security].0,
            LIFE[self.life].0,
            SIDECAR[self.sidecar].0,
            super::kinds::KINDS[self.kind].0,
        )
    }

    /// The namespace, which all cells with the same policies share.
    pub(super) fn namespace(&self) -> String {
        // Names of the values would be too long.
        format!("{}{}-{}-{}", super::PREFIX, self.limit_range, self.quota, self.security)
    }

    /// Whether the pod gets a sidecar.
    pub(super) fn has_sidecar(&self) -> bool {
        SIDECAR[self.sidecar].2.contains("enabled")
    }
}
