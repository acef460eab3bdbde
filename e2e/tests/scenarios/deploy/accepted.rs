//! The chart in a cluster: the API server accepts its objects, and Helm installs it.

use std::{fs, path::Path, process::Command, time::Duration};

use injectd_harness::{
    api::{NAMESPACES, path_of},
    expect::{Outcome, eventually, expect, expect_contains, failed},
    lab::root,
    namespaced::Namespaced,
    process::run_installed,
    scenario::{note, say_skipped},
};
use serde_json::{Value, json};

use super::{
    chart::{chart, helm},
    matrix::{MATRIX, arguments},
    release::{IMAGE, delete_release_at_end, objects},
};

/// The module of the Prometheus operator, with its CRDs, and where its version is.
const OPERATOR: &str = "github.com/prometheus-operator/prometheus-operator";
const OPERATOR_VERSION: &str = "PROMETHEUS_OPERATOR_VERSION=";
/// The first download has the modules of the operator's dependencies; a scenario has five minutes.
const DOWNLOAD_LIMIT: Duration = Duration::from_mins(3);
/// Kinds of the operator that the chart uses, with their plurals.
const OPERATOR_KINDS: [(&str, &str); 2] =
    [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")];
/// No webhook of the matrix must call anyone: no namespace has the label.
const NOBODY: &str = "webhookDefaults.namespaceSelector.matchLabels.e2e=nobody";

/// The module of the operator and its version.
fn operator() -> Outcome<String> {
    let versions = fs::read_to_string(root().join(".ci/tools.sh"))?;
    let version = versions.lines().find_map(|line| line.strip_prefix(OPERATOR_VERSION));
    let version = version.ok_or_else(|| failed("no version of the operator in .ci/tools.sh"))?;
    Ok(format!("{OPERATOR}@{version}"))
}

/// The CRDs of the operator, from the proxy of Go's modules.
async fn operator_crds(operator: &str) -> Outcome<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new("go");
    command.args(["mod", "download", "-json", operator]).current_dir(&folder);
    let module: Value =
        serde_json::from_str(&run_installed(DOWNLOAD_LIMIT, command).await?.stdout)?;
    let folder = module["Dir"].as_str().ok_or_else(|| failed(module["Error"].to_string()))?;
    let folder = Path::new(folder).join("example/prometheus-operator-crd");
    let crd = |(_, plural)| {
        let file = folder.join(format!("monitoring.coreos.com_{plural}.yaml"));
        Ok(serde_saphyr::from_str(&fs::read_to_string(file)?)?)
    };
    OPERATOR_KINDS.into_iter().map(crd).collect()
}

/// A CRD that accepts any `spec`, in place of one of the operator.
fn crd(kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

/// Applies the CRDs of the operator. Says where they are from.
async fn apply_crds(it: &Namespaced<'_>) -> Outcome<String> {
    let api = &it.lab.api;
    let operator = operator()?;
    let (crds, origin) = match operator_crds(&operator).await {
        Ok(crds) => (crds, format!("CRDs of {operator}")),
        Err(why) => {
            say_skipped(&format!("the schemas of {operator}, which cannot be downloaded: {why}"));
            let crds = OPERATOR_KINDS.into_iter().map(|(kind, plural)| crd(kind, plural)).collect();
            (crds, "CRDs without a schema".to_owned())
        }
    };
    for crd in &crds {
        // One that a scenario before has deleted may still be there.
        eventually("the kind is defined", async || it.create_in_cluster(crd).await.map(drop))
            .await?;
    }
    for (_, plural) in OPERATOR_KINDS {
        let path = format!("/apis/monitoring.coreos.com/v1/{plural}");
        eventually("the kind is served", async || api.get(&path).await?.ok().map(drop)).await?;
    }
    Ok(origin)
}

/// Applies the objects of each row.
pub(super) async fn all(it: &Namespaced<'_>) -> Outcome {
    let (api, namespace) = (&it.lab.api, it.name_of("rendered"));
    let crds = apply_crds(it).await?;
    it.make(&namespace, &json!({})).await?;
    delete_release_at_end(it);
    let mut applied = 0;
    let of_istio = format!("istio.namespace={}", it.name);
    for set in MATRIX {
        let mut arguments = arguments(&namespace, &it.name, set);
        arguments.extend(["--set", &of_istio, "--set", NOBODY]);
        if set.iter().any(|setting| setting.starts_with("certificates.caBundle")) {
            // The API server reads it.
            arguments.extend(["--set", "certificates.caBundle="]);
        }
        for object in objects(&it.lab.binary, &arguments).await? {
            api.apply(&object, "e2e").await?;
            applied += 1;
            if object["kind"] == "MutatingWebhookConfiguration" {
                // It may be called for objects of the whole cluster.
                api.delete(&path_of(&object, None)).await?.ok()?;
            }
        }
    }
    note(&format!("{applied} objects; {crds}"));
    Ok(())
}

/// Installs, upgrades and uninstalls a release. Another one of its name is refused, since webhook
/// configurations have no namespace.
pub(super) async fn by_helm(it: &Namespaced<'_>) -> Outcome {
    let (chart, name) = (chart(), &it.name);
    let namespaces = ["helm", "helm-2"].map(|end| it.name_of(end));
    delete_release_at_end(it);
    for namespace in &namespaces {
        it.delete_at_end(format!("{NAMESPACES}/{namespace}"));
    }
    let [first, second] = &namespaces;
    let run = async |command: &[&str], namespace: &str, set: &[&str]| {
        let values: Vec<_> =
            set.iter().chain(&[NOBODY, IMAGE]).flat_map(|setting| ["--set", *setting]).collect();
        let place = [name, &*chart, "-n", namespace];
        helm(&[command, &place, &values].concat(), &it.lab.kubeconfig).await
    };
    let install = ["install", "--create-namespace"];
    let risky = ["webhookDefaults.failurePolicy=Fail", "replicas=1"];
    let notes = run(&install, first, &risky).await?.map_err(failed)?;
    for line in [
        &*format!("helm test {name} -n {first}"),
        "failurePolicy is Fail",
        "fewer than two",
        "No NetworkPolicy is installed",
    ] {
        expect_contains("the notes", line, &notes)?;
    }
    let refusal = run(&install, second, &[]).await?.err().unwrap_or_default();
    expect_contains("the refusal", &format!("{name}-linkerd"), &refusal)?;
    let of_istio = format!("istio.namespace={first}");
    let both = ["istio.enabled=true", "istio.tags[0].tag=helm", "replicas=2", &of_istio];
    let notes = run(&["upgrade"], first, &both).await?.map_err(failed)?;
    expect("a warning in the notes", false, notes.contains("WARNING"))?;
    let uninstall = ["uninstall", name, "-n", first];
    helm(&uninstall, &it.lab.kubeconfig).await?.map_err(failed).map(drop)
}
