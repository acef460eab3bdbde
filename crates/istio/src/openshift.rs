//! `OpenShift`: user and group of the proxy, and users that it repeats
//! (`pkg/kube/inject/openshift.go`).

use std::collections::BTreeMap;

use injectd_core::namespace::{KeyPattern, NamespaceReads};
use serde_json::Value;

use crate::{
    fields::{CONTAINER_LISTS, containers, text},
    release::{Delta, Release},
};

/// The namespace's annotation with its users: `START/SIZE` or `START-END`.
pub const UID_RANGE_ANNOTATION: &str = "openshift.io/sa.scc.uid-range";

/// The namespace's annotation with its groups: blocks like those of users, separated by commas.
pub const SUPPLEMENTAL_GROUPS_ANNOTATION: &str = "openshift.io/sa.scc.supplemental-groups";

/// Whether istiod's variables say that the cluster is one of `OpenShift`.
#[must_use]
pub fn is_platform(environment: &BTreeMap<String, String>) -> bool {
    environment.get("PLATFORM").is_some_and(|platform| platform == "openshift")
}

/// What an injection reads of the namespace: users and groups, for the proxy's.
#[must_use]
pub fn namespace_reads() -> NamespaceReads {
    let keys = [UID_RANGE_ANNOTATION, SUPPLEMENTAL_GROUPS_ANNOTATION];
    let annotations = keys.map(|key| KeyPattern::Key(key.into())).into_iter().collect();
    NamespaceReads { annotations, ..NamespaceReads::default() }
}

/// User and group of the proxy: `.ProxyUID` and `.ProxyGID` of templates from 1.20 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyIds {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl Default for ProxyIds {
    fn default() -> Self {
        Self { uid: 1337, gid: 1337 }
    }
}

impl ProxyIds {
    /// The last ids that the namespace's annotations allow, or the default where they are missing or
    /// cannot be parsed. Not for other platforms: there the ids are always the default.
    #[must_use]
    pub fn of<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Self {
        let users = annotation(UID_RANGE_ANNOTATION);
        let groups = annotation(SUPPLEMENTAL_GROUPS_ANNOTATION).or(users);
        let default = Self::default();
        Self {
            uid: users.and_then(end_of_block).unwrap_or(default.uid),
            gid: groups.and_then(end_of_first_block).unwrap_or(default.gid),
        }
    }
}

/// All blocks have to be valid.
fn end_of_first_block(blocks: &str) -> Option<u32> {
    let ends: Option<Vec<_>> = blocks.split(',').map(end_of_block).collect();
    ends?.first().copied()
}

/// Reads a block as Go's `fmt.Sscanf` does with `%d/%d` and `%d-%d`: blanks before numbers and any
/// text after them are ignored, and sums wrap around.
fn end_of_block(block: &str) -> Option<u32> {
    let separator = if block.contains('/') { '/' } else { '-' };
    let (start, rest) = number(block)?;
    let (second, _) = number(rest.strip_prefix(separator)?)?;
    Some(if separator == '/' { start.wrapping_add(second).wrapping_sub(1) } else { second })
}

fn number(text: &str) -> Option<(u32, &str)> {
    let text = text.trim_start_matches([' ', '\t']);
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Removes `runAsUser` and `runAsGroup` of the pod's own `istio-proxy` if its user is that of the
/// application: `OpenShift` writes the same user into all containers. A missing user
/// counts as 0. Returns whether the pod was changed.
///
/// The result is what templates, merge and patch start from.
pub fn drop_application_user(pod: &mut Value, release: Release) -> bool {
    if !release.has(Delta::ApplicationUser) {
        return false;
    }
    let compared = if release.has(Delta::InitApplicationUser) {
        &CONTAINER_LISTS
    } else {
        &CONTAINER_LISTS[..1]
    };
    let application = application_user(pod, compared);
    for list in &CONTAINER_LISTS {
        let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(*list));
        let Some(containers) = containers.and_then(Value::as_array_mut) else { continue };
        let Some(proxy) = containers.iter_mut().find(|c| text(c, "name") == "istio-proxy") else {
            continue;
        };
        let Some(Value::Object(context)) = proxy.get_mut("securityContext") else { return false };
        // Up to 1.26 the user of one among the init containers is not seen, and counts as 0.
        let own = user(context.get("runAsUser")).filter(|_| compared.contains(list));
        if own.unwrap_or(0) != application {
            return false;
        }
        let removed = ["runAsUser", "runAsGroup"].map(|key| context.shift_remove(key));
        return removed.iter().any(Option::is_some);
    }
    false
}

