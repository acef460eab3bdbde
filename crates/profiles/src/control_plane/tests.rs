use futures_util::FutureExt as _;
use injectd_cluster::objects::{Node, ProxyConfig};
use injectd_core::{lookups::CallerFacts, mesh::Mesh as _, standalone::Standalone};
use injectd_istio::taint::TaintedValues;
use injectd_testkit::istio::{CONFIG, MESH, VALUES};
use serde_json::json;

use super::{settings::Texts, *};
use crate::Profile;

/// A configuration of 1.30, whose sidecars are native where all nodes are new enough.
const SHOWS: &str = "policy: enabled\ntemplates:\n  sidecar: |\n    metadata:\n      annotations:\n\
                     \x20       native: '{{ .NativeSidecars }}'\n        revision: '{{ .Revision }}'\n\
                     \x20       concurrency: '{{ .ProxyConfig.Concurrency }}'\n";
const TAGGED: &str = r#"{"global": {"tag": "1.30.3"}}"#;

struct Plane {
    state: ControlPlane,
    served: Arc<Revisions>,
}

impl Plane {
    fn of(settings: Settings) -> Self {
        let served = Arc::new(Revisions::default());
        let sources = Sources::from(Standalone::default());
        let settings = Settings {
            namespace: "istio-system".to_owned(),
            clusters: vec!["Kubernetes".to_owned()],
            tainted_values: TaintedValues::Off,
            ..settings
        };
        Self { state: ControlPlane::new(settings, sources, Arc::clone(&served)), served }
    }

    fn every() -> Self {
        Self::of(Settings::default())
    }

    fn named(revisions: &[&str]) -> Self {
        let named = revisions.iter().map(|name| (*name).to_owned()).collect();
        Self::of(Settings { named: Some(named), ..Settings::default() })
    }

    /// Applies a change, settles, and returns the notes in short.
    fn apply(&mut self, change: Change) -> Vec<String> {
        self.state.apply(change);
        self.settle()
    }

    fn settle(&mut self) -> Vec<String> {
        self.state.settle();
        self.state.take_notes().into_iter().map(in_short).collect()
    }

    /// All `ConfigMap`s, and no `ProxyConfig`s.
    fn list(&mut self, maps: Vec<ConfigMap>) -> Vec<String> {
        self.state.apply(Change::ConfigMaps(None, Update::Listed(maps)));
        self.apply(Change::ProxyConfigs(Update::Listed(Vec::new())))
    }

    fn change(&mut self, map: ConfigMap) -> Vec<String> {
        self.apply(Change::ConfigMaps(None, Update::Applied(map)))
    }

    fn delete(&mut self, name: &str) -> Vec<String> {
        self.apply(Change::ConfigMaps(None, Update::Deleted(map(name, &[]))))
    }

    /// The watch of one `ConfigMap` lists it, or nothing.
    fn listed(&mut self, name: &str, data: Option<&[(&str, &str)]>) -> Vec<String> {
        let found = data.map(|data| map(name, data)).into_iter().collect();
        self.apply(Change::ConfigMaps(Some(name.to_owned()), Update::Listed(found)))
    }

    /// An annotation of a pod that a revision injects.
    fn annotation(&self, revision: &str, key: &str) -> String {
        let profile = Profile::Istio(self.served.get(revision).expect("must be served"));
        let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": {"uid": "u", "kind": {"version": "v1", "kind": "Pod"}, "namespace": "a",
            "object": {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}}}});
        let review = review.to_string();
        let answer = profile.review_with(CallerFacts::default(), review.as_bytes());
        let answer = answer.now_or_never().expect("must not wait").expect("an answer");
        let answer: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        let patch = answer["response"]["patch"].as_str().expect("must be injected");
        let patch = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, patch);
        let patch = String::from_utf8(patch.expect("base64")).expect("a text");
        let (_, rest) =
            patch.split_once(&format!("\"{key}\":\"")).unwrap_or_else(|| panic!("{patch}"));
        rest.split('"').next().unwrap_or_default().to_owned()
    }
}

