//! The workloads to restart: names of the command line, or a JSON file.

use std::path::Path;

use injectd_command::{CommandError, input};
use injectd_controllers::restart::{Finding, RolloutKind};
use injectd_k8s::{
    names::{is_dns_label, is_dns_subdomain},
    workload::Workload,
};
use serde::Deserialize;

use super::effect::Row;

/// A kind and a name.
pub(super) type Named = (RolloutKind, String);

/// The file; other fields are skipped.
#[derive(Deserialize)]
struct Listed {
    workloads: Vec<Row>,
}

/// Parses names such as `deploy/web`, or as in kubectl a kind and the names of several: `deploy web api`.
pub(super) fn named(names: &[String]) -> Result<Vec<Named>, CommandError> {
    if let [kind, others @ ..] = names
        && !others.is_empty()
        && RolloutKind::of_kubectl(kind).is_some()
        && others.iter().all(|name| !name.contains('/'))
    {
        let parsed = others.iter().map(|name| parse(&format!("{kind}/{name}")));
        return parsed.collect::<Result<_, _>>().map_err(CommandError::Usage);
    }
    names.iter().map(|name| parse(name).map_err(CommandError::Usage)).collect()
}

fn parse(text: &str) -> Result<Named, String> {
    let Some((kind, name)) = text.split_once('/') else {
        return Err(format!("{text:?} has no kind; write KIND/NAME, such as deploy/{text}"));
    };
    let kind = RolloutKind::of_kubectl(kind).ok_or_else(|| {
        format!("{text:?}: the kind must be a Deployment, StatefulSet or DaemonSet")
    })?;
    if !is_dns_subdomain(name) {
        return Err(format!("{text:?}: {name:?} is not the name of an object"));
    }
    Ok((kind, name.to_owned()))
}

/// The named workloads of a namespace.
pub(super) fn in_namespace(
    named: Vec<Named>,
    namespace: &str,
) -> Result<Vec<Finding>, CommandError> {
    if !is_dns_label(namespace) {
        let problem = format!("--namespace {namespace:?} is not the name of a namespace");
        return Err(CommandError::Usage(problem));
    }
    let finding = |(kind, name): Named| Finding {
        workload: Workload {
            api_version: RolloutKind::API_VERSION.to_owned(),
            kind: kind.as_str().to_owned(),
            namespace: namespace.to_owned(),
            name,
            uid: None,
        },
        ..Finding::default()
    };
    Ok(named.into_iter().map(finding).collect())
}

/// Reads the workloads of a file.
pub(super) fn listed(path: &Path) -> Result<Vec<Row>, CommandError> {
    let bytes = input::read(path)?;
    let name = input::name(path);
    findings(&bytes).map_err(|problem| CommandError::failed(format!("cannot use {name}"), problem))
}

fn findings(bytes: &[u8]) -> Result<Vec<Row>, String> {
    let listed: Listed = serde_json::from_slice(bytes).map_err(|error| {
        format!(
            "{error}; expected {{\"workloads\": [{{\"apiVersion\", \"kind\", \"namespace\", \
             \"name\"}}, …]}}"
        )
    })?;
    for Row { of: Finding { workload, .. }, .. } in &listed.workloads {
        if !is_dns_label(&workload.namespace) || !is_dns_subdomain(&workload.name) {
            let Workload { namespace, name, .. } = workload;
            return Err(format!("{namespace:?} and {name:?} must be names of objects"));
        }
    }
    Ok(listed.workloads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_may_stand_before_its_names() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let of = |text: &str| named(&words(text)).map_err(|error| error.to_string());
        assert_eq!(of("deploy web api"), of("deploy/web deployment.apps/api"));
        assert!(of("deploy").is_err_and(|error| error.contains("has no kind")));
        assert!(of("deploy web sts/db").is_err());
    }

    #[test]
    fn a_workload_is_a_kind_and_a_name() {
        assert_eq!(parse("sts/db"), Ok((RolloutKind::StatefulSet, "db".to_owned())));
        for (text, problem) in [
            ("web", "\"web\" has no kind; write KIND/NAME, such as deploy/web"),
            ("pod/web", "the kind must be a Deployment"),
            ("deploy/../x", "\"../x\" is not the name of an object"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_file_has_workloads_and_may_have_more() {
        let json = r#"{"summary": {}, "workloads": [{"apiVersion": "apps/v1", "kind": "Deployment",
            "namespace": "shop", "name": "web", "reason": "r", "pods": 2}]}"#;
        let found = findings(json.as_bytes()).expect("findings");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].of.workload.to_string(), "deployment shop/web");
        let path = json.replace("\"web\"", "\"../web\"");
        assert!(findings(path.as_bytes()).expect_err("a path").contains("names of objects"));
        let error = findings(b"[]").expect_err("a list");
        assert!(error.contains("expected {\"workloads\""), "{error}");
    }
}
