//! What the Pod Security Standards allow (k8s.io/pod-security-admission v0.37.2, `policy`).
//!
//! Values only: whoever checks pods, or what is added to them, has the controls.

/// Capabilities that a container may add, at the level baseline.
pub const CAPABILITIES: [&str; 13] = [
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

/// Kernel parameters that a pod may set, each with the minor release since which it may.
pub const SYSCTLS: [(&str, u16); 14] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
    ("net.ipv4.tcp_notsent_lowat", 37),
    ("net.ipv4.tcp_slow_start_after_idle", 37),
];

/// Types of `SELinux` labels that a container may have, each with the minor release since which it may.
pub const SELINUX_TYPES: [(&str, u16); 5] = [
    ("", 0),
    ("container_t", 0),
    ("container_init_t", 0),
    ("container_kvm_t", 0),
    ("container_engine_t", 31),
];

/// Annotations with profiles of `AppArmor`, before the name of a container.
pub const APP_ARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Whether an annotation of [`APP_ARMOR_PREFIX`] may have this value.
#[must_use]
pub fn is_app_armor_profile(value: &str) -> bool {
    value.is_empty() || value == "runtime/default" || value.starts_with("localhost/")
}

/// Types of profiles of seccomp and `AppArmor` that a container may have.
pub const PROFILES: [&str; 2] = ["RuntimeDefault", "Localhost"];

/// Sources that a volume may have, at the level restricted.
pub const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
