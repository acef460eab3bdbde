//! Values of a pod that do not stay within their scalar in the YAML that templates write.
//!
//! A template pastes text. A value with a line break, a quote or a comment may end its scalar, and add
//! fields and containers. Such a value is *tainted*. The [guard](TaintedValues) finds it before a pod is
//! merged:
//!
//! 1. [`sources`] lists the annotations, labels and names with other than plain characters.
//! 2. Those that the templates have read, and other such texts that they have read in the `spec`, are
//!    replaced by neutral values ([`neutral`]), and the templates are executed once more. Most pods have
//!    none, and cost nothing more.
//! 3. Both documents must have the same [`shape`]: the same keys, lists and scalars, but for the scalars
//!    that hold the values. The pod's own is read up to as many values as the neutral one has, so a value
//!    that pastes a list of thousands costs no more than a neutral one.
//!
//! A value that stays a scalar passes, whatever YAML makes of it: a text, a number, true, false or null.

pub(crate) mod neutral;
pub(crate) mod shape;
pub(crate) mod sources;

use std::{fmt, str::FromStr};

/// What happens to a pod with a tainted value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaintedValues {
    /// It is injected as by Istio. Nothing is looked for.
    Off,
    /// It is injected as by Istio, with a warning.
    #[default]
    Warn,
    /// It is denied.
    Deny,
}

impl TaintedValues {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Warn, Self::Deny];

    /// Its name in flags.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for TaintedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TaintedValues {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|one| one.as_str() == text);
        known.ok_or_else(|| "must be off, warn or deny".to_owned())
    }
}

/// Where a pod has a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The annotation of this key.
    Annotation(String),
    /// The label of this key.
    Label(String),
    /// A name.
    Name(NameOf),
}

/// A value of a pod that does not stay within its scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tainted {
    /// Where the pod has it.
    pub source: Source,
    /// The names of the templates that write it so, in their order.
    pub templates: Vec<String>,
}

/// What has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NameOf {
    /// The pod: `metadata.name` and `generateName`.
    Pod,
    /// Its namespace.
    Namespace,
    /// Its owner: name, kind and API version.
    Owner,
    /// Something in its `spec`: a container, or any other text.
    Part,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Annotation(key) => write!(f, "annotation {key}"),
            Self::Label(key) => write!(f, "label {key}"),
            Self::Name(NameOf::Pod) => f.write_str("the name of the pod"),
            Self::Name(NameOf::Namespace) => f.write_str("the namespace"),
            Self::Name(NameOf::Owner) => f.write_str("the name of the owner"),
            Self::Name(NameOf::Part) => f.write_str("a value in the spec"),
        }
    }
}

/// What tainted values are counted as: the annotations that the default templates of a release paste
/// without quotes, and the kinds of all others.
pub const COUNTED: [&str; 22] = [
    "apm.datadoghq.com/env",
    "istio.io/reroute-virtual-interfaces",
    "k8s.v1.cni.cncf.io/networks",
    "label",
    "name",
    OTHER,
    "proxy.istio.io/config",
    "sidecar.istio.io/agentLogLevel",
    "sidecar.istio.io/bootstrapOverride",
    "sidecar.istio.io/componentLogLevel",
    "sidecar.istio.io/logLevel",
    "sidecar.istio.io/proxyCPU",
    "sidecar.istio.io/proxyCPULimit",
    "sidecar.istio.io/proxyImage",
    "sidecar.istio.io/proxyImageType",
    "sidecar.istio.io/proxyMemory",
    "sidecar.istio.io/proxyMemoryLimit",
    "sidecar.istio.io/userVolume",
    "sidecar.istio.io/userVolumeMount",
    "traffic.sidecar.istio.io/excludeInterfaces",
    "traffic.sidecar.istio.io/includeOutboundPorts",
    "traffic.sidecar.istio.io/kubevirtInterfaces",
];

/// Another annotation.
const OTHER: &str = "other";

impl Source {
    /// Which of [`COUNTED`] it is.
    #[must_use]
    pub fn counted_as(&self) -> &'static str {
        match self {
            Self::Annotation(key) => {
                COUNTED.into_iter().find(|counted| counted == key).unwrap_or(OTHER)
            }
            Self::Label(_) => "label",
            Self::Name(_) => "name",
        }
    }
}

/// The names of what values are counted as, by the bits of `Outcome::tainted`.
pub fn names(counted: u32) -> impl Iterator<Item = &'static str> {
    let is_counted = move |bit: &usize| counted >> bit & 1 == 1;
    (0..COUNTED.len()).filter(is_counted).map(|bit| COUNTED[bit])
}

/// The end of what is wrong with tainted values.
pub(crate) const CHANGES_OTHER_FIELDS: &str =
    "as text in the template it changes other fields of the pod";

/// The values that a message names.
// The API server may cut a warning after 256 characters, which have room for some names.
const MAX_NAMED: usize = 10;

/// What values are counted as: a bit for each of [`COUNTED`].
pub(crate) fn counted(values: &[Tainted]) -> u32 {
    const { assert!(COUNTED.len() <= u32::BITS as usize) };
    let index = |name| COUNTED.iter().position(|counted| *counted == name).unwrap_or_default();
    values.iter().fold(0, |bits, value| bits | 1 << index(value.source.counted_as()))
}

/// What is wrong with tainted values, for people.
pub(crate) fn problem(values: &[Tainted]) -> String {
    let first = values.iter().take(MAX_NAMED);
    let names: Vec<_> = first.map(|value| value.source.to_string()).collect();
    let holds = if values.len() == 1 { "holds" } else { "hold" };
    let more = match values.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more} {holds} more than a value: {CHANGES_OTHER_FIELDS}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_some_values() {
        let value = |index: usize| {
            let source = Source::Label(format!("l{index}"));
            Tainted { source, templates: vec!["sidecar".to_owned()] }
        };
        let values: Vec<_> = (0..MAX_NAMED + 5).map(value).collect();
        let problem = problem(&values);
        assert!(problem.contains("label l9 and 5 more hold more"), "{problem}");
        assert!(!problem.contains("l10"), "{problem}");
    }
}
