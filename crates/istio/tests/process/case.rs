//! A recorded case.

use std::{fs::File, io::Read, path::Path};

use flate2::read::GzDecoder;
use serde_json::Value;

pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) family: String,
    pub(crate) config: String,
    pub(crate) path: String,
    pub(crate) verdict: String,
    /// The text of a denial.
    pub(crate) denial: String,
    pub(crate) unstable: bool,
    pub(crate) object: Value,
    /// The object with the recorded patch, if that applies.
    pub(crate) injected: Option<Value>,
    /// Of the recorded patch.
    pub(crate) operations: usize,
}

pub(crate) fn load(directory: &Path) -> Vec<Case> {
    let mut text = String::new();
    let file = File::open(directory.join("cases.jsonl.gz")).unwrap();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text.lines().map(|line| Case::read(&serde_json::from_str(line).unwrap())).collect()
}

impl Case {
    fn read(case: &Value) -> Self {
        let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
        let review: Value = case["request"]
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let object = review["request"]["object"].clone();
        let patch = serde_json::from_value::<json_patch::Patch>(case["patch"].clone()).ok();
        let injected = patch.as_ref().and_then(|patch| {
            let mut pod = object.clone();
            json_patch::patch(&mut pod, patch).ok().map(|()| pod)
        });
        let denial = &case["response"]["response"]["status"]["message"];
        Self {
            id: text("id"),
            family: text("family"),
            config: text("config"),
            path: text("path"),
            verdict: text("verdict"),
            denial: denial.as_str().unwrap_or_default().to_owned(),
            unstable: case.get("unstable").is_some(),
            operations: patch.map_or(0, |patch| patch.0.len()),
            object,
            injected,
        }
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.object["metadata"]["annotations"][key].as_str()
    }

    /// Whether a template of the case writes probes, the status annotation or the network's label.
    pub(crate) fn writes_users_fields(&self) -> bool {
        let templates = self.annotation("inject.istio.io/templates").unwrap_or_default();
        let mut templates = templates.split(',').map(str::trim);
        templates.any(|name| ["merge-app", "status-touch"].contains(&name))
    }

    /// Whether the user's pod has a container that the templates have too.
    pub(crate) fn declares_injected(&self) -> bool {
        let Some(recorded) = &self.injected else { return false };
        let rendered = super::undo::rendered(recorded);
        ["containers", "initContainers"].into_iter().any(|field| {
            let ours = rendered["spec"][field].as_array();
            ours.into_iter().flatten().any(|one| {
                let lists =
                    ["containers", "initContainers"].map(|field| &self.object["spec"][field]);
                lists
                    .iter()
                    .filter_map(|list| list.as_array())
                    .flatten()
                    .any(|own| own["name"] == one["name"])
            })
        })
    }
}
