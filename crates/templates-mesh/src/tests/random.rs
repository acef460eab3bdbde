//! Random templates, on random pods, on pods that have them, with and without the mark, and on pods that
//! another webhook has changed.

#[path = "../../../templates-tree/src/tests/properties/foreign.rs"]
mod foreign;
#[path = "../../../templates-tree/src/tests/properties/templates.rs"]
mod templates;

use std::{collections::BTreeMap, sync::Arc};

use injectd_templates::mark;
use injectd_templates_tree::explain;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngSeed, TestRunner},
};
use serde_json::{Value, json};

use self::{
    foreign::{Foreign, foreign, pods},
    templates::object,
};
use super::*;

/// Any number: the cases that are tried without the variable are the same each time.
const SEED: u64 = 43;
/// The key that switches templates on.
const SWITCH: &str = "example.com/inject";

/// Templates, and what is evaluated of them.
struct Both {
    objects: Vec<Value>,
    templates: Vec<Template>,
    set: Set,
}

impl Both {
    fn new(objects: Vec<Value>) -> Self {
        let templates = || objects.iter().map(read);
        let (templates, set) =
            (templates().collect(), Set::new(templates().map(Arc::new).collect(), None));
        Self { objects, templates, set }
    }

    /// The pod as it becomes; `None` if it is denied.
    fn compare(&self, pod: &Value, counts: &mut Counts) -> Option<Value> {
        let case = Case { pod: pod.clone(), objects: Vec::new() };
        let of_namespace = metadata(&case);
        let origin = origin(&case, "shop", &of_namespace);
        let shown = || format!("{}\n{pod}", Value::from(self.objects.clone()));
        let expected = reference(&self.templates, &case, &origin);
        let found = fast(&self.set, &case, &origin, counts);
        assert_eq!(found, expected, "{}", shown());
        *counts.entry("compared").or_default() += 1;
        *counts.entry(if found.is_ok() { "allowed" } else { "denied" }).or_default() += 1;
        self.compare_explanations(&case, &origin)
            .unwrap_or_else(|why| panic!("{why}\n{}", shown()));
        found.ok().map(|(pod, ..)| pod)
    }

    /// Who wrote what, and where values of parameters come from, is the same of an excerpt.
    fn compare_explanations(&self, case: &Case, origin: &Origin<'_>) -> Result<(), String> {
        let text = case.pod.to_string();
        let object: Object<'_> = injectd_core::json::read(&text).expect("a pod");
        let Some(choice) = self.set.choose(&object, origin.namespace, origin.of_namespace) else {
            return Ok(());
        };
        let extract = choice.extract(&object).expect("JSON");
        let excerpt: Value = serde_json::from_slice(&extract.text).expect("JSON");
        let of = |pod: &Value| {
            let namespace = origin.namespace_object();
            let request = Request {
                pod,
                namespace: &namespace,
                service_account: None,
                owners: &[],
                own_namespace: None,
            };
            let templates = explain(&self.templates, &request).templates.into_iter();
            let applied = templates
                .filter(|one| one.decision.as_ref().is_none_or(|one| !is_left(&one.state)));
            applied.map(|one| (one.template.clone(), one)).collect::<BTreeMap<_, _>>()
        };
        let (expected, found) = (of(&case.pod), of(&excerpt));
        if expected == found { Ok(()) } else { Err(format!("{expected:#?}\n{found:#?}")) }
    }
}

/// A template with another match: an index finds those that ask for a label or an annotation.
fn matched(mut object: Value, kind: usize, has_ports: bool) -> Value {
    let spec = &mut object["spec"];
    match kind {
        0 => spec["match"] = json!({"podSelector": {"matchLabels": {"foreign": "1"}}}),
        1 => {
            spec["enablement"] =
                json!({"key": SWITCH, "in": ["PodAnnotation"], "default": "Disabled"});
        }
        2 => {
            let expression = "object.spec.containers.size() > 1";
            spec["match"] = json!({"conditions": [{"name": "two", "expression": expression}]});
        }
        _ => {}
    }
    if has_ports {
        return object;
    }
    let text = object.to_string().replace("freePorts(8080, 1)", "[8080]");
    serde_json::from_str(&text).expect("JSON")
}

fn without_mark(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let annotations = pod.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    annotations.map(|annotations| annotations.shift_remove(mark::ANNOTATION));
    pod
}

#[test]
fn an_excerpt_says_all_to_random_templates() {
    let rng_seed = if count() == PODS { RngSeed::Fixed(SEED) } else { RngSeed::Random };
    let mut runner = TestRunner::new(Config { rng_seed, ..Config::default() });
    let pods = (pods(), foreign(), any::<bool>());
    let pods = prop::collection::vec(pods, 4);
    let kinds = prop::collection::vec(0..6_usize, 3);
    let of_templates = ((object('a'), object('b'), object('c')), 1..4_usize, kinds, any::<bool>());
    let input = (of_templates, pods);
    let mut counts = Counts::new();
    while counts.get("compared").is_none_or(|compared| *compared < count()) {
        let (((a, b, c), taken, kinds, has_ports), pods) =
            input.new_tree(&mut runner).expect("a case").current();
        let objects = [a, b, c].into_iter().zip(kinds).take(taken);
        let objects = objects.map(|(object, kind)| matched(object, kind, has_ports)).collect();
        let both = Both::new(objects);
        for (mut pod, changes, is_on) in pods {
            if is_on {
                pod["metadata"]["annotations"][SWITCH] = "true".into();
            }
            let Some(once) = both.compare(&pod, &mut counts) else { continue };
            both.compare(&once, &mut counts);
            both.compare(&without_mark(&once), &mut counts);
            let mut changed = once;
            for change in &changes {
                change.change(&mut changed);
                *counts.entry(change.name()).or_default() += 1;
            }
            if changes.iter().any(|change| Foreign::is_container(*change)) {
                both.compare(&without_mark(&changed), &mut counts);
            }
            both.compare(&changed, &mut counts);
        }
    }
    print_line(&format!("{counts:?}"));
}
