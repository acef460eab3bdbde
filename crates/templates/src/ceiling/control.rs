//! The controls of the Pod Security Standards as a table (k8s.io/pod-security-admission v0.37.2, `policy`).
//!
//! The names are those of the documentation of Kubernetes.

use injectd_k8s::pod_security::{CAPABILITIES, PROFILES, SELINUX_TYPES, SYSCTLS, VOLUMES};

/// A control at a place.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) name: &'static str,
    pub(super) of: Of,
    /// Fields from there on; `*` is each item of a list.
    pub(super) path: &'static [&'static str],
    pub(super) allowed: Allowed,
}

/// What a control looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// The `spec` of the pod.
    Spec,
    /// Each container.
    Container,
    /// The `securityContext` of the pod, and of each container.
    Context,
    /// Each volume.
    Volume,
}

/// What is allowed. A field that is absent is allowed, but for those that must be there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Allowed {
    /// Nothing.
    Absent,
    /// `false`.
    False,
    /// `false`, and a container that is added must have it.
    NeedsFalse,
    /// `true`, and a container that is added must have it.
    NeedsTrue,
    /// 0.
    Zero,
    /// Any number but 0.
    NotZero,
    /// An empty text.
    Empty,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these texts, and a container that is added must have one.
    NeedsOneOf(&'static [&'static str]),
    /// A list with this text, and a container that is added must have it.
    NeedsItem(&'static str),
    /// A kernel parameter of the table.
    Sysctl,
    /// A label of `SELinux` of the table.
    SelinuxType,
    /// An object with fields of these names only, besides `name`.
    Sources(&'static [&'static str]),
}

const fn of(
    name: &'static str,
    of: Of,
    path: &'static [&'static str],
    allowed: Allowed,
) -> Control {
    Control { name, of, path, allowed }
}

/// The field with what a container, or a pod, may do.
pub(super) const CONTEXT: &str = "securityContext";
const CAPABILITIES_OF: &str = "Capabilities";
const HOSTS: &str = "Host Probes / Lifecycle Hooks";
const HOST_NAMESPACES: &str = "Host Namespaces";
const SECCOMP: &str = "Seccomp";

/// The controls of the level baseline that the level restricted has as well.
const BOTH: &[Control] = &[
    of("HostProcess", Of::Context, &["windowsOptions", "hostProcess"], Allowed::False),
    of(HOST_NAMESPACES, Of::Spec, &["hostNetwork"], Allowed::False),
    of(HOST_NAMESPACES, Of::Spec, &["hostPID"], Allowed::False),
    of(HOST_NAMESPACES, Of::Spec, &["hostIPC"], Allowed::False),
    of("Privileged Containers", Of::Container, &[CONTEXT, "privileged"], Allowed::False),
    of("Host Ports", Of::Container, &["ports", "*", "hostPort"], Allowed::Zero),
    of(HOSTS, Of::Container, &["livenessProbe", "httpGet", "host"], Allowed::Empty),
    of(HOSTS, Of::Container, &["livenessProbe", "tcpSocket", "host"], Allowed::Empty),
    of(HOSTS, Of::Container, &["readinessProbe", "httpGet", "host"], Allowed::Empty),
    of(HOSTS, Of::Container, &["readinessProbe", "tcpSocket", "host"], Allowed::Empty),
    of(HOSTS, Of::Container, &["startupProbe", "httpGet", "host"], Allowed::Empty),
    of(HOSTS, Of::Container, &["startupProbe", "tcpSocket", "host"], Allowed::Empty),
    of(HOSTS, Of::Container, &["lifecycle", "postStart", "httpGet", "host"], Allowed::Empty),
    of(HOSTS, Of::Container, &["lifecycle", "postStart", "tcpSocket", "host"], Allowed::Empty),
    of(HOSTS, Of::Container, &["lifecycle", "preStop", "httpGet", "host"], Allowed::Empty),
    of(HOSTS, Of::Container, &["lifecycle", "preStop", "tcpSocket", "host"], Allowed::Empty),
    of("AppArmor", Of::Context, &["appArmorProfile", "type"], Allowed::OneOf(&PROFILES)),
    of("SELinux", Of::Context, &["seLinuxOptions", "type"], Allowed::SelinuxType),
    of("SELinux", Of::Context, &["seLinuxOptions", "user"], Allowed::Empty),
    of("SELinux", Of::Context, &["seLinuxOptions", "role"], Allowed::Empty),
    // Any type would do in a pod with hostUsers: false, which is not known here.
    of("/proc Mount Type", Of::Container, &[CONTEXT, "procMount"], Allowed::OneOf(&["Default"])),
    of("Sysctls", Of::Spec, &[CONTEXT, "sysctls", "*", "name"], Allowed::Sysctl),
];