fn in_short(note: Note) -> String {
    match note {
        Note::Applied { revision, mesh } => {
            let configuration = mesh.configuration();
            format!("{revision} applied {} {}", configuration.generation, configuration.release)
        }
        Note::Rejected { revision, problem, .. } => format!("{revision} rejected: {problem}"),
        Note::Removed { revision } => format!("{revision} removed"),
        Note::Warning(text) => text,
    }
}

fn map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data: serde_json::Map<_, _> =
        data.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
    let map = json!({"metadata": {"name": name}, "data": data});
    serde_json::from_value(map).expect("a ConfigMap")
}

fn injector(name: &str) -> ConfigMap {
    map(name, &[("config", CONFIG), ("values", VALUES)])
}

fn shows(name: &str) -> ConfigMap {
    map(name, &[("config", SHOWS), ("values", TAGGED)])
}

fn node(name: &str, version: &str) -> Node {
    let node = json!({"metadata": {"name": name},
        "status": {"nodeInfo": {"kubeletVersion": version}}});
    serde_json::from_value(node).expect("a Node")
}

fn proxy_config(concurrency: u64) -> ProxyConfig {
    let object = json!({"metadata": {"name": "p", "namespace": "a"},
        "spec": {"concurrency": concurrency}});
    serde_json::from_value(object).expect("a ProxyConfig")
}

fn forbidden<K>() -> Update<K> {
    Update::Failed(WatchFailure::Forbidden("no permission".to_owned()))
}

#[test]
fn names_follow_the_revision() {
    for (revision, injector, mesh) in [
        ("default", "istio-sidecar-injector", "istio"),
        ("", "istio-sidecar-injector", "istio"),
        ("1-24", "istio-sidecar-injector-1-24", "istio-1-24"),
    ] {
        assert_eq!((injector_name(revision), mesh_name(revision)), (injector.into(), mesh.into()));
    }
    for (name, revision) in [
        ("istio-sidecar-injector", Some("default")),
        ("istio-sidecar-injector-1-24", Some("1-24")),
        ("istio-sidecar-injector-default", None),
        ("istio-sidecar-injector-", None),
        ("istio-sidecar-injectors", None),
        ("istio", None),
        ("other", None),
    ] {
        assert_eq!(revision_of(name), revision, "{name}");
    }
}

#[test]
fn without_names_every_revision_with_a_config_map_is_served() {
    let mut plane = Plane::every();
    assert_eq!(plane.state.watched_maps(), [None]);
    let waits = plane.state.waits_for().expect("must wait");
    assert!(waits.ends_with("of the namespace istio-system are being listed"), "{waits}");
    let other = map("istio-leader", &[]);
    let root = map("istio-ca-root-cert", &[("root-cert.pem", "x")]);
    assert_eq!(plane.list(vec![other, root]), Vec::<String>::new());
    assert_eq!(plane.state.counts(), [0, 0, 0], "other ConfigMaps must not be kept");
    let waits = plane.state.waits_for().expect("must wait");
    assert!(waits.contains("has no ConfigMap istio-sidecar-injector"), "{waits}");
    plane.state.apply(Change::Nodes(Update::Listed(Vec::new())));
    assert_eq!(plane.change(injector("istio-sidecar-injector-b")), ["b applied 1 1.30.3"]);
    assert_eq!(plane.state.waits_for(), None);
    assert_eq!(plane.change(injector("istio-sidecar-injector")), ["default applied 1 1.30.3"]);
    assert_eq!(plane.served.names(), ["b", "default"]);
    assert_eq!(plane.delete("istio-sidecar-injector-b"), ["b removed"]);
    assert_eq!(plane.served.names(), ["default"]);
    assert_eq!(plane.state.counts()[0], 1);
}

