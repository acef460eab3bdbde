//! Executes the templates of a pod, reads what they wrote, and merges it: into an empty pod, and into the
//! user's.
//!
//! Not for what comes before (the data) and after (the user's containers, probes, order).

use std::collections::HashSet;

use injectd_gotemplate::{Context, ExecError, Template, Value};
use injectd_merge::{MergeError, TypeError, check, has_directives, overlay, prune};
use injectd_yaml::{Options, Problem};
use serde_json::{Map, Value as Json};

use crate::{
    budget::{self, Budget, OverBudget, steps_of},
    memory::Record,
    process::tree::{CONTAINERS, INIT_CONTAINERS},
};

/// The lists of a template's pod of which later steps read only the names.
const NAMED_LISTS: [&str; 3] = [CONTAINERS, INIT_CONTAINERS, "volumes"];

/// What templates are rendered from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'s> {
    /// Their data.
    pub(crate) data: &'s Value,
    /// Records templates and patches.
    pub(crate) record: Option<&'s Record>,
    /// What it may take.
    pub(crate) budget: &'s Budget<'s>,
}

/// A template and its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'t> {
    pub(crate) name: &'t str,
    pub(crate) template: &'t Template,
}

/// What a template wrote.
#[derive(Debug)]
pub(crate) struct Text<'t> {
    pub(crate) by: Named<'t>,
    pub(crate) text: String,
}

/// What the templates of a pod wrote.
#[derive(Debug)]
pub(crate) struct Texts<'t> {
    written: Vec<Text<'t>>,
    /// Whether each template wrote one.
    is_whole: bool,
    /// Why the template after them wrote none.
    error: Option<RenderError>,
}

/// A template's pod, which is laid over the user's.
#[derive(Debug)]
struct Patch {
    pod: Json,
    has_directives: bool,
}

/// What the templates of a pod bring.
#[derive(Debug, Default)]
pub(crate) struct Patches {
    patches: Vec<Patch>,
    /// Why the template after them has no patch.
    error: Option<RenderError>,
}

/// Why templates could not be rendered or merged, with upstream's text.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A template stopped.
    #[error("failed to run injection template: {0}")]
    Template(#[from] ExecError),
    /// The templates of the pod take too much.
    #[error("failed to run injection template: {0}")]
    Budget(#[from] OverBudget),
    /// What a template wrote is not a pod.
    #[error("failed to run injection template: failed applying injection overlay: {0}")]
    Overlay(#[source] OverlayError),
    /// It is a pod, but does not fit the user's.
    #[error(
        "failed to run injection template: failed parsing generated injected YAML (check Istio \
         sidecar injector configuration): {0}"
    )]
    Merge(#[source] OverlayError),
}

/// Why a pod could not be laid over another.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// The rendered text is not YAML, or not a mapping.
    #[error("strategic merge: invalid JSON document")]
    Document,
    /// The rendered text takes too much to read.
    #[error("strategic merge: invalid JSON document: {0}")]
    Limit(#[source] Problem),
    /// The merge failed.
    #[error("strategic merge: {0}")]
    Merge(#[from] MergeError),
    /// A value has another type than Kubernetes'.
    #[error("unmarshal patched pod: {0}")]
    Type(#[from] TypeError),
}

/// Executes templates in their order. Each sees the same data.
pub(crate) fn write<'t>(
    templates: &[Named<'t>],
    Source { data, record, budget }: Source<'_>,
    context: &mut Context<'_>,
) -> Texts<'t> {
    let mut written = Vec::with_capacity(templates.len());
    let mut write = |template: &Template| -> Result<String, RenderError> {
        budget.lend(context);
        let before = context.steps();
        let text = template.execute(data, context);
        let text = match (text, budget.settle(context, before)) {
            // The template failed because the budget ended it: that is the reason for a person.
            (Err(error), Err(over)) => {
                return Err(ExecError { message: over.to_string(), ..error }.into());
            }
            (text, settled) => {
                settled?;
                text?
            }
        };
        budget.spend_text(&text)?;
        if let Some(record) = record {
            record.text(&text);
        }
        Ok(text)
    };
    for &by in templates {
        match write(by.template) {
            Ok(text) => written.push(Text { by, text }),
            Err(error) => return Texts { written, is_whole: false, error: Some(error) },
        }
    }
    Texts { written, is_whole: true, error: None }
}

impl<'t> Texts<'t> {
    /// All of them; `None` if a template wrote none.
    pub(crate) fn all(&self) -> Option<&[Text<'t>]> {
        self.is_whole.then_some(&self.written)
    }

    /// The same; `None` if a template wrote none.
    pub(crate) fn into_all(self) -> Option<Vec<Text<'t>>> {
        self.is_whole.then_some(self.written)
    }

    /// Reads them. What they bring is up to the first one that is no document. Once: the error is taken.
    pub(crate) fn read(&mut self, record: Option<&Record>, budget: &Budget<'_>) -> Patches {
        let mut patches = Vec::with_capacity(self.written.len());
        for text in &self.written {
            match text.read(record, budget) {
                Ok(patch) => patches.push(patch),
                Err(error) => return Patches { patches, error: Some(error) },
            }
        }
        Patches { patches, error: self.error.take() }
    }
}

impl Text<'_> {
    fn read(&self, record: Option<&Record>, budget: &Budget<'_>) -> Result<Patch, RenderError> {
        let mut pod = document(&self.text, budget::YAML).map_err(RenderError::Overlay)?;
        prune(&mut pod);
        budget.spend(steps_of(&pod))?;
        let has_directives = has_directives(&pod);
        if let Some(record) = record {
            record.template(self.by.template);
            record.patch(&pod, has_directives);
        }
        Ok(Patch { pod, has_directives })
    }
}

