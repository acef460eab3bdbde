//! Which templates a pod gets (`pkg/kube/inject/inject.go`, `selectTemplates`).

use thiserror::Error;

use crate::{config::Config, fields::quoted};

/// The annotation with the names of a pod's templates and aliases, separated by commas. Default:
/// the default templates of the configuration.
pub const TEMPLATES_ANNOTATION: &str = "inject.istio.io/templates";

/// A template that the configuration does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("requested template {} not found; have {}", quoted(.name), .known.join(", "))]
pub struct UnknownTemplate {
    name: String,
    known: Vec<String>,
}

/// The names of a pod's templates in their order, aliases resolved once. `annotation` is the value
/// of [`TEMPLATES_ANNOTATION`]; an empty one asks for the template with the empty name.
#[must_use]
pub fn names<'a>(config: &'a Config, annotation: Option<&'a str>) -> Vec<&'a str> {
    let asked: Vec<&str> = match annotation {
        Some(text) => text.split(',').map(str::trim).collect(),
        None => config.default_templates.iter().map(String::as_str).collect(),
    };
    let resolved = asked.into_iter().flat_map(|name| match config.aliases.get(name) {
        Some(names) => names.iter().map(String::as_str).collect(),
        None => vec![name],
    });
    resolved.collect()
}

/// The text of a template.
///
/// Istio looks a template up when its turn comes: errors of templates before it come first.
///
/// # Errors
/// There is no such template.
pub fn template<'c>(config: &'c Config, name: &str) -> Result<&'c str, UnknownTemplate> {
    config.templates.get(name).map(String::as_str).ok_or_else(|| UnknownTemplate {
        name: name.to_owned(),
        known: config.templates.keys().cloned().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config::parse(
            "defaultTemplates: [sidecar, both]
templates: {sidecar: s, gateway: g, custom: c}
aliases: {both: [gateway, one], one: [custom], none: []}",
        )
        .expect("the configuration must be valid")
    }

    #[test]
    fn aliases_are_resolved_once() {
        for (annotation, expected) in [
            (None, &["sidecar", "gateway", "one"][..]),
            (Some("gateway"), &["gateway"]),
            (Some(" gateway , one,sidecar"), &["gateway", "custom", "sidecar"]),
            (Some("none"), &[]),
            (Some(""), &[""]),
            (Some("a,,b"), &["a", "", "b"]),
            (Some("sidecar,sidecar"), &["sidecar", "sidecar"]),
        ] {
            assert_eq!(names(&config(), annotation), expected, "{annotation:?}");
        }
    }

    #[test]
    fn an_unknown_template_is_named_with_the_known_ones_sorted() {
        let config = config();
        assert_eq!(template(&config, "gateway"), Ok("g"));
        let error = template(&config, "x\"").expect_err("the template must be unknown");
        let expected = r#"requested template "x\"" not found; have custom, gateway, sidecar"#;
        assert_eq!(error.to_string(), expected);
        let error = template(&Config::default(), "").expect_err("the template must be unknown");
        assert_eq!(error.to_string(), r#"requested template "" not found; have "#);
    }
}