#[test]
fn a_list_without_a_config_map_deletes_it() {
    let mut plane = Plane::every();
    plane.state.apply(Change::Nodes(Update::Listed(Vec::new())));
    plane.list(vec![injector("istio-sidecar-injector"), injector("istio-sidecar-injector-b")]);
    assert_eq!(plane.served.names(), ["b", "default"]);
    let relisted = Update::Listed(vec![injector("istio-sidecar-injector-b")]);
    assert_eq!(plane.apply(Change::ConfigMaps(None, relisted)), ["default removed"]);
    assert_eq!(plane.served.names(), ["b"]);
}

#[test]
fn the_same_texts_are_not_read_again() {
    let mut plane = Plane::every();
    plane.state.apply(Change::Nodes(Update::Listed(Vec::new())));
    plane.list(vec![injector("istio-sidecar-injector")]);
    assert_eq!(plane.change(injector("istio-sidecar-injector")), Vec::<String>::new());
    let mesh = map("istio", &[("mesh", MESH)]);
    assert_eq!(plane.change(mesh.clone()), ["default applied 2 1.30.3"]);
    assert_eq!(plane.change(mesh), Vec::<String>::new());
}

#[test]
fn a_wrong_configuration_keeps_the_last_good_one() {
    let mut plane = Plane::every();
    plane.state.apply(Change::Nodes(Update::Listed(Vec::new())));
    plane.list(vec![injector("istio-sidecar-injector-b"), map("istio-b", &[("mesh", MESH)])]);
    let before = plane.served.get("b").expect("must be served").mesh();
    let name = "istio-sidecar-injector-b";
    let template = "templates: {sidecar: \"a\\n{{ nofunc }}\"}";
    for (changed, problem) in [
        (
            map(name, &[("config", template), ("values", VALUES)]),
            "ConfigMap istio-system/istio-sidecar-injector-b: config.templates.sidecar line 2: \
             function \"nofunc\" not defined",
        ),
        (
            map(name, &[("config", CONFIG), ("values", "{\"global\":{\"hub\":5}}")]),
            "ConfigMap istio-system/istio-sidecar-injector-b: values.global.hub must be a string, \
             but is a number",
        ),
        (
            map(name, &[("config", CONFIG)]),
            "ConfigMap istio-system/istio-sidecar-injector-b: the key values is missing",
        ),
    ] {
        assert_eq!(plane.change(changed), [format!("b rejected: {problem}")]);
        assert_eq!(
            plane.change(injector(name)),
            [format!("b applied {} 1.30.3", {
                plane.served.get("b").expect("must be served").mesh().configuration().generation
            })]
        );
    }
    let notes = plane.change(map("istio-b", &[("mesh", "defaultConfig: []")]));
    assert!(notes[0].starts_with("b rejected: ConfigMap istio-system/istio-b: mesh.defaultConfig"));
    let now = plane.served.get("b").expect("must be served").mesh();
    assert_eq!(now.configuration().generation, before.configuration().generation + 3);
}

#[test]
fn a_named_revision_keeps_a_deleted_configuration() {
    let mut plane = Plane::named(&["default", "b"]);
    let watched: Vec<_> = plane.state.watched_maps().into_iter().flatten().collect();
    let names = ["istio", "istio-b", "istio-sidecar-injector", "istio-sidecar-injector-b"];
    assert_eq!(watched, names);
    plane.state.apply(Change::Nodes(Update::Listed(Vec::new())));
    plane.state.apply(Change::ProxyConfigs(Update::Listed(Vec::new())));
    let data = [("config", CONFIG), ("values", VALUES)];
    assert_eq!(plane.listed("istio-sidecar-injector", Some(&data)), Vec::<String>::new());
    assert!(plane.served.names().is_empty(), "the mesh config is not known yet");
    assert_eq!(plane.listed("istio", None), ["default applied 1 1.30.3"]);
    plane.listed("istio-b", None);
    let problem = "the ConfigMap istio-system/istio-sidecar-injector-b is missing";
    let notes = plane.listed("istio-sidecar-injector-b", None);
    assert_eq!(notes, [format!("b rejected: {problem}")]);
    assert_eq!(plane.state.waits_for(), Some(format!("revision b: {problem}")));
    let notes = plane.listed("istio-sidecar-injector-b", Some(&data));
    assert_eq!(notes, ["b applied 1 1.30.3"]);
    assert_eq!(plane.state.waits_for(), None);
    let deleted = Update::Deleted(map("istio-sidecar-injector-b", &[]));
    let scope = || Some("istio-sidecar-injector-b".to_owned());
    let notes = plane.apply(Change::ConfigMaps(scope(), deleted));
    let text = "the ConfigMap istio-system/istio-sidecar-injector-b was deleted; its last content \
                stays in use";
    assert_eq!(notes, [text]);
    assert_eq!(plane.listed("istio-sidecar-injector-b", None), Vec::<String>::new());
    assert_eq!(plane.served.names(), ["b", "default"]);
    let again = Update::Applied(map("istio-sidecar-injector-b", &data));
    assert_eq!(plane.apply(Change::ConfigMaps(scope(), again)), Vec::<String>::new());
}

