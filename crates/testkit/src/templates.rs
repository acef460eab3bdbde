//! A small sidecar template, with the injector that serves it.

use injectd_core::{injector, lookups::Lookups, standalone::Standalone};
use injectd_templates::Template;
use injectd_templates_mesh::Templates;
use serde_json::Value;

/// The annotation of a pod, or the label of a namespace, that asks for the template.
pub const KEY: &str = "agent.example.com/inject";
/// A template that adds a container with an argument from an annotation.
pub const TEMPLATE: &str = include_str!("templates/agent.yaml");

/// An injector of the template without a cluster.
pub fn injector<L: Lookups + From<Standalone>>() -> injector::Injector<Templates, L> {
    injector_in(L::from(Standalone::default()))
}

/// An injector of the template with these lookups.
pub fn injector_in<L: Lookups>(lookups: L) -> injector::Injector<Templates, L> {
    let object: Value = serde_saphyr::from_str(TEMPLATE).expect("YAML");
    let template = Template::read(&object).expect("the template must be right");
    let mesh = Templates::new(vec![template], None, 1);
    injector::Injector::new(mesh, lookups)
}
