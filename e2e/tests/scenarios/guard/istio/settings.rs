//! An older release, and a configuration that decides by selectors.

use injectd_harness::expect::{Outcome, failed};
use serde_json::{Value, json};

use super::{
    super::case::Plan, CONFIG, INJECT, INJECTION, NamespaceRow, PodColumn, REVISION, files,
    labelled, of_namespace, plan, webhooks,
};

const SETTINGS: &str = "policy: disabled
neverInjectSelector: [{matchExpressions: [{key: job, operator: Exists}]}]
alwaysInjectSelector:
- matchLabels: {team: shop}
  matchExpressions: [{key: tier, operator: NotIn, values: [old, test]}]
- matchExpressions: [{key: env, operator: In, values: [prod]}, {key: x, operator: DoesNotExist}]";

const FLAGS: [&str; 8] = [
    "--mesh=istio",
    "--revision=default",
    "--istio-release=1.26.1",
    "--enable-namespaces-by-default",
    "--injector-policy=disabled",
    "--never-inject-selector=job",
    "--always-inject-selector=team=shop,tier notin (old, test)",
    "--always-inject-selector=env in (prod),!x",
];

/// The columns of [`TABLE`].
const POD: [PodColumn<'_>; 15] = [
    (&[], &[]),
    (&[("job", "")], &[]),
    (&[(INJECT, "Yes")], &[]),
    (&[(INJECT, "on")], &[]),
    (&[(INJECT, "true")], &[]),
    (&[("team", "shop")], &[]),
    (&[(INJECT, ""), ("team", "shop")], &[]),
    (&[("team", "shop"), ("tier", "old")], &[]),
    (&[("team", "shop"), ("tier", "new")], &[]),
    (&[("job", "a")], &[(INJECT, "TRUE")]),
    (&[("team", "shop"), ("job", "a")], &[]),
    (&[("team", "shop"), (INJECT, "1")], &[]),
    (&[("env", "prod"), ("x", "")], &[]),
    (&[("env", "test")], &[]),
    (&[("env", "prod")], &[(INJECT, "")]),
];

const TABLE: [NamespaceRow<'_>; 2] =
    [("bare", &[], "....xx..xx....x"), ("labelled", &[(INJECTION, "enabled")], "..xxxxx.xx....x")];

pub(in super::super) fn plan_with_settings(prefix: &str) -> Outcome<Plan> {
    let usual = plan(prefix)?;
    let mut default = webhooks("default.yaml")?;
    let entries = default["webhooks"].as_array_mut().ok_or_else(|| failed("no webhooks"))?;
    entries.push(by_default());
    let mut serve = usual.serve.clone();
    serve.push("--istio-release=1.26.1");
    Ok(Plan {
        flags: FLAGS.map(str::to_owned).into(),
        serve,
        files: files(CONFIG.replace("policy: enabled", SETTINGS)),
        namespaces: TABLE.iter().map(|row| labelled(prefix, row)).collect(),
        webhooks: vec![default],
        rows: TABLE.iter().flat_map(|row| of_namespace(prefix, row, &POD)).collect(),
        ..usual
    })
}

/// The entry of a chart with `enableNamespacesByDefault`.
fn by_default() -> Value {
    let absent = |key: &str| json!({"key": key, "operator": "DoesNotExist"});
    let system = ["kube-system", "kube-public", "kube-node-lease", "local-path-storage"];
    json!({
        "name": "auto.sidecar-injector.istio.io",
        "namespaceSelector": {"matchExpressions": [
            absent(INJECTION), absent(REVISION),
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn",
                "values": system},
        ]},
        "objectSelector": {"matchExpressions": [absent(INJECT), absent(REVISION)]},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["pods"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    })
}
