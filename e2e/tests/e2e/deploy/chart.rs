//! The chart: rendered by Helm and by injectd, and accepted by the API server.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use injectd_harness::{
    api::{Api, NAMESPACES, WEBHOOK_CONFIGURATIONS, collection},
    expect::{
        NotPassed, Outcome, eventually, expect, expect_contains, expect_same, failed, skipped,
    },
    lab::Lab,
    objects,
};
use injectd_webhooks::check::{Finding, Severity, check};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::installed::{CONFIGURATIONS, Installed, NAMESPACE};

/// Values of the matrix: each row is rendered by both.
const MATRIX: [&[&str]; 11] = [
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
        "networkPolicy.webhookFrom[0].ipBlock.cidr=10.0.0.0/24",
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
        "customWebhooks[0].rules[0].operations[0]=UPDATE",
        "customWebhooks[0].rules[0].resources[0]=pods/ephemeralcontainers",
        "customWebhooks[0].rules[0].scope=Namespaced",
        "customWebhooks[0].clientConfig.url=https://injector.example.com:8443/linkerd",
        "customWebhooks[0].timeoutSeconds=5",
        "customWebhooks[0].matchConditions[0].name=own",
        "customWebhooks[0].matchConditions[0].expression=object.metadata.name != 'x'",
        "webhookDefaults.failurePolicy=Fail",
        "webhookAnnotations.a=b",
    ],
    // Fields of all webhooks and of one.
    &[
        "istio.enabled=true",
        "istio.tags[0].tag=prod",
        "istio.webhookOverrides.name=own.example.com",
        "istio.webhookOverrides.objectSelector.matchExpressions[0].key=app",
        "istio.webhookOverrides.objectSelector.matchExpressions[0].operator=Exists",
        "webhookDefaults.rules[0].apiGroups[0]=*",
        "webhookDefaults.rules[0].apiVersions[0]=*",
        "webhookDefaults.rules[0].operations[0]=*",
        "webhookDefaults.rules[0].resources[0]=*/*",
        "webhookDefaults.rules[0].scope=*",
        "webhookDefaults.clientConfig.url=https://injector.example.com/",
        "linkerd.webhookOverrides.clientConfig.service.path=/own",
        "linkerd.webhookOverrides.reinvocationPolicy=IfNeeded",
        "linkerd.webhookOverrides.matchPolicy=Exact",
    ],
    // What OpenShift, restricted networks and gRPC need.
    &[
        "istio.enabled=true",
        "istio.revisions[0]=canary",
        "istio.env.SHARED_MESH_CONFIG=shared",
        "runAsUser=null",
        "runAsGroup=null",
        "resources=null",
        "image.pullPolicy=null",
        "podDisruptionBudget.maxUnavailable=null",
        "podDisruptionBudget.minAvailable=1",
        "podDisruptionBudget.unhealthyPodEvictionPolicy=AlwaysAllow",
        "networkPolicy.enabled=true",
        "networkPolicy.webhookFrom[0].ipBlock.cidr=10.0.0.0/24",
        "networkPolicy.metricsFrom[0].podSelector.matchLabels.app=prometheus",
        "extraArgs[0]=--grpc-addr=:8444",
        "extraEnv[0].name=A",
        "extraEnv[0].value=b",
    ],
    // Labels that would break the selector.
    &[
        "podLabels.app\\.kubernetes\\.io/name=other",
        "podAnnotations.a=b",
        "image.pullSecrets[0].name=registry",
        "nodeSelector.pool=mesh",
        "tolerations[0].operator=Exists",
        "serviceAccount.name=own",
    ],
];

/// The module of the Prometheus operator, with its CRDs.
const OPERATOR: &str = "github.com/prometheus-operator/prometheus-operator@v0.85.0";
/// Kinds of the operator that the chart uses, with their plurals.
const OPERATOR_KINDS: [(&str, &str); 2] =
    [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")];
/// No webhook of the matrix must call anyone: no namespace has the label.
const NOBODY: &str = "webhookDefaults.namespaceSelector.matchLabels.e2e=nobody";

/// The CRDs of the operator, from the proxy of Go's modules.
fn operator_crds() -> Outcome<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new("go");
    let output = command.args(["mod", "download", "-json", OPERATOR]).current_dir(&folder).output();
    let module: Value = serde_json::from_slice(&output?.stdout)?;
    let folder = module["Dir"].as_str().ok_or_else(|| failed(module["Error"].to_string()))?;
    let folder = Path::new(folder).join("example/prometheus-operator-crd");
    let crd = |(_, plural)| {
        let file = folder.join(format!("monitoring.coreos.com_{plural}.yaml"));
        Ok(serde_saphyr::from_str(&fs::read_to_string(file)?)?)
    };
    OPERATOR_KINDS.into_iter().map(crd).collect()
}

