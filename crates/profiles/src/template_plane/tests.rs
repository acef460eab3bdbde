use k8s_openapi::{
    apimachinery::pkg::{
        apis::meta::v1::{ManagedFieldsEntry, ObjectMeta},
        runtime::RawExtension,
    },
    jiff::Timestamp,
};
use serde_json::json;

use super::*;

const IN_ORDER: &str = "sleep";
const BROKEN: &str = "${object.spec.";

struct Plane {
    state: TemplatePlane,
    now: Instant,
}

impl Plane {
    fn of(ceiling: Ceiling) -> Self {
        Self { state: TemplatePlane::new(ceiling), now: Instant::now() }
    }

    /// With these cluster templates, and none else.
    fn with(objects: Vec<DynamicObject>) -> Self {
        let mut plane = Self::of(Ceiling::Baseline);
        plane.revisions(Vec::new());
        plane.apply(TemplateChange::Templates(Kind::Namespaced, Update::Listed(Vec::new())));
        plane.list(objects);
        plane.define(&Definition::There("a".to_owned()));
        plane
    }

    fn apply(&mut self, change: TemplateChange) -> Vec<String> {
        self.state.apply(change);
        self.settle()
    }

    fn list(&mut self, objects: Vec<DynamicObject>) -> Vec<String> {
        self.apply(TemplateChange::Templates(Kind::Cluster, Update::Listed(objects)))
    }

    fn put(&mut self, object: DynamicObject) -> Vec<String> {
        let kind = match object.metadata.namespace {
            None => Kind::Cluster,
            Some(_) => Kind::Namespaced,
        };
        self.apply(TemplateChange::Templates(kind, Update::Applied(object)))
    }

    fn delete(&mut self, object: DynamicObject) {
        self.state.apply(TemplateChange::Templates(Kind::Cluster, Update::Deleted(object)));
    }

    fn revisions(&mut self, revisions: Vec<ControllerRevision>) -> Vec<String> {
        self.apply(TemplateChange::Revisions(Update::Listed(revisions)))
    }

    fn define(&mut self, definition: &Definition) -> Vec<String> {
        self.state.define(Kind::Cluster, definition, self.now);
        self.settle()
    }

    fn settle(&mut self) -> Vec<String> {
        self.state.settle(self.now);
        self.state.take_notes().into_iter().map(in_short).collect()
    }

    /// Name and hash of what is served.
    fn served(&self) -> Vec<String> {
        self.state.known().served().map(|served| served.key()).collect()
    }

    fn hash(&self, name: &str) -> Option<String> {
        let identity = Identity { namespace: None, name: name.to_owned() };
        let known = self.state.known();
        Some(known.templates.get(&identity)?.served.as_ref()?.hash.clone())
    }
}

fn in_short(note: TemplateNote) -> String {
    match note {
        TemplateNote::Applied { identity, .. } => format!("{identity} applied"),
        TemplateNote::Rejected { identity, problems, served } => {
            let served = if served.is_some() { "served" } else { "not served" };
            let fields: Vec<_> = problems.iter().map(|problem| &*problem.field).collect();
            format!("{identity} rejected: {}; {served}", fields.join(", "))
        }
        TemplateNote::Removed(identity) => format!("{identity} removed"),
        TemplateNote::Orphaned(identity) => format!("{identity} orphaned"),
        TemplateNote::Warning(text) => text,
    }
}

/// A template that adds a container with this command.
fn template(name: &str, command: &str) -> DynamicObject {
    let object = json!({
        "apiVersion": schema::API_VERSION, "kind": schema::CLUSTER_KIND,
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"match": {"podSelector": {"matchLabels": {"a": "b"}}}, "steps": [{"name": "one",
            "overlay": {"spec": {"containers": [{"name": "side", "image": "i", "command": [command]}]}}}]},
    });
    serde_json::from_value(object).expect("an object")
}

fn changed(mut object: DynamicObject, command: &str) -> DynamicObject {
    object.data["spec"]["steps"][0]["overlay"]["spec"]["containers"][0]["command"][0] =
        command.into();
    object.metadata.generation = object.metadata.generation.map(|generation| generation + 1);
    object
}

fn namespaced(mut object: DynamicObject, namespace: &str) -> DynamicObject {
    object.metadata.namespace = Some(namespace.to_owned());
    object
}

