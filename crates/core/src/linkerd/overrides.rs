//! The annotations of one pod in layers: the pod's own, and those it inherits from its namespace.
//! The layers are kept separate; the pod's own annotation wins.
//!
//! [`Overrides::apply`] applies them to the values (`inject.go`, `ApplyAnnotationOverrides`). An override
//! that is ignored leads to a warning, also where upstream is silent. So does one that has no effect, as
//! [`checks`] finds.

use smallvec::SmallVec;

use super::{
    annotations::{Annotation, AnnotationSet, Keys, NATIVE_SIDECAR},
    checks,
    pod::TextMap,
    release::{Delta, Release},
    settings::Settings,
    values::Values,
};
use crate::explain::Layer;

/// The annotations that a release supports, by their use; resolved once per configuration.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    known: Keys,
    inherited: Keys,
    settings: Keys,
}

/// The annotations of one pod in layers.
#[derive(Debug)]
pub struct Overrides<'a> {
    pod: AnnotationSet<'a>,
    namespace: AnnotationSet<'a>,
    inherited: Keys,
    read: Keys,
    settings: Keys,
    on_workload: Keys,
}

/// The key of a template: the settings from which it was compiled, as canonical bytes.
pub type TemplateKey = SmallVec<[u8; 128]>;

impl Rules {
    /// The rules of a release.
    #[must_use]
    pub fn of(release: Release) -> Self {
        let known = Keys::supported_by(release);
        // These are filled in for each pod: in the key, each value would make a template of its
        // own.
        let slots = [Annotation::OpaquePorts, Annotation::AdditionalEnv, Annotation::Inject];
        // Pods that differ in it alone share a template.
        let without_effect = [Annotation::PodInboundPorts];
        let computed = release.has(Delta::InboundPortsComputed);
        let settings = known.without(&slots).without(if computed { &without_effect } else { &[] });
        Self { known, inherited: Keys::inherited_in(release), settings }
    }

    /// Whether the release supports an annotation.
    #[must_use]
    pub fn supports(&self, annotation: Annotation) -> bool {
        self.known.contains(annotation)
    }
}

