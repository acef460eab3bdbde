//! What is compared of a case.

use injectd_istio::{
    annotations, decide,
    image::{self, ImageType},
    native::{self, Nodes},
    openshift::{self, ProxyIds},
    owner::Owner,
    path::{PathEnvironment, Route, Webhook, route},
    release::Release,
    selection, strip,
};
use serde_json::Value;

use super::{
    Counts, Set,
    case::{Case, Review},
};

/// Denials that come before templates.
const EARLY: [&str; 3] = [" occurred:", "requested template ", "unexpected end of JSON input"];

pub(super) fn compare(case: &Case, set: &Set, release: Release, counts: &mut Counts) {
    if case.family == "path" {
        compare_route(case, release, counts);
    }
    let was_answered = matches!(&*case.verdict, "injected" | "skipped" | "denied");
    let Some(review) = case.review.as_ref().filter(|_| was_answered && case.is_stable) else {
        return;
    };
    let decision = decide::decide(&set.config, release, &review.pod, &review.namespace);
    counts.compare(case, "decision", [decision.injects(), case.verdict != "skipped"]);
    let logged = case.log.iter().filter_map(|line| {
        let text = line.strip_prefix("warn: ").or(line.strip_prefix("error: "))?;
        let starts = ["Invalid value for sidecar", "Invalid selector", "Illegal value"];
        starts.iter().any(|start| text.starts_with(start)).then(|| text.to_owned())
    });
    counts.compare(case, "warnings", [decision.warnings.clone(), logged.collect()]);
    if decision.injects() {
        compare_denial(case, review, set, release, counts);
        compare_injection(case, review, set, release, counts);
    }
}

fn compare_route(case: &Case, release: Release, counts: &mut Counts) {
    let (verdict, location) = match route(&case.target, &Webhook::Default, release) {
        Route::Inject(_) => ("injected".to_owned(), None),
        Route::Redirect { status, location } => (format!("http-{status}"), Some(location)),
        Route::BadRequest => ("http-400".to_owned(), None),
        Route::NotFound => ("http-404".to_owned(), None),
    };
    counts.compare(
        case,
        "route",
        [(verdict, location), (case.verdict.clone(), case.location.clone())],
    );
}

/// Compares the denials that do not need templates; ours is the first of them, empty without any.
fn compare_denial(case: &Case, review: &Review, set: &Set, release: Release, counts: &mut Counts) {
    let message = &case.message;
    let real = message.strip_prefix("failed to run injection template: ").unwrap_or(message);
    if let Err(ours) = &set.values {
        assert_eq!(case.verdict, "denied", "{}: {ours}", case.id);
        return;
    }
    let ours = denial(review, set, release);
    let is_early = EARLY.iter().any(|text| real.contains(text)) && !real.starts_with("template:")
        || real.starts_with("invalid character");
    if ours.is_empty() && !is_early {
        return;
    }
    if ours.starts_with("annotation proxy.istio.io/overrides") {
        // Go's words about JSON are others.
        counts.compare(case, "overrides", [true, is_early]);
    } else if ours.starts_with("requested template ") {
        counts.compare(case, "templates", [sorted(&ours), sorted(real)]);
    } else {
        counts.compare(case, "annotations", [ours, real.to_owned()]);
    }
}

fn denial(review: &Review, set: &Set, release: Release) -> String {
    let annotations = review.pod.pointer("/metadata/annotations").and_then(Value::as_object);
    if let Err(error) = annotations::validate(annotations, release, |_| Ok(())) {
        return error.to_string();
    }
    if let Err(error) = strip::strip(&review.pod, release, 15020) {
        return error.to_string();
    }
    let asked = annotation(&review.pod, selection::TEMPLATES_ANNOTATION);
    let names = match selection::names(&set.config, asked) {
        Ok(names) => names,
        Err(error) => return error.to_string(),
    };
    let missing = names.iter().find_map(|name| selection::template(&set.config, name).err());
    missing.map(|error| error.to_string()).unwrap_or_default()
}

/// The text with the names of templates in order; Istio's order is random.
fn sorted(text: &str) -> String {
    let (start, names) = text.split_once("; have ").unwrap_or((text, ""));
    let mut names: Vec<_> = names.split(", ").collect();
    names.sort_unstable();
    format!("{start}; have {}", names.join(", "))
}

/// Compares what the template `sidecar` writes as it is.
fn compare_injection(
    case: &Case,
    review: &Review,
    set: &Set,
    release: Release,
    counts: &mut Counts,
) {
    let (Some(patched), Ok(values)) = (&review.patched, &set.values) else { return };
    let Route::Inject(path) = route(&case.target, &Webhook::Default, release) else { return };
    let mut environment = PathEnvironment::parse(&path);
    let label = review.pod.pointer("/metadata/labels/topology.istio.io~1network");
    environment
        .add_cluster_and_network(values, label.map(|label| label.as_str().unwrap_or_default()));
    compare_path(case, patched, &environment, counts);
    compare_uid(case, review, set, release, counts);
    let is_plain = annotation(&review.pod, selection::TEMPLATES_ANNOTATION).is_none()
        && proxy(&review.pod).is_none()
        && set.config.default_templates == ["sidecar"]
        && case.config != "sidecar-replaced"
        && !case.family.starts_with("template");
    let Some((list, proxy)) = proxy(patched).filter(|_| is_plain) else { return };
    compare_owner(case, review, proxy, release, counts);
    let image_is_set = ["sidecar.istio.io/proxyImage", "proxy.istio.io/config"]
        .iter()
        .any(|key| annotation(&review.pod, key).is_some())
        || values.text(&["global", "proxy", "image"]).contains('/')
        || set.has_image_type
        || case.objects.iter().any(|object| object["kind"] == "ProxyConfig");
    if !image_is_set {
        let annotation = annotation(&review.pod, image::IMAGE_TYPE_ANNOTATION);
        let image_type = ImageType { annotation, proxy_config: None };
        let ours = image::proxy_image(values, release, image_type);
        counts.compare(case, "image", [&*ours, proxy["image"].as_str().unwrap_or_default()]);
    }
    let placed = Placed { release, cluster: environment.cluster(values), list };
    compare_native(case, review, set, placed, counts);
}

