//! A running pod is explained as the pod that its author wrote, and the audit finds nothing wrong with it:
//! for recorded pods and generated ones, of both meshes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
};

use futures_util::FutureExt as _;
use injectd::{
    injector::Injector,
    linkerd::snapshot::{Config, Snapshot},
    lookups::{CallerFacts, Metadata},
    standalone::Standalone,
};
use injectd_cluster::sources::Sources;
use injectd_controllers::audit::{Auditor, Judgement, Mesh, Namespace, Webhooks};
use injectd_core::explain::places::texts;
use injectd_explain::{Creation, Decided, later::Checks};
use injectd_istio::{
    path::{Route, Webhook, route},
    strip::is_clean,
};
use injectd_profiles::Profile;
use injectd_testkit::generator::configs;
use injectd_webhooks::{Configurations, Request, Verdict};
use serde_json::{Value, json};

use crate::{
    core_subject,
    corpus::{self, Cases},
    istio, print_line,
    reference_subject::review_of,
};

/// Generated configurations of Linkerd, and pods of each.
const CONFIGURATIONS: u64 = 25;
const PODS: u64 = 20;

/// Conditions of webhooks that call the injector once: they look for what it leaves on pods.
const NOT_INJECTED_YET: [&str; 8] = [
    "!('sidecar.istio.io/status' in object.metadata.?annotations.orValue({}))",
    "!('istio.io/rev' in object.metadata.?annotations.orValue({}))",
    "!('security.istio.io/tlsMode' in object.metadata.?labels.orValue({}))",
    "!('service.istio.io/canonical-name' in object.metadata.?labels.orValue({}))",
    "!('linkerd.io/proxy-version' in object.metadata.?annotations.orValue({}))",
    "!has(object.metadata.annotations) || \
     !object.metadata.annotations.exists(key, key.startsWith('linkerd.io/created-by'))",
    "!('linkerd.io/control-plane-ns' in object.metadata.?labels.orValue({}))",
    "!(object.spec.containers + object.spec.?initContainers.orValue([])).exists(it, it.name in \
     ['istio-init', 'istio-proxy', 'istio-validation', 'linkerd-init', 'linkerd-proxy', \
     'linkerd-network-validator'])",
];

/// A pod and what decides about it.
struct Asked<'a> {
    profile: &'a Profile,
    pod: &'a Value,
    namespace: &'a str,
    annotations: &'a [(String, String)],
    path: &'a str,
}

/// How many pods were injected and compared.
#[derive(Default)]
struct Tally {
    compared: usize,
    lost: usize,
    different: Vec<String>,
}

