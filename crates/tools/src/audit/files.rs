//! Pods from files, and what they are judged by. Pods stay text until they are judged, one after
//! another: as trees they need several times the memory. A List in JSON, as kubectl prints it, is never
//! a tree as a whole.

use std::{borrow::Cow, ops::Range, path::PathBuf};

use injectd_command::{CommandError, input};
use injectd_core::{objects::Objects, yaml};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    facts::Facts,
    manifests::{ITEMS, Listed, listed, text},
};

/// What files have.
#[derive(Default)]
pub(super) struct Input {
    pub(super) facts: Facts,
    /// The metadata of objects that are no pods.
    pub(super) objects: Objects,
    /// The texts of files with a List in JSON, and their names.
    files: Vec<(String, String)>,
    pods: Vec<Pod>,
}

/// The JSON of a pod.
enum Pod {
    /// In a file.
    Place(usize, Range<usize>),
    /// Of a file that has no place for it.
    Text(String),
}

/// A List in JSON, of which items and metadata are not read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List<'t> {
    #[serde(borrow, default)]
    api_version: Cow<'t, str>,
    #[serde(borrow)]
    kind: Cow<'t, str>,
    #[serde(borrow, default)]
    metadata: Option<&'t RawValue>,
    #[serde(borrow)]
    items: Vec<&'t RawValue>,
}

/// An item, of which only the kind is read.
#[derive(Deserialize)]
struct Item<'t> {
    #[serde(borrow, default)]
    kind: Cow<'t, str>,
}

impl Input {
    /// Reads files.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self, CommandError> {
        let mut input = Self::default();
        for path in input::all_files(paths)? {
            let (name, text) = (input::name(&path), input::read_text(&path)?);
            let Some((list, kind)) = List::of(&text) else {
                for document in yaml::stream(&text) {
                    let document =
                        document.map_err(|problem| CommandError::failed(name.as_str(), problem))?;
                    input.add(document.value, "");
                }
                continue;
            };
            for item in list.items {
                input.add_item(&name, &text, item.get(), &kind)?;
            }
            input.files.push((name, text));
        }
        Ok(input)
    }

    /// Adds an item of the List of the next file.
    fn add_item(
        &mut self,
        name: &str,
        file: &str,
        item: &str,
        listed_kind: &str,
    ) -> Result<(), CommandError> {
        // Reads one field of the item and skips the rest: most items are pods, which are read
        // later.
        let of_item = serde_json::from_str(item).map(|Item { kind }| kind);
        let kind = of_item.unwrap_or_default();
        if (if kind.is_empty() { listed_kind } else { &kind }) == POD {
            // Places in the file instead of trees: the dump of a large cluster is in memory once,
            // and a pod is read when its turn comes.
            let begin = item.as_ptr().addr() - file.as_ptr().addr();
            self.pods.push(Pod::Place(self.files.len(), begin..begin + item.len()));
            return Ok(());
        }
        self.add(parsed(name, file, item)?, listed_kind);
        Ok(())
    }

    fn add(&mut self, object: Value, listed_kind: &str) {
        self.facts.add(&object, listed_kind);
        self.add_pods(object, listed_kind);
    }

    fn add_pods(&mut self, mut object: Value, listed_kind: &str) {
        if let Some(Listed { item_kind, .. }) = listed(&object) {
            let kind = item_kind.to_owned();
            if let Value::Array(items) = object[ITEMS].take() {
                for item in items {
                    self.add_pods(item, &kind);
                }
            }
            return;
        }
        let kind = match text(&object, "/kind") {
            "" => listed_kind,
            kind => kind,
        };
        if kind == POD && object.is_object() {
            self.pods.push(Pod::Text(object.to_string()));
        } else if !kind.is_empty() && object.is_object() {
            let kind = kind.to_owned();
            object["kind"] = kind.into();
            self.keep(&object);
        }
    }

    /// Keeps the metadata of an object. One without a name is none.
    pub(super) fn keep(&mut self, object: &Value) {
        let _ = self.objects.add(object);
    }

    /// Whether there is no pod.
    pub(super) fn has_no_pods(&self) -> bool {
        self.pods.is_empty()
    }

    /// The pods, in the order of the files.
    pub(super) fn pods(&self) -> impl Iterator<Item = Result<Value, CommandError>> {
        self.pods.iter().map(|pod| match pod {
            Pod::Place(file, place) => {
                let (name, text) = &self.files[*file];
                parsed(name, text, &text[place.clone()])
            }
            Pod::Text(text) => parsed("pod", text, text),
        })
    }
}

