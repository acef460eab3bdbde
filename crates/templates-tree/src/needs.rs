//! What templates read of a cluster: a file may lack it.

use injectd_k8s::selector::LabelSelector;
use injectd_templates::{
    Template,
    object::{KeyPlace, ParameterSource},
    parameters::sources,
};

/// Which objects of a cluster a template reads, besides the pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Labels or annotations of the namespace.
    pub namespace: bool,
    /// The ServiceAccount.
    pub service_account: bool,
    /// Owners.
    pub owners: bool,
}

impl Needs {
    /// What any of the templates reads.
    #[must_use]
    pub fn of(templates: &[Template]) -> Self {
        let any = |needs: fn(&Template) -> bool| templates.iter().any(needs);
        Self {
            namespace: any(reads_namespace),
            service_account: any(reads_service_account),
            owners: any(|template| reads(template, &["owner", "owners"])),
        }
    }
}

fn reads_namespace(template: &Template) -> bool {
    let spec = &template.spec;
    let is_namespace = |place: &KeyPlace| {
        matches!(place, KeyPlace::NamespaceLabel | KeyPlace::NamespaceAnnotation)
    };
    let selector = spec.r#match.namespace_selector.as_ref();
    selector.is_some_and(|selector| *selector != LabelSelector::default())
        || spec
            .enablement
            .as_ref()
            .is_some_and(|enablement| enablement.r#in.iter().any(is_namespace))
        || has_source(template, |source| {
            matches!(
                source,
                ParameterSource::NamespaceAnnotation(_)
                    | ParameterSource::NamespaceAnnotationPrefix(_)
                    | ParameterSource::NamespaceLabel(_)
            )
        })
        || reads(template, &["namespaceObject"])
}

fn reads_service_account(template: &Template) -> bool {
    let is_of_account =
        |source: &ParameterSource| matches!(source, ParameterSource::ServiceAccountAnnotation(_));
    has_source(template, is_of_account) || reads(template, &["serviceAccount"])
}

fn has_source(template: &Template, is_it: impl Fn(&ParameterSource) -> bool) -> bool {
    let keys = template.spec.parameter_keys.as_ref();
    let parameters = template.spec.parameters.iter();
    parameters.flat_map(|parameter| sources(parameter, keys)).any(|source| is_it(&source))
}

fn reads(template: &Template, names: &[&str]) -> bool {
    let mut is_read = false;
    template.each_expression(&mut |expression| {
        is_read |= names.iter().any(|name| expression.program.reads(name));
    });
    is_read
}