#[test]
fn a_missing_config_map_is_reported_once() {
    let mut plane = Plane::named(&["default", "b"]);
    plane.listed("istio", None);
    let missing = "the ConfigMap istio-system/istio-sidecar-injector is missing";
    let notes = plane.listed("istio-sidecar-injector", None);
    assert_eq!(notes, [format!("default rejected: {missing}")]);
    assert_eq!(plane.listed("istio-b", None), Vec::<String>::new());
}

#[test]
fn a_deleted_mesh_config_stays_in_use() {
    let mut plane = Plane::every();
    plane.state.apply(Change::Nodes(Update::Listed(Vec::new())));
    let mesh = map("istio-b", &[("mesh", "defaultConfig: {concurrency: 7}")]);
    plane.list(vec![shows("istio-sidecar-injector-b"), mesh]);
    assert_eq!(plane.annotation("b", "concurrency"), "value:7");
    let notes = plane.delete("istio-b");
    let text = "the ConfigMap istio-system/istio-b was deleted; its last content stays in use";
    assert_eq!(notes, [text]);
    let changed = map("istio-sidecar-injector-b", &[("config", SHOWS), ("values", "{}")]);
    plane.change(changed);
    assert_eq!(plane.annotation("b", "concurrency"), "value:7");
    plane.change(map("istio-b", &[("mesh", "defaultConfig: {concurrency: 8}")]));
    let notes = plane.change(map("istio-b", &[]));
    let text =
        "the ConfigMap istio-system/istio-b has lost its key mesh; its last content stays in use";
    assert_eq!(notes, [text]);
    assert_eq!(plane.change(map("istio-b", &[])), Vec::<String>::new());
    assert_eq!(plane.annotation("b", "concurrency"), "value:8");
    plane.delete("istio-sidecar-injector-b");
    assert_eq!(plane.state.counts(), [0, 0, 0]);
}

#[test]
fn the_shared_mesh_config_is_below_the_own_one() {
    let shared_mesh = Some("shared".to_owned());
    let mut plane = Plane::of(Settings { shared_mesh, ..Settings::default() });
    plane.state.apply(Change::Nodes(Update::Listed(Vec::new())));
    plane.list(vec![shows("istio-sidecar-injector")]);
    plane.change(map("shared", &[("mesh", "defaultConfig: {concurrency: 3}")]));
    assert_eq!(plane.annotation("default", "concurrency"), "value:3");
    let notes = plane.change(map("shared", &[]));
    let text =
        "the ConfigMap istio-system/shared has lost its key mesh; its last content stays in use";
    assert_eq!(notes, [text]);
    assert_eq!(plane.annotation("default", "concurrency"), "value:3");
    plane.change(map("istio", &[("mesh", "defaultConfig: {concurrency: 4}")]));
    assert_eq!(plane.annotation("default", "concurrency"), "value:4");
    let notes = plane.change(map("shared", &[("mesh", "defaultConfig: 1")]));
    assert!(
        notes[0].starts_with("default rejected: ConfigMap istio-system/shared: mesh"),
        "{notes:?}"
    );
}