fn revision(object: &DynamicObject, number: i64) -> ControllerRevision {
    let data = objects::as_written(object);
    let hash = Template::read(&data).expect("in order").hash;
    let uid = object.metadata.uid.clone().expect("a uid");
    let labels = [(UID_LABEL, uid), (HASH_LABEL, hash.clone())];
    let labels = labels.map(|(key, value)| (key.to_owned(), value)).into();
    ControllerRevision {
        data: Some(RawExtension(data)),
        metadata: ObjectMeta { name: Some(hash), labels: Some(labels), ..ObjectMeta::default() },
        revision: number,
    }
}

#[test]
fn nothing_is_known_before_all_is_listed() {
    let mut plane = Plane::of(Ceiling::Baseline);
    let waits = |plane: &Plane| plane.state.waits_for().unwrap_or_default();
    assert_eq!(plane.list(vec![template("t", IN_ORDER)]), [""; 0]);
    assert_eq!(waits(&plane), "waiting for the objects of kind SidecarTemplate");
    plane.apply(TemplateChange::Templates(Kind::Namespaced, Update::Listed(Vec::new())));
    assert_eq!(waits(&plane), "waiting for the revisions of sidecar templates");
    assert!(!plane.state.known().is_listed);
    assert_eq!(plane.revisions(Vec::new()), ["t applied"]);
    assert!(plane.state.known().is_listed && plane.state.waits_for().is_none());
    assert_eq!(plane.served(), ["t"]);
}

#[test]
fn a_kind_that_the_api_server_does_not_have_has_no_objects() {
    let mut plane = Plane::of(Ceiling::Baseline);
    plane.revisions(Vec::new());
    let unknown = || Update::Failed(WatchFailure::Unknown);
    for kind in Kind::ALL {
        let notes = plane.apply(TemplateChange::Templates(kind, unknown()));
        assert!(notes[0].starts_with("the cluster has no "), "{notes:?}");
        // It is said once.
        assert_eq!(plane.apply(TemplateChange::Templates(kind, unknown())), [""; 0]);
    }
    assert!(plane.state.known().is_listed);
    assert_eq!(plane.list(vec![template("t", IN_ORDER)]), ["t applied"]);
}

#[test]
fn what_may_not_be_read_is_named() {
    let mut plane = Plane::of(Ceiling::Baseline);
    let failed = Update::Failed(WatchFailure::Forbidden("may not list".to_owned()));
    plane.apply(TemplateChange::Templates(Kind::Cluster, failed));
    let waits = plane.state.waits_for().expect("must wait");
    assert_eq!(waits, "the objects of kind ClusterSidecarTemplate cannot be read: may not list");
}

#[test]
fn a_template_that_is_not_in_order_does_not_replace_its_last_good_revision() {
    let object = template("t", IN_ORDER);
    let mut plane = Plane::with(vec![object.clone()]);
    let first = plane.hash("t");
    let broken = changed(object.clone(), BROKEN);
    let field = "spec.steps[0].overlay.spec.containers[0].command[0]";
    assert_eq!(plane.put(broken.clone()), [format!("t rejected: {field}; served")]);
    assert_eq!(plane.hash("t"), first);
    // Its status changes, and nothing is said again.
    assert_eq!(plane.put(broken.clone()), [""; 0]);
    assert_eq!(plane.put(changed(broken, "other")), ["t applied"]);
    assert_ne!(plane.hash("t"), first);
}

#[test]
fn the_last_good_revision_is_known_after_a_start() {
    let object = template("t", IN_ORDER);
    let (older, newer) = (revision(&object, 3), revision(&changed(object.clone(), "newer"), 4));
    let hash = |revision: &ControllerRevision| revision.metadata.name.clone();
    let broken = changed(object.clone(), BROKEN);
    let mut plane = Plane::with(vec![broken.clone()]);
    assert_eq!(plane.hash("t"), None);
    // What was changed is not believed, nor what another object of the name had.
    let mut forged = newer.clone();
    forged.data = revision(&changed(object.clone(), "forged"), 5).data;
    let mut of_other = newer.clone();
    let labels = of_other.metadata.labels.as_mut().expect("labels");
    labels.insert(UID_LABEL.to_owned(), "other".to_owned());
    assert_eq!(plane.revisions(vec![forged.clone(), of_other]), [""; 0]);
    assert_eq!(plane.hash("t"), None);
    assert_eq!(plane.revisions(vec![forged, older.clone()]), ["t applied"]);
    assert_eq!(plane.hash("t"), hash(&older));
    let mut plane = Plane::of(Ceiling::Baseline);
    plane.revisions(vec![older, newer.clone()]);
    plane.apply(TemplateChange::Templates(Kind::Namespaced, Update::Listed(Vec::new())));
    plane.list(vec![broken]);
    assert_eq!(plane.hash("t"), hash(&newer));
}

