use std::collections::BTreeMap;

use injectd_profiles::template_plane::KnownTemplate;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::*;

/// A template for pods with a label.
pub(in super::super) fn template(name: &str, label: &str) -> Arc<Template> {
    of_spec(
        name,
        json!({"match": {"podSelector": {"matchLabels": {"app": label}}, "systemPods": "Include"}}),
    )
}

/// A template with a part of its `spec`.
pub(in super::super) fn of_spec(name: &str, mut spec: Value) -> Arc<Template> {
    spec["steps"] = json!([{"name": "step", "overlay": {"spec": {"hostNetwork": true}}}]);
    let object = json!({"apiVersion": "injectd.dev/v1alpha1", "kind": "ClusterSidecarTemplate",
        "metadata": {"name": name}, "spec": spec});
    Arc::new(Template::read(&object).expect("a template"))
}

/// What a replica knows that serves some templates.
pub(in super::super) fn known<'t>(
    served: impl IntoIterator<Item = &'t Arc<Template>>,
) -> KnownTemplates {
    let of = |template: &Arc<Template>| {
        let object = DynamicObject { types: None, metadata: <_>::default(), data: Value::Null };
        let read = Ok(Arc::clone(template));
        let known = KnownTemplate::new(Arc::new(object), read, Some(Arc::clone(template)));
        (template.identity.clone(), known)
    };
    let templates: BTreeMap<_, _> = served.into_iter().map(of).collect();
    KnownTemplates { templates, revisions: Vec::new(), is_listed: true }
}

fn labels(memory: &Memory) -> String {
    format!("{:?}", memory.wanted().expect("templates").entries)
}

#[test]
fn a_template_that_is_gone_stays_for_a_while() {
    let (mut memory, begin) = (Memory::new(None), Instant::now());
    assert_eq!(memory.wanted(), None);
    memory.see(&known([]), begin);
    assert_eq!(memory.wanted().map(|wanted| &*wanted.entries), Some(&[Selected::nothing()][..]));
    let [web, db] = [template("a", "web"), template("a", "db")];
    memory.see(&known([&web]), begin);
    assert!(labels(&memory).contains("web"));
    memory.see(&known([&db]), begin);
    assert!(labels(&memory).contains("web") && labels(&memory).contains("db"));
    assert_eq!(memory.due(None), Some(begin + KEPT));
    memory.pass(None, begin + KEPT / 2);
    assert!(labels(&memory).contains("web"));
    let floor = Some(begin + KEPT);
    memory.pass(floor, begin + KEPT);
    assert!(labels(&memory).contains("web"), "counted from the floor");
    memory.pass(None, begin + KEPT);
    assert!(!labels(&memory).contains("web") && labels(&memory).contains("db"));
    assert_eq!(memory.due(None), None);
}

#[test]
fn the_order_in_which_templates_were_seen_does_not_matter() {
    let begin = Instant::now();
    let [web, db] = [template("b", "web"), template("a", "db")];
    let wanted = [[&web, &db], [&db, &web]].map(|order| {
        let mut memory = Memory::new(None);
        memory.see(&known([order[0]]), begin);
        memory.see(&known(order), begin);
        memory.wanted().expect("templates").entries.clone()
    });
    assert_eq!(wanted[0], wanted[1]);
}

#[test]
fn revisions_with_the_same_scope_are_one() {
    let (mut memory, begin) = (Memory::new(None), Instant::now());
    for at in 0..20 {
        let spec =
            json!({"priority": at, "match": {"podSelector": {"matchLabels": {"app": "web"}}}});
        memory.see(&known([&of_spec("a", spec)]), begin);
    }
    assert_eq!((memory.templates.len(), memory.due(None)), (1, None));
}

#[test]
fn too_many_earlier_revisions_are_all_pods() {
    let (mut memory, begin) = (Memory::new(Some("mesh".to_owned())), Instant::now());
    let last = MAX_GONE + 1;
    for at in 0..=last {
        memory.see(&known([&template("a", &format!("a{at}"))]), begin);
    }
    assert_eq!(memory.templates.len(), MAX_GONE + 1);
    let wanted = memory.wanted().expect("templates");
    assert_eq!((&wanted.entries, wanted.all_pods.len()), (&memory.all_pods(), 1));
    memory.pass(None, begin + KEPT);
    assert!(memory.wanted().expect("templates").all_pods.is_empty());
    assert!(labels(&memory).contains(&format!("a{last}")));
}

#[test]
fn a_scope_is_covered_while_its_templates_are_remembered() {
    let (mut memory, begin) = (Memory::new(None), Instant::now());
    let [web, db] = [template("a", "web"), template("b", "db")];
    memory.see(&known([&web]), begin);
    let first = memory.wanted().expect("templates").entries.clone();
    memory.see(&known([&db]), begin);
    assert!(memory.covers(&first, false) && memory.covers(&[Selected::nothing()], false));
    memory.pass(None, begin + KEPT);
    assert!(!memory.covers(&first, false));
    assert!(!memory.covers(&[Selected::default()], true));
}
