//! A mesh config over the defaults.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use injectd_yaml::Options;
use serde_json::Value as Json;
use thiserror::Error;

use super::{
    message::{Message, Value},
    read::{ReadError, place},
    schema::{MESH_CONFIG, PROXY_CONFIG},
    validate::{self, Invalid},
};
use crate::{
    document::{Document, Mistaken},
    proto::layers,
    release::Release,
};

/// Why a mesh config is refused, or an annotation with a `ProxyConfig`.
#[derive(Debug, Error)]
pub enum MeshError {
    /// The text is not YAML.
    #[error("failed to convert to proto. {0}")]
    Yaml(#[source] injectd_yaml::Problem),
    /// A value has the wrong type.
    #[error("failed to convert to proto. {error}")]
    Type {
        /// The path of the value, such as `.defaultConfig.concurrency`.
        place: String,
        /// What is wrong with it.
        #[source]
        error: ReadError,
    },
    /// The text is not a mesh config.
    #[error(transparent)]
    Mistaken(#[from] Mistaken),
    /// The values do not fit.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

impl MeshError {
    /// The error in one line of plain words, with the place in the document.
    #[must_use]
    pub fn plain(&self) -> String {
        match self {
            Self::Yaml(problem) => format!("mesh cannot be parsed as YAML: {problem}"),
            Self::Type { place, error } => format!("mesh{place}: {}", error.plain()),
            Self::Mistaken(mistaken) => mistaken.to_string(),
            Self::Invalid(invalid) => {
                format!("mesh.defaultConfig: {}", invalid.problems.join("; "))
            }
        }
    }
}

/// Applies a mesh config to another one: the built-in defaults, or the result of the shared mesh
/// config.
///
/// A field that is given replaces the one of `base`, also by a zero or an empty list. Exceptions:
/// `defaultConfig` and `defaultProviders` are merged by field, `extensionProviders` by name, and
/// `trustDomainAliases` become the sorted union.
///
/// Go: `ApplyMeshConfig` of `pkg/config/mesh`.
///
/// # Errors
///
/// If the text is not YAML, a value has the wrong type, or the `ProxyConfig` of it is invalid. The
/// rules of Istio for other fields are not checked: istiod itself checks them.
pub fn apply(base: &Message, text: &str, release: Release) -> Result<Message, MeshError> {
    let json = injectd_yaml::parse(text, Options::default()).map_err(MeshError::Yaml)?;
    Document::Mesh.check(&json)?;
    let mut given = Message::new(*MESH_CONFIG);
    given.apply(&json, release).map_err(|error| of_type(&json, error, release))?;
    let mut mesh = base.clone();
    mesh.apply(&json, release).map_err(|error| of_type(&json, error, release))?;
    mesh.set("default_config", Some(Value::Message(proxy_config(base, &json, release)?)));
    mesh.set("default_providers", default_providers(base, &json, release)?);
    mesh.set("extension_providers", Some(extension_providers(base, &given)));
    mesh.set("trust_domain_aliases", Some(aliases(base, &given)));
    if let Some(config) = mesh.message("default_config") {
        validate::proxy_config(config, release)?;
    }
    Ok(mesh)
}

fn of_type(json: &Json, error: ReadError, release: Release) -> MeshError {
    MeshError::Type { place: place(*MESH_CONFIG, json, release), error }
}

/// The `defaultConfig` of `base` with the fields of the document; its zeros clear fields.
fn proxy_config(base: &Message, json: &Json, release: Release) -> Result<Message, MeshError> {
    let mut config = match base.message("default_config") {
        Some(config) => config.clone(),
        None => Message::new(*PROXY_CONFIG),
    };
    if let Some(given) = json.get("defaultConfig") {
        let kept = layers::Kept::of(&config);
        config.apply(given, release).map_err(|error| of_type(json, error, release))?;
        kept.restore(&mut config, release);
    }
    Ok(config)
}

fn default_providers(
    base: &Message,
    json: &Json,
    release: Release,
) -> Result<Option<Value>, MeshError> {
    let Some(Value::Message(below)) = base.value("default_providers") else { return Ok(None) };
    let mut providers = below.clone();
    if let Some(given) = json.get("defaultProviders") {
        providers.apply(given, release).map_err(|error| of_type(json, error, release))?;
    }
    Ok(Some(Value::Message(providers)))
}

fn extension_providers(base: &Message, given: &Message) -> Value {
    let mut providers = base.list("extension_providers").to_vec();
    for provider in given.list("extension_providers") {
        let known = providers.iter_mut().find(|known| name(known) == name(provider));
        match known {
            Some(known) => known.clone_from(provider),
            None => providers.push(provider.clone()),
        }
    }
    Value::List(providers)
}

/// The name of an extension provider.
fn name(provider: &Value) -> Option<&str> {
    match provider {
        Value::Message(provider) => Some(provider.text("name")),
        _ => None,
    }
}

fn aliases(base: &Message, given: &Message) -> Value {
    let lists = [base, given].into_iter().flat_map(|mesh| mesh.list("trust_domain_aliases"));
    let sorted: BTreeSet<&str> = lists
        .filter_map(|alias| match alias {
            Value::Text(alias) => Some(alias.as_str()),
            _ => None,
        })
        .collect();
    Value::List(sorted.into_iter().map(|alias| Value::Text(alias.to_owned())).collect())
}
