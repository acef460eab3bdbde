//! The memory of many templates, counted in bytes that are allocated: without the memory of answers, which has
//! a limit of its own.

#![expect(clippy::disallowed_types, reason = "templates and pods are trees here")]

use std::sync::Arc;

use allocation_counter::measure;
use futures_util::FutureExt as _;
use injectd_core::{
    injector::Injector, objects::Objects, outcome::Verdict, standalone::Standalone,
};
use injectd_templates::Template;
use injectd_templates_mesh::Templates;
use serde_json::{Value, json};

const TEMPLATES: usize = 500;
const REVISIONS: usize = 2;
/// Bytes of a template as JSON, at least.
const TEMPLATE_BYTES: usize = 4 << 10;
const NAMESPACES: usize = 1_000;
const PODS: usize = 10_000;
/// MiB that they take after they are read, and after the pods; the contract is 64 MiB.
const MIB: [i64; 2] = [22, 29];
/// Bytes that a template of such a length keeps for each byte of its text, with what is read of pods.
const BYTES_PER_BYTE: i64 = 6;
/// The same for the examples, most of which are expressions.
const BYTES_PER_BYTE_OF_EXAMPLES: i64 = 20;
/// Bytes of a combination of templates that a pod asked for.
const BYTES_PER_CHOICE: i64 = 6 << 10;

fn key(at: usize) -> String {
    format!("sidecar-{at}.example.com/inject")
}

/// A revision of a template with a label that switches it on.
fn template(at: usize, revision: usize) -> Value {
    let mut env: Vec<_> = (0..)
        .map(|number| json!({"name": format!("SETTING_{number}"), "value": "a value of some length"}))
        .take(64)
        .collect();
    env.push(json!({"name": "NAMESPACE", "value": "${object.metadata.namespace}"}));
    env.push(json!({"name": "LEVEL", "value": "${params.level}"}));
    let container = json!({"name": format!("agent-{at}"), "image": format!("agent:{revision}"),
        "env": env, "volumeMounts": [{"name": format!("data-{at}"), "mountPath": "/data"}]});
    let template = json!({
        "apiVersion": "injectd.dev/v1alpha1", "kind": "ClusterSidecarTemplate",
        "metadata": {"name": format!("agent-{at}")},
        "spec": {
            "enablement": {"key": key(at), "in": ["PodLabel", "NamespaceLabel"], "default": "Disabled"},
            "parameters": [{"name": "level", "type": "String", "default": "info",
                "from": [{"podAnnotation": format!("sidecar-{at}.example.com/level")}]}],
            "steps": [{"name": "agent", "overlay": {"spec": {"containers": [container],
                "volumes": [{"name": format!("data-{at}"), "emptyDir": {}}]}}}],
        },
    });
    assert!(template.to_string().len() >= TEMPLATE_BYTES, "{}", template.to_string().len());
    template
}

