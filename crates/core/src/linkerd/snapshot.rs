//! One configuration: values, trust roots, rules of the release, and compiled templates.
//!
//! A change of values or trust roots replaces the whole snapshot, with its templates.

use std::sync::Arc;

use moka::sync::Cache;

use super::{
    annotations::Annotation,
    decide::Decider,
    overrides::{Overrides, Rules},
    pod::TextMap,
    ports::{DefaultOpaquePorts, PortRules},
    release::{Release, ReleaseChoice},
    template::{Compiled, Source},
    trust_roots::TrustRoots,
    values::{self, Values, ValuesError},
};
use crate::outcome::{Configuration, TemplateLookup};

/// Maximum size of a cached key. A template with a longer key is compiled for each pod.
// Annotations may have 256 KiB. Overrides of that size hardly repeat from pod to pod, and would
// take the place of templates that many pods share.
const MAX_KEY_BYTES: usize = 4 << 10;
/// Maximum size of the cached templates, without the one for pods without overrides: about a
/// thousand sets of overrides, within the published memory (`docs/performance.md`).
const MAX_TEMPLATE_BYTES: u64 = 24 << 20;

/// The input for a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct Config<'c> {
    /// The YAML text of the values.
    pub values: &'c str,
    /// The bytes of the trust roots' bundle.
    pub trust_roots: &'c [u8],
    /// The namespace of Linkerd's control plane.
    pub control_plane_namespace: &'c str,
    /// The release to use if the release of the values is unknown.
    pub fallback_release: Option<Release>,
}

/// One configuration.
#[derive(Debug)]
pub struct Snapshot {
    /// For outcomes.
    pub configuration: Arc<Configuration>,
    /// Rules for the decision.
    pub decider: Decider,
    /// Rules for ports.
    pub port_rules: PortRules,
    /// `proxy.opaquePorts`.
    pub default_opaque_ports: DefaultOpaquePorts,
    /// How the release was chosen.
    pub release_choice: ReleaseChoice,
    rules: Rules,
    values: Values,
    /// For the log only.
    values_text: Box<str>,
    trust_roots: TrustRoots,
    control_plane_namespace: String,
    without_overrides: Arc<Compiled>,
    templates: Cache<Box<[u8]>, Arc<Compiled>>,
}

impl Snapshot {
    /// Reads a configuration and compiles the template that most pods use.
    ///
    /// # Errors
    /// The values are invalid. Values that deny every pod are not an error.
    pub fn new(config: Config<'_>, generation: u64) -> Result<Self, ValuesError> {
        let tree = values::parse_tree(config.values)?;
        let release_choice = values::release_of(&tree, config.fallback_release);
        let release = release_choice.release;
        let values = Values::from_tree(&tree, release)?;
        let rules = Rules::of(release);
        let trust_roots = TrustRoots::new(config.trust_roots);
        let no_annotations = TextMap::default();
        let overrides = Overrides::new(&rules, &no_annotations, None, [].into_iter());
        let source = Source {
            settings: &overrides.apply(&values, release),
            release,
            trust_roots: &trust_roots,
            control_plane_namespace: config.control_plane_namespace,
        };
        Ok(Self {
            configuration: Arc::new(Configuration { generation, release: release.to_string() }),
            decider: Decider::new(release, values.token_projection.unwrap_or(true)),
            port_rules: PortRules::of(release),
            default_opaque_ports: DefaultOpaquePorts::new(&values.proxy.opaque_ports),
            release_choice,
            rules,
            without_overrides: Arc::new(Compiled::new(source, "")),
            values,
            values_text: config.values.into(),
            trust_roots,
            control_plane_namespace: config.control_plane_namespace.to_owned(),
            templates: Cache::builder().max_capacity(MAX_TEMPLATE_BYTES).weigher(weigh).build(),
        })
    }

    /// Layers a pod's annotations by the rules of the release.
    #[must_use]
    pub fn overrides<'a>(
        &self,
        pod: &'a TextMap<'_>,
        workload: Option<&'a TextMap<'_>>,
        namespace: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Overrides<'a> {
        Overrides::new(&self.rules, pod, workload, namespace)
    }

    /// The YAML text of the values.
    #[must_use]
    pub fn values(&self) -> &str {
        &self.values_text
    }

    /// The values before overrides.
    pub(super) fn settings_values(&self) -> &Values {
        &self.values
    }

    /// Whether the release supports the annotation.
    #[must_use]
    pub fn supports(&self, annotation: Annotation) -> bool {
        self.rules.supports(annotation)
    }

    /// The names of the images, with the annotation that overrides each.
    pub fn images(&self) -> impl Iterator<Item = (Annotation, &str)> {
        let init = self.values.proxy_init.image.as_ref();
        let images = [
            (Annotation::ProxyImage, Some(&self.values.proxy.image)),
            (Annotation::InitImage, init),
            (Annotation::DebugImage, Some(&self.values.debug_image)),
        ];
        images.into_iter().filter_map(|(annotation, image)| Some((annotation, &*image?.name)))
    }

    /// The template for the overrides, from the cache or compiled.
    #[must_use]
    pub fn template(
        &self,
        overrides: &Overrides<'_>,
        path_prefix: &'static str,
    ) -> (Arc<Compiled>, TemplateLookup) {
        let key = overrides.template_key(path_prefix);
        // The one byte of a key without overrides: no ingress mode.
        if key.as_slice() == [0] {
            return (Arc::clone(&self.without_overrides), TemplateLookup::Hit);
        }
        if let Some(compiled) = self.templates.get(key.as_slice()) {
            return (compiled, TemplateLookup::Hit);
        }
        // Reviews that miss the same template at once each compile it: none of them waits for
        // another one.
        let compiled = Arc::new(self.compile(overrides, path_prefix));
        if key.len() <= MAX_KEY_BYTES {
            self.templates.insert(key.as_slice().into(), Arc::clone(&compiled));
        }
        (compiled, TemplateLookup::Miss)
    }

    /// The number of cached templates, without the one for pods without overrides.
    #[must_use]
    pub fn template_count(&self) -> u64 {
        // The cache counts late, and a metric should not lag behind it.
        self.templates.run_pending_tasks();
        self.templates.entry_count()
    }

    fn compile(&self, overrides: &Overrides<'_>, path_prefix: &'static str) -> Compiled {
        let settings = overrides.apply(&self.values, self.release_choice.release);
        let source = Source {
            settings: &settings,
            release: self.release_choice.release,
            trust_roots: &self.trust_roots,
            control_plane_namespace: &self.control_plane_namespace,
        };
        Compiled::new(source, path_prefix)
    }
}

#[expect(clippy::borrowed_box, reason = "the cache weighs what it holds")]
fn weigh(key: &Box<[u8]>, compiled: &Arc<Compiled>) -> u32 {
    u32::try_from(key.len() + compiled.weight()).unwrap_or(u32::MAX)
}
