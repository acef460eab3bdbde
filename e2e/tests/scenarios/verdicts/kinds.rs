//! Kinds of pods: what Pod Security looks at. Each is a pod that the level `restricted` accepts, with a
//! change.

use super::table::Changes;

/// The kinds: name, weight, changes.
pub(super) const KINDS: [(&str, u32, Changes); 45] = [
    ("compliant", 30, &[]),
    ("bare", 4, &[("/spec/securityContext", ""), ("*/securityContext", "")]),
    (
        "null",
        1,
        &[
            ("/spec/securityContext/runAsNonRoot", "null"),
            ("*/securityContext/capabilities", "null"),
        ],
    ),
    ("root", 1, &[("/spec/securityContext/runAsUser", "0")]),
    ("root-container", 1, &[("/spec/containers/0/securityContext/runAsUser", "0")]),
    ("root-allowed", 1, &[("/spec/containers/0/securityContext/runAsNonRoot", "false")]),
    (
        "non-root-containers",
        1,
        &[("/spec/securityContext/runAsNonRoot", ""), ("*/securityContext/runAsNonRoot", "true")],
    ),
    ("host-network", 1, &[("/spec/hostNetwork", "true")]),
    ("host-pid", 1, &[("/spec/hostPID", "true"), ("/spec/hostIPC", "false")]),
    (
        "host-port",
        1,
        &[("/spec/containers/0/ports", r#"[{"containerPort": 80, "hostPort": 8080}]"#)],
    ),
    (
        "host-path",
        1,
        &[("/spec/volumes", r#"[{"name": "v", "hostPath": {"path": "/etc"}, "emptyDir": null}]"#)],
    ),
    (
        "nfs",
        1,
        &[(
            "/spec/volumes",
            r#"[{"name": "v", "nfs": {"server": "s", "path": "/"}}, {"name": "w"}]"#,
        )],
    ),
    (
        "allowed-volumes",
        1,
        &[(
            "/spec/volumes",
            r#"[{"name": "v", "emptyDir": {}}, {"name": "w", "ephemeral": {"volumeClaimTemplate": {"spec":
                {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}},
                {"name": "i", "image": {"reference": "example.com/i:1"}}]"#,
        )],
    ),
    (
        "probe-host",
        1,
        &[(
            "/spec/containers/0/livenessProbe",
            r#"{"httpGet": {"port": 80, "host": "example.com"}}"#,
        )],
    ),
    (
        "probe-loopback",
        1,
        &[(
            "/spec/containers/0/readinessProbe",
            r#"{"tcpSocket": {"port": 80, "host": "127.0.0.1"}}"#,
        )],
    ),
    (
        "probe-empty-host",
        1,
        &[("/spec/containers/0/startupProbe", r#"{"httpGet": {"port": 80, "host": ""}}"#)],
    ),
    (
        "hook-host",
        1,
        &[(
            "/spec/containers/0/lifecycle",
            r#"{"preStop": {"httpGet": {"port": 80, "host": "10.0.0.1"}}}"#,
        )],
    ),
    // Values of another type.
    ("user-text", 1, &[("/spec/securityContext/runAsUser", r#""5""#)]),
    ("privileged-text", 1, &[("/spec/containers/0/securityContext/privileged", r#""false""#)]),
    ("context-list", 1, &[("/spec/containers/0/securityContext", "[]")]),
    ("overhead-text", 1, &[("/spec/overhead", r#"{"cpu": "x"}"#)]),
    ("label-number", 1, &[("/metadata/labels", r#"{"tier": 5}"#)]),
    ("windows", 1, WINDOWS),
    (
        "windows-host-process",
        1,
        &[
            ("/spec/os", r#"{"name": "windows"}"#),
            (
                "/spec/securityContext",
                r#"{"windowsOptions": {"hostProcess": true, "runAsUserName": "u"}}"#,
            ),
            ("*/securityContext", ""),
            ("/spec/hostNetwork", "true"),
        ],
    ),
    ("linux", 1, &[("/spec/os", r#"{"name": "linux"}"#), ("*/securityContext/capabilities", "")]),
    (
        "apparmor-annotation",
        1,
        &[(
            "/metadata/annotations",
            r#"{"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}"#,
        )],
    ),
    (
        "apparmor-allowed",
        1,
        &[(
            "/metadata/annotations",
            r#"{"container.apparmor.security.beta.kubernetes.io/main": "localhost/own"}"#,
        )],
    ),
    ("apparmor-pod", 1, &[("/spec/securityContext/appArmorProfile", r#"{"type": "Unconfined"}"#)]),
    (
        "apparmor-container",
        1,
        &[("/spec/containers/0/securityContext/appArmorProfile", r#"{"type": "Unconfined"}"#)],
    ),
    (
        "user-namespace",
        1,
        &[("/spec/hostUsers", "false"), ("/spec/securityContext/runAsNonRoot", "false")],
    ),
    (
        "user-namespace-root",
        1,
        &[("/spec/hostUsers", "false"), ("/spec/containers/0/securityContext/runAsUser", "0")],
    ),
    (
        "proc-mount",
        1,
        &[
            ("/spec/hostUsers", "false"),
            ("/spec/containers/0/securityContext/procMount", r#""Unmasked""#),
        ],
    ),
    (
        "sysctl",
        1,
        &[(
            "/spec/securityContext/sysctls",
            r#"[{"name": "kernel.shm_rmid_forced", "value": "1"}]"#,
        )],
    ),
    (
        "sysctl-1.27",
        1,
        &[(
            "/spec/securityContext/sysctls",
            r#"[{"name": "net.ipv4.ip_local_reserved_ports", "value": "80"}]"#,
        )],
    ),
    (
        "sysctl-1.29",
        1,
        &[(
            "/spec/securityContext/sysctls",
            r#"[{"name": "net.ipv4.tcp_keepalive_time", "value": "1"}]"#,
        )],
    ),
    (
        "sysctl-1.32",
        1,
        &[("/spec/securityContext/sysctls", r#"[{"name": "net.ipv4.tcp_rmem", "value": "1"}]"#)],
    ),
    (
        "sysctl-unsafe",
        1,
        &[("/spec/securityContext/sysctls", r#"[{"name": "kernel.msgmax", "value": "1"}]"#)],
    ),
    (
        "capability",
        1,
        &[("/spec/containers/0/securityContext/capabilities/add", r#"["NET_ADMIN"]"#)],
    ),
    (
        "capability-baseline",
        1,
        &[(
            "/spec/containers/0/securityContext/capabilities/add",
            r#"["CHOWN", "NET_BIND_SERVICE"]"#,
        )],
    ),
    (
        "capability-bind",
        1,
        &[("/spec/containers/0/securityContext/capabilities/add", r#"["NET_BIND_SERVICE"]"#)],
    ),
    ("drops-some", 1, &[("*/securityContext/capabilities/drop", r#"["NET_RAW", "all"]"#)]),
    (
        "privileged",
        1,
        &[
            ("/spec/containers/0/securityContext/privileged", "true"),
            ("/spec/containers/0/securityContext/allowPrivilegeEscalation", ""),
        ],
    ),
    (
        "seccomp-unconfined",
        1,
        &[("/spec/containers/0/securityContext/seccompProfile", r#"{"type": "Unconfined"}"#)],
    ),
    ("seccomp-absent", 1, &[("/spec/securityContext/seccompProfile", "")]),
    (
        "selinux",
        1,
        &[(
            "/spec/securityContext/seLinuxOptions",
            r#"{"type": "container_engine_t", "level": "s0"}"#,
        )],
    ),
];

const WINDOWS: Changes = &[
    ("/spec/os", r#"{"name": "windows"}"#),
    ("/spec/securityContext", r#"{"runAsNonRoot": true}"#),
    ("*/securityContext", ""),
];
