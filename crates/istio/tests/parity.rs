//! Compares with the recorded answers of Istio's injectors: patched pods, verdicts and messages.
//!
//! `$INJECTD_CORPUS` has the recordings; without it the test says so. `SHOW=N` prints the first N
//! differences of each release, `FAMILY=text` only those of a family.

#![expect(clippy::disallowed_types, reason = "pods are trees")]
#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]
#![expect(clippy::disallowed_methods, reason = "a developer chooses what is shown")]

use std::{
    collections::{BTreeMap, HashMap},
    env, fmt, fs,
    io::Read as _,
    path::Path,
};

use injectd_istio::{
    injection::{Injection, Surroundings},
    injector::{Files, Injector},
    native::Nodes,
    path::{Route, route},
    proto::layers::Resources,
    release::Release,
};
use serde_json::{Value, json};

/// Answers that differ at most, of all releases. It only shrinks.
const MAX_DIFFERENT: usize = 741;

const RELEASES: [(&str, Release); 7] = [
    ("1.19.10", Release::new(19, 10)),
    ("1.22.8", Release::new(22, 8)),
    ("1.24.6", Release::new(24, 6)),
    ("1.26.8", Release::new(26, 8)),
    ("1.28.10", Release::new(28, 10)),
    ("1.30.3", Release::new(30, 3)),
    ("master", Release::new(31, 0)),
];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn cases(folder: &Path) -> Vec<Value> {
    let compressed = fs::read(folder.join("cases.jsonl.gz")).expect("recorded cases");
    let mut lines = String::new();
    let mut reader = flate2::read::GzDecoder::new(compressed.as_slice());
    reader.read_to_string(&mut lines).expect("must be gzip");
    lines.lines().map(|line| serde_json::from_str(line).expect("a case")).collect()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn injector(folder: &Path, config: &Value, release: Release) -> Result<Injector, String> {
    let file = |key: &str| read(&folder.join(text(config, &format!("/{key}"))));
    let environment: BTreeMap<String, String> =
        serde_json::from_value(config["env"].clone()).unwrap_or_default();
    let files = Files {
        config: &file("config"),
        values: &file("values"),
        mesh: &file("mesh"),
        release: Some(release),
        revision: text(config, "/revision"),
        environment: &environment,
    };
    Injector::new(files).map_err(|error| error.to_string())
}

/// The nodes of a cluster.
fn nodes(objects: &[Value]) -> Nodes {
    let mut nodes = Nodes::default();
    for node in objects.iter().filter(|object| object["kind"] == "Node") {
        let version = text(node, "/status/nodeInfo/kubeletVersion");
        drop(nodes.insert(text(node, "/metadata/name"), version));
    }
    nodes
}

/// The annotations of a namespace.
fn annotations(objects: &[Value], name: &str) -> Vec<(String, String)> {
    let is_it =
        |object: &&Value| object["kind"] == "Namespace" && text(object, "/metadata/name") == name;
    let found = objects.iter().find(is_it);
    let found = found.and_then(|found| found.pointer("/metadata/annotations")?.as_object());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// What becomes of a pod.
fn answer(
    injector: &Injector,
    review: &Value,
    path: &str,
    case: &Value,
    local: &str,
) -> Result<Answer, String> {
    let object = &review["request"]["object"];
    let injection = Injection::new(injector, object, text(review, "/request/namespace"), path);
    injection.check()?;
    if !injection.decide().reason.injects() {
        return Ok(Answer::Skipped);
    }
    let objects = case["objects"].as_array().cloned().unwrap_or_default();
    let known = case["clusters"].as_array().map_or_else(
        || injection.cluster() == local,
        |clusters| clusters.iter().any(|name| name == injection.cluster()),
    );
    let is_config = |object: &&Value| object["kind"] == "ProxyConfig";
    let resources = Resources::new(objects.iter().filter(is_config), injector.release());
    let nodes = nodes(&objects);
    let annotations = annotations(&objects, injection.namespace());
    let cluster = Surroundings {
        resources: Some(&resources),
        nodes: known.then_some(&nodes),
        namespace_annotations: if known { &annotations } else { &[] },
    };
    injection.inject(cluster).map(|injected| Answer::Injected(Box::new(injected.pod)))
}

/// The pod in the form in which two are compared, with JSON in its texts as JSON.
fn normal(pod: &Value) -> Value {
    let mut pod = injectd_merge::normal(pod);
    parse_texts(&mut pod);
    pod
}

fn parse_texts(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(parse_texts),
        Value::Array(items) => items.iter_mut().for_each(parse_texts),
        Value::String(text) => {
            let trimmed = text.trim();
            if trimmed.starts_with(['{', '['])
                && let Ok(parsed) = serde_json::from_str::<Value>(trimmed)
            {
                *value = json!({ "json": parsed });
            }
        }
        _ => {}
    }
}

/// A message up to its first quoted name or position.
fn beginning(message: &str) -> &str {
    let end = message.find(['"', '\'']).unwrap_or(message.len());
    let template = message.find("template: inject:").unwrap_or(end);
    &message[..end.min(template)]
}

enum Answer {
    Skipped,
    Injected(Box<Value>),
    Denied(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped => f.write_str("skipped"),
            Self::Injected(_) => f.write_str("injected"),
            Self::Denied(message) => write!(f, "denied: {message}"),
        }
    }
}

