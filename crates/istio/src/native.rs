//! Native sidecars: whether the proxy is an init container that restarts
//! (`pkg/kube/inject/webhook.go`, `DetectNativeSidecar`).

use std::collections::HashMap;

use injectd_gocompat::number::parse_bool;

use crate::release::{Delta, Release};

/// The variable that turns native sidecars on. Default: `false` up to 1.26, then `auto`.
pub const NATIVE_SIDECARS_VARIABLE: &str = "ENABLE_NATIVE_SIDECARS";

/// The annotation that turns a pod's native sidecar on or off, from 1.24 on: `true` or `false`.
/// Templates from 1.27 on take every other text as `true`.
pub const NATIVE_SIDECAR_ANNOTATION: &str = "sidecar.istio.io/nativeSidecar";

/// The minor version of Kubernetes from which on native sidecars are used.
// In 1.33 native sidecars became stable.
const MINIMUM_MINOR: u64 = 33;

/// Where native sidecars are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everywhere.
    On,
    /// Nowhere.
    Off,
    /// Where the kubelets are new enough.
    Auto,
}

impl Mode {
    /// Reads [`NATIVE_SIDECARS_VARIABLE`], with a warning if its text is unknown or empty. It is a boolean of
    /// Go before [`Delta::NativeByNodes`]; later `true`, `false` or `auto`.
    #[must_use]
    pub fn read(release: Release, text: Option<&str>) -> (Self, Option<String>) {
        let is_auto_known = release.has(Delta::NativeByNodes);
        let known = match text {
            None => Some(if is_auto_known { Self::Auto } else { Self::Off }),
            // Before the mode `auto`, istiod read a boolean of Go, such as `1` or `T`.
            Some(text) if !is_auto_known => {
                parse_bool(text).map(|on| if on { Self::On } else { Self::Off })
            }
            Some("true") => Some(Self::On),
            Some("false") => Some(Self::Off),
            Some("auto") => Some(Self::Auto),
            Some(_) => None,
        };
        let unknown = text.unwrap_or_default();
        known.map_or_else(
            || (Self::Off, Some(unknown_mode(is_auto_known, unknown))),
            |mode| (mode, None),
        )
    }

    /// Whether a pod's sidecar is native unless its annotation says otherwise: `.NativeSidecars` of
    /// templates from 1.27 on. `nodes` are those of the pod's cluster, `None` if they cannot be read;
    /// `node_name` is `spec.nodeName`.
    #[must_use]
    pub fn is_native(self, nodes: Option<&Nodes>, node_name: &str) -> (bool, Option<String>) {
        match (self, nodes) {
            (Self::On, _) => (true, None),
            (Self::Off, _) => (false, None),
            (Self::Auto, Some(nodes)) => nodes.support(node_name),
            (Self::Auto, None) => {
                let warning = "the nodes of the pod's cluster are not known, so istio-proxy is not a \
                               native sidecar; ENABLE_NATIVE_SIDECARS=true makes it one";
                (false, Some(warning.to_owned()))
            }
        }
    }
}

fn unknown_mode(is_auto_known: bool, text: &str) -> String {
    let known = if is_auto_known { "true, false or auto" } else { "a boolean" };
    format!("{NATIVE_SIDECARS_VARIABLE} must be {known}, but is {text:?}; native sidecars are off")
}

/// Whether a proxy that the template made native is moved among the init containers: `flag` is the
/// answer of [`Mode::is_native`], `annotation` that of the merged pod.
#[must_use]
pub fn moves_proxy(release: Release, flag: bool, annotation: Option<&str>) -> bool {
    match annotation.filter(|_| release.has(Delta::NativeAnnotation)) {
        Some("true") => true,
        Some("false") => false,
        _ => flag,
    }
}

/// The nodes of a cluster: which of them support native sidecars.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    supporting: HashMap<Box<str>, bool>,
    others: usize,
}

impl Nodes {
    /// Adds or updates a node with its `status.nodeInfo.kubeletVersion`. Returns a warning if the
    /// version cannot be parsed; such a node does not support native sidecars.
    pub fn insert(&mut self, name: &str, kubelet_version: &str) -> Option<String> {
        self.remove(name);
        let minor = minor(kubelet_version);
        let supports = is_new_enough(minor);
        self.supporting.insert(name.into(), supports);
        // Counted when a node changes: a review asks for the whole cluster, and clusters have
        // thousands of nodes.
        self.others += usize::from(!supports);
        minor.is_none().then(|| {
            format!(
                "could not read node version for {name} {kubelet_version}: \
                 malformed version: {kubelet_version}"
            )
        })
    }

    /// Removes a node that is gone.
    pub fn remove(&mut self, name: &str) {
        if self.supporting.remove(name) == Some(false) {
            self.others -= 1;
        }
    }

    /// Whether [`Nodes::insert`] would change an answer.
    #[must_use]
    pub fn is_news(&self, name: &str, kubelet_version: &str) -> bool {
        self.supporting.get(name) != Some(&is_new_enough(minor(kubelet_version)))
    }

    /// The number of nodes, and of those that do not support native sidecars.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        (self.supporting.len(), self.others)
    }

    /// Whether the pod's node supports native sidecars, or all nodes if it has none or is unknown.
    fn support(&self, node_name: &str) -> (bool, Option<String>) {
        // The scheduler may place the pod on any node: one old kubelet is enough to decide against
        // it.
        let supported = self.others == 0;
        if node_name.is_empty() {
            return (supported, None);
        }
        self.supporting.get(node_name).map_or_else(
            || {
                let warning =
                    format!("pod assigned to node {node_name:?} but node not found in cluster");
                (supported, Some(warning))
            },
            |supports| (*supports, None),
        )
    }
}