impl Patches {
    /// Whether all templates bring something.
    pub(crate) fn is_whole(&self) -> bool {
        self.error.is_none()
    }

    /// The names that items of lists may bring into the `spec` of a pod. Keys are read in any case.
    pub(crate) fn item_names(&self) -> HashSet<&str> {
        let items = members(self.patches.iter().map(|patch| &patch.pod), "spec")
            .filter_map(Json::as_object)
            .flat_map(Map::values)
            .filter_map(Json::as_array)
            .flatten();
        // An item without a name is merged with the container without one.
        let mut names = HashSet::from([""]);
        names.extend(members(items, "name").filter_map(Json::as_str));
        names
    }

    /// Merges the patches into the pod, one after the other; `before_merge` may change the pod first,
    /// as for native sidecars. Returns what the templates make of an empty pod: what Istio adds. Its
    /// containers and volumes may have only their names.
    ///
    /// # Errors
    /// The first error with upstream's text, in the order in which upstream renders and merges.
    pub(crate) fn merge_into(
        self,
        pod: &mut Json,
        budget: &Budget<'_>,
        mut before_merge: impl FnMut(&Json, &mut Json),
    ) -> Result<Json, RenderError> {
        let mut template = Json::Object(Map::new());
        let mut merged = steps_of(pod);
        let is_single = self.patches.len() == 1;
        for Patch { pod: patch, has_directives } in self.patches {
            // A merge may read all of the pod and of what earlier templates brought.
            merged += steps_of(&patch);
            budget.spend(merged)?;
            // Looked at after the merge, whose error Istio reports first.
            let types = check(&patch);
            // A second template merges into the containers of the first, and a directive may move
            // or delete them.
            let is_outlined = is_single && !has_directives;
            let brought = if is_outlined { outline(&patch) } else { patch.clone() };
            overlay(&mut template, brought).map_err(|error| RenderError::Overlay(error.into()))?;
            types.map_err(|error| RenderError::Overlay(error.into()))?;
            before_merge(&template, pod);
            overlay(pod, patch).map_err(|error| RenderError::Merge(error.into()))?;
        }
        self.error.map_or(Ok(template), Err)
    }
}

/// The members of objects with a key, in any case.
fn members<'p>(
    objects: impl Iterator<Item = &'p Json>,
    key: &str,
) -> impl Iterator<Item = &'p Json> {
    let members = objects.filter_map(Json::as_object).flatten();
    members.filter(move |(own, _)| own.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}

/// A patch without directives, with the names alone of containers and volumes. It takes less to
/// merge into an empty pod.
fn outline(patch: &Json) -> Json {
    let name = |item: &Json| match item.get("name") {
        Some(name @ Json::String(_)) => [("name".to_owned(), name.clone())].into_iter().collect(),
        _ => item.clone(),
    };
    with_members(patch, |part, value| match part {
        "spec" => with_members(value, |field, list| match list {
            Json::Array(items) if NAMED_LISTS.contains(&field) => items.iter().map(name).collect(),
            list => list.clone(),
        }),
        _ => value.clone(),
    })
}

/// An object with other values of its members; another value as it is.
fn with_members(value: &Json, change: impl Fn(&str, &Json) -> Json) -> Json {
    let Json::Object(members) = value else { return value.clone() };
    members.iter().map(|(key, value)| (key.clone(), change(key, value))).collect()
}

