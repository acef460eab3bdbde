//! How many pods have each revision of each template, by what the pods say themselves. A pod's mark may be
//! forged: it counts for templates that may be in its namespace, and with what looks like a hash.

use std::collections::{BTreeMap, BTreeSet};

use injectd_profiles::template_plane::KnownTemplates;
use injectd_templates::{mark, object::Identity};
use serde::Deserialize;

/// Maximum number of bytes of a mark that is read.
// The creator of a pod may write any annotation. A mark of injectd has some hundred bytes for each
// template.
const MAX_MARK: usize = 64 << 10;
/// Maximum number of revisions of a template that are counted one by one.
// A forged mark may have any hash, and each takes a place.
const MAX_REVISIONS: usize = 1_000;
/// Characters of a hash.
const HASH_DIGITS: usize = 10;
/// Phases of pods that have ended.
const ENDED: [&str; 2] = ["Succeeded", "Failed"];

/// A pod, with what is counted of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pod {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    namespace: String,
    annotations: Option<Annotations>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "injectd.dev/templates")]
    mark: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    init_containers: Vec<Container>,
    containers: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

/// What a mark says of a template.
#[derive(Debug, Deserialize)]
struct Entry {
    hash: String,
    #[serde(default)]
    added: Vec<String>,
}

/// Pods by template and by hash of the revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PodCounts(BTreeMap<Identity, Counts>);

/// Pods of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// By the hash of the revision.
    pub(super) by_hash: BTreeMap<String, u32>,
    /// Those of further revisions.
    pub(super) others: u32,
}

/// The label selector of the pods that are counted.
pub(super) fn selector() -> String {
    format!("{}=true", mark::LABEL)
}

impl PodCounts {
    /// Adds the pods of a page.
    pub(super) fn add<'p>(
        &mut self,
        known: &BTreeSet<Identity>,
        pods: impl IntoIterator<Item = &'p Pod>,
    ) {
        for pod in pods {
            self.add_pod(known, pod);
        }
    }

    /// The pods of a template.
    pub(super) fn of(&self, identity: &Identity) -> Counts {
        self.0.get(identity).cloned().unwrap_or_default()
    }

    fn add_pod(&mut self, known: &BTreeSet<Identity>, pod: &Pod) {
        let text = pod.metadata.annotations.as_ref().map_or("", |annotations| &annotations.mark);
        if text.len() > MAX_MARK || ENDED.contains(&&*pod.status.phase) {
            return;
        }
        let Ok(mark) = serde_json::from_str::<BTreeMap<String, Entry>>(text) else { return };
        for (key, entry) in mark {
            let identity = identity(&key);
            let is_of_namespace =
                identity.namespace.as_ref().is_none_or(|own| *own == pod.metadata.namespace);
            if is_of_namespace
                && known.contains(&identity)
                && is_hash(&entry.hash)
                && entry.added.iter().all(|name| pod.has(name))
            {
                self.0.entry(identity).or_default().add(entry.hash);
            }
        }
    }
}

impl Pod {
    fn has(&self, container: &str) -> bool {
        let Spec { init_containers, containers } = &self.spec;
        init_containers.iter().chain(containers).any(|known| known.name == container)
    }
}

impl Counts {
    /// All pods.
    pub(super) fn total(&self) -> u32 {
        self.by_hash.values().fold(self.others, |sum, count| sum.saturating_add(*count))
    }

    fn add(&mut self, hash: String) {
        if self.by_hash.len() >= MAX_REVISIONS && !self.by_hash.contains_key(&hash) {
            self.others = self.others.saturating_add(1);
            return;
        }
        let count = self.by_hash.entry(hash).or_default();
        *count = count.saturating_add(1);
    }
}

/// The templates whose pods are counted.
pub(super) fn counted(known: &KnownTemplates) -> BTreeSet<Identity> {
    known.templates.keys().cloned().collect()
}

/// The template of a key of a mark.
fn identity(key: &str) -> Identity {
    match key.split_once('/') {
        Some((namespace, name)) => {
            Identity { namespace: Some(namespace.to_owned()), name: name.to_owned() }
        }
        None => Identity { namespace: None, name: key.to_owned() },
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(namespace: &str, mark: &str, phase: &str) -> Pod {
        let pod = json!({
            "metadata": {"namespace": namespace, "annotations": {"injectd.dev/templates": mark}},
            "spec": {"containers": [{"name": "app", "image": "x"}, {"name": "agent"}]},
            "status": {"phase": phase},
        });
        serde_json::from_value(pod).expect("a pod")
    }

    fn counts(pods: &[Pod]) -> PodCounts {
        let known = ["agent", "team-a/proxy"].map(identity);
        let mut counts = PodCounts::default();
        counts.add(&known.into(), pods);
        counts
    }

    #[test]
    fn pods_count_by_template_and_revision() {
        let mark = |hash: &str, added: &str| {
            format!(r#"{{"agent":{{"hash":"{hash}","added":["{added}"],"served":["app"]}}}}"#)
        };
        let found = counts(&[
            pod("a", &mark("0123456789", "agent"), "Running"),
            pod("b", &mark("0123456789", "agent"), "Pending"),
            pod("b", &mark("abcdef0123", "agent"), "Running"),
            // It has ended.
            pod("b", &mark("abcdef0123", "agent"), "Succeeded"),
        ]);
        let agent = found.of(&identity("agent"));
        assert_eq!(agent.total(), 3);
        assert_eq!(agent.by_hash["0123456789"], 2);
    }

    #[test]
    fn a_mark_that_cannot_be_is_not_counted() {
        let of = |key: &str, hash: &str, added: &str| {
            format!(r#"{{"{key}":{{"hash":"{hash}","added":["{added}"],"served":[]}}}}"#)
        };
        let found = counts(&[
            pod("a", &of("agent", "0123456789", "gone"), "Running"),
            pod("a", &of("agent", "<script>ab", "agent"), "Running"),
            pod("a", &of("other", "0123456789", "agent"), "Running"),
            pod("team-b", &of("team-a/proxy", "0123456789", "agent"), "Running"),
            pod("a", "{", "Running"),
            pod("a", "", "Running"),
            pod("a", &" ".repeat(MAX_MARK + 1), "Running"),
        ]);
        assert_eq!(found, PodCounts::default());
        let found = counts(&[pod("team-a", &of("team-a/proxy", "0123456789", "agent"), "")]);
        assert_eq!(found.of(&identity("team-a/proxy")).total(), 1);
    }

    #[test]
    fn revisions_that_are_counted_are_bounded() {
        let marks = (0..MAX_REVISIONS + 7).map(|number| {
            let mark = format!(r#"{{"agent":{{"hash":"{number:010x}","added":[],"served":[]}}}}"#);
            pod("a", &mark, "Running")
        });
        let agent = counts(&marks.collect::<Vec<_>>()).of(&identity("agent"));
        assert_eq!((agent.by_hash.len(), agent.others), (MAX_REVISIONS, 7));
    }
}
