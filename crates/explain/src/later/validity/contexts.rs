//! Security contexts that are not valid: for Windows, with host namespaces, or in themselves.

use serde_json::Value;

use super::super::{
    pod::{Container, Pod},
    present,
};

/// Fields that a pod for Windows must not set (`validateWindows`, `validatePodResources`).
const NOT_ON_WINDOWS: [&str; 16] = [
    "hostUsers",
    "hostPID",
    "hostIPC",
    "resources",
    "shareProcessNamespace",
    "securityContext/appArmorProfile",
    "securityContext/fsGroup",
    "securityContext/fsGroupChangePolicy",
    "securityContext/runAsGroup",
    "securityContext/runAsUser",
    "securityContext/seLinuxChangePolicy",
    "securityContext/seLinuxOptions",
    "securityContext/seccompProfile",
    "securityContext/supplementalGroups",
    "securityContext/supplementalGroupsPolicy",
    "securityContext/sysctls",
];

/// Fields that a container of such a pod must not set.
const NOT_IN_WINDOWS_CONTAINERS: [&str; 10] = [
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
];

/// What is not valid.
pub(super) fn problems(pod: &Value) -> Vec<String> {
    let pod = Pod(pod);
    let mut found = match pod.os() {
        Some("windows") => on_windows(pod),
        Some("linux") => on_linux(pod),
        _ => Vec::new(),
    };
    found.extend(with_users(pod));
    found.extend(host_processes(pod));
    found.extend(pod.containers().filter_map(privileges));
    found
}

fn on_windows(pod: Pod<'_>) -> Vec<String> {
    // False and an empty list are as good as absent where the type has no other zero.
    let is_set = |field: &&str| match pod.spec(field) {
        Some(Value::Bool(is_set)) => {
            *is_set || matches!(*field, "hostUsers" | "shareProcessNamespace")
        }
        Some(Value::Array(list)) => !list.is_empty() || field.ends_with("supplementalGroups"),
        it => it.is_some(),
    };
    let fields = NOT_ON_WINDOWS.iter().filter(|field| is_set(field));
    let mut found: Vec<_> = fields
        .map(|field| format!("a pod for Windows must not set {}", field.replace('/', ".")))
        .collect();
    for container in pod.containers() {
        let is_set = |field: &&&str| container.context(field).is_some();
        found.extend(NOT_IN_WINDOWS_CONTAINERS.iter().filter(is_set).map(|field| {
            format!(
                "container {} of a pod for Windows must not set securityContext.{field}",
                container.name()
            )
        }));
    }
    found
}

/// `validateLinux`.
fn on_linux(pod: Pod<'_>) -> Vec<String> {
    let contexts = pod.contexts();
    let set = contexts.filter(|(_, context)| present(context, "/windowsOptions").is_some());
    set.map(|(who, _)| format!("{who} of a pod for Linux must not set windowsOptions")).collect()
}

/// What user namespaces need, and what needs them (`validateHostUsers`).
fn with_users(pod: Pod<'_>) -> Vec<String> {
    if !pod.has_user_namespace() {
        let is_unmasked = |container: &Container<'_>| {
            container.context("procMount").and_then(Value::as_str) == Some("Unmasked")
        };
        let unmasked = pod.containers().filter(is_unmasked);
        return unmasked
            .map(|container| {
                format!(
                    "container {} has procMount Unmasked, which needs hostUsers: false",
                    container.name()
                )
            })
            .collect();
    }
    let fields = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let set = fields.filter(|field| pod.spec(field) == Some(&Value::Bool(true)));
    set.map(|field| format!("the pod sets {field}, which must not be set with hostUsers: false"))
        .collect()
}

/// `validateWindowsHostProcessPod`.
fn host_processes(pod: Pod<'_>) -> Vec<String> {
    const FIELD: &str = "windowsOptions/hostProcess";
    let of_pod = pod.spec(&format!("securityContext/{FIELD}"));
    let all: Vec<_> = pod.containers().map(|container| container.context(FIELD)).collect();
    let mut found = Vec::new();
    if of_pod.is_some() && all.iter().flatten().any(|own| Some(*own) != of_pod) {
        found.push("hostProcess of the pod and of its containers must be the same".to_owned());
    }
    let effective = all.iter().map(|own| own.or(of_pod));
    let count = effective.filter(|effective| *effective == Some(&Value::Bool(true))).count();
    if count > 0 && count < all.len() {
        found.push("either all containers must be host processes or none".to_owned());
    }
    if count > 0 && pod.spec("hostNetwork") != Some(&Value::Bool(true)) {
        found.push("host processes need hostNetwork: true".to_owned());
    }
    found
}

/// `ValidateSecurityContext`.
fn privileges(container: Container<'_>) -> Option<String> {
    let is = |field, value: bool| container.context(field) == Some(&Value::Bool(value));
    let sys_admin =
        || container.strings("capabilities/add").any(|capability| capability == "CAP_SYS_ADMIN");
    let is_wrong = is("allowPrivilegeEscalation", false) && (is("privileged", true) || sys_admin());
    is_wrong.then(|| {
        format!(
            "container {} is privileged or adds CAP_SYS_ADMIN, but sets allowPrivilegeEscalation: false",
            container.name()
        )
    })
}
