//! The annotations of one pod in their layers: the pod's own, and the namespace's that it takes
//! over. The layers stay apart; asking for a value puts the pod first.
//!
//! Not for values: what an override does is in [`super::settings`].

use smallvec::SmallVec;

use super::{
    annotations::{Annotation, AnnotationSet, Keys},
    release::{Delta, Release},
};
use crate::pod::TextMap;

/// Which annotations a release reads and how, resolved once per configuration.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    known: Keys,
    inherited: Keys,
    settings: Keys,
}

/// The annotations of one pod in their layers.
#[derive(Debug)]
pub struct Overrides<'a> {
    pod: AnnotationSet<'a>,
    namespace: AnnotationSet<'a>,
    taken_over: Keys,
    read: Keys,
    settings: Keys,
    on_workload: Keys,
}

/// The key of a template: canonical bytes of what it was compiled from.
pub type TemplateKey = SmallVec<[u8; 128]>;

impl Rules {
    /// The rules of a release.
    #[must_use]
    pub fn of(release: Release) -> Self {
        let known = Keys::known_to(release);
        let slots = [Annotation::OpaquePorts, Annotation::AdditionalEnv, Annotation::Inject];
        let without_effect = [Annotation::PodInboundPorts];
        let computed = release.has(Delta::InboundPortsComputed);
        let settings = known.without(&slots).without(if computed { &without_effect } else { &[] });
        Self { known, inherited: Keys::inherited_in(release), settings }
    }

    /// Whether the release knows an annotation.
    #[must_use]
    pub fn know(&self, annotation: Annotation) -> bool {
        self.known.contains(annotation)
    }
}

impl<'a> Overrides<'a> {
    /// Layers the annotations of a pod, of its workload if that is what is reviewed, and of its
    /// namespace. A key that is on the workload is not taken over, but has no effect itself
    /// (`inject.go`, `GetConfigAnnotation`). The inject annotation is also taken over by the template
    /// of a workload that has its own.
    #[must_use]
    pub fn new(
        rules: &Rules,
        pod: &'a TextMap<'_>,
        workload: Option<&'a TextMap<'_>>,
        namespace: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let pod = AnnotationSet::of(pod.iter());
        let namespace = AnnotationSet::of(namespace);
        let on_workload =
            workload.map_or_else(Keys::default, |w| AnnotationSet::of(w.iter()).keys());
        let of_pod = match workload {
            Some(_) => pod.keys().without(&[Annotation::Inject]),
            None => pod.keys(),
        };
        let taken_over = (namespace.keys() & rules.inherited).not_in(of_pod | on_workload);
        let read = (pod.keys() & rules.known) | taken_over;
        Self { pod, namespace, taken_over, read, settings: read & rules.settings, on_workload }
    }

