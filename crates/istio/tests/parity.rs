//! Compares with the recorded answers of Istio's injectors: patched pods, verdicts and messages.
//!
//! `$INJECTD_CORPUS` has the recordings; without it the test says so. `SHOW=N` prints the first N
//! differences of each release, `FAMILY=text` only those of a family.

#![expect(clippy::disallowed_types, reason = "pods are trees")]
#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]

use std::{
    collections::{BTreeMap, HashMap},
    env, fs,
    io::Read as _,
    path::Path,
};

use injectd_istio::{
    injector::{Cluster, Files, Injector, Verdict},
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
        release,
        revision: text(config, "/revision"),
        environment: &environment,
    };
    Injector::new(files).map_err(|error| error.to_string())
}

fn cluster(objects: &[Value]) -> Cluster {
    let mut nodes = Nodes::default();
    let mut cluster = Cluster::default();
    for object in objects {
        let name = text(object, "/metadata/name");
        match text(object, "/kind") {
            "Node" => drop(nodes.insert(name, text(object, "/status/nodeInfo/kubeletVersion"))),
            "Namespace" => {
                let annotations = object.pointer("/metadata/annotations");
                let annotations = annotations.and_then(Value::as_object).cloned();
                cluster.namespaces.insert(name.to_owned(), annotations.unwrap_or_default());
            }
            _ => {}
        }
    }
    cluster.nodes = Some(nodes);
    cluster
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

fn difference(ours: &Result<Verdict, String>, theirs: &Answer) -> Option<String> {
    match (ours, theirs) {
        (Ok(Verdict::Skipped(_)), Answer::Skipped) => None,
        (Ok(Verdict::Injected(ours)), Answer::Injected(theirs)) => {
            let (ours, theirs) = (normal(ours), normal(theirs));
            (ours != theirs).then(|| {
                let diff = json_patch::diff(&theirs, &ours);
                let lines: Vec<String> = diff.0.iter().take(4).map(ToString::to_string).collect();
                lines.join("\n    ").chars().take(1200).collect()
            })
        }
        (Err(ours), Answer::Denied(theirs)) if beginning(ours) == beginning(theirs) => None,
        (Err(ours), Answer::Denied(theirs)) => Some(format!("denied: {ours}\n    not: {theirs}")),
        (Err(ours), _) => Some(format!("denied: {ours}")),
        (Ok(Verdict::Skipped(ours)), _) => Some(format!("skipped: {:?}", ours.reason)),
        (Ok(Verdict::Injected(_)), Answer::Skipped) => Some("injected, not skipped".to_owned()),
        (Ok(Verdict::Injected(_)), Answer::Denied(theirs)) => {
            Some(format!("injected, not denied: {theirs}"))
        }
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
            let objects = case["objects"].as_array().cloned().unwrap_or_default();
            let known: Vec<&str> = match case["clusters"].as_array() {
                Some(clusters) => clusters.iter().filter_map(Value::as_str).collect(),
                None => vec![text(config, "/cluster")],
            };
            let own = cluster(&objects);
            let is_config = |object: &&Value| object["kind"] == "ProxyConfig";
            let resources = Resources::new(objects.iter().filter(is_config), release);
            let target = case["path"].as_str().unwrap_or("/inject?timeout=10s");
            let Route::Inject(path) = route(target, release) else {
                left_out += 1;
                continue;
            };
            let ours = match injector {
                Err(error) => Err(format!("cannot start: {error}")),
                Ok(injector) => injector.inject(
                    object,
                    text(&review, "/request/namespace"),
                    &path,
                    |name| known.contains(&name).then_some(&own),
                    &resources,
                ),
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