/// Controls of the level baseline that others of the level restricted replace.
const BASELINE: &[Control] = &[
    of(
        CAPABILITIES_OF,
        Of::Container,
        &[CONTEXT, "capabilities", "add", "*"],
        Allowed::OneOf(&CAPABILITIES),
    ),
    of("HostPath Volumes", Of::Volume, &["hostPath"], Allowed::Absent),
    of(SECCOMP, Of::Context, &["seccompProfile", "type"], Allowed::OneOf(&PROFILES)),
];

/// Controls of the level restricted only. Windows pods and pods with `hostUsers: false` are exempt from some
/// of them; whether a pod is one is not known here.
const RESTRICTED: &[Control] = &[
    of("Volume Types", Of::Volume, &[], Allowed::Sources(&VOLUMES)),
    of(
        "Privilege Escalation",
        Of::Container,
        &[CONTEXT, "allowPrivilegeEscalation"],
        Allowed::NeedsFalse,
    ),
    of("Running as Non-root", Of::Context, &["runAsNonRoot"], Allowed::NeedsTrue),
    of("Running as Non-root user", Of::Context, &["runAsUser"], Allowed::NotZero),
    of(SECCOMP, Of::Context, &["seccompProfile", "type"], Allowed::NeedsOneOf(&PROFILES)),
    of(
        CAPABILITIES_OF,
        Of::Container,
        &[CONTEXT, "capabilities", "drop"],
        Allowed::NeedsItem("ALL"),
    ),
    of(
        CAPABILITIES_OF,
        Of::Container,
        &[CONTEXT, "capabilities", "add", "*"],
        Allowed::OneOf(&["NET_BIND_SERVICE"]),
    ),
];

/// The controls of a level.
pub(super) fn controls(is_restricted: bool) -> impl Iterator<Item = &'static Control> {
    BOTH.iter().chain(if is_restricted { RESTRICTED } else { BASELINE })
}

impl Allowed {
    /// Whether a container that is added must have the field.
    pub(super) fn is_needed(self) -> bool {
        matches!(
            self,
            Self::NeedsFalse | Self::NeedsTrue | Self::NeedsOneOf(_) | Self::NeedsItem(_)
        )
    }

    /// The texts that are allowed, if they are a list.
    pub(super) fn texts(self) -> Option<Vec<&'static str>> {
        let names = |table: &'static [(&'static str, u16)]| {
            table.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect()
        };
        match self {
            Self::OneOf(texts) | Self::NeedsOneOf(texts) | Self::Sources(texts) => {
                Some(texts.to_vec())
            }
            Self::Sysctl => Some(names(&SYSCTLS)),
            Self::SelinuxType => Some(names(&SELINUX_TYPES)),
            _ => None,
        }
    }

    /// What is allowed, in the words of a sentence: "expected …".
    pub(super) fn words(self) -> String {
        match self {
            Self::Absent => "a volume without it".to_owned(),
            Self::False => "false or no value".to_owned(),
            Self::NeedsFalse => "false".to_owned(),
            Self::NeedsTrue => "true".to_owned(),
            Self::Zero => "0 or no value".to_owned(),
            Self::NotZero => "another number than 0, or no value".to_owned(),
            Self::Empty => "no value".to_owned(),
            Self::NeedsItem(item) => format!("a list with {item}"),
            other => match other.texts().as_deref() {
                Some([one]) => (*one).to_owned(),
                Some([first @ .., last]) => format!("{} or {last}", first.join(", ")),
                _ => "no value".to_owned(),
            },
        }
    }
}
