//! An example of `examples/templates`, and how it is fitted to the settings of a webhook.

use std::fs;

use injectd_testkit::yaml;
use serde_json::Value;

/// Characters of the name of a template.
const MAX_NAME: usize = 63;

/// A template.
#[derive(Clone, Debug)]
pub(crate) struct Example(Value);

impl Example {
    /// Reads an example.
    pub(crate) fn read(name: &str) -> Self {
        let text = text(name);
        Self(yaml::tree(&text).unwrap_or_else(|error| panic!("{name}: {error}")))
    }

    /// The template.
    pub(crate) fn into_template(self) -> Value {
        self.0
    }

    /// A field of `spec`.
    pub(crate) fn spec(&mut self, field: &str) -> &mut Value {
        &mut self.0["spec"][field]
    }

    /// Names the template.
    pub(crate) fn name(&mut self, name: &str) {
        let name = name.get(..MAX_NAME).unwrap_or(name).trim_matches('-');
        self.0["metadata"]["name"] = if name.is_empty() { "unnamed" } else { name }.into();
    }

    /// The value or expression of a variable.
    pub(crate) fn variable(&mut self, name: &str) -> &mut Value {
        let variable = entry(self.spec("variables"), name);
        let field = if variable.get("value").is_some() { "value" } else { "expression" };
        &mut variable[field]
    }

    /// Changes the variable `settings`: a field for each of these.
    pub(crate) fn set(&mut self, settings: Value) {
        let Value::Object(settings) = settings else { panic!("settings must be an object") };
        for (field, value) in settings {
            let known = &mut self.variable("settings")[&field];
            assert!(!known.is_null(), "settings have no field {field}");
            *known = value;
        }
    }

    /// The default of a parameter.
    pub(crate) fn default(&mut self, parameter: &str, value: &str) {
        entry(self.spec("parameters"), parameter)["default"] = value.into();
    }

    /// A step.
    pub(crate) fn step(&mut self, name: &str) -> &mut Value {
        entry(self.spec("steps"), name)
    }

    /// Adds a step in front of another one.
    pub(crate) fn insert_step(&mut self, before: &str, step: Value) {
        let steps = self.spec("steps").as_array_mut().expect("steps must be a list");
        let at = steps.iter().position(|step| step["name"] == before);
        steps.insert(at.unwrap_or_else(|| panic!("no step {before}")), step);
    }

    /// Removes a step.
    pub(crate) fn remove_step(&mut self, name: &str) {
        let steps = self.spec("steps").as_array_mut().expect("steps must be a list");
        steps.retain(|step| step["name"] != name);
    }

    /// Replaces a text, in keys and values of the whole template.
    pub(crate) fn replace(&mut self, from: &str, to: &str) {
        let text = self.0.to_string().replace(from, to);
        self.0 = serde_json::from_str(&text).expect("the replacement must be plain text");
    }
}

/// The comment at the top of an example, in one line.
pub(crate) fn comment(name: &str) -> String {
    let text = text(name);
    let lines = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}

fn text(name: &str) -> String {
    let path = format!("{}/examples/templates/{name}/template.yaml", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn entry<'v>(list: &'v mut Value, name: &str) -> &'v mut Value {
    let entries = list.as_array_mut().expect("a list must be there");
    let found = entries.iter_mut().find(|entry| entry["name"] == name);
    found.unwrap_or_else(|| panic!("there is no entry {name}"))
}
