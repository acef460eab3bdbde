//! Reviews of any size, each of which concentrates on one field, annotation or kind of text. Shared
//! by the test of allocations and the benchmark of instructions.

use injectd_core::{linkerd::values::DEFAULT_VALUES, standalone::Standalone};
use serde_json::{Value, json};

use crate::Injector;

mod annotations;
pub mod istio;
mod objects;
pub mod templates;

/// A review that grows in one place.
pub struct Shape {
    /// Name of the part that grows.
    pub name: String,
    grow: Box<dyn Fn(usize) -> Grown>,
}

/// A review of one size.
#[derive(Default)]
pub struct Grown {
    /// The review.
    pub body: String,
    /// Annotations of the namespace.
    namespace: Vec<(String, String)>,
    /// Sidecar templates besides those that every review has.
    templates: Vec<Value>,
}

/// Injectors that many reviews share, so that values are read once.
pub struct Injectors {
    plain: Injector,
}

impl Shape {
    /// A review with this body.
    fn of_body(name: impl Into<String>, body: impl Fn(usize) -> String + 'static) -> Self {
        let grow = move |bytes| Grown { body: body(bytes), ..Grown::default() };
        Self { name: name.into(), grow: Box::new(grow) }
    }

    /// A small pod, and sidecar templates that grow.
    fn of_templates(
        name: impl Into<String>,
        templates: impl Fn(usize) -> Vec<Value> + 'static,
    ) -> Self {
        let grow = move |bytes| Grown {
            body: review(&pod("", r#"{"containers":[{"name":"web"}]}"#)),
            templates: templates(bytes),
            ..Grown::default()
        };
        Self { name: format!("configuration: {}", name.into()), grow: Box::new(grow) }
    }

    /// A small pod in a namespace whose annotations grow.
    fn of_namespace(
        name: impl Into<String>,
        annotations: impl Fn(usize) -> Vec<(String, String)> + 'static,
    ) -> Self {
        let grow = move |bytes| Grown {
            body: review(&pod("", r#"{"containers":[{"name":"web"}]}"#)),
            namespace: annotations(bytes),
            ..Grown::default()
        };
        Self { name: format!("namespace: {}", name.into()), grow: Box::new(grow) }
    }

    /// The review with about this many bytes in the part that grows.
    pub fn grow(&self, bytes: usize) -> Grown {
        (self.grow)(bytes)
    }
}

impl Grown {
    /// Size of the input: the body, the namespace's annotations and the templates.
    pub fn bytes(&self) -> usize {
        let namespace = self.namespace.iter().map(|(key, value)| key.len() + value.len());
        let templates = self.templates.iter().map(|template| template.to_string().len());
        self.body.len() + namespace.sum::<usize>() + templates.sum::<usize>()
    }

    /// Calls a function with the review and its injector.
    pub fn with<T>(&self, injectors: &Injectors, act: impl FnOnce(&Injector, &[u8]) -> T) -> T {
        if self.namespace.is_empty() {
            return act(&injectors.plain, self.body.as_bytes());
        }
        let mut annotations = self.namespace.clone();
        annotations.push(("linkerd.io/inject".to_owned(), "enabled".to_owned()));
        act(&injector(annotations), self.body.as_bytes())
    }
}

impl Default for Injectors {
    fn default() -> Self {
        Self { plain: injector(Vec::new()) }
    }
}

/// Every shape.
pub fn all() -> Vec<Shape> {
    let mut shapes = annotations::shapes();
    shapes.extend(objects::shapes());
    shapes
}

/// An injector of the newest release that traces, in a namespace with annotations.
fn injector(namespace: Vec<(String, String)>) -> Injector {
    let mut values: Value = serde_saphyr::from_str(DEFAULT_VALUES).expect("YAML");
    values["proxy"]["tracing"]["enabled"] = true.into();
    let collector = json!({"endpoint": "collector:4317",
        "meshIdentity": {"serviceAccountName": "collector", "namespace": "tracing"}});
    values["proxy"]["tracing"]["collector"] = collector;
    let values = values.to_string();
    crate::injector_of(&values, Standalone::annotated(namespace))
}

// === texts ===

/// A text of this many bytes that repeats `unit`.
fn fill(unit: &str, bytes: usize) -> String {
    unit.repeat(bytes.div_ceil(unit.len()))
}

/// Numbered items of about `item_bytes` each, joined by commas, of this many bytes in total.
fn items(bytes: usize, item_bytes: usize, item: impl Fn(usize) -> String) -> String {
    let items = (0..bytes.div_ceil(item_bytes)).map(item);
    items.fold(String::with_capacity(2 * bytes), |mut all, item| {
        if !all.is_empty() {
            all.push(',');
        }
        all.push_str(&item);
        all
    })
}

/// The content of a JSON string, without the quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', r#"\""#)
}

/// A review of an object.
fn review(object: &str) -> String {
    format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"u","kind":{{"kind":"Pod"}},"namespace":"shop","operation":"CREATE","object":{object}}}}}"#
    )
}

/// A pod; `metadata` includes its comma.
fn pod(metadata: &str, spec: &str) -> String {
    format!(
        r#"{{"kind":"Pod","metadata":{{"name":"web","namespace":"shop"{metadata}}},"spec":{spec}}}"#
    )
}

/// A review of a pod with injection enabled and further annotations; `annotations` includes its
/// comma.
fn annotated(annotations: &str, spec: &str) -> String {
    let annotations = format!(r#","annotations":{{"linkerd.io/inject":"enabled"{annotations}}}"#);
    review(&pod(&annotations, spec))
}

/// A spec with one container and further members; `container` includes its comma.
fn container(container: &str) -> String {
    format!(r#"{{"containers":[{{"name":"web"{container}}}]}}"#)
}
