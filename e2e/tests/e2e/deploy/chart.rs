//! The chart: rendered by Helm and by injectd, and accepted by the API server.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use injectd_e2e::expect::{Outcome, expect, expect_same, failed, skipped};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::installed::{Installed, NAMESPACE};

/// Values of the matrix: each row is rendered by both.
const MATRIX: [&[&str]; 8] = [
    &[],
    &["linkerd.enabled=false", "istio.enabled=true"],
    &[
        "istio.enabled=true",
        "istio.tags[0].tag=canary",
        "istio.tags[0].revision=1-30",
        "istio.tags[1].tag=prod",
        "istio.revisions[0]=default",
        "istio.env.CLUSTER_ID=one",
        "istio.openshift=true",
        "runAsUser=null",
    ],
    &["certificates.source=secret", "certificates.caBundle=PEM", "linkerd.webhook=false"],
    &["certificates.source=secret", "certificates.certManagerCertificate=linkerd/injectd"],
    &[
        "autoscaling.enabled=true",
        "networkPolicy.enabled=true",
        "audit.enabled=true",
        "audit.restart=annotated",
        "podDisruptionBudget.maxUnavailable=50%",
        "image.digest=sha256:0123",
        "priorityClassName=system-cluster-critical",
        "extraArgs[0]=--enable-pprof",
        "test.enabled=false",
    ],
    &[
        "serviceMonitor.enabled=true",
        "prometheusRule.enabled=true",
        "dashboard.enabled=true",
        "prometheusRule.labels.release=prometheus",
        "audit.enabled=true",
    ],
    &[
        "customWebhooks[0].name=own.example.com",
        "customWebhooks[0].rules[0].apiGroups[0]=",
        "customWebhooks[0].rules[0].apiVersions[0]=v1",
        "customWebhooks[0].rules[0].operations[0]=CREATE",
        "customWebhooks[0].rules[0].resources[0]=pods/ephemeralcontainers",
        "customWebhooks[0].rules[0].scope=Namespaced",
        "customWebhooks[0].clientConfig.url=https://injector.example.com:8443/linkerd",
        "customWebhooks[0].timeoutSeconds=5",
        "customWebhooks[0].matchConditions[0].name=own",
        "customWebhooks[0].matchConditions[0].expression=object.metadata.name != 'x'",
        "webhookDefaults.failurePolicy=Fail",
        "webhookAnnotations.a=b",
    ],
];

/// CRDs of the Prometheus operator, with the parts that the chart uses.
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

pub(super) async fn same_as_helm(it: &Installed) -> Outcome<String> {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/helm/injectd");
    let mut objects = 0;
    for (row, set) in MATRIX.iter().enumerate() {
        let by_helm = by_helm(chart.clone(), set).await?;
        let by_injectd = by_key(it.objects(&arguments(set)).await?);
        let names = |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<Vec<_>>();
        expect(format!("the objects of row {row}"), names(&by_helm), names(&by_injectd))?;
        for (key, object) in &by_helm {
            expect_same(&format!("row {row}: {key}"), object, &by_injectd[key])?;
        }
        objects += by_helm.len();
    }
    Ok(format!("{} rows of values, {objects} objects", MATRIX.len()))
}

fn arguments<'a>(set: &[&'a str]) -> Vec<&'a str> {
    let set = set.iter().flat_map(|it| ["--set", *it]);
    ["-n", NAMESPACE].into_iter().chain(set).collect()
}

async fn by_helm(chart: PathBuf, set: &[&str]) -> Outcome<BTreeMap<String, Value>> {
    let mut command = Command::new("helm");
    command.args(["template", "injectd"]).arg(chart).args(["-n", NAMESPACE]);
    command.args(["--kube-version", "1.36"]).args(set.iter().flat_map(|it| ["--set", *it]));
    let output = spawn_blocking(move || command.output()).await?;
    let output = output.map_err(|error| skipped(format!("cannot run helm: {error}")))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let text = String::from_utf8(output.stdout)?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let is_hook = |it: &Value| it["metadata"]["annotations"]["helm.sh/hook"].is_string();
    Ok(by_key(objects.into_iter().filter(|it| it.is_object() && !is_hook(it)).collect()))
}