fn read(template: &Value) -> Template {
    Template::read(template).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Templates of a revision.
fn templates(count: usize, revision: usize) -> Templates {
    let templates = (0..count).map(|at| read(&template(at, revision)));
    Templates::new(templates, None, 1).without_memory()
}

fn namespaces() -> Standalone {
    let mut objects = Objects::default();
    for at in 0..NAMESPACES {
        let metadata =
            json!({"name": format!("namespace-{at}"), "labels": {"team": format!("team-{at}")}});
        objects.add(&json!({"kind": "Namespace", "metadata": metadata})).expect("an object");
    }
    Standalone::Listed(Arc::new(objects))
}

/// A pod that asks for two of some templates.
fn review(at: usize, templates: usize) -> Vec<u8> {
    let labels = json!({key(at % templates): "true", key(at / templates): "true"});
    let pod = json!({"metadata": {"name": format!("pod-{at}"), "labels": labels},
        "spec": {"containers": [{"name": "app", "image": "app"}]}});
    let namespace = format!("namespace-{}", at % NAMESPACES);
    let review = json!({"request": {"uid": "1", "kind": {"kind": "Pod"}, "namespace": namespace, "object": pod}});
    review.to_string().into_bytes()
}

#[test]
#[ignore = "takes minutes without optimization: just templates-memory"]
fn many_templates_take_little_memory() {
    let mut kept = Vec::new();
    let counted = measure(|| {
        let namespaces = namespaces();
        for revision in 0..REVISIONS {
            kept.push(Injector::new(templates(TEMPLATES, revision), namespaces.clone()));
        }
    });
    let read = counted.bytes_current;
    let counted = measure(|| {
        for at in 0..PODS {
            inject(&kept[at % REVISIONS], at, TEMPLATES);
        }
    });
    let after = read + counted.bytes_current;
    let found = [read, after].map(|bytes| (bytes + (1 << 20) - 1) >> 20);
    print_line(&format!(
        "{TEMPLATES} templates with {REVISIONS} revisions: {} MiB, after {PODS} pods {} MiB ({read} and \
         {after} bytes)",
        found[0], found[1],
    ));
    assert!(found.iter().zip(MIB).all(|(found, most)| *found <= most), "{found:?}, not {MIB:?}");
}

#[test]
fn the_page_has_the_memory_of_templates() {
    let [read, after] = MIB;
    let page = include_str!("../../../docs/performance.md");
    let figures = format!(
        "{TEMPLATES} templates of {} KiB with {REVISIONS} revisions each take {read} MiB, and {after} MiB after",
        TEMPLATE_BYTES >> 10,
    );
    assert!(page.contains(&figures), "docs/performance.md does not say: {figures}");
}

#[test]
fn a_template_keeps_little_more_than_its_text() {
    let bytes = |count| measure_kept(|| templates(count, 0)).1;
    // What is made once.
    bytes(1);
    let (few, many) = (bytes(2), bytes(10));
    let most = 8 * BYTES_PER_BYTE * i64::try_from(template(0, 0).to_string().len()).expect("few");
    assert!(many - few <= most, "8 templates take {} bytes, not {most}", many - few);
}

#[test]
fn a_combination_of_templates_keeps_little() {
    const COUNT: usize = 20;
    let injector = Injector::new(templates(COUNT, 0), namespaces());
    let reviews = |from: usize, to: usize| {
        (from..to).for_each(|at| inject(&injector, at, COUNT));
    };
    reviews(0, COUNT);
    let ((), bytes) = measure_kept(|| reviews(COUNT, 5 * COUNT));
    let most = 4 * i64::try_from(COUNT).expect("few") * BYTES_PER_CHOICE;
    assert!(bytes <= most, "80 combinations take {bytes} bytes, not {most}");
}

#[test]
fn examples_keep_memory_in_proportion_to_their_text() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/templates");
    let folders = std::fs::read_dir(examples).expect("the examples must be there");
    let files = folders.map(|entry| entry.expect("an entry").path().join("template.yaml"));
    let texts: Vec<_> = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    assert!(texts.len() > 15, "{}", texts.len());
    let parse =
        |text: &String| injectd_yaml::parse(text, injectd_yaml::Options::default()).expect("YAML");
    let objects: Vec<Value> = texts.iter().map(parse).collect();
    let read_all = || objects.iter().map(read).collect::<Vec<_>>();
    // What is made once.
    drop(read_all());
    let bytes = measure_kept(read_all).1;
    let length: usize = objects.iter().map(|object| object.to_string().len()).sum();
    let most = BYTES_PER_BYTE_OF_EXAMPLES * i64::try_from(length).expect("few");
    assert!(bytes <= most, "{length} bytes of examples take {bytes} bytes, not {most}");
}

fn inject(injector: &Injector<Templates, Standalone>, at: usize, templates: usize) {
    let review = review(at, templates);
    let answer = injector.review(&review).now_or_never().expect("nothing to wait for");
    assert_eq!(answer.expect("an answer").outcome.verdict, Verdict::Injected);
}

/// What a function makes, and the bytes that it keeps.
fn measure_kept<T>(make: impl FnOnce() -> T) -> (T, i64) {
    let mut make = Some(make);
    let mut kept = None;
    let counted = measure(|| kept = make.take().map(|make| make()));
    (kept.expect("it is made"), counted.bytes_current)
}

#[expect(clippy::print_stderr, reason = "a person reads what the test counted")]
fn print_line(line: &str) {
    eprintln!("{line}");
}
