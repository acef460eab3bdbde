//! Reads recordings: one directory for each release, as the corpus' README describes them.

use std::{collections::BTreeMap, fs, path::Path};

use injectd_istio::release::Release;
use serde::Deserialize;
use serde_json::Value;

use crate::corpus::{Cases, body, load_each, read_cases};

/// Minor and patch of the release whose recordings are in the directory `master`.
const MASTER: Release = Release::new(31, 0);

const DEFAULT_TARGET: &str = "/inject?timeout=10s";

/// The configuration of an injector, and its place.
pub(crate) struct Set {
    /// The key `config`.
    pub(crate) config: String,
    /// The key `values`.
    pub(crate) values: String,
    /// The key `mesh`.
    pub(crate) mesh: String,
    /// The variables of istiod.
    pub(crate) environment: BTreeMap<String, String>,
    /// The revision; may be empty.
    pub(crate) revision: String,
    /// The name of the local cluster.
    pub(crate) cluster: String,
    start_error: Option<String>,
}

impl Set {
    /// Whether the injector of the release refused it at start.
    pub(crate) fn is_refused(&self) -> bool {
        self.start_error.is_some()
    }
}

/// A recorded request and its answer; the fields are the README's.
pub(crate) struct Case {
    /// A unique name.
    pub(crate) id: String,
    /// The topic of the case.
    pub(crate) family: String,
    /// The name of its config set.
    pub(crate) config: String,
    /// Objects in the cluster, as a List.
    pub(crate) objects: String,
    /// The names of the cluster; `None` for that of the config set.
    pub(crate) clusters: Option<Vec<String>>,
    /// The HTTP method.
    pub(crate) method: String,
    /// The target of the request.
    pub(crate) target: String,
    /// The HTTP body.
    pub(crate) body: Vec<u8>,
    /// The HTTP status; `None` if the connection was closed.
    pub(crate) status: Option<u16>,
    /// The `AdmissionReview` of the response.
    pub(crate) response: Option<Value>,
    /// The body of the response, if it is not JSON.
    pub(crate) response_text: String,
    /// The patch.
    pub(crate) patch: Option<json_patch::Patch>,
    /// Whether the real answer changes from run to run.
    pub(crate) is_unstable: bool,
}

/// The recordings of one release.
pub(crate) struct Corpus {
    /// The name of the directory.
    pub(crate) name: String,
    /// The release.
    pub(crate) release: Release,
    /// Config sets by name.
    pub(crate) sets: BTreeMap<String, Set>,
    /// The cases in order.
    pub(crate) cases: Vec<Case>,
}

impl Corpus {
    /// Whether the injector refused a config set at start.
    pub(crate) fn refuses(&self, set: &str) -> bool {
        self.sets.get(set).is_some_and(Set::is_refused)
    }

    /// A case by its id.
    pub(crate) fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }
}

#[derive(Deserialize)]
struct SetFiles {
    config: String,
    values: String,
    mesh: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    revision: String,
    #[serde(default)]
    cluster: String,
    #[serde(rename = "startError")]
    start_error: Option<String>,
}

/// Reads every release below `directory` (`$INJECTD_CORPUS/istio`), in the order of releases.
pub(crate) fn load_all(directory: &Path, cases: Cases) -> Result<Vec<Corpus>, String> {
    let mut all = load_each(directory, |path| load(path, cases))?;
    all.sort_by_key(|corpus: &Corpus| corpus.release);
    Ok(all)
}

fn load(directory: &Path, cases: Cases) -> Result<Corpus, String> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let release = if name == "master" { Some(MASTER) } else { Release::parse(&name) };
    let release = release.ok_or_else(|| format!("{name} is not a release"))?;
    let read = |file: &str| {
        let text = fs::read_to_string(directory.join(file));
        text.map_err(|error| format!("{name}/{file}: {error}"))
    };
    let files: BTreeMap<String, SetFiles> =
        serde_json::from_str(&read("configs.json")?).map_err(|error| error.to_string())?;
    let mut sets = BTreeMap::new();
    for (set, files) in files {
        let loaded = Set {
            config: read(&files.config)?,
            values: read(&files.values)?,
            mesh: read(&files.mesh)?,
            environment: files.env,
            revision: files.revision,
            cluster: files.cluster,
            start_error: files.start_error,
        };
        sets.insert(set, loaded);
    }
    let cases = read_cases(directory, cases)?.iter().map(case).collect::<Result<_, _>>()?;
    Ok(Corpus { name, release, sets, cases })
}

fn case(fields: &Value) -> Result<Case, String> {
    let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    let names = |value: &Value| {
        let names = value.as_array()?.iter().filter_map(Value::as_str);
        Some(names.map(str::to_owned).collect())
    };
    let patch = fields["patch"].as_array().map(|_| serde_json::from_value(fields["patch"].clone()));
    let status = fields["http"]["status"].as_u64();
    Ok(Case {
        id: text("id"),
        family: text("family"),
        config: text("config"),
        objects: serde_json::json!({"kind": "List", "items": fields["objects"]}).to_string(),
        clusters: names(&fields["clusters"]),
        method: fields["method"].as_str().unwrap_or("POST").to_owned(),
        target: fields["path"].as_str().unwrap_or(DEFAULT_TARGET).to_owned(),
        body: body(fields)?,
        status: status.and_then(|status| u16::try_from(status).ok()),
        response: Some(&fields["response"]).filter(|value| !value.is_null()).cloned(),
        response_text: text("responseText"),
        patch: patch.transpose().map_err(|error| error.to_string())?,
        is_unstable: !fields["unstable"].is_null(),
    })
}
