//! Reads recordings: one directory for each release, as the corpus' README describes them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read;
use std::path::Path;
use std::sync::Once;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::{Map, Value};

use injectd_testkit::reference::Release;
use injectd_testkit::yaml;

use crate::print_line;

/// The mounted configuration of an injector.
pub(crate) struct ConfigSet {
    /// Its name.
    pub(crate) name: String,
    /// The file `values`.
    pub(crate) values_yaml: String,
    /// The same as a tree with the types of YAML 1.1, or the syntax error.
    pub(crate) values: Result<Value, String>,
    /// The trust bundle.
    pub(crate) trust_roots: Vec<u8>,
}

/// A recorded request and its answer; the fields are the README's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    /// A unique name.
    pub(crate) id: String,
    /// The topic of the case.
    pub(crate) family: String,
    /// The name of its config set.
    pub(crate) config: String,
    /// Objects in the cluster.
    pub(crate) objects: Vec<Value>,
    /// Objects that only a direct GET finds.
    pub(crate) get_only: Vec<Value>,
    /// The HTTP body.
    pub(crate) body: Vec<u8>,
    /// The HTTP status; `None` if the connection was closed.
    pub(crate) status: Option<u16>,
    /// The `AdmissionReview` of the response.
    pub(crate) response: Option<Value>,
    /// The body of the response, if it is not JSON.
    pub(crate) response_text: Option<String>,
    /// The patch.
    pub(crate) patch: Option<Vec<Value>>,
    /// The verdict.
    pub(crate) verdict: String,
    /// The text of the reasons for a skip.
    pub(crate) reasons: Option<String>,
    /// The events.
    pub(crate) events: Vec<Value>,
}

impl Case {
    /// An object of the cluster by kind, namespace and name.
    pub(crate) fn object(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        let mut objects = self.objects.iter().chain(&self.get_only);
        objects.find(|object| is_object(object, kind, namespace, name))
    }

    /// The same among the objects that only a GET finds.
    pub(crate) fn object_by_get(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        let mut objects = self.get_only.iter();
        objects.find(|object| is_object(object, kind, namespace, name))
    }

    /// The annotations of a namespace, if it exists.
    pub(crate) fn namespace_annotations(&self, name: &str) -> Option<Map<String, Value>> {
        let namespace = self.object("Namespace", "", name)?;
        let annotations = namespace["metadata"]["annotations"].as_object();
        Some(annotations.cloned().unwrap_or_default())
    }
}

fn is_object(object: &Value, kind: &str, namespace: &str, name: &str) -> bool {
    let meta = &object["metadata"];
    object["kind"] == kind
        && meta["name"] == name
        && meta["namespace"].as_str().unwrap_or_default() == namespace
}

/// The recordings of one release.
pub(crate) struct Corpus {
    /// The name of the directory.
    pub(crate) name: String,
    /// The release.
    pub(crate) release: Release,
    /// Config sets by name.
    pub(crate) configs: BTreeMap<String, ConfigSet>,
    /// The cases in order.
    pub(crate) cases: Vec<Case>,
}

/// The recorded cases that a suite tries.
#[derive(Clone, Copy)]
pub(crate) enum Cases {
    /// Each.
    All,
    /// Each in an optimized build; one of [`ONE_OF`] in a debug build, the same of each release.
    Quick,
}

/// In a debug build all cases take a quarter of an hour, in an optimized one a minute.
const ONE_OF: u64 = 15;

impl Cases {
    /// Whether the suite tries all of them.
    pub(crate) fn are_all(self) -> bool {
        matches!(self, Self::All) || !cfg!(debug_assertions)
    }

    /// Whether the suite tries the case with an id, or what has a name.
    pub(crate) fn have(self, id: &str) -> bool {
        self.are_all() || {
            let mut hasher = DefaultHasher::new();
            id.hash(&mut hasher);
            hasher.finish().is_multiple_of(ONE_OF)
        }
    }
}

/// Prints once that a debug build leaves out cases.
fn say_what_is_left_out() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        print_line(&format!(
            "a debug build tries one of {ONE_OF} recordings; `just parity` tries all"
        ));
    });
}

