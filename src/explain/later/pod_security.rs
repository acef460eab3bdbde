//! The Pod Security Standards (`kubernetes.io/docs/concepts/security/pod-security-standards`), newest
//! version. Exemptions and defaults of the API server's own configuration cannot be seen from outside.

use serde_json::Value;

use super::{Effect, Objection, containers, items, objection, text};

/// The label of a namespace for each mode.
const MODES: [(&str, Effect); 3] = [
    ("pod-security.kubernetes.io/enforce", Effect::Refuses),
    ("pod-security.kubernetes.io/warn", Effect::Warns),
    ("pod-security.kubernetes.io/audit", Effect::Audits),
];

/// The capabilities that a container may add.
const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The kernel parameters that a pod may set.
const SAFE_SYSCTLS: [&str; 10] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
];

/// The types of SELinux labels that a container may have.
const SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// The sources of volumes under the level `restricted`.
const RESTRICTED_VOLUMES: [&str; 9] = [
    "name",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The objections of the levels that the labels of a namespace name.
pub(super) fn objections(namespace: Option<&Value>, pod: &Value) -> Vec<Objection> {
    let labels = namespace.and_then(|namespace| namespace.pointer("/metadata/labels"));
    let mut found = Vec::new();
    for (label, effect) in MODES {
        let level = labels.and_then(|labels| labels.get(label)).and_then(Value::as_str);
        let Some(level) = level else { continue };
        let problems = match level {
            "baseline" => baseline(pod),
            "restricted" => [baseline(pod), restricted(pod)].concat(),
            _ => continue,
        };
        let by = format!("PodSecurity {level}");
        found.extend(problems.into_iter().map(|text| objection(effect, by.clone(), text)));
    }
    found
}

fn name(container: &Value) -> &str {
    text(container, "/name").unwrap_or_default()
}

/// The security contexts that name something: of the pod, and of each container.
fn contexts(pod: &Value) -> impl Iterator<Item = (String, &Value)> {
    let of_pod =
        pod.pointer("/spec/securityContext").map(|context| ("the pod".to_owned(), context));
    let of_containers = containers(pod).filter_map(|container| {
        let context = container.get("securityContext")?;
        Some((format!("container {}", name(container)), context))
    });
    of_pod.into_iter().chain(of_containers)
}

fn strings<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v str> {
    items(value.pointer(pointer)).iter().filter_map(Value::as_str)
}

fn is_true(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer) == Some(&Value::Bool(true))
}

fn baseline(pod: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        if is_true(pod, &format!("/spec/{field}")) {
            problems.push(format!("the pod sets {field}"));
        }
    }
    for volume in items(pod.pointer("/spec/volumes")) {
        if volume.get("hostPath").is_some_and(|path| !path.is_null()) {
            problems.push(format!("volume {} has a hostPath", name(volume)));
        }
    }
    for sysctl in items(pod.pointer("/spec/securityContext/sysctls")) {
        let sysctl = name(sysctl);
        if !SAFE_SYSCTLS.contains(&sysctl) {
            problems.push(format!("the pod sets the sysctl {sysctl}"));
        }
    }
    for container in containers(pod) {
        let who = name(container);
        let add: Vec<_> = strings(container, "/securityContext/capabilities/add")
            .filter(|capability| !BASELINE_CAPABILITIES.contains(capability))
            .collect();
        if !add.is_empty() {
            problems.push(format!("container {who} adds the capabilities {}", add.join(", ")));
        }
        if is_true(container, "/securityContext/privileged") {
            problems.push(format!("container {who} is privileged"));
        }
        let ports = items(container.get("ports")).iter();
        let mut host_ports = ports.filter_map(|port| port.get("hostPort")?.as_i64());
        if host_ports.any(|port| port != 0) {
            problems.push(format!("container {who} has a hostPort"));
        }
        let mount = text(container, "/securityContext/procMount").unwrap_or("Default");
        if mount != "Default" {
            problems.push(format!("container {who} has procMount {mount}"));
        }
    }
    for (who, context) in contexts(pod) {
        for profile in ["seccompProfile", "appArmorProfile"] {
            if text(context, &format!("/{profile}/type")) == Some("Unconfined") {
                problems.push(format!("{who} has the {profile} Unconfined"));
            }
        }
        if is_true(context, "/windowsOptions/hostProcess") {
            problems.push(format!("{who} is a host process"));
        }
        let option = |key: &str| text(context, &format!("/seLinuxOptions/{key}"));
        let has_user =
            ["user", "role"].iter().any(|key| !option(key).unwrap_or_default().is_empty());
        if has_user || !SELINUX_TYPES.contains(&option("type").unwrap_or_default()) {
            problems.push(format!("{who} sets seLinuxOptions"));
        }
    }
    problems
}

fn restricted(pod: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for volume in items(pod.pointer("/spec/volumes")) {
        let sources = volume.as_object().into_iter().flatten();
        let mut sources = sources.filter(|(_, source)| !source.is_null()).map(|(key, _)| key);
        if let Some(source) = sources.find(|key| !RESTRICTED_VOLUMES.contains(&key.as_str())) {
            problems.push(format!("volume {} is a {source}", name(volume)));
        }
    }
    let of_pod = pod.pointer("/spec/securityContext").unwrap_or(&Value::Null);
    for container in containers(pod) {
        let who = name(container);
        let own = container.get("securityContext").unwrap_or(&Value::Null);
        if own.get("allowPrivilegeEscalation") != Some(&Value::Bool(false)) {
            problems.push(format!("container {who} does not set allowPrivilegeEscalation: false"));
        }
        if !strings(own, "/capabilities/drop").any(|capability| capability == "ALL") {
            problems.push(format!("container {who} does not drop ALL capabilities"));
        }
        let add = strings(own, "/capabilities/add").filter(|add| *add != "NET_BIND_SERVICE");
        // The others are named by the level baseline.
        let add: Vec<_> = add.filter(|add| BASELINE_CAPABILITIES.contains(add)).collect();
        if !add.is_empty() {
            problems.push(format!("container {who} adds the capabilities {}", add.join(", ")));
        }
        let either = |key: &str| own.get(key).filter(|own| !own.is_null()).or(of_pod.get(key));
        if either("runAsNonRoot") != Some(&Value::Bool(true)) {
            problems.push(format!("container {who} does not set runAsNonRoot: true"));
        }
        if either("runAsUser").and_then(Value::as_i64) == Some(0) {
            problems.push(format!("container {who} runs as user 0"));
        }
        let profile = either("seccompProfile").and_then(|profile| text(profile, "/type"));
        if !matches!(profile, Some("RuntimeDefault" | "Localhost" | "Unconfined")) {
            problems.push(format!(
                "container {who} does not set the seccompProfile RuntimeDefault or Localhost"
            ));
        }
    }
    problems
}
