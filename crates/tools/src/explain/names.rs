//! Names of objects as kubectl takes and prints them: `deploy web`, `deployment.apps/web`.
//!
//! Not for which types there are (`target.rs`).

use std::path::Path;

use injectd_command::CommandError;
use injectd_k8s::names::is_dns_subdomain;

use super::target::is_kind;

/// The groups that `kubectl get -o name` prints behind the types that are explained, also with their
/// version.
const GROUPS: [&str; 4] = ["apps", "v1.apps", "batch", "v1.batch"];

/// The arguments with each object as `TYPE/NAME`. What exists as a file stays.
pub(super) fn normalized(arguments: &[String]) -> Result<Vec<String>, CommandError> {
    normalized_among(arguments, |text| Path::new(text).exists())
}

/// The same; `is_file` says what exists.
fn normalized_among(
    arguments: &[String],
    is_file: impl Fn(&str) -> bool,
) -> Result<Vec<String>, CommandError> {
    let is_name = |text: &String| is_dns_subdomain(text) && !is_file(text);
    if let [kind, names @ ..] = arguments
        && is_type(kind)
        // A folder may be called deploy: it is meant if nothing follows, or a file.
        && (!names.is_empty() || !is_file(kind))
        && names.iter().all(is_name)
    {
        if names.is_empty() {
            let text = format!("{kind} is a type; name an object: {kind}/NAME");
            return Err(CommandError::Usage(text));
        }
        let kind = without_group(kind);
        return Ok(names.iter().map(|name| format!("{kind}/{name}")).collect());
    }
    let named = |text: &String| match text.split_once('/') {
        Some((kind, name)) if is_type(kind) && !is_file(text) => {
            format!("{}/{name}", without_group(kind))
        }
        _ => text.clone(),
    };
    Ok(arguments.iter().map(named).collect())
}

fn is_type(text: &str) -> bool {
    is_kind(without_group(text))
}

/// A type without its group.
fn without_group(kind: &str) -> &str {
    match kind.split_once('.') {
        Some((head, group)) if GROUPS.contains(&group) => head,
        _ => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(arguments: &[&str]) -> Result<Vec<String>, String> {
        let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        // A folder and a file are there.
        let is_file = |text: &str| ["deploy", "Cargo.toml"].contains(&text);
        normalized_among(&arguments, is_file).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_those_of_kubectl() {
        for (arguments, expected) in [
            (&["deploy", "web"][..], &["deploy/web"][..]),
            (&["Deployment.apps", "web", "db"], &["Deployment/web", "Deployment/db"]),
            (&["deployment.apps/web", "cronjob.batch/a"], &["deployment/web", "cronjob/a"]),
            (&["deployment.v1.apps/web"], &["deployment/web"]),
            (&["pod/a", "manifests/web.yaml"], &["pod/a", "manifests/web.yaml"]),
            // Others stay, and are named in the error of their own.
            (&["widget.apps/web", "widget", "web"], &["widget.apps/web", "widget", "web"]),
            (&["deployment.example.com/web"], &["deployment.example.com/web"]),
            (&["-"], &["-"]),
        ] {
            assert_eq!(normal(arguments).as_deref(), Ok(expected.map_owned().as_slice()));
        }
        let error = normal(&["sts"]).expect_err("no name");
        assert!(error.contains("sts/NAME"), "{error}");
        for stays in [&["deploy", "Cargo.toml"][..], &["deploy"]] {
            assert_eq!(normal(stays), Ok(stays.map_owned()));
        }
    }

    trait Owned {
        fn map_owned(&self) -> Vec<String>;
    }

    impl Owned for [&str] {
        fn map_owned(&self) -> Vec<String> {
            self.iter().map(|argument| (*argument).to_owned()).collect()
        }
    }
}