/// Reads every release below `directory` (`$INJECTD_CORPUS/linkerd`), in the order of releases.
pub(crate) fn load_all(directory: &Path, cases: Cases) -> Result<Vec<Corpus>, String> {
    let mut all = load_each(directory, |path| load(path, cases))?;
    all.sort_by_key(|corpus: &Corpus| corpus.release.edge);
    Ok(all)
}

/// Loads every directory below `directory` that has recorded cases.
pub(crate) fn load_each<C>(
    directory: &Path,
    load: impl Fn(&Path) -> Result<C, String>,
) -> Result<Vec<C>, String> {
    let entries = fs::read_dir(directory).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.join("cases.jsonl.gz").exists() {
            all.push(load(&path)?);
        }
    }
    Ok(all)
}

/// Reads one release's directory.
fn load(directory: &Path, cases: Cases) -> Result<Corpus, String> {
    let name = directory.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let release = Release::parse(&name).ok_or_else(|| format!("{name} is not a release"))?;
    let read = |file: &str| {
        fs::read(directory.join(file)).map_err(|error| format!("{name}/{file}: {error}"))
    };
    let sets: Value =
        serde_json::from_slice(&read("configs.json")?).map_err(|error| error.to_string())?;
    let mut configs = BTreeMap::new();
    for (set, files) in sets.as_object().into_iter().flatten() {
        let file = |key: &str| files[key].as_str().unwrap_or_default();
        let values_yaml = String::from_utf8_lossy(&read(file("values"))?).into_owned();
        let config = ConfigSet {
            name: set.clone(),
            values: yaml::tree(&values_yaml),
            values_yaml,
            trust_roots: read(file("trustAnchors"))?,
        };
        configs.insert(set.clone(), config);
    }
    let cases = read_cases(directory, cases)?.iter().map(case).collect::<Result<_, _>>()?;
    Ok(Corpus { name, release, configs, cases })
}

/// The cases of a release's directory, as JSON.
pub(crate) fn read_cases(directory: &Path, cases: Cases) -> Result<Vec<Value>, String> {
    if !cases.are_all() {
        say_what_is_left_out();
    }
    let lines = read_lines(directory)?;
    let wanted = lines.lines().filter(|line| cases.have(id_of(line)));
    let read = wanted.map(serde_json::from_str).collect::<Result<_, _>>();
    read.map_err(|error| format!("{}: {error}", directory.display()))
}

/// The id in a line; the rest is not read.
fn id_of(line: &str) -> &str {
    let id = line.split_once("\"id\":").and_then(|(_, rest)| rest.split('"').nth(1));
    id.unwrap_or_default()
}

/// The file with the cases of a release, a line for each.
pub(crate) fn read_lines(directory: &Path) -> Result<String, String> {
    let path = directory.join("cases.jsonl.gz");
    let failed = |error: &dyn Display| format!("{}: {error}", path.display());
    let compressed = fs::read(&path).map_err(|error| failed(&error))?;
    let mut lines = String::new();
    let read = GzDecoder::new(compressed.as_slice()).read_to_string(&mut lines);
    read.map_err(|error| failed(&error))?;
    Ok(lines)
}

/// The HTTP body of a case.
pub(crate) fn body(fields: &Value) -> Result<Vec<u8>, String> {
    match fields["request_base64"].as_str() {
        Some(encoded) => STANDARD.decode(encoded).map_err(|error| error.to_string()),
        None => Ok(fields["request"].as_str().unwrap_or_default().into()),
    }
}

fn case(fields: &Value) -> Result<Case, String> {
    let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    let list = |name: &str| fields[name].as_array().cloned().unwrap_or_default();
    let given = |name: &str| Some(&fields[name]).filter(|value| !value.is_null()).cloned();
    let status = fields["http"]["status"].as_u64();
    Ok(Case {
        id: text("id"),
        family: text("family"),
        config: text("config"),
        objects: list("objects"),
        get_only: list("getOnly"),
        body: body(fields)?,
        status: status.and_then(|status| u16::try_from(status).ok()),
        response: given("response"),
        response_text: fields["responseText"].as_str().map(str::to_owned),
        patch: fields["patch"].as_array().cloned(),
        verdict: text("verdict"),
        reasons: fields["reasons"].as_str().map(str::to_owned),
        events: list("events"),
    })
}