impl Asked<'_> {
    /// Explains the pod; `None` if it is not injected.
    fn explained(&self, pod: &Value) -> Option<Decided> {
        let creation = Creation { pod, namespace: self.namespace, checks: Checks::default() };
        let facts = CallerFacts {
            namespace: Some(Metadata::annotated(self.annotations.iter().cloned())),
            path: self.path,
            ..CallerFacts::default()
        };
        let decided = injectd_explain::decide(self.profile, creation, None, facts).now_or_never();
        let decided = decided.expect("nothing must be waited for").ok()?;
        decided.explanation.injects().then_some(decided)
    }

    /// Compares the explanation of the pod with that of the pod that runs.
    fn compare(&self, which: &dyn Fn() -> String, tally: &mut Tally) {
        let first = self.explained(self.pod).filter(|_| !self.looks_injected());
        let Some(first) = first.filter(|decided| can_run(&decided.pod)) else { return };
        for condition in [""].iter().chain(&NOT_INJECTED_YET) {
            if let Some(judged) = self.judged(condition, &first.pod)
                && !matches!(judged, Judgement::Meshed | Judgement::Ended | Judgement::Static)
            {
                let what = format!("{}: with {condition:?} the audit says {judged:?}", which());
                tally.different.push(what);
            }
        }
        let Some(before) =
            injectd_explain::before_injection(self.profile, &first.pod, self.annotations)
        else {
            return tally.different.push(format!("{}: it does not look injected", which()));
        };
        let lost: Vec<_> = self.lost(&before).collect();
        if let Some(key) = lost.iter().find(|key| !self.is_replaced(&first.pod, key)) {
            return tally.different.push(format!("{}: {key} is lost", which()));
        }
        if !lost.is_empty() {
            tally.lost += 1;
            return;
        }
        tally.compared += 1;
        let second = self.explained(&before);
        let (first, second) = (lines(&first), second.as_ref().map(lines).unwrap_or_default());
        let different: Vec<_> =
            first.symmetric_difference(&second).map(|line| line.trim()).collect();
        if !different.is_empty() {
            tally.different.push(format!("{}: {}", which(), different.join(" | ")));
        }
    }

    /// What the audit says of the pod that was injected, if the API server calls a webhook with this
    /// condition for the pod; empty for none.
    fn judged(&self, condition: &str, injected: &Value) -> Option<Judgement> {
        let service = match self.profile {
            Profile::Linkerd(_) => json!({"name": "linkerd-proxy-injector", "path": "/"}),
            Profile::Istio(_) => json!({"name": "istiod", "path": "/inject"}),
            Profile::Templates(_) => json!({"name": "injectd", "path": "/templates"}),
        };
        let conditions = json!({"name": "c", "expression": condition});
        let conditions = Some(conditions).filter(|_| !condition.is_empty());
        let conditions: Vec<_> = conditions.into_iter().collect();
        let configuration = json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "c"},
            "webhooks": [{"name": "w", "clientConfig": {"service": service}, "rules": [{
                "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
                "matchConditions": conditions}]});
        let webhooks = Configurations::read([&configuration]).expect("a configuration");
        let request = Request::creates_pod(self.pod, self.namespace);
        if webhooks.walk(&request, None)[0].verdict != Verdict::Called {
            return None;
        }
        let mesh = Mesh { profile: self.profile.clone(), path: self.path.to_owned() };
        let meshes = BTreeMap::from([(("c".to_owned(), "w".to_owned()), Arc::new(mesh))]);
        let auditor = Auditor::new(Webhooks::of_files(webhooks), meshes).now_or_never();
        let auditor = auditor.expect("nothing must be waited for").expect("an auditor");
        let annotations = self.annotations.iter().map(|(key, value)| (key.clone(), json!(value)));
        let annotations: serde_json::Map<_, _> = annotations.collect();
        let namespace = Namespace::new(json!({"metadata": {"annotations": annotations}}));
        let mut pod = injected.clone();
        pod["metadata"]["namespace"] = self.namespace.into();
        let judged = auditor.judge(&pod, Some(&namespace)).now_or_never();
        Some(judged.expect("nothing must be waited for").expect("a judgement"))
    }

    /// Whether the pod has marks of an injection before it is injected.
    fn looks_injected(&self) -> bool {
        let text = self.pod.to_string();
        match self.profile {
            Profile::Linkerd(_) => {
                let is_written = injectd::linkerd::annotations::is_written;
                ["annotations", "labels"]
                    .iter()
                    .any(|map| texts(Some(self.pod), map).any(|(key, _)| is_written(key)))
                    || text.contains("\"name\":\"linkerd-")
            }
            Profile::Istio(_) | Profile::Templates(_) => {
                let mut annotations = texts(Some(self.pod), "annotations");
                let is_status_port =
                    |(key, value): (&str, &str)| key.starts_with("prometheus") && value == "15020";
                !is_clean(self.pod) || annotations.any(is_status_port)
            }
        }
    }

    /// The annotations of the pod that it lacks when it runs.
    fn lost(&self, before: &Value) -> impl Iterator<Item = &str> {
        let kept: HashMap<_, _> = texts(Some(before), "annotations")
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let own = texts(Some(self.pod), "annotations");
        own.filter(move |(key, value)| kept.get(*key).is_none_or(|kept| kept != value))
            .map(|(key, _)| key)
    }

    /// Whether the injected pod does not show what its author wrote: the injector replaced it, or writes
    /// the same.
    fn is_replaced(&self, injected: &Value, key: &str) -> bool {
        let pointer = format!("/metadata/annotations/{}", key.replace('/', "~1"));
        let own = self.pod.pointer(&pointer);
        if injected.pointer(&pointer) != own {
            return true;
        }
        let mut without = self.pod.clone();
        let annotations =
            without.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        annotations.expect("annotations").shift_remove(key);
        let again = self.explained(&without).map(|decided| decided.pod).unwrap_or_default();
        again.pointer(&pointer) == own
    }
}

/// Whether an API server accepts the containers of a pod: some templates of the corpus take away an image.
fn can_run(pod: &Value) -> bool {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let image = |container: &Value| container.get("image").is_some_and(|image| image != "");
    containers.is_some_and(|containers| containers.iter().all(image))
}

/// The lines of an explanation. The injector moves annotations and containers, so that their order may
/// differ, and it replaces the probes and volumes that it warns about.
fn lines(decided: &Decided) -> BTreeSet<String> {
    let mut explanation = decided.explanation.clone();
    explanation.findings.ignored.retain(|key| key.layer.is_some());
    // It keeps the author's container, but not this image.
    for sidecar in
        explanation.findings.sidecars.iter_mut().filter(|sidecar| sidecar.image == "auto")
    {
        sidecar.image.clear();
    }
    let tree = json!({"explanation": explanation, "note": decided.note});
    let text = serde_json::to_string_pretty(&tree).expect("JSON");
    text.lines().map(str::to_owned).collect()
}

/// The annotations of a namespace.
fn annotations_of(map: Option<&Value>) -> Vec<(String, String)> {
    let namespace = json!({"metadata": {"annotations": map}});
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    texts(Some(&namespace), "annotations").map(owned).collect()
}