fn is_new_enough(minor: Option<u64>) -> bool {
    minor.is_some_and(|minor| minor >= MINIMUM_MINOR)
}

/// The second number of a version, 0 if there is only one: `33` of `v1.33.0-gke.100`.
///
/// The form is that of `hashicorp/go-version`: numbers with points between, then optional parts of
/// letters, digits, `-` and `~` for a pre-release and, after `+`, for a build.
fn minor(version: &str) -> Option<u64> {
    let text = version.strip_prefix('v').unwrap_or(version);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut segments = Vec::new();
    for number in numbers.split('.') {
        let number: u64 = number.parse().ok()?;
        segments.push(i64::try_from(number).ok().map(|_| number)?);
    }
    let (pre_release, build) = match rest.split_once('+') {
        Some((pre_release, build)) => (pre_release, Some(build)),
        None => (rest, None),
    };
    let is_valid =
        (pre_release.is_empty() || is_identifiers(pre_release)) && build.is_none_or(is_identifiers);
    is_valid.then(|| segments.get(1).copied().unwrap_or(0))
}

/// Non-empty words of letters, digits, `-` and `~`, with points between.
fn is_identifiers(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-~".contains(&b))
    };
    text.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Release = Release::new(26, 0);
    const NEW: Release = Release::new(27, 0);

    #[test]
    fn the_mode_is_read_by_release() {
        for (text, old, new) in [
            (None, Some(Mode::Off), Some(Mode::Auto)),
            (Some(""), None, None),
            (Some("true"), Some(Mode::On), Some(Mode::On)),
            (Some("false"), Some(Mode::Off), Some(Mode::Off)),
            (Some("1"), Some(Mode::On), None),
            (Some("T"), Some(Mode::On), None),
            (Some("auto"), None, Some(Mode::Auto)),
            (Some("maybe"), None, None),
        ] {
            for (release, expected) in [(OLD, old), (NEW, new)] {
                let (mode, warning) = Mode::read(release, text);
                assert_eq!(mode, expected.unwrap_or(Mode::Off), "{text:?} {release}");
                assert_eq!(warning.is_some(), expected.is_none(), "{text:?} {release}");
            }
        }
    }

    #[test]
    fn kubelet_versions_are_parsed() {
        for (version, expected) in [
            ("v1.33.0", Some(33)),
            ("v1.33.0+k3s1", Some(33)),
            ("v1.33.0-gke.100", Some(33)),
            ("v1.33", Some(33)),
            ("1.33.0", Some(33)),
            ("v1.33.0-alpha.1+abc-dirty", Some(33)),
            ("v1.32.9", Some(32)),
            ("v2.0.1", Some(0)),
            ("v1", Some(0)),
            ("V1.33.0", None),
            ("1.33.x", None),
            ("v1.33.0_foo", None),
            ("", None),
            (" ", None),
            ("v1.33.0 ", None),
            ("v1.33.", None),
            ("v1.33.0+", None),
            ("v1.33.0-a..b", None),
            ("v1.99999999999999999999", None),
            ("not-a-version", None),
        ] {
            assert_eq!(minor(version), expected, "{version}");
        }
    }

    #[test]
    fn auto_asks_the_pods_node_or_all() {
        let mut nodes = Nodes::default();
        let auto = |nodes: &Nodes, name| Mode::Auto.is_native(Some(nodes), name).0;
        assert!(auto(&nodes, ""), "no nodes");
        assert_eq!(nodes.insert("new", "v1.33.0"), None);
        assert!(auto(&nodes, ""));
        assert_eq!(nodes.insert("old", "v1.32.0"), None);
        assert!(!auto(&nodes, ""));
        assert!(auto(&nodes, "new"));
        assert!(!auto(&nodes, "old"));
        assert_eq!(nodes.count(), (2, 1));
        let unknown = Mode::Auto.is_native(Some(&nodes), "gone");
        let warning = "pod assigned to node \"gone\" but node not found in cluster";
        assert_eq!(unknown, (false, Some(warning.to_owned())));
        assert!(nodes.is_news("old", "v1.34.0") && nodes.is_news("other", "v1.32.0"));
        assert!(!nodes.is_news("old", "v1.32.9") && !nodes.is_news("new", "v1.34.0"));
        nodes.insert("old", "v1.34.0");
        assert!(auto(&nodes, "gone"));
        let warning = nodes.insert("odd", "x").expect("the version must be malformed");
        assert_eq!(warning, "could not read node version for odd x: malformed version: x");
        assert!(!auto(&nodes, ""));
        nodes.remove("odd");
        nodes.remove("odd");
        assert!(auto(&nodes, ""));
        assert_eq!(nodes.count(), (2, 0));
    }

    #[test]
    fn without_nodes_to_read_auto_is_off() {
        let (native, warning) = Mode::Auto.is_native(None, "");
        assert!(!native && warning.is_some());
        assert_eq!(Mode::On.is_native(None, ""), (true, None));
        assert_eq!(Mode::Off.is_native(None, ""), (false, None));
    }

    #[test]
    fn the_annotation_wins_from_1_24_on() {
        for (minor, flag, annotation, expected) in [
            (23, false, Some("true"), false),
            (24, false, Some("true"), true),
            (24, true, Some("false"), false),
            (31, true, Some("yes"), true),
            (31, false, Some("yes"), false),
            (31, true, None, true),
        ] {
            let moves = moves_proxy(Release::new(minor, 0), flag, annotation);
            assert_eq!(moves, expected, "{minor} {flag} {annotation:?}");
        }
    }
}
