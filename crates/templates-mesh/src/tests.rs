//! What is evaluated of an excerpt is what is evaluated of the whole pod, and what is kept is what would be
//! evaluated.

mod breed;
mod cases;
mod memory;
mod odd;
mod random;
mod standing;

use std::{collections::BTreeMap, env, sync::Arc};

use injectd_core::lookups::Metadata;
use injectd_templates::Template;
use injectd_templates_tree::{Decision, Denied, Request, State, inject, lay};
use json_patch::Patch;
use serde_json::{Value, json};

use crate::{
    object::Object,
    set::{Origin, Set},
};
use breed::Breeder;
use cases::{Case, examples};

/// Pods that are tried; more are asked for by this variable.
const PODS: usize = 300;
const MORE: &str = "INJECTD_TEMPLATES_PODS";

fn read(template: &Value) -> Template {
    Template::read(template).expect("the template must be right")
}

fn origin<'o>(case: &Case, namespace: &'o str, of_namespace: &'o Metadata) -> Origin<'o> {
    let account = case.pod.pointer("/spec/serviceAccountName").and_then(Value::as_str);
    let service_account = case.objects.iter().find(|object| {
        object["kind"] == "ServiceAccount" && object["metadata"]["name"].as_str() == account
    });
    let is_owner = |object: &&Value| {
        !["Namespace", "ServiceAccount"].iter().any(|kind| object["kind"] == *kind)
    };
    Origin {
        namespace,
        of_namespace,
        service_account: service_account.cloned(),
        owners: case.objects.iter().filter(is_owner).cloned().collect(),
    }
}

fn metadata(case: &Case) -> Metadata {
    let namespace = case.objects.iter().find(|object| object["kind"] == "Namespace");
    let map = |field: &str| {
        let map = namespace.and_then(|namespace| namespace["metadata"][field].as_object());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        map.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
    };
    Metadata { labels: map("labels"), annotations: map("annotations") }
}

/// What becomes of a pod, the warnings, and what became of the templates that may be for it.
type Found = Result<(Value, Vec<String>, Vec<Decision>), Denied>;

/// Whether a template is not for a pod.
fn is_left(state: &State) -> bool {
    matches!(state, State::Unmatched(_) | State::Disabled)
}

/// The decisions on templates that may be for a pod: an index leaves out those that are not.
fn decided(decisions: Vec<Decision>) -> Vec<Decision> {
    decisions.into_iter().filter(|decision| !is_left(&decision.state)).collect()
}

fn reference(templates: &[Template], case: &Case, origin: &Origin<'_>) -> Found {
    let request = Request {
        pod: &case.pod,
        namespace: &origin.namespace_object(),
        service_account: origin.service_account.as_ref(),
        owners: &origin.owners,
        own_namespace: None,
    };
    inject(templates, &request)
        .map(|injected| (injected.pod, injected.warnings, decided(injected.decisions)))
}

/// How often something happened.
type Counts = BTreeMap<&'static str, usize>;

fn fast(set: &Set, case: &Case, origin: &Origin<'_>, counts: &mut Counts) -> Found {
    let text = case.pod.to_string();
    let object: Object<'_> = injectd_core::json::read(&text).expect("a pod");
    let Some(choice) = set.choose(&object, origin.namespace, origin.of_namespace) else {
        *counts.entry("no candidate").or_default() += 1;
        return Ok((case.pod.clone(), Vec::new(), Vec::new()));
    };
    let extract = choice.extract(&object).expect("JSON");
    *counts.entry(if extract.is_all { "whole" } else { "excerpt" }).or_default() += 1;
    let pod: Value = serde_json::from_slice(&extract.text).expect("JSON");
    let changed = set.evaluate(&choice, &pod, origin, None)?;
    let operations = lay::patch(&pod, changed.pod.as_ref().unwrap_or(&pod));
    if !operations.is_empty() {
        *counts.entry("patched").or_default() += 1;
    }
    let patch: Patch = serde_json::from_value(Value::Array(operations)).expect("a patch");
    let mut whole = case.pod.clone();
    json_patch::patch(&mut whole, &patch).expect("the patch must apply");
    Ok((whole, changed.warnings, decided(changed.decisions)))
}

#[expect(clippy::disallowed_methods, reason = "the variable is for people who run the test")]
fn count() -> usize {
    env::var(MORE).ok().and_then(|count| count.parse().ok()).unwrap_or(PODS)
}

#[test]
fn an_excerpt_says_all() {
    let examples = examples();
    let sets: Vec<Vec<&Value>> = examples
        .iter()
        .map(|example| vec![&example.template])
        .chain([examples.iter().map(|example| &example.template).collect()])
        .collect();
    let cases: Vec<Case> = examples.iter().flat_map(|example| example.cases.clone()).collect();
    let mut breeder = Breeder::new(&cases.iter().map(|case| &case.pod).collect::<Vec<_>>());
    let sets: Vec<(Vec<Template>, Set)> = sets
        .into_iter()
        .map(|templates| {
            let read = || templates.iter().map(|template| self::read(template));
            (read().collect(), Set::new(read().map(Arc::new).collect(), None))
        })
        .collect();
    let mut counts = Counts::new();
    for round in 0..count() {
        let mut case = cases[round % cases.len()].clone();
        if round >= cases.len() {
            case.pod = breeder.breed(&case.pod);
        }
        let (of_namespace, namespace) = (metadata(&case), "shop");
        let origin = origin(&case, namespace, &of_namespace);
        for (templates, set) in &sets {
            let expected = reference(templates, &case, &origin);
            let found = fast(set, &case, &origin, &mut counts);
            *counts.entry(if found.is_ok() { "allowed" } else { "denied" }).or_default() += 1;
            assert_eq!(found, expected, "{}\n{}", templates[0].key(), json!(case.pod));
        }
    }
    assert!(counts.len() >= 5, "{counts:?}");
    print_line(&format!("{counts:?}"));
}

#[expect(clippy::print_stderr, reason = "a person reads what the test did")]
fn print_line(line: &str) {
    eprintln!("{line}");
}
