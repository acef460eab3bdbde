//! Fields that objects of Kubernetes' own kinds always have when webhooks are asked: `fields.txt`.
//!
//! True for all releases from 1.34 to 1.37. `just tables` writes it from their types and defaulting
//! (`e2e/lab/tables`): fields that are written also if they are empty, that defaulting sets whatever
//! else is set, that the admission plugins before the webhooks set for pods, and without which
//! validation rejects the object. Metadata is not among them.

use std::{collections::HashMap, sync::LazyLock};

use super::group_named;

/// Each line is a group, versions, a kind and its fields. A field with a question mark is there, but may
/// be null; `spec:PodSpec` has the fields of that kind.
const FIELDS: &str = include_str!("fields.txt");
/// The kind with the fields of pods' specifications.
const POD_SPEC: &str = "PodSpec";

/// What is known of a field. The order is from less to more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// Some objects do not have it.
    Maybe,
    /// All objects have it; in some it is null.
    Nullable,
    /// All objects have it.
    Always,
}

/// A kind of objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Of<'o> {
    /// `None` if only the name of the kind is known.
    pub(crate) group: Option<&'o str>,
    /// Those that it may be of; any if there are none.
    pub(crate) versions: &'o [&'o str],
    pub(crate) kind: &'o str,
}

/// A line.
#[derive(Debug)]
struct Kind {
    group: &'static str,
    versions: Vec<&'static str>,
    fields: HashMap<&'static str, State>,
    /// Where a pod's specification is.
    pod_spec: Option<&'static str>,
}

static TABLE: LazyLock<HashMap<&'static str, Vec<Kind>>> = LazyLock::new(|| {
    let mut table: HashMap<_, Vec<_>> = HashMap::new();
    for line in FIELDS.lines() {
        let mut words = line.split(' ');
        if let [Some(group), Some(versions), Some(kind)] = [(); 3].map(|()| words.next()) {
            table.entry(kind).or_default().push(Kind::read(group, versions, words));
        }
    }
    table
});

impl Kind {
    fn read(
        group: &'static str,
        versions: &'static str,
        words: impl Iterator<Item = &'static str>,
    ) -> Self {
        let (mut fields, mut pod_spec) = (HashMap::new(), None);
        for word in words {
            match (word.split_once(':'), word.strip_suffix('?')) {
                (Some((at, POD_SPEC)), _) => pod_spec = Some(at),
                (_, Some(field)) => drop(fields.insert(field, State::Nullable)),
                _ => drop(fields.insert(word, State::Always)),
            }
        }
        let versions = versions.split(',').collect();
        Self { group: group_named(group), versions, fields, pod_spec }
    }

    fn state(&self, field: &str) -> State {
        let of_pod = self.pod_spec.and_then(|at| field.strip_prefix(at)?.strip_prefix('.'));
        let pod_spec = TABLE.get(POD_SPEC).and_then(|kinds| kinds.first());
        let of_pod = of_pod.and_then(|field| pod_spec?.fields.get(field));
        let all = [self.fields.get(field), of_pod];
        all.into_iter().flatten().copied().max().unwrap_or(State::Maybe)
    }
}

/// What is known of a field, such as `spec.containers[].name`, in all versions of a kind; `None` if the
/// kind is not known.
pub(crate) fn state(of: Of<'_>, field: &str) -> Option<State> {
    let kinds = TABLE.get(of.kind)?;
    let Some(group) = of.group else {
        return kinds.iter().map(|kind| kind.state(field)).max();
    };
    let kinds = kinds.iter().filter(|kind| kind.group == group);
    let is_version =
        |kind: &&Kind| kind.versions.iter().any(|version| of.versions.contains(version));
    let of_versions = kinds.clone().filter(is_version).map(|kind| kind.state(field)).min();
    of_versions.or_else(|| kinds.map(|kind| kind.state(field)).min())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The field of a kind in a version of a group.
    fn of(kind: &str, field: &str) -> Option<State> {
        let (of, kind) = kind.rsplit_once(' ').expect("a version and a kind");
        let (group, version) = of.split_once('/').unwrap_or(("", of));
        state(Of { group: Some(group), versions: &[version], kind }, field)
    }

    #[test]
    fn fields_are_those_of_group_and_version() {
        use State::{Always, Maybe, Nullable};
        for (kind, field, expected) in [
            ("v1 Pod", "spec", Always),
            ("v1 Pod", "spec.containers", Always),
            ("v1 Pod", "spec.containers[].image", Always),
            ("v1 Pod", "spec.containers[].imagePullPolicy", Always),
            ("v1 Pod", "spec.securityContext", Always),
            ("v1 Pod", "spec.serviceAccountName", Always),
            ("v1 Pod", "spec.enableServiceLinks", Always),
            ("v1 Pod", "spec.hostNetwork", Maybe),
            ("v1 Pod", "spec.containers[].securityContext", Maybe),
            ("v1 Pod", "spec.volumes[].projected.sources", Nullable),
            ("v1 Pod", "spec.volumes[].emptyDir", Maybe),
            ("apps/v1 Deployment", "spec.template.spec.containers[].name", Always),
            ("apps/v1 Deployment", "spec.template.spec.serviceAccountName", Maybe),
            ("apps/v1 Deployment", "spec.template.spec.enableServiceLinks", Maybe),
            ("apps/v1 Deployment", "spec.template.metadata.labels", Always),
            // Not with the strategy Recreate.
            ("apps/v1 Deployment", "spec.strategy.rollingUpdate", Maybe),
            ("batch/v1 CronJob", "spec.jobTemplate.spec.template.spec.restartPolicy", Always),
            // Not where parallelism is set.
            ("batch/v1 Job", "spec.completions", Maybe),
            ("v1 ConfigMap", "data", Maybe),
            ("v1 Service", "spec.type", Always),
            ("rbac.authorization.k8s.io/v1 ClusterRole", "rules", Nullable),
            ("rbac.authorization.k8s.io/v1 ClusterRole", "rules[].verbs", Always),
            ("discovery.k8s.io/v1 EndpointSlice", "ports", Nullable),
            ("autoscaling/v2 HorizontalPodAutoscaler", "spec.metrics", Always),
            ("autoscaling/v1 HorizontalPodAutoscaler", "spec.metrics", Maybe),
            ("v1 Event", "involvedObject", Always),
            ("v1 Event", "regarding", Maybe),
            ("events.k8s.io/v1 Event", "regarding", Always),
        ] {
            assert_eq!(of(kind, field), Some(expected), "{kind} {field}");
        }
        assert_eq!(of("v1 Widget", "spec"), None);
        // All versions and one that is not known.
        assert_eq!(of("autoscaling/v9 HorizontalPodAutoscaler", "spec.metrics"), Some(Maybe));
        let named = |kind| state(Of { group: None, versions: &[], kind }, "regarding");
        assert_eq!((named("Event"), named("Pod")), (Some(Always), Some(Maybe)));
    }
}