    /// The value that counts: the pod's own, else the one taken over.
    #[must_use]
    pub fn get(&self, annotation: Annotation) -> Option<&'a str> {
        if self.taken_over.contains(annotation) {
            return self.namespace.get(annotation);
        }
        self.pod.get(annotation).filter(|_| self.read.contains(annotation))
    }

    /// The value the pod itself has, known to the release or not.
    #[must_use]
    pub fn of_pod(&self, annotation: Annotation) -> Option<&'a str> {
        self.pod.get(annotation)
    }

    /// Whether the pod has the annotation, or the workload under review.
    #[must_use]
    pub fn is_own(&self, annotation: Annotation) -> bool {
        (self.pod.keys() | self.on_workload).contains(annotation)
    }

    /// The value the namespace has.
    #[must_use]
    pub fn of_namespace(&self, annotation: Annotation) -> Option<&'a str> {
        self.namespace.get(annotation)
    }

    /// The annotations that the pod takes over, in the order of their keys.
    pub fn taken_over(&self) -> impl Iterator<Item = (Annotation, &'a str)> {
        self.taken_over.iter().filter_map(|key| Some((key, self.namespace.get(key)?)))
    }

    /// The overrides of settings that count, in the order of their keys.
    pub fn settings(&self) -> impl Iterator<Item = (Annotation, &'a str)> {
        self.settings.iter().filter_map(|key| Some((key, self.get(key)?)))
    }

    /// Whether the pod runs in ingress mode.
    #[must_use]
    pub fn is_ingress(&self) -> bool {
        self.get(Annotation::Inject) == Some("ingress")
    }

    /// The key of the template that the settings lead to, for a pod at `path_prefix`.
    ///
    /// Canonical and whole: two keys are equal only if the templates are.
    #[must_use]
    pub fn template_key(&self, path_prefix: &str) -> TemplateKey {
        let mut key = TemplateKey::new();
        key.push(u8::from(self.is_ingress()));
        for (annotation, value) in self.settings() {
            key.push(annotation as u8);
            key.extend_from_slice(&value.len().to_le_bytes());
            key.extend_from_slice(value.as_bytes());
        }
        if !path_prefix.is_empty() {
            key.push(u8::MAX);
            key.extend_from_slice(path_prefix.as_bytes());
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(json: &str) -> TextMap<'_> {
        crate::json::read(json).expect("map")
    }

    const NAMESPACE: [(&str, &str); 3] = [
        ("config.linkerd.io/proxy-uid", "7"),
        ("config.linkerd.io/enable-gateway", "true"),
        ("linkerd.io/inject", "ingress"),
    ];

    #[test]
    fn pod_annotation_wins_over_namespace() {
        let pod = map(r#"{"config.linkerd.io/proxy-uid":"9"}"#);
        let rules = Rules::of(Release::NEWEST);
        let overrides = Overrides::new(&rules, &pod, None, NAMESPACE.into_iter());
        assert_eq!(overrides.get(Annotation::ProxyUid), Some("9"));
        assert_eq!(overrides.get(Annotation::EnableGateway), None, "is not inherited");
        assert!(overrides.is_ingress());
        let taken: Vec<_> = overrides.taken_over().collect();
        assert_eq!(taken, [(Annotation::Inject, "ingress")]);
    }

    #[test]
    fn what_is_on_the_workload_is_neither_taken_over_nor_read() {
        let (pod, workload) = (map("{}"), map(r#"{"config.linkerd.io/proxy-uid":"9"}"#));
        let rules = Rules::of(Release::NEWEST);
        let overrides = Overrides::new(&rules, &pod, Some(&workload), NAMESPACE.into_iter());
        assert_eq!(overrides.get(Annotation::ProxyUid), None);
    }

    #[test]
    fn a_template_takes_over_the_inject_annotation_in_place_of_its_own() {
        let template = map(r#"{"linkerd.io/inject":"enabled","config.linkerd.io/proxy-uid":"9"}"#);
        let rules = Rules::of(Release::NEWEST);
        let taken_over = |workload| {
            let overrides = Overrides::new(&rules, &template, workload, NAMESPACE.into_iter());
            assert_eq!(overrides.of_pod(Annotation::Inject), Some("enabled"));
            assert_eq!(overrides.get(Annotation::ProxyUid), Some("9"));
            let taken: Vec<_> = overrides.taken_over().collect();
            (taken, overrides.is_ingress())
        };
        assert_eq!(taken_over(None), (vec![], false), "of a pod");
        let workload = map("{}");
        let expected = vec![(Annotation::Inject, "ingress")];
        assert_eq!(taken_over(Some(&workload)), (expected, true), "of a workload");
        let workload = map(r#"{"linkerd.io/inject":"disabled"}"#);
        assert_eq!(taken_over(Some(&workload)), (vec![], false), "of one with its own");
    }

    #[test]
    fn an_annotation_the_release_does_not_know_is_not_read() {
        let pod = map(r#"{"config.linkerd.io/init-image":"x"}"#);
        let of = |release| {
            let rules = Rules::of(release);
            Overrides::new(&rules, &pod, None, [].into_iter()).get(Annotation::InitImage)
        };
        assert_eq!(of(Release::NEWEST), None);
        assert_eq!(of(Release::edge(25, 10, 7)), Some("x"));
    }

    #[test]
    fn a_template_key_holds_settings_and_nothing_else() {
        let rules = Rules::of(Release::NEWEST);
        let key = |json: &str, prefix: &str| {
            Overrides::new(&rules, &map(json), None, [].into_iter()).template_key(prefix)
        };
        let plain = key("{}", "");
        assert_eq!(key(r#"{"linkerd.io/inject":"enabled"}"#, ""), plain);
        assert_eq!(key(r#"{"config.linkerd.io/opaque-ports":"1"}"#, ""), plain);
        assert_ne!(key(r#"{"linkerd.io/inject":"ingress"}"#, ""), plain);
        assert_ne!(key(r#"{"config.linkerd.io/proxy-uid":""}"#, ""), plain);
        assert_ne!(key("{}", "/spec/template"), plain);
    }
}
