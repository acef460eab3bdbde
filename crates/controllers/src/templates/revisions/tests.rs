use kube::core::DynamicObject;

use super::*;

fn identity() -> Identity {
    Identity { namespace: Some("team".to_owned()), name: "proxy.a".to_owned() }
}

fn object(number: usize, limit: &Value) -> Value {
    json!({
        "apiVersion": "injectd.dev/v1alpha1",
        "kind": "SidecarTemplate",
        "metadata": {"name": "proxy.a", "namespace": "team"},
        "spec": {
            "steps": [{
                "name": "s",
                "overlay": {"spec": {"containers": [{"name": "c", "image": format!("a:{number}")}]}},
            }],
            "revisionHistoryLimit": limit,
        },
    })
}

fn read(number: usize) -> Arc<Template> {
    Arc::new(Template::read(&object(number, &3.into())).expect("a template"))
}

/// A template, and its revisions up to a number.
fn known(number: usize, limit: &Value) -> KnownTemplates {
    let object = object(number, limit);
    let metadata = ObjectMeta { uid: Some("uid".to_owned()), ..ObjectMeta::default() };
    let data = json!({"spec": object["spec"]});
    let object = DynamicObject { types: None, metadata, data };
    let template = read(number);
    let template = KnownTemplate::new(Arc::new(object), Ok(Arc::clone(&template)), Some(template));
    let revisions = (1..=number).map(|number| {
        let of_number = i64::try_from(number).expect("a small number");
        let made = revision(&identity(), "uid", &read(number), of_number);
        Arc::new(KeptRevision::new(made))
    });
    let revisions = revisions.collect();
    KnownTemplates { templates: [(identity(), template)].into(), revisions, is_listed: true }
}

fn names(writes: &[Write]) -> Vec<String> {
    writes.iter().map(Write::object).collect()
}

#[test]
fn a_revision_is_read_as_the_template_that_it_is_of() {
    let template = read(1);
    let made = revision(&identity(), "uid", &template, 1);
    let data = made.data.expect("data").0;
    assert_eq!(Template::read(&data).expect("a template").hash, template.hash);
    assert_eq!(data["spec"]["revisionHistoryLimit"], Value::Null);
    let labels = made.metadata.labels.expect("labels");
    let expected = [
        ("injectd.dev/template-hash", &*template.hash),
        ("injectd.dev/template-kind", "SidecarTemplate"),
        ("injectd.dev/template-name", "proxy.a"),
        ("injectd.dev/template-namespace", "team"),
        ("injectd.dev/template-uid", "uid"),
    ];
    let labels: Vec<_> = labels.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(labels, expected);
    // Another template of that name, and one of another namespace, have other revisions.
    let other = |namespace: Option<&str>, uid| {
        let identity = Identity { namespace: namespace.map(str::to_owned), ..identity() };
        revision(&identity, uid, &template, 1).metadata.name
    };
    let all = [other(Some("team"), "uid"), other(Some("team"), "b"), other(None, "uid")];
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 3);
    assert!(all.iter().flatten().all(|name| injectd_k8s::names::is_dns_subdomain(name)), "{all:?}");
}

#[test]
fn the_oldest_revisions_beyond_the_limit_are_removed() {
    let known = known(8, &3.into());
    let removed = names(&writes(&known, true, &BTreeSet::new()));
    let oldest: Vec<_> = known.revisions[..4].iter().rev().collect();
    let oldest: Vec<_> = oldest
        .iter()
        .map(|revision| {
            format!("ControllerRevision {}", revision.metadata.name.as_ref().expect("a name"))
        })
        .collect();
    assert_eq!(removed, oldest);
    // Not while a replica serves something else.
    assert_eq!(writes(&known, false, &BTreeSet::new()), []);
}

#[test]
fn a_limit_that_is_not_one_is_the_default() {
    for (limit, removed) in [(Value::Null, 2), ("x".into(), 2), (0.into(), 6), (1_000.into(), 0)] {
        let known = known(8, &limit);
        assert_eq!(writes(&known, true, &BTreeSet::new()).len(), removed, "{limit}");
    }
}

#[test]
fn the_served_revision_is_kept_however_old_it_is() {
    let mut known = known(8, &1.into());
    let template = known.templates.get_mut(&identity()).expect("the template");
    template.read = Err(Arc::from([]));
    template.served = Some(read(2));
    let removed = names(&writes(&known, true, &BTreeSet::new()));
    let kept = format!("-{}-", read(2).hash);
    assert_eq!(removed.len(), 5);
    assert!(removed.iter().all(|name| !name.contains(&kept)), "{removed:?}");
}

#[test]
fn revisions_of_templates_that_are_gone_are_removed_when_they_are_gone_for_good() {
    let mut known = known(2, &3.into());
    known.templates.clear();
    assert_eq!(orphans(&known).collect::<Vec<_>>(), ["uid"]);
    assert_eq!(kind_of(&known, "uid"), Some("SidecarTemplate"));
    assert_eq!(writes(&known, true, &BTreeSet::new()), []);
    assert_eq!(writes(&known, true, &["uid".to_owned()].into()).len(), 2);
}