/// The pod of a review, and its namespace.
fn pod_of(review: &Value) -> Option<(&Value, &str)> {
    let pod = review.pointer("/request/object").filter(|object| object.is_object())?;
    let kind = pod.get("kind").map_or(Some("Pod"), Value::as_str)?;
    let namespace = review.pointer("/request/namespace").and_then(Value::as_str);
    kind.eq_ignore_ascii_case("Pod").then_some((pod, namespace.unwrap_or_default()))
}

pub(crate) fn recorded_pods_of_linkerd() {
    let Some(corpora) = std::env::var_os("INJECTD_CORPUS").filter(|path| !path.is_empty()) else {
        print_line("explained, linkerd: skipped, INJECTD_CORPUS is not set");
        return;
    };
    let releases = corpus::load_all(&PathBuf::from(corpora).join("linkerd"), Cases::Quick);
    let mut tally = Tally::default();
    for corpus in releases.expect("the corpus must be readable") {
        let mut profiles = HashMap::new();
        for case in &corpus.cases {
            let Some(config) = corpus.configs.get(&case.config) else { continue };
            let profile = profiles.entry(&config.name).or_insert_with(|| {
                let injector = core_subject::injector(corpus.release, config, case).ok()?;
                Some(Profile::Linkerd(Arc::new(injector)))
            });
            let review = review_of(&case.body).unwrap_or_default();
            let (Some(profile), Some((pod, namespace))) = (profile, pod_of(&review)) else {
                continue;
            };
            let annotations = case.namespace_annotations(namespace).unwrap_or_default();
            let annotations = annotations_of(Some(&annotations.into()));
            let asked = Asked { profile, pod, namespace, annotations: &annotations, path: "" };
            asked.compare(&|| format!("{} {}", corpus.name, case.id), &mut tally);
        }
    }
    tally.finish("linkerd");
}

pub(crate) fn recorded_pods_of_istio() {
    let Some(corpora) = istio::corpora("explained, istio") else { return };
    let mut tally = Tally::default();
    for corpus in &corpora {
        let mut profiles = HashMap::new();
        for case in &corpus.cases {
            let place = (&*case.config, &*case.objects, case.clusters.as_deref());
            let profile = profiles.entry(place).or_insert_with(|| {
                let set = &corpus.sets[&case.config];
                let (mesh, objects) = istio::subject::mesh(corpus.release, set, case).ok()?;
                Some(Profile::Istio(Arc::new(Injector::new(mesh, objects.into()))))
            });
            let Route::Inject(path) = route(&case.target, &Webhook::Default, corpus.release) else {
                continue;
            };
            let review = review_of(&case.body).unwrap_or_default();
            let (Some(profile), Some((pod, namespace))) = (profile, pod_of(&review)) else {
                continue;
            };
            let asked = Asked { profile, pod, namespace, annotations: &[], path: &path };
            asked.compare(&|| format!("{} {}", corpus.name, case.id), &mut tally);
        }
    }
    tally.finish("istio");
}

/// Pods of the generator, with its configurations of Linkerd, and a small one of Istio.
pub(crate) fn generated_pods() {
    let istio = Profile::Istio(Arc::new(injectd_testkit::istio::injector()));
    let (mut of_linkerd, mut of_istio) = (Tally::default(), Tally::default());
    for seed in 0..CONFIGURATIONS {
        let config = configs::Config::of(seed);
        let linkerd = profile_of(&config);
        for number in 0..PODS {
            let (review, _) = config.review(number);
            let Some((pod, namespace)) = pod_of(&review) else { continue };
            let annotations = annotations_of(config.namespaces.get(namespace));
            let asked =
                |profile| Asked { profile, pod, namespace, annotations: &annotations, path: "" };
            let which = || format!("seed {seed}, review {number}");
            if let Some(linkerd) = &linkerd {
                asked(linkerd).compare(&which, &mut of_linkerd);
            }
            asked(&istio).compare(&which, &mut of_istio);
        }
    }
    of_linkerd.finish("linkerd, generated");
    of_istio.finish("istio, generated");
}

fn profile_of(config: &configs::Config) -> Option<Profile> {
    let values = config.yaml();
    let config = Config {
        values: &values,
        trust_roots: &config.trust_roots,
        control_plane_namespace: &config.control_plane_namespace,
        fallback_release: None,
    };
    let sources = Sources::from(Standalone::default());
    let snapshot = Snapshot::new(config, 1).ok()?;
    Some(Profile::Linkerd(Arc::new(Injector::new(snapshot, sources))))
}

impl Tally {
    fn finish(&self, what: &str) {
        let Self { compared, lost, different } = self;
        assert!(different.is_empty(), "{what}: {} of {compared}: {different:#?}", different.len());
        print_line(&format!(
            "explained, {what}: {compared} compared, {lost} that cannot be compared"
        ));
        assert!(*compared > *lost, "{what}: {compared} compared, {lost} that cannot be compared");
    }
}
