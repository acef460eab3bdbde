//! The checks of the level baseline.

use injectd_k8s::pod_security::{
    APP_ARMOR_PREFIX, CAPABILITIES, PROFILES, SELINUX_TYPES, SYSCTLS, is_app_armor_profile,
};
use serde_json::Value;

use super::{
    super::{
        integer, items,
        pod::{Container, Pod},
        present, text,
        version::Version,
    },
    Check, EVER, Id,
};

pub(super) const CHECKS: &[Check] = &[
    Check::new(Id::Other, &[(EVER, app_armor)]),
    Check::new(Id::Capabilities, &[(EVER, capabilities)]),
    Check::new(Id::Other, &[(EVER, host_namespaces)]),
    Check::new(Id::HostPaths, &[(EVER, host_paths)]),
    Check::new(Id::Other, &[(EVER, host_ports)]),
    Check::new(Id::Other, &[(Version::minor(34), probe_hosts)]),
    Check::new(Id::Other, &[(EVER, privileged)]),
    // Up to 1.34 user namespaces count only with a feature gate that is never on by default.
    Check::new(
        Id::ProcMount,
        &[(EVER, proc_mount), (Version::minor(35), proc_mount_of_hosts_users)],
    ),
    Check::new(
        Id::Other,
        &[(EVER, |pod| selinux(pod, 0)), (Version::minor(31), |pod| selinux(pod, 31))],
    ),
    Check::new(Id::Seccomp, &[(EVER, seccomp_annotations), (Version::minor(19), seccomp)]),
    Check::new(
        Id::Other,
        &[
            (EVER, |pod| sysctls(pod, 0)),
            (Version::minor(27), |pod| sysctls(pod, 27)),
            (Version::minor(29), |pod| sysctls(pod, 29)),
            (Version::minor(32), |pod| sysctls(pod, 32)),
            (Version::minor(37), |pod| sysctls(pod, 37)),
        ],
    ),
    Check::new(Id::Other, &[(EVER, host_processes)]),
];

/// The annotations of seccomp up to 1.18: of the pod, and before the name of a container.
const SECCOMP: [&str; 2] =
    ["seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/"];

fn app_armor(pod: Pod<'_>) -> Vec<String> {
    let mut found = profiles(pod, "appArmorProfile");
    let annotations = pod.annotations().filter(|(key, _)| key.starts_with(APP_ARMOR_PREFIX));
    let wrong = annotations.filter(|(_, profile)| !is_app_armor_profile(profile));
    found.extend(wrong.map(|(key, profile)| format!("the annotation {key} is {profile}")));
    found
}

/// Contexts with a profile of another type than the two that are allowed.
pub(super) fn profiles(pod: Pod<'_>, field: &str) -> Vec<String> {
    let contexts = pod.contexts();
    let wrong = contexts.filter_map(|(who, context)| {
        let profile = present(context, &format!("/{field}"))?;
        let of_type = text(profile, "/type").unwrap_or_default();
        let named = if of_type.is_empty() { "without a type" } else { of_type };
        (!is_safe_profile(of_type)).then(|| format!("{who} has {field} {named}"))
    });
    wrong.collect()
}

pub(super) fn is_safe_profile(of_type: &str) -> bool {
    PROFILES.contains(&of_type)
}

fn capabilities(pod: Pod<'_>) -> Vec<String> {
    added(pod, |capability| CAPABILITIES.contains(&capability))
}

/// Containers that add other capabilities than those that are allowed.
pub(super) fn added(pod: Pod<'_>, is_allowed: fn(&str) -> bool) -> Vec<String> {
    let of = |container: Container<'_>| {
        let add =
            container.strings("capabilities/add").filter(|capability| !is_allowed(capability));
        let add = add.collect::<Vec<_>>().join(", ");
        let who = container.name();
        (!add.is_empty()).then(|| format!("container {who} adds the capabilities {add}"))
    };
    pod.containers().filter_map(of).collect()
}

fn host_namespaces(pod: Pod<'_>) -> Vec<String> {
    let set = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| pod.is_true(field));
    set.map(|field| format!("the pod sets {field}")).collect()
}

fn host_paths(pod: Pod<'_>) -> Vec<String> {
    let volumes = items(pod.spec("volumes")).iter();
    let volumes = volumes.filter(|volume| present(volume, "/hostPath").is_some());
    volumes
        .map(|volume| {
            format!("volume {} has a hostPath", text(volume, "/name").unwrap_or_default())
        })
        .collect()
}

