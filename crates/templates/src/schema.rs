//! The schema of templates: the `CustomResourceDefinition`s, and the check of a document without an API server.
//!
//! One source: `crds/spec.yaml` and `crds/status.yaml`. An API server gets them in the definitions, and [`check`]
//! follows them with the same verdicts. Not for what a schema cannot say: types of expressions, and overlays.

use std::sync::LazyLock;

use injectd_yaml::{Options, parse};
use serde_json::Value;

use self::{check::Checker, keywords::Schema};
use crate::Problem;

mod check;
mod keywords;
mod metadata;

/// The version of the objects.
pub const API_VERSION: &str = "injectd.dev/v1alpha1";
/// The kind of templates for all namespaces.
pub const CLUSTER_KIND: &str = "ClusterSidecarTemplate";
/// The kind of templates for their own namespace.
pub const NAMESPACED_KIND: &str = "SidecarTemplate";
/// The group of both kinds.
pub const GROUP: &str = "injectd.dev";
/// The version of the group.
pub const VERSION: &str = "v1alpha1";
/// How paths of an API server name [`CLUSTER_KIND`].
pub const CLUSTER_PLURAL: &str = "clustersidecartemplates";
/// How paths of an API server name [`NAMESPACED_KIND`].
pub const NAMESPACED_PLURAL: &str = "sidecartemplates";

const DEFINITION: &str = include_str!("../crds/definition.yaml");
const SPEC: &str = include_str!("../crds/spec.yaml");
const STATUS: &str = include_str!("../crds/status.yaml");

/// The schemas of `spec`: of cluster templates, and of namespaced ones.
static SPECS: LazyLock<[Schema; 2]> = LazyLock::new(|| {
    let spec = read(SPEC);
    [Schema::of(spec.clone()), Schema::of(namespaced(spec))]
});

static OF_STATUS: LazyLock<Schema> = LazyLock::new(|| Schema::of(read(STATUS)));

/// A kind of template.
struct Kind {
    name: &'static str,
    plural: &'static str,
    short: &'static str,
    scope: &'static str,
    description: &'static str,
}

const CLUSTER: Kind = Kind {
    name: CLUSTER_KIND,
    plural: CLUSTER_PLURAL,
    short: "cst",
    scope: "Cluster",
    description: "A sidecar that injectd adds to pods of all namespaces.",
};

const NAMESPACED: Kind = Kind {
    name: NAMESPACED_KIND,
    plural: NAMESPACED_PLURAL,
    short: "sct",
    scope: "Namespaced",
    description: "A sidecar that injectd adds to pods of the namespace of the object.",
};

/// The `CustomResourceDefinition`s of `ClusterSidecarTemplate` and `SidecarTemplate`.
#[must_use]
pub fn crds() -> [Value; 2] {
    let spec = read(SPEC);
    [definition(&CLUSTER, spec.clone()), definition(&NAMESPACED, namespaced(spec))]
}

fn definition(kind: &Kind, spec: Value) -> Value {
    let singular = kind.name.to_lowercase();
    let filled = [
        ("SINGULAR", &*singular),
        ("PLURAL", kind.plural),
        ("SHORT", kind.short),
        ("SCOPE", kind.scope),
        ("DESCRIPTION", kind.description),
        ("KIND", kind.name),
    ];
    let text = filled
        .into_iter()
        .fold(DEFINITION.to_owned(), |text, (place, value)| text.replace(place, value));
    let mut definition = read(&text);
    let properties =
        &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    properties["spec"] = spec;
    properties["status"] = read(STATUS);
    definition
}

/// The schema of `spec` of a namespaced template: without `namespaceSelector`, and without the rule that asks
/// for it.
fn namespaced(mut spec: Value) -> Value {
    if let Some(fields) = spec["properties"]["match"]["properties"].as_object_mut() {
        fields.shift_remove("namespaceSelector");
    }
    if let Some(schema) = spec.as_object_mut() {
        schema.shift_remove("x-kubernetes-validations");
    }
    spec
}

fn read(text: &str) -> Value {
    parse(text, Options::default()).expect("the files of crds must be YAML")
}

/// Checks a document with a template as an API server with the `CustomResourceDefinition`s does that refuses
/// unknown fields. It also asks for a name, and refuses a `spec` of more than
/// [`MAX_BYTES_OF_SPEC`](crate::limits::MAX_BYTES_OF_SPEC).
#[must_use]
pub fn check(object: &Value) -> Vec<Problem> {
    let mut checker = Checker::default();
    let Some(fields) = object.as_object() else {
        checker.mismatch(object, "an object with apiVersion, kind, metadata and spec");
        return checker.problems;
    };
    checker.one_of(object, "apiVersion", &[API_VERSION]);
    checker.one_of(object, "kind", &[CLUSTER_KIND, NAMESPACED_KIND]);
    for name in fields.keys() {
        checker.known(name, &["apiVersion", "kind", "metadata", "spec", "status"]);
    }
    let is_namespaced = object["kind"] == NAMESPACED_KIND;
    checker.below("metadata", |checker| metadata::check(checker, &object["metadata"]));
    checker.below("spec", |checker| {
        let spec = &object["spec"];
        if spec.is_null() {
            return checker.problem("missing; expected an object");
        }
        let schema = &SPECS[usize::from(is_namespaced)];
        checker.value(schema, &schema.filled(spec));
        checker.size(spec);
    });
    if !object["status"].is_null() {
        checker.below("status", |checker| {
            checker.value(&OF_STATUS, &OF_STATUS.filled(&object["status"]));
        });
    }
    checker.problems
}

/// `spec` as an API server stores it: with the defaults of the schema, and without fields that are null.
#[must_use]
pub fn filled(spec: &Value) -> Value {
    SPECS[0].filled(spec)
}

#[cfg(test)]
mod tests;