/// The first document of a rendered text; one without content is an empty mapping.
pub(crate) fn document(text: &str, options: Options) -> Result<Json, OverlayError> {
    match injectd_yaml::parse(text, options) {
        Ok(Json::Null) => Ok(Json::Object(Map::new())),
        Ok(document) if document.is_object() => Ok(document),
        Err(problem) if problem.is_over_limit => Err(OverlayError::Limit(problem)),
        _ => Err(OverlayError::Document),
    }
}

#[cfg(test)]
mod tests {
    use injectd_gotemplate::Functions;
    use serde_json::json;

    use super::*;

    /// The templates on an empty pod, and on the user's.
    fn rendered(texts: &[&str], pod: &Json) -> Result<[Json; 2], String> {
        let parse = |text: &&str| Template::parse("inject", text, &Functions::istio());
        let templates: Vec<Template> =
            texts.iter().map(parse).collect::<Result<_, _>>().expect("templates");
        let named = |template| Named { name: "inject", template };
        let templates: Vec<_> = templates.iter().map(named).collect();
        let data = Value::from_json(&json!({"Image": "proxy:1"}));
        let budget = Budget::of(pod, &|| false);
        let source = Source { data: &data, record: None, budget: &budget };
        let mut texts = write(&templates, source, &mut Context::default());
        let patches = texts.read(None, &budget);
        let mut merged = pod.clone();
        let template = patches.merge_into(&mut merged, &budget, |_, _| {});
        template.map(|template| [template, merged]).map_err(|error| error.to_string())
    }

    #[test]
    fn templates_are_merged_into_an_empty_pod_and_into_the_users() {
        let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}});
        let texts = [
            "spec:\n  containers:\n  - name: istio-proxy\n    image: \"{{ .Image }}\"\n",
            "metadata:\n  labels: {a: b}\n---\nignored: true\n",
            "# nothing\n",
        ];
        let found = rendered(&texts, &pod).expect("a pod");
        let proxy = json!({"name": "istio-proxy", "image": "proxy:1"});
        let template = json!({"spec": {"containers": [proxy]}, "metadata": {"labels": {"a": "b"}}});
        let merged = json!({
            "metadata": {"name": "web", "labels": {"a": "b"}},
            "spec": {"containers": [proxy, {"name": "web"}]},
        });
        assert_eq!(found, [template, merged]);
    }

    #[test]
    fn what_a_template_brings_has_the_same_names_with_and_without_the_rest() {
        let patch = json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "initContainers": [{"name": "init", "args": ["a"]}, {"Name": "odd"}],
                "containers": [{"name": "proxy", "env": [{"name": "A", "value": "1"}]}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "imagePullSecrets": [{"name": "s"}],
                "hostNetwork": true,
            },
        });
        let merged = |patch: Json| {
            let mut pod = json!({});
            overlay(&mut pod, patch).expect("a pod");
            pod
        };
        let (short, whole) = (merged(outline(&patch)), merged(patch));
        let named = |pod: &Json, list: &str| -> Vec<Json> {
            let items = pod["spec"][list].as_array().expect("a list").iter();
            items.map(|item| item["name"].clone()).collect()
        };
        for list in NAMED_LISTS.into_iter().chain(["imagePullSecrets"]) {
            assert_eq!(named(&short, list), named(&whole, list), "{list}");
        }
        assert_eq!(short["metadata"], whole["metadata"]);
        assert_eq!(short["spec"]["containers"], json!([{"name": "proxy"}]));
    }

    #[test]
    fn errors_have_upstreams_texts() {
        let pod = json!({"spec": {"containers": [{"name": "web", "image": "a"}]}});
        let overlay = "failed to run injection template: failed applying injection overlay: ";
        for (text, expected) in [
            ("a: [", format!("{overlay}strategic merge: invalid JSON document")),
            ("- a", format!("{overlay}strategic merge: invalid JSON document")),
            (
                "spec: {containers: [{name: a, image: 5}]}",
                format!(
                    "{overlay}unmarshal patched pod: json: cannot unmarshal number into Go struct field"
                ),
            ),
            (
                "{{ fail \"no\" }}",
                "failed to run injection template: template: inject:1:".to_owned(),
            ),
        ] {
            let error = rendered(&[text], &pod).expect_err("an error");
            assert!(error.starts_with(&expected), "{text}: {error}");
        }
    }
}