/// With `hostNetwork` every port is one of the host (`SetDefaults_Pod`).
fn host_ports(pod: Pod<'_>) -> Vec<String> {
    let mut fields = vec![("/hostPort", "has a hostPort")];
    if pod.is_true("hostNetwork") {
        fields.push(("/containerPort", "has ports, which hostNetwork makes ports of the host"));
    }
    let of = |container: Container<'_>| {
        let ports = items(container.0.get("ports"));
        let is_set = |field: &str| {
            let mut numbers = ports.iter().filter_map(|port| integer(present(port, field)?));
            numbers.any(|number| number != 0)
        };
        let (_, text) = fields.iter().find(|(field, _)| is_set(field))?;
        Some(format!("container {} {text}", container.name()))
    };
    pod.containers().filter_map(of).collect()
}

fn probe_hosts(pod: Pod<'_>) -> Vec<String> {
    const HANDLERS: [&str; 5] = [
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle/postStart",
        "lifecycle/preStop",
    ];
    let mut found = Vec::new();
    for container in pod.containers() {
        for handler in HANDLERS {
            for action in ["httpGet", "tcpSocket"] {
                let host = text(container.0, &format!("/{handler}/{action}/host"));
                if let Some(host) = host.filter(|host| !host.is_empty()) {
                    let who = container.name();
                    let field = handler.replace('/', ".");
                    found.push(format!("container {who} has the host {host} in {field}.{action}"));
                }
            }
        }
    }
    found
}

fn privileged(pod: Pod<'_>) -> Vec<String> {
    let is_true =
        |container: &Container<'_>| container.context("privileged") == Some(&Value::Bool(true));
    let containers = pod.containers().filter(is_true);
    containers.map(|container| format!("container {} is privileged", container.name())).collect()
}

pub(super) fn proc_mount(pod: Pod<'_>) -> Vec<String> {
    let of = |container: Container<'_>| {
        let mount = container.context("procMount")?.as_str().filter(|mount| *mount != "Default")?;
        Some(format!("container {} has procMount {mount}", container.name()))
    };
    pod.containers().filter_map(of).collect()
}

fn proc_mount_of_hosts_users(pod: Pod<'_>) -> Vec<String> {
    if pod.has_user_namespace() { Vec::new() } else { proc_mount(pod) }
}

fn selinux(pod: Pod<'_>, minor: u16) -> Vec<String> {
    let is_allowed = |of_type: &str| {
        SELINUX_TYPES.iter().any(|(allowed, since)| *allowed == of_type && *since <= minor)
    };
    let wrong = |context: &Value| {
        let is_wrong = |key: &str| {
            let option = text(context, &format!("/seLinuxOptions/{key}")).unwrap_or_default();
            if key == "type" { !is_allowed(option) } else { !option.is_empty() }
        };
        let keys = ["type", "user", "role"].into_iter().filter(|key| is_wrong(key));
        keys.map(|key| format!("seLinuxOptions.{key}")).collect::<Vec<_>>().join(", ")
    };
    let contexts = pod.contexts().map(|(who, context)| (who, wrong(context)));
    let contexts = contexts.filter(|(_, wrong)| !wrong.is_empty());
    contexts.map(|(who, wrong)| format!("{who} sets {wrong}")).collect()
}

fn seccomp_annotations(pod: Pod<'_>) -> Vec<String> {
    let is_allowed = |profile: &str| {
        matches!(profile, "runtime/default" | "docker/default") || profile.starts_with("localhost/")
    };
    let is_of_container = |key: &str| {
        let name = key.strip_prefix(SECCOMP[1]);
        name.is_some_and(|name| pod.containers().any(|container| container.name() == name))
    };
    let annotations = pod.annotations();
    let wrong = annotations.filter(|(key, profile)| {
        (*key == SECCOMP[0] || is_of_container(key)) && !is_allowed(profile)
    });
    wrong.map(|(key, profile)| format!("the annotation {key} is {profile}")).collect()
}

fn seccomp(pod: Pod<'_>) -> Vec<String> {
    profiles(pod, "seccompProfile")
}

fn sysctls(pod: Pod<'_>, minor: u16) -> Vec<String> {
    let names = items(pod.spec("securityContext/sysctls")).iter();
    let names = names.map(|sysctl| text(sysctl, "/name").unwrap_or_default());
    let is_safe = |name: &&str| SYSCTLS.iter().any(|(safe, since)| safe == name && *since <= minor);
    names
        .filter(|name| !is_safe(name))
        .map(|name| format!("the pod sets the sysctl {name}"))
        .collect()
}

fn host_processes(pod: Pod<'_>) -> Vec<String> {
    let is_true = |context: &Value| {
        present(context, "/windowsOptions/hostProcess") == Some(&Value::Bool(true))
    };
    let contexts = pod.contexts().filter(|(_, context)| is_true(context));
    contexts.map(|(who, _)| format!("{who} is a host process")).collect()
}