/// The kind of pods.
const POD: &str = "Pod";

/// An object in a file.
fn parsed(name: &str, file: &str, object: &str) -> Result<Value, CommandError> {
    let read = |text| yaml::stream(text).next().transpose();
    let problem = match read(object) {
        Ok(object) => return Ok(object.map(|document| document.value).unwrap_or_default()),
        Err(problem) => problem,
    };
    // The problem of the file has its place there.
    Err(CommandError::failed(name, read(file).err().unwrap_or(problem)))
}

impl<'t> List<'t> {
    /// The List that a text is, and the kind that its name gives to items; `None` for any other text.
    fn of(text: &'t str) -> Option<(Self, String)> {
        if !text.trim_start().starts_with('{') {
            return None;
        }
        let list: Self = serde_json::from_str(text).ok()?;
        let metadata = list.metadata.map(|metadata| serde_json::from_str::<Value>(metadata.get()));
        let head = json!({"apiVersion": list.api_version, "kind": list.kind,
            "metadata": metadata.transpose().ok()?, ITEMS: []});
        let kind = listed(&head)?.item_kind.to_owned();
        list.items.iter().all(|item| item.get().starts_with('{')).then_some((list, kind))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn read(folder: &Path, text: &str) -> Result<(Vec<Value>, usize), String> {
        let file = folder.join("input.json");
        fs::write(&file, text).expect("must be written");
        let input =
            Input::read(&[file]).map_err(|error| injectd_cluster::causes::with_causes(&error))?;
        let pods: Result<Vec<_>, _> = input.pods().collect();
        let pods = pods.map_err(|error| injectd_cluster::causes::with_causes(&error))?;
        Ok((pods, input.facts.namespaces().count()))
    }

    /// What a List in JSON has is what it has as YAML, which is read as a tree.
    #[test]
    fn a_list_of_texts_has_what_a_tree_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "é\u{2028}"},
            "spec": {"containers": [{"name": "a", "cpu": 0.5}], "n": 12_345_678_901_u64}});
        let without_kind = json!({"metadata": {"name": "b"}});
        let namespace = json!({"kind": "Namespace", "metadata": {"name": "shop"}});
        let nested = json!({"apiVersion": "v1", "kind": "List", "items": [pod, namespace]});
        for (list, pods, namespaces) in [
            (json!({"apiVersion": "v1", "items": [pod, namespace], "kind": "List"}), 1, 1),
            (json!({"kind": "PodList", "apiVersion": "v1", "items": [without_kind, pod]}), 2, 0),
            (json!({"kind": "List", "apiVersion": "v1", "items": [nested, pod]}), 2, 1),
            (json!({"kind": "List", "apiVersion": "v1", "items": []}), 0, 0),
            (json!({"kind": "List", "apiVersion": "v1", "items": null}), 0, 0),
            (json!({"kind": "Packing", "apiVersion": "a/v1", "items": [pod]}), 0, 0),
            (pod.clone(), 1, 0),
        ] {
            let found = read(folder.path(), &list.to_string()).expect("JSON");
            assert_eq!((found.0.len(), found.1), (pods, namespaces), "{list}");
            let tree = serde_saphyr::to_string(&list).expect("YAML");
            assert_eq!(read(folder.path(), &tree).expect("YAML"), found, "{list}");
        }
    }

    #[test]
    fn a_problem_has_its_line_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [\n{\"kind\": \"Pod\",\n\
                    \"a\": \"\\ud800\"}]}";
        let error = read(folder.path(), list).expect_err("a lone surrogate");
        assert!(error.contains("input.json: line 3"), "{error}");
    }
}