impl<'a> Overrides<'a> {
    /// Layers the annotations of a pod, of its namespace, and of its workload if the review is of
    /// the workload. An annotation of the workload has no effect, but the pod does not inherit it
    /// either (`inject.go`, `GetConfigAnnotation`). A pod template inherits the inject annotation
    /// even if it has one of its own.
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
        let inherited = (namespace.keys() & rules.inherited).not_in(of_pod | on_workload);
        let read = (pod.keys() & rules.known) | inherited;
        Self { pod, namespace, inherited, read, settings: read & rules.settings, on_workload }
    }

    /// The effective value: the pod's own, else the inherited one.
    #[must_use]
    pub fn get(&self, annotation: Annotation) -> Option<&'a str> {
        if self.inherited.contains(annotation) {
            return self.namespace.get(annotation);
        }
        self.pod.get(annotation).filter(|_| self.read.contains(annotation))
    }

    /// The pod's own value, even if the release does not support the annotation.
    #[must_use]
    pub fn of_pod(&self, annotation: Annotation) -> Option<&'a str> {
        self.pod.get(annotation)
    }

    /// Whether the pod or the workload under review has the annotation.
    #[must_use]
    pub fn is_own(&self, annotation: Annotation) -> bool {
        (self.pod.keys() | self.on_workload).contains(annotation)
    }

    /// The namespace's value.
    #[must_use]
    pub fn of_namespace(&self, annotation: Annotation) -> Option<&'a str> {
        self.namespace.get(annotation)
    }

    /// Where the effective value is.
    #[must_use]
    pub fn layer(&self, annotation: Annotation) -> Layer {
        let is_inherited =
            self.inherited.contains(annotation) || self.pod.get(annotation).is_none();
        if is_inherited { Layer::Namespace } else { Layer::Pod }
    }

    /// The annotations that the pod inherits, in the order of their keys.
    pub fn inherited(&self) -> impl Iterator<Item = (Annotation, &'a str)> {
        self.inherited.iter().filter_map(|key| Some((key, self.namespace.get(key)?)))
    }

    /// The effective overrides of settings, in the order of their keys.
    pub fn settings(&self) -> impl Iterator<Item = (Annotation, &'a str)> {
        self.settings.iter().filter_map(|key| Some((key, self.get(key)?)))
    }

    /// The values with the overrides applied: a pure function of both.
    #[must_use]
    pub fn apply(&self, values: &Values, release: Release) -> Settings {
        let mut settings = self.before_annotations(values);
        for (annotation, value) in self.settings() {
            match annotation.apply(value, &mut settings, release) {
                Ok(()) => checks::warn(annotation, value, &mut settings.warnings),
                Err(problem) => settings.warnings.push(|| annotation.warning(value, problem)),
            }
        }
        settings
    }

    /// The settings before [`Annotation::apply`].
    pub(super) fn before_annotations(&self, values: &Values) -> Settings {
        let decides = NATIVE_SIDECAR.into_iter().find(|&annotation| self.get(annotation).is_some());
        let mut settings = Settings::new(values, decides.map(Annotation::key));
        if self.is_ingress() {
            settings.values.proxy.is_ingress = true;
        }
        settings
    }

    /// Whether the pod runs in ingress mode.
    #[must_use]
    pub fn is_ingress(&self) -> bool {
        self.get(Annotation::Inject) == Some("ingress")
    }

    /// The key of the template for these settings and a pod at `path_prefix`.
    ///
    /// Not a hash: two keys are equal only if the templates are.
    #[must_use]
    pub fn template_key(&self, path_prefix: &str) -> TemplateKey {
        let mut key = TemplateKey::new();
        key.push(u8::from(self.is_ingress()));
        for (annotation, value) in self.settings() {
            key.push(annotation as u8);
            // Without the length, a value that contains the bytes of the next entry would have the
            // same key.
            key.extend_from_slice(&value.len().to_le_bytes());
            key.extend_from_slice(value.as_bytes());
        }
        if !path_prefix.is_empty() {
            // No annotation has this number.
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
        assert_eq!(overrides.get(Annotation::EnableGateway), None, "must not be inherited");
        assert!(overrides.is_ingress());
        let inherited: Vec<_> = overrides.inherited().collect();
        assert_eq!(inherited, [(Annotation::Inject, "ingress")]);
    }

    #[test]
    fn an_annotation_of_the_workload_is_neither_inherited_nor_read() {
        let (pod, workload) = (map("{}"), map(r#"{"config.linkerd.io/proxy-uid":"9"}"#));
        let rules = Rules::of(Release::NEWEST);
        let overrides = Overrides::new(&rules, &pod, Some(&workload), NAMESPACE.into_iter());
        assert_eq!(overrides.get(Annotation::ProxyUid), None);
    }

    #[test]
    fn a_template_inherits_the_inject_annotation_in_place_of_its_own() {
        let template = map(r#"{"linkerd.io/inject":"enabled","config.linkerd.io/proxy-uid":"9"}"#);
        let rules = Rules::of(Release::NEWEST);
        let inherited = |workload| {
            let overrides = Overrides::new(&rules, &template, workload, NAMESPACE.into_iter());
            assert_eq!(overrides.of_pod(Annotation::Inject), Some("enabled"));
            assert_eq!(overrides.get(Annotation::ProxyUid), Some("9"));
            let inherited: Vec<_> = overrides.inherited().collect();
            (inherited, overrides.is_ingress())
        };
        assert_eq!(inherited(None), (vec![], false), "of a pod");
        let workload = map("{}");
        let expected = vec![(Annotation::Inject, "ingress")];
        assert_eq!(inherited(Some(&workload)), (expected, true), "of a workload");
        let workload = map(r#"{"linkerd.io/inject":"disabled"}"#);
        assert_eq!(
            inherited(Some(&workload)),
            (vec![], false),
            "of a workload with its own annotation"
        );
    }

    #[test]
    fn an_annotation_the_release_does_not_support_is_not_read() {
        let pod = map(r#"{"config.linkerd.io/init-image":"x"}"#);
        let of = |release| {
            let rules = Rules::of(release);
            Overrides::new(&rules, &pod, None, [].into_iter()).get(Annotation::InitImage)
        };
        assert_eq!(of(Release::NEWEST), None);
        assert_eq!(of(Release::edge(25, 10, 7)), Some("x"));
    }

    #[test]
    fn a_template_key_contains_settings_and_nothing_else() {
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