#[test]
fn labels_tell_the_release_and_the_name_the_revision() {
    let mut plane = Plane::every();
    plane.state.apply(Change::Nodes(Update::Listed(Vec::new())));
    let mut labelled = map("istio-sidecar-injector-c", &[("config", SHOWS), ("values", "{}")]);
    let label = ("app.kubernetes.io/version".to_owned(), "1.28.4".to_owned());
    labelled.metadata.labels = Some([label].into());
    assert_eq!(plane.list(vec![labelled]), ["c applied 1 1.28.4"]);
    assert_eq!(plane.annotation("c", "revision"), "c");
}

#[test]
fn nodes_are_asked_only_where_they_decide() {
    let off = [("ENABLE_NATIVE_SIDECARS".to_owned(), "true".to_owned())];
    let mut plane = Plane::of(Settings { environment: off.into(), ..Settings::default() });
    plane.list(vec![shows("istio-sidecar-injector")]);
    assert!(!plane.state.asks_nodes());
    assert_eq!(plane.annotation("default", "native"), "true");

    let mut plane = Plane::every();
    assert_eq!(plane.list(vec![shows("istio-sidecar-injector")]), Vec::<String>::new());
    assert!(plane.state.asks_nodes() && plane.served.names().is_empty());
    let waits = plane.state.waits_for().expect("must wait");
    assert_eq!(waits, "revision default: Nodes are being listed");
    let listed = vec![node("a", "v1.33.0"), node("b", "v1.34.1")];
    let notes = plane.apply(Change::Nodes(Update::Listed(listed)));
    assert_eq!(notes, ["default applied 1 1.30.3"]);
    assert_eq!(plane.annotation("default", "native"), "true");
    let generation = |plane: &Plane| {
        plane.served.get("default").expect("must be served").mesh().configuration().generation
    };
    plane.apply(Change::Nodes(Update::Applied(node("b", "v1.32.0"))));
    assert_eq!(plane.annotation("default", "native"), "false");
    plane.apply(Change::Nodes(Update::Deleted(node("b", ""))));
    assert_eq!(plane.annotation("default", "native"), "true");
    assert_eq!(generation(&plane), 1, "nodes are no configuration");
    assert_eq!(plane.state.counts()[1], 1);
}

#[test]
fn a_heartbeat_of_a_node_changes_nothing() {
    let mut plane = Plane::every();
    plane.state.apply(Change::Nodes(Update::Listed(vec![node("a", "v1.33.0")])));
    plane.list(vec![shows("istio-sidecar-injector")]);
    let before = plane.served.get("default").expect("must be served").mesh();
    plane.apply(Change::Nodes(Update::Applied(node("a", "v1.33.2"))));
    let now = plane.served.get("default").expect("must be served").mesh();
    assert!(Arc::ptr_eq(&before, &now));
}

#[test]
fn forbidden_objects_are_none_with_one_warning() {
    let mut plane = Plane::every();
    plane
        .state
        .apply(Change::ConfigMaps(None, Update::Listed(vec![shows("istio-sidecar-injector")])));
    let warning = "cannot watch ProxyConfigs: no permission; pods are injected without them";
    assert_eq!(plane.apply(Change::ProxyConfigs(forbidden())), [warning]);
    let notes = plane.apply(Change::Nodes(forbidden()));
    assert!(notes[0].starts_with("cannot watch Nodes: no permission; without"), "{notes:?}");
    assert_eq!(notes[1..], ["default applied 1 1.30.3"]);
    assert_eq!(plane.annotation("default", "native"), "false");
    let other_verb = || WatchFailure::Forbidden("no permission to watch".to_owned());
    for change in [
        Change::Nodes(Update::Failed(other_verb())),
        Change::ProxyConfigs(Update::Failed(other_verb())),
    ] {
        assert_eq!(plane.apply(change), Vec::<String>::new());
    }
    plane.apply(Change::Nodes(Update::Listed(vec![node("a", "v1.33.0")])));
    assert_eq!(plane.annotation("default", "native"), "true");
    let notes = plane.apply(Change::Nodes(forbidden()));
    assert_eq!(notes, ["cannot watch Nodes: no permission; the last ones stay in use"]);
    assert_eq!(plane.annotation("default", "native"), "true");
}