/// A CRD that accepts any `spec`, in place of one of the operator.
fn crd((kind, plural): (&str, &str)) -> Value {
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
async fn apply_crds(api: &Api) -> Outcome<String> {
    let (crds, origin) = match spawn_blocking(operator_crds).await? {
        Ok(crds) => (crds, format!("CRDs of {OPERATOR}")),
        Err(why) => {
            let crds = OPERATOR_KINDS.into_iter().map(crd).collect();
            (crds, format!("CRDs without a schema, since those of {OPERATOR} are missing ({why})"))
        }
    };
    for crd in &crds {
        api.apply(crd, "e2e").await?;
    }
    for (_, plural) in OPERATOR_KINDS {
        let path = format!("/apis/monitoring.coreos.com/v1/{plural}");
        eventually("the kind is served", async || api.get(&path).await?.ok().map(drop)).await?;
    }
    Ok(origin)
}

pub(super) async fn same_as_helm(it: &Installed) -> Outcome<String> {
    let mut objects = 0;
    for (row, set) in MATRIX.iter().enumerate() {
        let (by_helm, tests) = by_helm(it, set).await?;
        let by_injectd = by_key(it.objects(&arguments(set)).await?);
        let names = |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<Vec<_>>();
        expect(format!("the objects of row {row}"), names(&by_helm), names(&by_injectd))?;
        for (key, object) in &by_helm {
            expect_same(&format!("row {row}: {key}"), object, &by_injectd[key])?;
        }
        for test in &tests {
            expect_test(it, test).await?;
        }
        expect(format!("the findings of row {row}"), Vec::<String>::new(), findings(&by_helm))?;
        objects += by_helm.len() + tests.len();
    }
    Ok(format!("{} rows of values, {objects} objects", MATRIX.len()))
}

/// What `manifest check` finds in the objects of a row.
fn findings(objects: &BTreeMap<String, Value>) -> Vec<String> {
    let all = check(objects.values()).into_iter();
    // A row asks for a webhook for every object.
    let is_wanted = |it: &Finding| it.severity == Severity::Suggestion && it.field == "rules";
    all.filter(|it| !is_wanted(it)).map(|it| format!("{}: {}", it.field, it.problem)).collect()
}

fn arguments<'a>(set: &[&'a str]) -> Vec<&'a str> {
    let set = set.iter().flat_map(|it| ["--set", *it]);
    ["-n", NAMESPACE].into_iter().chain(set).collect()
}

