//! The same objects under other groups and versions (`matchPolicy: Equivalent`).

use crate::Resource;

/// Resources that Kubernetes 1.36 serves under more than one group or version. Each row is one
/// resource, in the order in which the API server registers it.
const SERVED: [&[(&str, &str, &str)]; 2] = [
    &[("", "v1", "events"), ("events.k8s.io", "v1", "events")],
    &[
        ("autoscaling", "v2", "horizontalpodautoscalers"),
        ("autoscaling", "v1", "horizontalpodautoscalers"),
    ],
];

/// The end of the names of Kubernetes' own groups.
const KUBERNETES: &str = ".k8s.io";
/// Kubernetes' groups without a domain.
const GROUPS: [&str; 5] = ["", "apps", "autoscaling", "batch", "policy"];

/// The other resources with the same objects.
pub(crate) fn of(resource: &Resource) -> impl Iterator<Item = Resource> {
    let is_it = |row: &&(&str, &str, &str)| *row == &key(resource);
    let row = SERVED.iter().find(|row| row.iter().any(|served| is_it(&served)));
    let others = row.into_iter().flat_map(|row| row.iter());
    let others = others.filter(move |row| !is_it(row));
    others
        .map(|(group, version, resource)| Resource::new(group, version, resource))
        .collect::<Vec<_>>()
        .into_iter()
}

/// Whether all versions of a resource are known here: those of custom resources are not.
pub(crate) fn are_known(resource: &Resource) -> bool {
    GROUPS.contains(&&*resource.group) || resource.group.ends_with(KUBERNETES)
}

fn key(resource: &Resource) -> (&str, &str, &str) {
    (&resource.group, &resource.version, &resource.resource)
}
