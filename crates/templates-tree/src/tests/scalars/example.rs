//! The example of the contract and those of `examples/templates`, with pods for which they are.

use std::{fs, path::Path};

use injectd_templates::{
    Template,
    object::{KeyPlace, ParameterSource},
};
use serde_json::{Value, json};

use super::{SECRET_AGENT, pod, yaml};
use crate::{Request, State, inject};

/// A pod, and what is known about where it comes from.
#[derive(Debug, Clone)]
pub(super) struct World {
    pod: Value,
    namespace: Value,
    account: Option<Value>,
}

/// A value of a parameter.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// The place of the parameter.
    pub(super) parameter: usize,
    /// The text.
    pub(super) value: String,
}

impl Setting {
    pub(super) fn new(parameter: usize, value: &str) -> Self {
        Self { parameter, value: value.to_owned() }
    }
}

/// A template with parameters, and the pods of its cases for which it is applied.
#[derive(Debug)]
pub(super) struct Example {
    pub(super) template: Template,
    pub(super) worlds: Vec<World>,
}

impl Example {
    fn new(object: &Value, worlds: Vec<World>) -> Self {
        let template = Template::read(object).unwrap_or_else(|found| panic!("{found:?}"));
        let mut example = Self { template, worlds: Vec::new() };
        let is_applied = |world: &World| example.injected(world, &[]).is_some();
        example.worlds = worlds.into_iter().filter(is_applied).collect();
        example
    }

    /// The first place of a parameter that a value can be put in.
    fn source(&self, at: usize) -> ParameterSource {
        let parameter = &self.template.spec.parameters[at];
        if let Some(source) = parameter.from.first() {
            return source.clone();
        }
        let keys = self.template.spec.parameter_keys.as_ref().expect("keys must be there");
        let key = parameter.key.as_deref().unwrap_or_default();
        let key = format!("{}{key}", keys.prefix);
        match keys.r#in.first() {
            Some(KeyPlace::PodLabel) => ParameterSource::PodLabel(key),
            Some(KeyPlace::NamespaceLabel) => ParameterSource::NamespaceLabel(key),
            Some(KeyPlace::NamespaceAnnotation) => ParameterSource::NamespaceAnnotation(key),
            Some(KeyPlace::PodAnnotation) | None => ParameterSource::PodAnnotation(key),
        }
    }

    /// The key of the label or annotation with a value.
    pub(super) fn key(&self, setting: &Setting) -> String {
        let source = self.source(setting.parameter);
        match source {
            ParameterSource::PodAnnotationPrefix(prefix)
            | ParameterSource::NamespaceAnnotationPrefix(prefix) => format!("{prefix}agent-image"),
            other => other.key().to_owned(),
        }
    }

    /// The pod afterwards, with values for parameters; `None` if the template is not applied.
    pub(super) fn injected(&self, world: &World, settings: &[Setting]) -> Option<Value> {
        let World { mut pod, mut namespace, mut account } = world.clone();
        for setting in settings {
            let key = self.key(setting);
            let (object, map) = match self.source(setting.parameter) {
                ParameterSource::PodAnnotation(_) | ParameterSource::PodAnnotationPrefix(_) => {
                    (&mut pod, "annotations")
                }
                ParameterSource::PodLabel(_) => (&mut pod, "labels"),
                ParameterSource::NamespaceAnnotation(_)
                | ParameterSource::NamespaceAnnotationPrefix(_) => (&mut namespace, "annotations"),
                ParameterSource::NamespaceLabel(_) => (&mut namespace, "labels"),
                ParameterSource::ServiceAccountAnnotation(_) => (account.as_mut()?, "annotations"),
            };
            object["metadata"][map][key] = json!(setting.value);
        }
        let request = Request {
            pod: &pod,
            namespace: &namespace,
            service_account: account.as_ref(),
            owners: &[],
            own_namespace: None,
        };
        let injected = inject(std::slice::from_ref(&self.template), &request).ok()?;
        (injected.decisions[0].state == State::Applied).then_some(injected.pod)
    }
}

fn without_patterns(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_patterns),
        Value::Object(fields) => {
            fields.shift_remove("pattern");
            fields.values_mut().for_each(without_patterns);
        }
        _ => {}
    }
}

/// The documents of a file; none if it is not there.
fn documents(file: &Path) -> Vec<Value> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    text.split("\n---").map(yaml).filter(Value::is_object).collect()
}

fn world(case: &Path) -> Option<World> {
    let pod = documents(&case.join("pod.yaml")).into_iter().find(|one| one["kind"] == "Pod")?;
    let objects = documents(&case.join("objects.yaml"));
    let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).cloned();
    let namespace = json!({"metadata": {"name": "shop"}});
    Some(World {
        pod,
        namespace: of("Namespace").unwrap_or(namespace),
        account: of("ServiceAccount"),
    })
}

fn folders(of: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    folders.sort();
    folders
}

/// The example of the contract, without its patterns: they refuse most values; and the examples.
pub(super) fn examples() -> Vec<Example> {
    let mut of_contract = yaml(SECRET_AGENT);
    without_patterns(&mut of_contract);
    let namespace = json!({"metadata": {"name": "shop"}});
    let world = World { pod: pod(), namespace, account: None };
    let mut examples = vec![Example::new(&of_contract, vec![world])];
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/templates");
    for folder in folders(&directory) {
        let Ok(text) = fs::read_to_string(folder.join("template.yaml")) else { continue };
        let cases = folders(&folder.join("cases"));
        let worlds = cases.iter().filter_map(|case| self::world(case)).collect();
        examples.push(Example::new(&yaml(&text), worlds));
    }
    examples.retain(|example| !example.template.spec.parameters.is_empty());
    assert!(examples.len() > 4, "{examples:?}");
    examples
}