/// Runs Helm; the inner error is what it prints.
async fn helm(arguments: &[&str], lab: &Lab) -> Outcome<Result<String, String>> {
    let mut command = Command::new("helm");
    command.args(arguments).env("KUBECONFIG", &lab.kubeconfig);
    let output = spawn_blocking(move || command.output()).await?;
    let output = output.map_err(|error| skipped(format!("cannot run helm: {error}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let is_success = output.status.success();
    Ok(if is_success { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) })
}

/// The objects of Helm, and those of `helm test`, after `helm lint`.
async fn by_helm(it: &Installed, set: &[&str]) -> Outcome<(BTreeMap<String, Value>, Vec<Value>)> {
    let chart = chart();
    let values: Vec<_> = set.iter().flat_map(|it| ["--set", *it]).collect();
    let common = [&["-n", NAMESPACE, "--kube-version", "1.36"], &*values].concat();
    let lint = [&["lint", "--strict", &chart], &*common].concat();
    helm(&lint, &it.lab).await?.map_err(failed)?;
    let template = [&["template", "injectd", &chart], &*common].concat();
    let text = helm(&template, &it.lab).await?.map_err(failed)?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let objects = objects.into_iter().filter(Value::is_object);
    let is_hook = |it: &Value| it["metadata"]["annotations"]["helm.sh/hook"].is_string();
    let (hooks, objects): (Vec<_>, Vec<_>) = objects.partition(is_hook);
    Ok((by_key(objects), hooks))
}

/// The pod of `helm test`: its probes can be run, it needs no permission, and sees no key.
async fn expect_test(it: &Installed, pod: &Value) -> Outcome {
    let spec = &pod["spec"];
    expect("a token", Some(false), spec["automountServiceAccountToken"].as_bool())?;
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        let source = if volume["secret"].is_object() { "secret" } else { "downwardAPI" };
        let items = volume[source]["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let files: Vec<_> = items.iter().map(|item| item["path"].as_str()).collect();
        expect("the files of the test", vec![Some("ca.crt")], files)?;
    }
    let containers = spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    for container in containers {
        let mut command = Command::new(&it.lab.binary);
        let arguments = container["args"].as_array().into_iter().flatten();
        command.args(arguments.filter_map(Value::as_str)).arg("--timeout=1s");
        let output = spawn_blocking(move || command.output()).await??;
        // There is no server; wrong arguments would be 64.
        let text = String::from_utf8_lossy(&output.stderr);
        expect(format!("the exit code of a probe ({text})"), Some(1), output.status.code())?;
    }
    expect("whether a mesh is probed", false, containers.is_empty())
}

fn chart() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/helm/injectd");
    folder.display().to_string()
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
    let crds = apply_crds(api).await?;
    let namespace = "deploy-rendered";
    for name in [namespace, "istio-of-rendered"] {
        let made = objects::namespace(name, &json!({}), &json!({}));
        api.create(None, &made).await?.created()?;
    }
    let mut applied = 0;
    let mut webhooks = Vec::new();
    for set in MATRIX {
        let mut arguments = arguments(set);
        arguments[1] = namespace;
        arguments.extend(["--set", "istio.namespace=istio-of-rendered", "--set", NOBODY]);
        if set.iter().any(|it| it.starts_with("certificates.caBundle")) {
            // The API server reads it.
            arguments.extend(["--set", "certificates.caBundle="]);
        }
        for object in it.objects(&arguments).await? {
            if object["kind"] == "MutatingWebhookConfiguration" {
                webhooks.push(object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            }
            api.apply(&object, "e2e").await?;
            applied += 1;
        }
    }
    for name in webhooks {
        api.delete(&format!("{WEBHOOK_CONFIGURATIONS}/{name}")).await?;
    }
    // Its address may be the one that the release gets.
    api.delete(&format!("{}/injectd", collection("v1", "Service", Some(namespace)))).await?;
    for name in [namespace, "istio-of-rendered"] {
        api.delete(&format!("{NAMESPACES}/{name}")).await?;
    }
    let by_helm = by_helm_in_a_cluster(it).await.or_else(|why| match why {
        NotPassed::Skipped(why) => Ok(why),
        failed @ NotPassed::Failed(_) => Err(failed),
    })?;
    Ok(format!("{applied} objects; {crds}; {by_helm}"))
}

/// Installs, upgrades and uninstalls a release. Another one of its name is refused, since webhook
/// configurations have no namespace.
async fn by_helm_in_a_cluster(it: &Installed) -> Outcome<String> {
    let chart = chart();
    let helm = async |command: &[&str], namespace: &str, set: &[&str]| {
        let values: Vec<_> = set.iter().chain(&[NOBODY]).flat_map(|it| ["--set", *it]).collect();
        let place = ["injectd", &*chart, "-n", namespace];
        helm(&[command, &place, &values].concat(), &it.lab).await
    };
    let install = ["install", "--create-namespace"];
    let (first, second) = ("deploy-helm", "deploy-helm-2");
    let risky = ["webhookDefaults.failurePolicy=Fail", "replicas=1"];
    let notes = helm(&install, first, &risky).await?.map_err(failed)?;
    for line in [
        "helm test injectd -n deploy-helm",
        "failurePolicy is Fail",
        "fewer than two",
        "Open: no NetworkPolicy is installed",
    ] {
        expect_contains("the notes", line, &notes)?;
    }
    let refusal = helm(&install, second, &[]).await?.err().unwrap_or_default();
    expect_contains("the refusal of a second release", "injectd-linkerd", &refusal)?;
    let both = ["istio.enabled=true", "istio.tags[0].tag=deploy-helm", "replicas=2"];
    let both = [&both[..], &["istio.namespace=deploy-helm"]].concat();
    let notes = helm(&["upgrade"], first, &both).await?.map_err(failed)?;
    expect("a warning in the notes", false, notes.contains("WARNING"))?;
    let uninstall = ["uninstall", "injectd", "-n", first];
    self::helm(&uninstall, &it.lab).await?.map_err(failed)?;
    for name in [first, second] {
        it.api().delete(&format!("{NAMESPACES}/{name}")).await?;
    }
    Ok("a release of Helm is installed, upgraded and uninstalled".to_owned())
}

/// `manifest check --live`, with the certificate that a replica serves. The cluster may have webhooks of
/// other suites.
pub(super) async fn checked(it: &Installed) -> Outcome<String> {
    let mut command = Command::new(&it.lab.binary);
    command.args(["manifest", "check", "--live", "-o", "json", "--fail-on", "danger"]);
    command.arg("--kubeconfig").arg(&it.lab.kubeconfig);
    let addr = it.replicas[0].webhook;
    command.arg("--connect").arg(format!("{NAMESPACE}/injectd={addr}"));
    let output = spawn_blocking(move || command.output()).await??;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_ca = findings.iter().filter(|it| {
        let of_release = CONFIGURATIONS.iter().any(|name| it["configuration"] == *name);
        of_release && it["field"] == "clientConfig.caBundle"
    });
    let problems: Vec<_> = of_ca.map(|it| it["problem"].as_str().unwrap_or_default()).collect();
    // A CA that lives two minutes begins an hour earlier, for clocks that are late: by its dates it is at
    // its end. One finding for each of three entries; none says that the served certificate is not
    // verified.
    let is_of_time = |problem: &&str| problem.contains("was not renewed");
    expect("the exit code", Some(3), output.status.code())?;
    expect("the findings of the caBundle", 3, problems.len())?;
    expect("those of CAs that expire", 3, problems.iter().filter(|it| is_of_time(it)).count())?;
    let notes = report["notes"].to_string();
    expect_contains("what cannot be seen", ".static.k8s.io", &notes)?;
    Ok(format!("{} findings", findings.len()))
}