/// Objects by kind and name, without the label that names who rendered them.
fn by_key(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let keyed = objects.into_iter().map(|mut object| {
        let labels = object["metadata"]["labels"].as_object_mut();
        labels.map(|labels| labels.remove("app.kubernetes.io/managed-by"));
        let key = format!("{} {}", object["kind"], object["metadata"]["name"]);
        (key, object)
    });
    keyed.collect()
}

pub(super) async fn accepted(it: &Installed) -> Outcome<String> {
    let api = it.api();
    for (kind, plural) in
        [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")]
    {
        api.apply(&crd(kind, plural), "e2e").await?;
        let path = format!("/apis/monitoring.coreos.com/v1/{plural}");
        injectd_e2e::expect::eventually("the kind is served", async || {
            api.get(&path).await?.ok().map(drop)
        })
        .await?;
    }
    let namespace = "deploy-rendered";
    for name in [namespace, "istio-of-rendered"] {
        let made = injectd_e2e::objects::namespace(name, &json!({}), &json!({}));
        api.create(None, &made).await?.created()?;
    }
    let mut applied = 0;
    let mut webhooks = Vec::new();
    for set in MATRIX {
        let mut arguments = arguments(set);
        arguments[1] = namespace;
        arguments.extend(["--set", "istio.namespace=istio-of-rendered"]);
        if set.iter().any(|it| it.starts_with("certificates.caBundle")) {
            // The API server reads it.
            arguments.extend(["--set", "certificates.caBundle="]);
        }
        for object in it.objects(&arguments).await? {
            if object["kind"] == "MutatingWebhookConfiguration" {
                webhooks.push(object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            }
            let mut object = object;
            // It must not call anyone: no namespace has the label.
            let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
            for webhook in webhooks.into_iter().flatten() {
                webhook["namespaceSelector"] = json!({"matchLabels": {"e2e": "nobody"}});
            }
            api.apply(&object, "e2e").await?;
            applied += 1;
        }
    }
    for name in webhooks {
        api.delete(&format!("{}/{name}", injectd_e2e::api::WEBHOOK_CONFIGURATIONS)).await?;
    }
    for name in [namespace, "istio-of-rendered"] {
        api.delete(&format!("{}/{name}", injectd_e2e::api::NAMESPACES)).await?;
    }
    Ok(format!("{applied} objects"))
}

/// `manifest check --live`, with the certificate that a replica serves.
pub(super) async fn checked(it: &Installed) -> Outcome<String> {
    let check = async || {
        let mut command = Command::new(&it.lab.binary);
        command.args(["manifest", "check", "--live", "-o", "json", "--fail-on", "danger"]);
        command.arg("--kubeconfig").arg(&it.lab.kubeconfig);
        command.arg("--connect").arg(it.replicas[0].webhook.to_string());
        let output = spawn_blocking(move || command.output()).await??;
        let report: Value = serde_json::from_slice(&output.stdout)?;
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let of_ca = findings.into_iter().filter(|it| it["field"] == "clientConfig.caBundle");
        let problems = of_ca.map(|it| it["problem"].as_str().unwrap_or_default().to_owned());
        Ok::<_, injectd_e2e::expect::NotPassed>((
            output.status.code(),
            problems.collect::<Vec<_>>(),
        ))
    };
    // CAs that live two minutes expire within a week: one finding for each of three entries.
    let (code, problems) = check().await?;
    let expiring = vec!["its last CA ends in 0 h"; 3];
    expect("the findings", (Some(3), expiring), (code, problems.iter().map(|it| &**it).collect()))?;
    Ok(format!("{} findings", problems.len()))
}
