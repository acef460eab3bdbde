//! Values of the chart, which Helm and injectd render and the API server takes.

/// Values of the matrix: each row is rendered by both.
pub(super) const MATRIX: [&[&str]; 15] = [
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
    // Sidecar templates.
    &["linkerd.enabled=false", "templates.enabled=true"],
    &[
        "istio.enabled=true",
        "templates.enabled=true",
        "templates.manageWebhook=false",
        "templates.namespacedTemplates=restricted",
        "templates.webhookOverrides.failurePolicy=Fail",
        "templates.webhookOverrides.objectSelector.matchLabels.app=web",
        "crds.keep=false",
    ],
    &[
        "linkerd.enabled=false",
        "templates.enabled=true",
        "templates.configMap=sidecars",
        "templates.webhookOverrides.name=own.example.com",
        "certificates.source=secret",
        "certificates.caBundle=PEM",
    ],
    &["templates.enabled=true", "templates.webhook=false", "crds.enabled=false"],
];

/// The arguments of `manifest install` for a row.
pub(super) fn arguments<'a>(namespace: &'a str, name: &'a str, set: &[&'a str]) -> Vec<&'a str> {
    let set = set.iter().flat_map(|setting| ["--set", *setting]);
    ["-n", namespace, "--name", name].into_iter().chain(set).collect()
}
