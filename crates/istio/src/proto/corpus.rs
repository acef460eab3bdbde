//! Comparison with recorded answers of Istio's injector: `$INJECTD_CORPUS/istio`.

#![expect(clippy::print_stdout, reason = "where the corpus is; trees; counts")]

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use flate2::read::GzDecoder;
use serde_json::Value as Json;

use super::{Message, defaults, elide, layers, mesh};
use crate::release::Release;

const FOLDERS: [&str; 7] = ["1.19.10", "1.22.8", "1.24.6", "1.26.8", "1.28.10", "1.30.3", "master"];

/// The folders of the corpus with their releases.
fn releases() -> Vec<(PathBuf, Release)> {
    let Some(root) = std::env::var_os("INJECTD_CORPUS").filter(|path| !path.is_empty()) else {
        println!("skipped: INJECTD_CORPUS is not set");
        return Vec::new();
    };
    let root = Path::new(&root).join("istio");
    let release = |name: &str| Release::parse(name).unwrap_or(Release::NEWEST);
    FOLDERS.iter().map(|name| (root.join(name), release(name))).collect()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn configs(folder: &Path) -> serde_json::Map<String, Json> {
    let all = serde_json::from_str(&text(&folder.join("configs.json")));
    all.expect("configs.json must be an object")
}

/// The mesh config of a config set.
fn mesh_of(folder: &Path, set: &Json, release: Release) -> Result<Message, String> {
    let file = set["mesh"].as_str().expect("a config set must have a mesh config");
    let base = defaults::mesh_config(release);
    mesh::apply(&base, &text(&folder.join(file)), release).map_err(|error| error.to_string())
}

#[test]
fn mesh_configs_are_refused_where_istio_refuses_them() {
    let (mut read, mut refused) = (0, 0);
    for (folder, release) in releases() {
        for (name, set) in configs(&folder) {
            let reason = set["startError"].as_str().and_then(|text| text.strip_prefix("mesh: "));
            match (mesh_of(&folder, &set, release), reason) {
                (Ok(_), None) => read += 1,
                (Err(error), Some(reason)) => {
                    // The texts for YAML are our own.
                    let is_yaml = reason.contains("yaml: ");
                    assert!(error == reason || is_yaml, "{name}: {error}, but Istio: {reason}");
                    refused += 1;
                }
                (ours, theirs) => panic!("{} {name}: {ours:?}, {theirs:?}", folder.display()),
            }
        }
    }
    println!("{read} mesh configs read, {refused} refused");
}

#[test]
fn proxy_config_is_as_in_recorded_patches() {
    for (folder, release) in releases() {
        let configs = configs(&folder);
        let (mut same, mut without, mut unreadable, mut wrong) = (0, 0, 0, Vec::new());
        for line in lines(&folder) {
            let case: Json = serde_json::from_str(&line).expect("a case must be JSON");
            if case["verdict"] != "injected" {
                continue;
            }
            let Some(theirs) = find(&case["patch"]) else {
                without += 1;
                continue;
            };
            let set = case["config"].as_str().unwrap_or_default();
            let mesh = mesh_of(&folder, &configs[set], release).expect("must be a mesh config");
            match ours(&case, &mesh, release) {
                None => unreadable += 1,
                Some(ours) if ours == theirs.trim_end() => same += 1,
                Some(ours) => {
                    wrong.push(format!("{} ({set}): {ours}, but Istio: {theirs}", case["id"]));
                }
            }
        }
        println!(
            "{release}: {same} equal, {without} without PROXY_CONFIG, {unreadable} not Unicode, {} differ",
            wrong.len(),
        );
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
        assert!(same > 100 && unreadable < 5, "the corpus must have cases");
    }
}

fn lines(folder: &Path) -> Vec<String> {
    let file = fs::File::open(folder.join("cases.jsonl.gz")).expect("cases must be readable");
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("cases must be UTF-8");
    text.lines().map(str::to_owned).collect()
}

/// The value of the variable `PROXY_CONFIG`, wherever it is.
fn find(value: &Json) -> Option<&str> {
    match value {
        Json::Array(items) => items.iter().find_map(find),
        Json::Object(entries) if value["name"] == "PROXY_CONFIG" => entries.get("value")?.as_str(),
        Json::Object(entries) => entries.values().find_map(find),
        _ => None,
    }
}

/// What we would write for the pod of a case. `None` if the request is not Unicode: some have half of
/// a character.
fn ours(case: &Json, mesh: &Message, release: Release) -> Option<String> {
    let body = case["request"].as_str().unwrap_or_default();
    let yaml = || injectd_yaml::parse(body, injectd_yaml::Options::default());
    let review: Json = serde_json::from_str(body).or_else(|_| yaml()).ok()?;
    let request = &review["request"];
    let metadata = &request["object"]["metadata"];
    let labels: BTreeMap<String, String> =
        serde_json::from_value(metadata["labels"].clone()).unwrap_or_default();
    let namespace = metadata["namespace"].as_str().filter(|name| !name.is_empty());
    let namespace = namespace.or_else(|| request["namespace"].as_str()).unwrap_or_default();
    let objects = case["objects"].as_array().into_iter().flatten();
    let objects = objects.filter(|object| object["kind"] == "ProxyConfig");
    let resources = layers::Resources::new(objects, release);
    let annotation = metadata["annotations"]["proxy.istio.io/config"].as_str();
    let label = |key: &str| labels.get(key).map(String::as_str);
    let annotation = annotation.and_then(|text| layers::read_annotation(text, release).ok());
    let pod = layers::Pod { namespace, label: &label, annotation: annotation.as_ref() };
    Some(elide::proto_to_json(&layers::effective(mesh, &resources, pod, release), release))
}
