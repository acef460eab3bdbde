//! Instructions of a review of the 12 KB pod, counted by callgrind ([`Counts`]): from memory and evaluated,
//! with templates that are not for the pod, with several templates. Fails if a case has grown by more than
//! 5 % over `instructions.txt`; `BLESS=1` rewrites that file.

use std::{hint::black_box, ops::Range, path::Path, process::ExitCode};

use futures_util::FutureExt as _;
use injectd_core::{injector::Injector, standalone::Standalone};
use injectd_templates::Template;
use injectd_templates_mesh::Templates;

#[path = "../../../benches/instructions/counts.rs"]
mod counts;

use counts::Counts;

const REVIEW: &str = include_str!("../../../loadtest/review-12k.json");

const TEN: &str = include_str!("ten.yaml");
/// Number of reviews in the two runs.
const ROUNDS: [u64; 2] = [20, 120];
/// Templates that ask for a key that the pod does not have.
const UNASKED: usize = 400;

const CASES: [&str; 9] = [
    "known",
    "evaluated",
    "unasked-400",
    "one-condition",
    "eleven-conditions",
    "eleven-conditions-known",
    "one-with-five-containers",
    "five-with-one-container",
    "five-known",
];

fn main() -> ExitCode {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    Counts { cases: &CASES, file: &file, rounds: ROUNDS }.main(run)
}

fn run(case: &str, rounds: u64) {
    let (templates, is_kept) = match case {
        "known" => (vec![TEN.to_owned()], true),
        "evaluated" => (vec![TEN.to_owned()], false),
        "unasked-400" => ((0..UNASKED).map(unasked).collect(), false),
        "one-condition" => (vec![condition(0)], false),
        "eleven-conditions" => ((0..11).map(condition).collect(), false),
        "eleven-conditions-known" => ((0..11).map(condition).collect(), true),
        "one-with-five-containers" => (vec![adding(0, 0..5)], false),
        "five-with-one-container" => ((0..5).map(|at| adding(at, at..at + 1)).collect(), false),
        "five-known" => ((0..5).map(|at| adding(at, at..at + 1)).collect(), true),
        _ => panic!("not a case: {case}"),
    };
    let templates = Templates::new(templates.iter().map(|template| read(template)), None, 1);
    let templates = if is_kept { templates } else { templates.without_memory() };
    let injector = Injector::new(templates, Standalone::default());
    for _ in 0..rounds {
        let answer = injector.review(black_box(REVIEW.as_bytes())).now_or_never();
        drop(black_box(answer.expect("nothing to wait for").expect("an answer")));
    }
}

fn read(template: &str) -> Template {
    let template = injectd_yaml::parse(template, injectd_yaml::Options::default()).expect("YAML");
    Template::read(&template).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn template(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: injectd.dev/v1alpha1, kind: ClusterSidecarTemplate, metadata: {{name: {name}}}, spec: {{{spec}}}}}"
    )
}

/// A template for pods with a label that the pod does not have.
fn unasked(at: usize) -> String {
    let (key, step) = (format!("unasked-{at}.example.com/inject"), step(0..1));
    template(&format!("unasked-{at}"), &format!("enablement: {{key: {key}}}, steps: [{step}]"))
}

/// A template with a condition of two reads that does not hold.
fn condition(at: usize) -> String {
    let expression = "object.metadata.namespace == object.spec.?serviceAccountName.orValue('')";
    let (of, step) = (format!("{{name: two-reads, expression: \"{expression}\"}}"), step(0..1));
    let spec = format!("match: {{conditions: [{of}]}}, steps: [{step}]");
    template(&format!("condition-{at}"), &spec)
}

/// A template for all pods.
fn adding(at: usize, containers: Range<usize>) -> String {
    let spec = format!("match: {{namespaceSelector: {{}}}}, steps: [{}]", step(containers));
    template(&format!("adding-{at}"), &spec)
}

fn step(containers: Range<usize>) -> String {
    let container = |at: usize| {
        format!(
            "{{name: agent-{at}, image: registry.example.com/agent:1.20, \
             env: [{{name: NAMESPACE, value: \"${{object.metadata.namespace}}\"}}], \
             resources: {{requests: {{cpu: 50m, memory: 64Mi}}}}}}"
        )
    };
    let containers: Vec<_> = containers.map(container).collect();
    format!("{{name: agent, overlay: {{spec: {{containers: [{}]}}}}}}", containers.join(", "))
}