#[test]
fn a_failure_that_may_pass_is_waited_for() {
    let mut plane = Plane::every();
    plane
        .state
        .apply(Change::ConfigMaps(None, Update::Listed(vec![injector("istio-sidecar-injector")])));
    plane.state.apply(Change::Nodes(Update::Listed(Vec::new())));
    let failure = Update::Failed(WatchFailure::Other("timed out".to_owned()));
    plane.apply(Change::ProxyConfigs(failure));
    let waits = plane.state.waits_for().expect("must wait");
    assert_eq!(waits, "revision default: cannot watch ProxyConfigs: timed out");
    let unknown = Update::Failed(WatchFailure::Unknown);
    assert_eq!(plane.apply(Change::ProxyConfigs(unknown)), ["default applied 1 1.30.3"]);
}

#[test]
fn forbidden_config_maps_are_named() {
    let mut plane = Plane::named(&["b"]);
    let scope = Some("istio-b".to_owned());
    let notes = plane.apply(Change::ConfigMaps(scope.clone(), forbidden()));
    assert_eq!(notes, ["cannot watch the ConfigMap istio-system/istio-b: no permission"]);
    assert_eq!(plane.apply(Change::ConfigMaps(scope, forbidden())), Vec::<String>::new());
    plane.listed("istio-sidecar-injector-b", Some(&[("config", CONFIG), ("values", VALUES)]));
    let waits = plane.state.waits_for().expect("must wait");
    let expected = "revision b: cannot watch the ConfigMap istio-system/istio-b: no permission";
    assert_eq!(waits, expected);
}

#[test]
fn proxy_configs_reach_the_pods() {
    let mut plane = Plane::every();
    plane.state.apply(Change::Nodes(Update::Listed(Vec::new())));
    plane.list(vec![shows("istio-sidecar-injector")]);
    let notes = plane.apply(Change::ProxyConfigs(Update::Applied(proxy_config(5))));
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(plane.annotation("default", "concurrency"), "value:5");
    plane.apply(Change::ProxyConfigs(Update::Applied(proxy_config(6))));
    assert_eq!(plane.annotation("default", "concurrency"), "value:6");
    // An API server that starts does not know the kind yet.
    plane.apply(Change::ProxyConfigs(Update::Failed(WatchFailure::Unknown)));
    assert_eq!(plane.annotation("default", "concurrency"), "value:6");
    assert_eq!(plane.state.counts()[2], 1);
    plane.apply(Change::ProxyConfigs(Update::Listed(Vec::new())));
    assert_eq!(plane.state.counts()[2], 0);
}

#[test]
fn files_replace_the_config_maps_of_a_revision() {
    let mut plane = Plane::named(&["b"]);
    plane.state.watch_no_maps();
    assert!(plane.state.watched_maps().is_empty());
    assert!(plane.state.waits_for().is_some());
    let read = || {
        let labels = BTreeMap::new();
        let texts =
            Texts { config: SHOWS, values: TAGGED, mesh: "", shared_mesh: "", labels: &labels };
        Box::new(Settings::default().read("b", &texts).expect("must be valid"))
    };
    plane.state.apply(Change::ProxyConfigs(Update::Failed(WatchFailure::Unknown)));
    plane.apply(Change::Files("b".to_owned(), read()));
    let notes = plane.apply(Change::Nodes(Update::Listed(Vec::new())));
    assert_eq!(notes, ["b applied 1 1.30.3"]);
    assert_eq!(plane.state.waits_for(), None);
    assert_eq!(plane.apply(Change::Files("b".to_owned(), read())), ["b applied 2 1.30.3"]);
}
