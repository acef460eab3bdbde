//! The checks that the level restricted has besides those of baseline, or in their place.

use injectd_k8s::pod_security::VOLUMES;
use serde_json::Value;

use super::{
    super::{
        integer, items,
        pod::{Container, Pod},
        present, text,
        version::Version,
    },
    Check, EVER, Id,
    baseline::{added, is_safe_profile, proc_mount, profiles},
};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        Id::Other,
        &[
            (Version::minor(8), escalation),
            (Version::minor(25), |pod| unless_windows(pod, escalation)),
        ],
    ),
    Check::replacing(
        Id::Capabilities,
        &[
            (Version::minor(22), capabilities),
            (Version::minor(25), |pod| unless_windows(pod, capabilities)),
        ],
    ),
    Check::replacing(Id::ProcMount, &[(Version::minor(35), proc_mount)]),
    Check::replacing(Id::HostPaths, &[(EVER, volumes)]),
    // Up to 1.34 user namespaces count only with a feature gate that is never on by default.
    Check::new(
        Id::Other,
        &[(EVER, non_root), (Version::minor(35), |pod| unless_own_users(pod, non_root))],
    ),
    Check::new(
        Id::Other,
        &[(Version::minor(23), user), (Version::minor(35), |pod| unless_own_users(pod, user))],
    ),
    Check::replacing(
        Id::Seccomp,
        &[(Version::minor(19), seccomp), (Version::minor(25), |pod| unless_windows(pod, seccomp))],
    ),
];

fn unless_windows(pod: Pod<'_>, test: super::Test) -> Vec<String> {
    if pod.os() == Some("windows") { Vec::new() } else { test(pod) }
}

fn unless_own_users(pod: Pod<'_>, test: super::Test) -> Vec<String> {
    if pod.has_user_namespace() { Vec::new() } else { test(pod) }
}

/// The containers of which something holds, each with what is said of it.
fn those(pod: Pod<'_>, is_wrong: impl Fn(Container<'_>) -> bool, text: &str) -> Vec<String> {
    let wrong = pod.containers().filter(|container| is_wrong(*container));
    wrong.map(|container| format!("container {} {text}", container.name())).collect()
}

fn escalation(pod: Pod<'_>) -> Vec<String> {
    let is_wrong = |container: Container<'_>| {
        container.context("allowPrivilegeEscalation") != Some(&Value::Bool(false))
    };
    those(pod, is_wrong, "does not set allowPrivilegeEscalation: false")
}

fn capabilities(pod: Pod<'_>) -> Vec<String> {
    let keeps = |container: Container<'_>| {
        !container.strings("capabilities/drop").any(|capability| capability == "ALL")
    };
    let mut found = those(pod, keeps, "does not drop ALL capabilities");
    found.extend(added(pod, |capability| capability == "NET_BIND_SERVICE"));
    found
}

/// A volume without a source is an `emptyDir` (`SetDefaults_Volume`).
fn volumes(pod: Pod<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for volume in items(pod.spec("volumes")) {
        let members = volume.as_object().into_iter().flatten();
        let sources = members.filter(|(key, source)| *key != "name" && !source.is_null());
        let sources: Vec<_> = sources.map(|(key, _)| &**key).collect();
        let is_allowed = sources.iter().any(|source| VOLUMES.contains(source));
        if let Some(source) = sources.first().filter(|_| !is_allowed) {
            let name = text(volume, "/name").unwrap_or_default();
            found.push(format!("volume {name} is of the type {source}"));
        }
    }
    found
}

fn non_root(pod: Pod<'_>) -> Vec<String> {
    let field = "runAsNonRoot";
    let of_pod = pod.spec(&format!("securityContext/{field}"));
    let own =
        |container: Container<'_>, value| container.context(field) == Some(&Value::Bool(value));
    let mut found = those(pod, |container| own(container, false), "sets runAsNonRoot: false");
    if of_pod == Some(&Value::Bool(false)) {
        found.push("the pod sets runAsNonRoot: false".to_owned());
    }
    let is_covered = of_pod == Some(&Value::Bool(true));
    let lacks = |container: Container<'_>| !is_covered && container.context(field).is_none();
    found.extend(those(pod, lacks, "does not set runAsNonRoot: true"));
    found
}

fn user(pod: Pod<'_>) -> Vec<String> {
    let is_root = |context: &Value| present(context, "/runAsUser").and_then(integer) == Some(0);
    let contexts = pod.contexts().filter(|(_, context)| is_root(context));
    contexts.map(|(who, _)| format!("{who} runs as user 0")).collect()
}

fn seccomp(pod: Pod<'_>) -> Vec<String> {
    let of_pod = pod.spec("securityContext/seccompProfile");
    let is_covered = of_pod.and_then(|profile| text(profile, "/type")).is_some_and(is_safe_profile);
    let lacks =
        |container: Container<'_>| !is_covered && container.context("seccompProfile").is_none();
    let mut found = profiles(pod, "seccompProfile");
    found.extend(those(
        pod,
        lacks,
        "has no seccompProfile of the type RuntimeDefault or Localhost",
    ));
    found
}
