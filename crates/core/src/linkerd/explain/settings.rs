//! The settings of a pod's sidecar, and what set each.

use std::collections::HashMap;

use crate::{
    explain::{Layer, Setting},
    linkerd::{
        annotations::Annotation,
        overrides::Overrides,
        pod::Spec,
        render::OpaquePorts,
        settings::Settings,
        snapshot::Snapshot,
        values::show::{Show, Shown},
    },
};

/// The setting that the inject annotation changes.
const INGRESS: &str = "proxy.isIngress";
/// The setting of the default opaque ports.
const OPAQUE_PORTS: &str = "proxy.opaquePorts";
/// The container for debugging, which has no key in the values.
const DEBUG_CONTAINER: &str = "debugContainer";
/// The variables that annotations add.
const ADDITIONAL_ENV: &str = "proxy.additionalEnv";

/// What set a value.
type Origins = HashMap<String, (Layer, Annotation)>;

impl Snapshot {
    /// Every setting with its value and origin: the keys of the values in their order.
    ///
    /// The overrides are applied one by one; an override is the origin of each value that it changes.
    pub(super) fn shown_settings(
        &self,
        overrides: &Overrides<'_>,
        spec: &Spec<'_>,
    ) -> Vec<Setting> {
        let mut origins = Origins::new();
        let mut settings = overrides.before_annotations(self.settings_values());
        if overrides.is_ingress() {
            note(&mut origins, INGRESS, overrides, Annotation::Inject);
        }
        let mut before = shown(&settings);
        for (annotation, value) in overrides.settings() {
            // What is wrong with the value is reported as an annotation without effect.
            let _ = annotation.apply(value, &mut settings, self.release_choice.release);
            let after = shown(&settings);
            let known: HashMap<_, _> = before.iter().map(|(name, value)| (name, value)).collect();
            for (name, value) in &after {
                if known.get(name) != Some(&value) {
                    note(&mut origins, name, overrides, annotation);
                }
            }
            before = after;
        }
        self.show_slots(&mut before, &mut origins, overrides, spec);
        let setting = |(name, value): (String, String)| {
            let origin = origins.get(&name);
            let annotation = origin.map(|(_, annotation)| annotation.key().to_owned());
            let origin = origin.map_or(Layer::Configuration, |(layer, _)| *layer);
            Setting { name, value, origin, annotation }
        };
        before.into_iter().map(setting).collect()
    }

    /// Corrects what is filled in for each pod.
    fn show_slots(
        &self,
        shown: &mut Shown,
        origins: &mut Origins,
        overrides: &Overrides<'_>,
        spec: &Spec<'_>,
    ) {
        let ports = match OpaquePorts::of(self, spec, overrides) {
            OpaquePorts::Annotation(ports) => {
                note(origins, OPAQUE_PORTS, overrides, Annotation::OpaquePorts);
                Some(ports.to_owned())
            }
            OpaquePorts::OnDefaultList(ports) => Some(ports),
            OpaquePorts::Default => None,
        };
        if let Some(ports) = ports
            && let Some((_, value)) = shown.iter_mut().find(|(name, _)| name == OPAQUE_PORTS)
        {
            *value = ports;
        }
        if let Some(variables) = overrides.get(Annotation::AdditionalEnv) {
            shown.push((ADDITIONAL_ENV.to_owned(), variables.to_owned()));
            note(origins, ADDITIONAL_ENV, overrides, Annotation::AdditionalEnv);
        }
    }
}

fn shown(settings: &Settings) -> Shown {
    let mut shown = Shown::new();
    settings.values.show("", &mut shown);
    settings.debug_sidecar.show(DEBUG_CONTAINER, &mut shown);
    shown
}

fn note(origins: &mut Origins, name: &str, overrides: &Overrides<'_>, annotation: Annotation) {
    origins.insert(name.to_owned(), (overrides.layer(annotation), annotation));
}