/// What was recorded; `None` if the request is not for the rules: another method, type or body.
fn recorded(case: &Value, object: &Value) -> Option<Answer> {
    match text(case, "/verdict") {
        "skipped" => Some(Answer::Skipped),
        "denied" => {
            Some(Answer::Denied(text(case, "/response/response/status/message").to_owned()))
        }
        "injected" => {
            let patch: json_patch::Patch = serde_json::from_value(case["patch"].clone()).ok()?;
            let mut pod = object.clone();
            json_patch::patch(&mut pod, &patch).ok()?;
            Some(Answer::Injected(Box::new(pod)))
        }
        _ => None,
    }
}

fn difference(ours: &Answer, theirs: &Answer) -> Option<String> {
    match (ours, theirs) {
        (Answer::Skipped, Answer::Skipped) => None,
        (Answer::Denied(ours), Answer::Denied(theirs)) if beginning(ours) == beginning(theirs) => {
            None
        }
        (Answer::Injected(ours), Answer::Injected(theirs)) => {
            let (ours, theirs) = (normal(ours), normal(theirs));
            (ours != theirs).then(|| {
                let diff = json_patch::diff(&theirs, &ours);
                let lines: Vec<String> = diff.0.iter().take(4).map(ToString::to_string).collect();
                lines.join("\n    ").chars().take(1200).collect()
            })
        }
        _ => Some(format!("{ours}\n    not: {theirs}")),
    }
}

#[test]
fn recorded_answers() {
    let Some(corpus) = env::var_os("INJECTD_CORPUS") else {
        println!("skipped: INJECTD_CORPUS is not set");
        return;
    };
    let show: usize = env::var("SHOW").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
    let family = env::var("FAMILY").unwrap_or_default();
    let mut different = 0;
    for (name, release) in RELEASES {
        let folder = Path::new(&corpus).join("istio").join(name);
        let configs: Value =
            serde_json::from_str(&read(&folder.join("configs.json"))).expect("JSON");
        let mut injectors = HashMap::new();
        let (mut equal, mut left_out, mut shown) = (0, 0, 0);
        let mut families: BTreeMap<String, usize> = BTreeMap::new();
        for case in cases(&folder) {
            let set = text(&case, "/config").to_owned();
            let config = &configs[&set];
            let injector =
                injectors.entry(set.clone()).or_insert_with(|| injector(&folder, config, release));
            let review: Value = serde_json::from_str(text(&case, "/request")).unwrap_or_default();
            let object = &review["request"]["object"];
            let theirs = recorded(&case, object);
            let (Some(theirs), true) =
                (theirs, object.is_object() && case.get("unstable").is_none())
            else {
                left_out += 1;
                continue;
            };
            let target = case["path"].as_str().unwrap_or("/inject?timeout=10s");
            let Route::Inject(path) = route(target, release) else {
                left_out += 1;
                continue;
            };
            let ours = match injector {
                Err(error) => Answer::Denied(format!("cannot start: {error}")),
                Ok(injector) => answer(injector, &review, &path, &case, text(config, "/cluster"))
                    .unwrap_or_else(Answer::Denied),
            };
            match difference(&ours, &theirs) {
                None => equal += 1,
                Some(problem) => {
                    different += 1;
                    let of = text(&case, "/family");
                    *families.entry(of.to_owned()).or_default() += 1;
                    if shown < show && of.contains(&family) {
                        shown += 1;
                        println!("{name} {} {of} {set}:\n    {problem}", text(&case, "/id"));
                    }
                }
            }
        }
        let count: usize = families.values().sum();
        println!("{name}: {equal} equal, {count} different, {left_out} left out");
        if show > 0 {
            println!("  {families:?}");
        }
    }
    assert!(different <= MAX_DIFFERENT, "{different} are different");
}