#[test]
fn revisions_are_waited_for_until_their_list_succeeds_or_is_forbidden() {
    let object = template("t", IN_ORDER);
    let kept = revision(&object, 3);
    let start = |failure: WatchFailure| {
        let mut plane = Plane::of(Ceiling::Baseline);
        plane.apply(TemplateChange::Templates(Kind::Namespaced, Update::Listed(Vec::new())));
        plane.list(vec![changed(object.clone(), BROKEN)]);
        plane.apply(TemplateChange::Revisions(Update::Failed(failure)));
        plane
    };
    let mut plane = start(WatchFailure::Other("too many requests".to_owned()));
    let waits = plane.state.waits_for().expect("must wait");
    assert_eq!(waits, "the revisions of sidecar templates cannot be read: too many requests");
    assert!(!plane.state.known().is_listed);
    plane.revisions(vec![kept.clone()]);
    assert_eq!(plane.hash("t"), kept.metadata.name);
    let mut plane = start(WatchFailure::Forbidden("may not list".to_owned()));
    assert_eq!((plane.state.waits_for(), plane.state.known().is_listed), (None, true));
    // What is served once does not wait again.
    let passes = WatchFailure::Other("too many requests".to_owned());
    plane.apply(TemplateChange::Revisions(Update::Failed(passes)));
    assert_eq!(plane.state.waits_for(), None);
}

#[test]
fn the_newest_revision_that_is_kept_is_served_while_a_template_is_not_in_order() {
    let object = template("t", IN_ORDER);
    let (older, newer) = (revision(&object, 3), revision(&changed(object.clone(), "newer"), 4));
    let mut plane = Plane::with(vec![object.clone()]);
    plane.put(changed(object, BROKEN));
    let served = plane.hash("t");
    // Another replica has seen a newer one; what this one serves is not kept yet.
    assert_eq!(plane.revisions(vec![newer.clone()]), [""; 0]);
    assert_eq!(plane.hash("t"), served);
    assert_eq!(plane.revisions(vec![older.clone(), newer.clone()]), ["t applied"]);
    assert_eq!(plane.hash("t"), newer.metadata.name);
    // What is served stays, if another one has its number, and if it is not kept any more.
    let older = ControllerRevision { revision: 4, ..older };
    assert_eq!(plane.revisions(vec![older.clone(), newer.clone()]), [""; 0]);
    assert_eq!(plane.revisions(vec![older]), [""; 0]);
    assert_eq!(plane.hash("t"), newer.metadata.name);
}

#[test]
fn a_deleted_template_is_not_served() {
    let mut plane = Plane::with(vec![template("t", IN_ORDER), template("u", IN_ORDER)]);
    plane.delete(template("t", IN_ORDER));
    assert_eq!(plane.state.asks_definitions(), [Kind::Cluster]);
    // Until it is known that its definition is there.
    assert_eq!(plane.served(), ["t", "u"]);
    assert_eq!(plane.define(&Definition::There("a".to_owned())), ["t removed"]);
    assert_eq!(plane.served(), ["u"]);
    assert_eq!(plane.list(Vec::new()), [""; 0]);
    assert_eq!(plane.define(&Definition::There("a".to_owned())), ["u removed"]);
}

#[test]
fn a_template_whose_definition_is_deleted_stays_served() {
    let object = template("t", IN_ORDER);
    let mut plane = Plane::with(vec![object.clone(), template("u", IN_ORDER)]);
    plane.delete(object.clone());
    assert_eq!(plane.define(&Definition::Gone), ["t orphaned"]);
    let unknown = Update::Failed(WatchFailure::Unknown);
    plane.apply(TemplateChange::Templates(Kind::Cluster, unknown));
    assert_eq!(plane.define(&Definition::Gone), ["u orphaned"]);
    assert_eq!(plane.served(), ["t", "u"]);
    assert_eq!(plane.state.wakes_at(), None);
    assert_eq!(plane.state.asks_definitions(), []);
    // It is there again, and one of the templates.
    plane.list(Vec::new());
    assert_eq!(plane.state.asks_definitions(), [Kind::Cluster]);
    plane.define(&Definition::There("b".to_owned()));
    assert_eq!(plane.state.asks_definitions(), []);
    assert_eq!(plane.served(), ["t", "u"]);
    let mut again = object;
    again.metadata.uid = Some("new".to_owned());
    assert_eq!(plane.put(again), [""; 0]);
    plane.now = plane.state.wakes_at().expect("an end");
    assert_eq!(plane.settle(), ["u removed"]);
    assert_eq!(plane.served(), ["t"]);
}

