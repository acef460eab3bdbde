//! The Helm values: key `values` of the `ConfigMap`.

use serde_json::Value;

use super::ConfigError;
use crate::document::Document;

/// The types of the values that the injector itself reads.
const STRINGS: [&[&str]; 6] = [
    &["global", "hub"],
    &["global", "variant"],
    &["global", "network"],
    &["global", "multiCluster", "clusterName"],
    &["global", "proxy", "image"],
    &["global", "proxy_init", "image"],
];

const BOOLEANS: [&[&str]; 2] = [
    &["global", "proxy", "holdApplicationUntilProxyStarts"],
    &["sidecarInjectorWebhook", "rewriteAppHTTPProbe"],
];

/// Templates copy numbers of these into fields where Kubernetes rejects them.
const QUANTITIES: [&[&str]; 2] =
    [&["global", "proxy", "resources", "requests"], &["global", "proxy", "resources", "limits"]];

/// The Helm values, with the types of known keys checked.
#[derive(Debug, Clone)]
pub struct Values(Value);

impl Values {
    /// Reads JSON or YAML and checks the types of the keys that the injector reads, and of
    /// `global.proxy.statusPort` and `global.proxy.resources`. Other keys are not checked.
    ///
    /// Istio refuses such values at its start from 1.23 on; before, it denies every pod.
    ///
    /// # Errors
    /// The text is neither JSON nor YAML, is empty, or a known key has the wrong type.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let tree = match serde_json::from_str(text) {
            Ok(tree) => tree,
            Err(_) => injectd_yaml::parse(text, injectd_yaml::Options::default())
                .map_err(|source| ConfigError::Yaml { document: "values", source })?,
        };
        match &tree {
            Value::Null => return Err(ConfigError::Empty(Document::Values)),
            Value::Object(_) => {}
            _ => return Err(ConfigError::of_type("values", "a mapping", &tree)),
        }
        Document::Values.check(&tree)?;
        check(&tree)?;
        Ok(Self(tree))
    }

    /// The values as templates read them.
    #[must_use]
    pub fn tree(&self) -> &Value {
        &self.0
    }

    /// The value at a path of keys; `None` if it is missing or `null`.
    #[must_use]
    pub fn get(&self, path: &[&str]) -> Option<&Value> {
        let value = path.iter().try_fold(&self.0, |value, key| value.get(key))?;
        (!value.is_null()).then_some(value)
    }

    /// The text at a path of keys, empty if it is missing.
    #[must_use]
    pub fn text(&self, path: &[&str]) -> &str {
        self.get(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The boolean at a path of keys, false if it is missing.
    #[must_use]
    pub fn flag(&self, path: &[&str]) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or_default()
    }
}

fn check(tree: &Value) -> Result<(), ConfigError> {
    for path in STRINGS {
        check_at(tree, path, "a string", Value::is_string)?;
    }
    for path in BOOLEANS {
        check_at(tree, path, "a boolean", Value::is_boolean)?;
    }
    check_at(tree, &["global", "proxy", "statusPort"], "a port", is_integer)?;
    for path in QUANTITIES {
        check_at(tree, path, "a mapping", Value::is_object)?;
        let Some(Value::Object(quantities)) = tree.pointer(&format!("/{}", path.join("/"))) else {
            continue;
        };
        for (name, value) in quantities {
            check_value(&[path, &[name]].concat(), value, "a string", Value::is_string)?;
        }
    }
    Ok(())
}

/// Protobuf's JSON has integers bare or quoted.
fn is_integer(value: &Value) -> bool {
    let is_whole = |number: f64| number >= 0.0 && number.fract() == 0.0;
    value.as_f64().is_some_and(is_whole)
        || value.as_str().is_some_and(|text| text.parse::<u32>().is_ok())
}

fn check_at(
    tree: &Value,
    path: &[&str],
    expected: &'static str,
    is_valid: impl Fn(&Value) -> bool,
) -> Result<(), ConfigError> {
    let mut value = tree;
    for (depth, key) in path.iter().enumerate() {
        check_value(&path[..depth], value, "a mapping", Value::is_object)?;
        let Some(inner) = value.get(key) else { return Ok(()) };
        value = inner;
    }
    check_value(path, value, expected, is_valid)
}

fn check_value(
    path: &[&str],
    value: &Value,
    expected: &'static str,
    is_valid: impl Fn(&Value) -> bool,
) -> Result<(), ConfigError> {
    if value.is_null() || is_valid(value) {
        return Ok(());
    }
    Err(ConfigError::of_type(&format!("values.{}", path.join(".")), expected, value))
}
