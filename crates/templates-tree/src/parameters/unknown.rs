//! Annotations that begin with the prefix of a template's keys, and that nothing reads.

use std::collections::{BTreeMap, BTreeSet};

use injectd_core::spelling::most_like;
use injectd_templates::{
    object::{KeyPlace, Spec},
    parameters::sources,
};

use super::{family::Families, shown, warnings::Warnings};
use crate::layers::Layers;

/// The mark, which injectd itself writes.
const MARK_ANNOTATION: &str = "injectd.dev/templates";

/// Warns of annotations of the pod, and of the namespace if it is one of the places of the keys.
pub(super) fn warn(spec: &Spec, layers: &Layers, warnings: &mut Warnings) {
    let Some(keys) = &spec.parameter_keys else { return };
    let families = Families::of(&spec.parameters);
    let known = known(spec);
    let mut of_layer = |layer: &BTreeMap<String, String>, of: &str| {
        let from = layer.range(keys.prefix.clone()..).map(|(key, _)| key.as_str());
        let with_prefix = from.take_while(|key| key.starts_with(&keys.prefix));
        let unknown = with_prefix.filter(|key| {
            !known.contains(*key) && families.owner(key).is_none() && *key != MARK_ANNOTATION
        });
        for key in unknown {
            warnings.add_with(|| text(key, of, &keys.prefix, &known));
        }
    };
    of_layer(&layers.pod_annotations, "");
    if keys.r#in.contains(&KeyPlace::NamespaceAnnotation) {
        of_layer(&layers.namespace_annotations, " of the namespace");
    }
}

/// The keys that parameters and the enablement have, wherever they are looked up.
fn known(spec: &Spec) -> BTreeSet<String> {
    let of_parameters = spec
        .parameters
        .iter()
        .flat_map(|parameter| sources(parameter, spec.parameter_keys.as_ref()).into_owned());
    let exact = of_parameters.filter(|source| !source.is_prefix());
    let keys = exact.map(|source| source.key().to_owned());
    keys.chain(spec.enablement.iter().map(|enablement| enablement.key.clone())).collect()
}

fn text(key: &str, of: &str, prefix: &str, known: &BTreeSet<String>) -> String {
    let name = key.strip_prefix(prefix).unwrap_or(key);
    let names = known.iter().filter_map(|known| known.strip_prefix(prefix));
    let hint = most_like(names, name).map(|name| format!("; did you mean {prefix}{name}?"));
    let key = shown(key);
    format!("no parameter reads the annotation {key}{of}{}", hint.unwrap_or_default())
}
