//! Fields that objects of Kubernetes' own kinds always have when webhooks are asked: `fields.txt`.
//!
//! From the types of Kubernetes 1.36 (`k8s.io/api`) and its defaulting: fields that are written also if
//! they are empty, that defaulting sets, that the admission plugins before the webhooks set for pods,
//! and without which validation rejects the object. Metadata is not among them.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

/// Each line is a kind and its fields; `spec:PodSpec` has the fields of that line.
const FIELDS: &str = include_str!("fields.txt");
/// The line with the fields of pods.
const POD_SPEC: &str = "PodSpec";

#[derive(Debug, Default)]
struct Kind {
    fields: HashSet<&'static str>,
    /// Where a pod's specification is.
    pod_spec: Option<&'static str>,
}

static TABLE: LazyLock<HashMap<&'static str, Kind>> = LazyLock::new(|| {
    FIELDS
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, Kind::read(words)))
        })
        .collect()
});

impl Kind {
    fn read(words: impl Iterator<Item = &'static str>) -> Self {
        let mut kind = Self::default();
        for word in words {
            match word.split_once(':') {
                Some((at, POD_SPEC)) => kind.pod_spec = Some(at),
                _ => {
                    kind.fields.insert(word);
                }
            }
        }
        kind
    }
}

/// Whether all objects of a kind have a field, such as `spec.containers[].name`; `None` if the kind is
/// not known.
pub(crate) fn is_always_there(kind: &str, field: &str) -> Option<bool> {
    let kind = TABLE.get(kind)?;
    let of_pod = kind.pod_spec.and_then(|at| field.strip_prefix(at)?.strip_prefix('.'));
    let pod_spec = TABLE.get(POD_SPEC);
    let is_of_pod = |field| pod_spec.is_some_and(|pod_spec| pod_spec.fields.contains(field));
    Some(kind.fields.contains(field) || of_pod.is_some_and(is_of_pod))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_pods_are_those_of_templates() {
        for (kind, field, is_always) in [
            ("Pod", "spec", Some(true)),
            ("Pod", "spec.containers", Some(true)),
            ("Pod", "spec.containers[].image", Some(true)),
            ("Pod", "spec.containers[].imagePullPolicy", Some(true)),
            ("Pod", "spec.securityContext", Some(true)),
            ("Pod", "spec.serviceAccountName", Some(true)),
            ("Pod", "spec.hostNetwork", Some(false)),
            ("Pod", "spec.containers[].securityContext", Some(false)),
            ("Deployment", "spec.template.spec.containers[].name", Some(true)),
            ("Deployment", "spec.template.spec.serviceAccountName", Some(false)),
            ("CronJob", "spec.jobTemplate.spec.template.spec.restartPolicy", Some(true)),
            ("ConfigMap", "data", Some(false)),
            ("Service", "spec.type", Some(true)),
            ("Widget", "spec", None),
        ] {
            assert_eq!(is_always_there(kind, field), is_always, "{kind} {field}");
        }
    }
}
