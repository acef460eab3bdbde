//! Reviews that grow in one place each, for sidecar templates: fields of the pod, values of parameters,
//! and the templates themselves.

use injectd_core::{injector::Injector, standalone::Standalone};
use injectd_templates::Template;
use injectd_templates_mesh::Templates;
use serde_json::{Value, json};

use super::{Grown, Shape, annotated, container, fill, istio, items, objects};

/// The templates that every review has.
const TEMPLATES: &str = include_str!("templates.yaml");
/// Annotations that are parameters.
const LIST: &str = "cost.example.com/list";
const TEXT: &str = "cost.example.com/text";
const MAP: &str = "cost.example.com/map-";
/// A list whose items are those of a `forEach`: at most 256.
const ITEMS: &str = "cost.example.com/items";
/// The mark of an earlier injection.
const MARK: &str = "injectd.dev/templates";
/// The parameters that a template may have.
const MAX_PARAMETERS: usize = 64;
/// The conditions that a template may have.
const MAX_CONDITIONS: usize = 32;

/// An injector without a cluster, which knows no answers, with the templates of a review.
#[must_use]
pub fn injector(grown: &Grown) -> Injector<Templates, Standalone> {
    let documents = TEMPLATES.split("\n---\n");
    let objects = documents.map(|text| serde_saphyr::from_str::<Value>(text).expect("YAML"));
    let objects = objects.chain(grown.templates.iter().cloned());
    let templates = objects.map(|object| Template::read(&object).expect("a template"));
    let mesh = Templates::new(templates.collect::<Vec<_>>(), None, 1).without_memory();
    Injector::new(mesh, Standalone::default())
}

/// Every shape.
#[must_use]
pub fn shapes() -> Vec<Shape> {
    let mut shapes = istio::lists();
    shapes.extend(objects::shapes());
    shapes.extend(parameters());
    shapes.extend(marks());
    shapes.extend(configurations());
    shapes
}

/// Values of parameters. A rule in a `forEach` is laid for each item and container: that product is bounded by
/// the bytes that the structures of a template become, and no shape of its own.
fn parameters() -> Vec<Shape> {
    let prefixed = Shape::of_body("annotations with a prefix", |bytes| {
        let entry = |index| format!(r#""{MAP}{index:06}":"v""#);
        annotated(&format!(",{}", items(bytes, 36, entry)), &container(r#","image":"a""#))
    });
    vec![
        prefixed,
        written(LIST, "items", |bytes| items(bytes, 17, |index| format!("i{index:015}"))),
        written(LIST, "commas", |bytes| fill(",", bytes)),
        written(TEXT, "letters", |bytes| fill("a", bytes)),
        written(TEXT, "quotes", |bytes| fill(r#"\""#, bytes)),
        written(ITEMS, "items of forEach", each),
        written(ITEMS, "more items than forEach has", |bytes| {
            items(bytes, 8, |index| format!("i{index:06}"))
        }),
    ]
}

/// Items of a `forEach`: not more than 256 for the sizes of the benchmark.
fn each(bytes: usize) -> String {
    const ITEM_BYTES: usize = 257;
    items(bytes, ITEM_BYTES, |index| format!("i{index:06}{}", fill("x", ITEM_BYTES - 8)))
}

/// Marks that somebody wrote.
fn marks() -> [Shape; 2] {
    [
        written(MARK, "templates of the mark", |bytes| {
            let template = |index| {
                format!(
                    r#"\"t{index:06}\":{{\"hash\":\"0123456789\",\"added\":[\"web\"],\"served\":[\"web\"]}}"#
                )
            };
            format!("{{{}}}", items(bytes, 60, template))
        }),
        written(MARK, "containers of a template", |bytes| {
            let served = items(bytes, 8, |index| format!(r#"\"c{index:06}\""#));
            format!(
                r#"{{\"lists\":{{\"hash\":\"0123456789\",\"added\":[\"web\"],\"served\":[{served}]}}}}"#
            )
        }),
    ]
}

fn written(key: &str, name: &str, value: impl Fn(usize) -> String + 'static) -> Shape {
    let (name, key) = (format!("{key}: {name}"), key.to_owned());
    let spec = container(r#","image":"a""#);
    Shape::of_body(name, move |bytes| annotated(&format!(r#","{key}":"{}""#, value(bytes)), &spec))
}

/// Templates that all may be for the pod.
fn configurations() -> Vec<Shape> {
    let label = || json!({"metadata": {"labels": {"a": "b"}}});
    let reads =
        "object.metadata.?name.orValue('') == 'x' && object.metadata.?generateName.hasValue()";
    let condition = move |at: usize| json!({"name": format!("c{at}"), "expression": reads});
    let conditions = move |count: usize| (0..count).map(condition).collect::<Vec<_>>();
    let each = |name: &str, spec: Box<dyn Fn(usize) -> Value>| {
        Shape::of_templates(name, move |bytes| templates(bytes, &*spec))
    };
    vec![
        each(
            "templates with a condition",
            Box::new(move |_| {
                json!({"match": {"conditions": conditions(1)}, "steps": [
                {"name": "a", "overlay": label()}]})
            }),
        ),
        each(
            "templates with all conditions",
            Box::new(move |_| {
                json!({"match": {"conditions": conditions(MAX_CONDITIONS)}, "steps": [
                {"name": "a", "overlay": label()}]})
            }),
        ),
        each(
            "templates with a selector",
            Box::new(move |at| {
                json!({"match": {"podSelector": {"matchLabels": {format!("l{at}"): "a"}}},
                "steps": [{"name": "a", "overlay": label()}]})
            }),
        ),
        each("templates with a container", Box::new(with_container)),
        each("parameters", Box::new(with_parameters)),
    ]
}

/// Templates of about this many bytes together.
fn templates(bytes: usize, spec: &dyn Fn(usize) -> Value) -> Vec<Value> {
    let template = |at: usize| {
        json!({"apiVersion": "injectd.dev/v1alpha1", "kind": "ClusterSidecarTemplate",
            "metadata": {"name": format!("t{at}")}, "spec": spec(at)})
    };
    let length = template(0).to_string().len();
    (0..bytes.div_ceil(length)).map(template).collect()
}

fn with_container(at: usize) -> Value {
    let container = json!({"name": format!("added-{at}"), "image": "registry.example.com/a:1",
        "env": [{"name": "NAME", "value": "${object.metadata.name}"}]});
    json!({"match": {"namespaceSelector": {}}, "steps": [
        {"name": "a", "overlay": {"spec": {"containers": [container]}}}]})
}

/// A template with all parameters that it may have, each of which is read.
fn with_parameters(at: usize) -> Value {
    let parameter = |index: usize| {
        let from = format!("cost.example.com/p-{at}-{index}");
        json!({"name": format!("p{index}"), "type": "Integer", "default": "1",
            "from": [{"podAnnotation": from}]})
    };
    let sum: Vec<_> = (0..MAX_PARAMETERS).map(|index| format!("params.p{index}")).collect();
    json!({"match": {"namespaceSelector": {}},
        "parameters": (0..MAX_PARAMETERS).map(parameter).collect::<Vec<_>>(),
        "steps": [{"name": "a", "overlay": {"metadata": {"annotations": {
            format!("cost.example.com/sum-{at}"): format!("${{{}}}", sum.join(" + "))}}}}]})
}
