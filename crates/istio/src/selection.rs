//! Which templates a pod gets (`pkg/kube/inject/inject.go`, `selectTemplates`).

use injectd_gocompat::text::quote;
use thiserror::Error;

use crate::config::Config;

/// The annotation with the names of a pod's templates and aliases, separated by commas. Default:
/// the default templates of the configuration.
pub const TEMPLATES_ANNOTATION: &str = "inject.istio.io/templates";

/// Templates of a pod, aliases resolved. Istio's configurations have about ten; each template is a
/// pass over the whole pod.
pub const MAX_TEMPLATES: usize = 32;

/// A pod asks for more templates than it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("annotation {TEMPLATES_ANNOTATION} asks for more than {MAX_TEMPLATES} templates")]
pub struct TooManyTemplates;

/// A template that the configuration does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("requested template {} not found; have {}", quote(.name), .known.join(", "))]
pub struct UnknownTemplate {
    name: String,
    known: Vec<String>,
}

/// The names of a pod's templates in their order, aliases resolved once. `annotation` is the value
/// of [`TEMPLATES_ANNOTATION`]; an empty one asks for the template with the empty name.
///
/// # Errors
/// The annotation asks for more than [`MAX_TEMPLATES`]. A configuration may have more by default.
pub fn names<'a>(
    config: &'a Config,
    annotation: Option<&'a str>,
) -> Result<Vec<&'a str>, TooManyTemplates> {
    let Some(text) = annotation else {
        let names = config.default_templates.iter().map(String::as_str);
        return Ok(names.flat_map(|name| resolved(config, name)).collect());
    };
    let mut asked = text.split(',');
    let names: Vec<_> = asked
        .by_ref()
        .take(MAX_TEMPLATES)
        .flat_map(|name| resolved(config, name.trim()))
        // One more than allowed is enough to know that there are too many: an annotation may have
        // thousands.
        .take(MAX_TEMPLATES + 1)
        .collect();
    let is_within = names.len() <= MAX_TEMPLATES && asked.next().is_none();
    is_within.then_some(names).ok_or(TooManyTemplates)
}

/// A name, or the names that it is an alias of.
fn resolved<'a>(config: &'a Config, name: &'a str) -> Vec<&'a str> {
    match config.aliases.get(name) {
        Some(names) => names.iter().map(String::as_str).collect(),
        None => vec![name],
    }
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
            assert_eq!(names(&config(), annotation).as_deref(), Ok(expected), "{annotation:?}");
        }
    }

    #[test]
    fn an_annotation_asks_for_a_bounded_number_of_templates() {
        let config = config();
        let of = |name: &str, count: usize| vec![name; count].join(",");
        for (name, each) in [("sidecar", 1), ("both", 2)] {
            let most = of(name, MAX_TEMPLATES / each);
            assert_eq!(names(&config, Some(&most)).map(|names| names.len()), Ok(MAX_TEMPLATES));
            let more = of(name, MAX_TEMPLATES / each + 1);
            assert_eq!(names(&config, Some(&more)), Err(TooManyTemplates));
        }
        // Aliases of no template cost as much as one.
        assert_eq!(names(&config, Some(&of("none", MAX_TEMPLATES + 1))), Err(TooManyTemplates));
        assert_eq!(names(&config, Some(&of("none", MAX_TEMPLATES))), Ok(vec![]));
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