#[test]
fn definitions_that_were_made_anew_unseen_are_found_by_their_uid() {
    let mut plane = Plane::with(vec![template("t", IN_ORDER)]);
    plane.list(Vec::new());
    assert_eq!(plane.define(&Definition::There("b".to_owned())), ["t orphaned"]);
    assert_eq!(plane.served(), ["t"]);
    plane.now += ORPHANS_STAY;
    assert_eq!(plane.settle(), ["t removed"]);
}

#[test]
fn namespaced_templates_stay_below_the_ceiling() {
    let mut privileged = namespaced(template("t", IN_ORDER), "team");
    let containers = &mut privileged.data["spec"]["steps"][0]["overlay"]["spec"]["containers"];
    containers[0]["securityContext"] = json!({"privileged": true});
    for (ceiling, expected) in [(Ceiling::Off, 0), (Ceiling::Baseline, 0), (Ceiling::Privileged, 1)]
    {
        let mut plane = Plane::of(ceiling);
        plane.revisions(vec![]);
        plane.list(Vec::new());
        let listed = Update::Listed(vec![privileged.clone()]);
        let notes = plane.apply(TemplateChange::Templates(Kind::Namespaced, listed));
        assert_eq!(plane.served().len(), expected, "{ceiling:?}");
        assert_eq!(notes[0].starts_with("team/t rejected: "), expected == 0, "{notes:?}");
    }
}

#[test]
fn the_oldest_templates_of_a_namespace_are_served() {
    let at = |name: &str, second: i64| {
        let mut object = namespaced(template(name, IN_ORDER), "team");
        let time = Timestamp::from_second(second).expect("a time");
        object.metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
        object
    };
    let mut plane = Plane::with(Vec::new());
    for index in 0..50 {
        assert_eq!(
            plane.put(at(&format!("t{index:02}"), index)),
            [format!("team/t{index:02} applied")]
        );
    }
    assert_eq!(plane.put(at("a", 60)), ["team/a rejected: metadata.name; not served"]);
    assert_eq!(plane.put(at("b", 61)), ["team/b rejected: metadata.name; not served"]);
    let gone = at("t07", 7);
    plane.state.apply(TemplateChange::Templates(Kind::Namespaced, Update::Deleted(gone)));
    plane.state.define(Kind::Namespaced, &Definition::There(String::new()), plane.now);
    assert_eq!(plane.settle(), ["team/a applied", "team/t07 removed"]);
}

#[test]
fn a_template_is_read_once_for_each_generation() {
    let object = template("t", IN_ORDER);
    let mut plane = Plane::with(vec![object.clone()]);
    let served = || plane.state.known().served().next().cloned().expect("one");
    let before = served();
    let digest = plane.state.known().digest();
    let mut with_status = object;
    with_status.data["status"] = json!({"pods": 3});
    plane.put(with_status);
    let known = plane.state.known();
    let now = known.served().next().expect("one");
    assert!(Arc::ptr_eq(&before, now));
    assert_eq!(known.digest(), digest);
    assert_eq!(known.templates.values().next().expect("one").object.data["status"]["pods"], 3);
}

#[test]
fn without_news_what_is_known_stays_the_same_object() {
    let mut plane = Plane::with(vec![template("t", IN_ORDER)]);
    plane.settle();
    let known = plane.state.known();
    assert_eq!(plane.settle(), [""; 0]);
    assert!(Arc::ptr_eq(&known, &plane.state.known()));
    plane.revisions(Vec::new());
    assert!(!Arc::ptr_eq(&known, &plane.state.known()));
}

#[test]
fn what_grows_with_an_object_is_kept_once() {
    let copies = |metadata: &mut ObjectMeta| {
        metadata.managed_fields = Some(vec![ManagedFieldsEntry::default()]);
        let last = ("kubectl.kubernetes.io/last-applied-configuration", "{}");
        let annotations = [last, ("a", "b")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        metadata.annotations = Some(annotations.into());
    };
    let without = |metadata: &ObjectMeta| {
        let annotations = metadata.annotations.as_ref().expect("annotations");
        annotations.len() == 1 && metadata.managed_fields.is_none()
    };
    let mut object = template("t", IN_ORDER);
    let mut of_object = revision(&object, 1);
    copies(&mut object.metadata);
    copies(&mut of_object.metadata);
    let mut plane = Plane::with(vec![object]);
    plane.revisions(vec![of_object]);
    let known = plane.state.known();
    assert!(known.templates.values().all(|template| without(&template.object.metadata)));
    let kept = &known.revisions[0];
    assert!(without(&kept.metadata) && kept.data.starts_with("{\"apiVersion\":"), "{kept:?}");
}