/// The last user that a container of the application names, or 0.
fn application_user(pod: &Value, lists: &[&str]) -> i64 {
    const ISTIO: [&str; 3] = ["istio-proxy", "istio-init", "istio-validation"];
    let containers = lists.iter().flat_map(|list| containers(pod, list));
    let mut users = containers
        .filter(|container| !ISTIO.contains(&text(container, "name")))
        .filter_map(|container| user(container.pointer("/securityContext/runAsUser")));
    users.next_back().unwrap_or(0)
}

fn user(value: Option<&Value>) -> Option<i64> {
    value.and_then(Value::as_i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_the_ends_of_the_namespaces_blocks() {
        let default = 1337;
        for (users, groups, uid, gid) in [
            (Some("1000620000/10000"), Some("1000/10"), 1_000_629_999, 1009),
            (Some("1000-1999"), Some("2000/10,3000/10"), 1999, 2009),
            (Some("1000/10"), None, 1009, 1009),
            (None, Some("1000/10"), default, 1009),
            (None, None, default, default),
            (Some(""), Some(""), default, default),
            (Some("abc"), Some("x/y"), default, default),
            (Some("1000/10"), Some(""), 1009, default),
            (Some("1000/10"), Some("1/2,x"), 1009, default),
            (Some(" 1000/ 10 rest"), None, 1009, 1009),
            (Some("1000 /10"), None, default, default),
            (Some("4294967296/1"), None, default, default),
            (Some("4294967295/2"), None, 0, 0),
            (Some("-1/2"), None, default, default),
        ] {
            let annotation = |key: &str| if key == UID_RANGE_ANNOTATION { users } else { groups };
            assert_eq!(ProxyIds::of(annotation), ProxyIds { uid, gid }, "{users:?} {groups:?}");
        }
    }

    fn container(name: &str, user: Option<i64>) -> Value {
        json!({"name": name, "securityContext": {"runAsUser": user, "runAsGroup": 5}})
    }

    /// Whether the first istio-proxy loses its ids.
    fn drops(release: (u16, u16), containers: &[Value], init_containers: &[Value]) -> bool {
        let mut pod =
            json!({"spec": {"containers": containers, "initContainers": init_containers}});
        let before = pod.clone();
        let changed = drop_application_user(&mut pod, Release::new(release.0, release.1));
        assert_eq!(pod != before, changed);
        changed
    }

    #[test]
    fn the_user_of_the_application_is_dropped_from_the_proxy() {
        let proxy = |user| container("istio-proxy", user);
        let app = |user| container("app", user);
        let new = (27, 0);
        assert!(drops((23, 1), &[app(Some(7)), proxy(Some(7))], &[]));
        assert!(!drops((23, 0), &[app(Some(7)), proxy(Some(7))], &[]));
        assert!(!drops(new, &[app(Some(7)), proxy(Some(8))], &[]));
        assert!(drops(new, &[app(Some(6)), app(Some(7)), app(None), proxy(Some(7))], &[]));
        assert!(drops(new, &[proxy(None)], &[]), "a group alone");
        assert!(!drops(new, &[app(Some(7)), json!({"name": "istio-proxy"})], &[]));
        for name in ["istio-init", "istio-validation"] {
            assert!(!drops(new, &[proxy(Some(7))], &[container(name, Some(7))]));
        }
    }

    #[test]
    fn init_containers_are_seen_from_1_27_on() {
        let proxy = [container("istio-proxy", Some(7))];
        let app = [container("app", Some(7))];
        for (release, expected) in [((26, 0), false), ((27, 0), true)] {
            assert_eq!(drops(release, &app, &proxy), expected);
            assert_eq!(drops(release, &proxy, &app), expected);
        }
        // Before, a proxy among them counts as user 0, and so does an application that names none.
        for (user, expected) in [(None, true), (Some(0), true), (Some(8), false)] {
            assert_eq!(drops((26, 0), &[container("app", user)], &proxy), expected, "{user:?}");
        }
    }

    #[test]
    fn odd_pods_stay() {
        for mut pod in [json!(null), json!({}), json!({"spec": {"containers": 5}})] {
            assert!(!drop_application_user(&mut pod, Release::NEWEST));
        }
    }
}