/// Compares the proxy's user on `OpenShift`: the namespace's, or the user's unless it is dropped.
fn compare_uid(case: &Case, review: &Review, set: &Set, release: Release, counts: &mut Counts) {
    // The template of gateways has no user.
    let is_sidecar = annotation(&review.pod, selection::TEMPLATES_ANNOTATION).is_none();
    let has_uid = is_sidecar && set.is_openshift && release.minor() >= 20;
    let real = review.patched.as_ref().and_then(proxy);
    let Some((_, real)) = real.filter(|_| has_uid) else { return };
    let namespace = case.objects.iter().find(|object| {
        object["kind"] == "Namespace" && object["metadata"]["name"] == review.namespace
    });
    let ids = ProxyIds::of(|key| namespace?["metadata"]["annotations"][key].as_str());
    let mut pod = review.pod.clone();
    openshift::drop_application_user(&mut pod, release);
    let user = |container: &Value| container["securityContext"]["runAsUser"].as_u64();
    let ours = proxy(&pod).and_then(|(_, proxy)| user(proxy)).unwrap_or(ids.uid.into());
    counts.compare(case, "uid", [Some(ours), user(real)]);
}

fn compare_path(case: &Case, patched: &Value, environment: &PathEnvironment, counts: &mut Counts) {
    let logged = case.log.iter().filter_map(|line| line.strip_prefix("warn: Odd number"));
    let logged: Vec<_> = logged.map(|text| format!("Odd number{}", text.trim_end())).collect();
    counts.compare(case, "path warnings", [environment.warnings.clone(), logged]);
    let Some((_, proxy)) = proxy(patched) else { return };
    for (name, value) in &environment.variables {
        let real =
            variables(proxy).filter(|(real, _)| real == name).map(|(_, value)| value).next_back();
        counts.compare(case, "variables", [Some(&**value), real]);
    }
}

fn compare_owner(
    case: &Case,
    review: &Review,
    proxy: &Value,
    release: Release,
    counts: &mut Counts,
) {
    let owner = Owner::of(&review.pod, &review.namespace, release);
    let ours = format!(
        "kubernetes://apis/{}/namespaces/{}/{}s/{}",
        owner.api_version,
        owner.namespace,
        owner.kind.to_lowercase(),
        owner.name
    );
    if let Some((_, real)) = variables(proxy).find(|(name, _)| *name == "ISTIO_META_OWNER")
        && case.target.find("istio_meta_owner").is_none()
    {
        counts.compare(case, "owner", [&*ours, real]);
    }
}

/// Where a recorded pod has its proxy.
struct Placed<'p> {
    release: Release,
    cluster: &'p str,
    list: &'p str,
}

fn compare_native(
    case: &Case,
    review: &Review,
    set: &Set,
    Placed { release, cluster, list }: Placed<'_>,
    counts: &mut Counts,
) {
    let mut nodes = Nodes::default();
    for node in case.objects.iter().filter(|object| object["kind"] == "Node") {
        let version = node.pointer("/status/nodeInfo/kubeletVersion").and_then(Value::as_str);
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        nodes.insert(name, version.unwrap_or_default());
    }
    let is_known = match &case.clusters {
        Some(clusters) => clusters.iter().any(|known| known == cluster),
        None => set.cluster == cluster,
    };
    let node_name = review.pod.pointer("/spec/nodeName").and_then(Value::as_str);
    let (flag, _) = set.native.is_native(is_known.then_some(&nodes), node_name.unwrap_or_default());
    let annotation = annotation(&review.pod, native::NATIVE_SIDECAR_ANNOTATION);
    // Templates read other texts in their own way.
    if annotation.is_none_or(|text| matches!(text, "true" | "false")) {
        let ours = native::moves_proxy(release, flag, annotation);
        counts.compare(case, "native", [ours, list == "initContainers"]);
    }
}

fn annotation<'p>(pod: &'p Value, key: &str) -> Option<&'p str> {
    pod["metadata"]["annotations"][key].as_str()
}

fn proxy(pod: &Value) -> Option<(&'static str, &Value)> {
    ["containers", "initContainers"].into_iter().find_map(|list| {
        let mut containers = pod["spec"][list].as_array()?.iter();
        Some((list, containers.find(|container| container["name"] == "istio-proxy")?))
    })
}

fn variables(container: &Value) -> impl DoubleEndedIterator<Item = (&str, &str)> {
    let variables = container["env"].as_array().into_iter().flatten();
    variables.filter_map(|variable| {
        Some((variable["name"].as_str()?, variable["value"].as_str().unwrap_or_default()))
    })
}
