//! A template of the user's own, and objects that templates see: `ProxyConfig`.

use std::process::Command;

use injectd_harness::{
    expect::{Outcome, eventually, expect, expect_contains, failed},
    process::run,
};
use serde_json::{Value, json};

use super::{
    deployed::Istio,
    pods::{annotated, annotation, proxy},
    replicas::wait_for_patch,
    with_istio, with_istio_alone,
};

const OWN: &str = "e2e/own";
const DEFINITION: &str = "proxyconfigs.networking.istio.io";

/// The first characters of the SHA-256 of `TRIE-FIRST` and `TRIE-SECOND`.
const DIGESTS: [&str; 2] = ["15a3216b4118", "90f19128e982"];

#[tokio::test]
async fn a_users_own_template_with_sprig_functions_changes_while_injectd_serves() -> Outcome {
    with_istio(async |istio| own(istio).await).await
}

async fn own(it: &Istio<'_>) -> Outcome {
    let pod = annotated("inject.istio.io/templates", "sidecar,own");
    let found = it.pod("enabled", &pod).await?;
    expect(OWN, Some(DIGESTS[0]), annotation(&found, OWN))?;
    let mut changed = it.revision("default")?.clone();
    changed.config = changed.config.replace("FIRST", "SECOND");
    it.configure(&changed).await?;
    wait_for_patch(it, "default", &pod, DIGESTS[1], true).await?;
    let found = it.pod("enabled", &pod).await?;
    expect(OWN, Some(DIGESTS[1]), annotation(&found, OWN))?;
    it.configure(it.revision("default")?).await?;
    wait_for_patch(it, "default", &pod, DIGESTS[0], true).await
}

#[tokio::test]
async fn a_proxy_config_is_in_the_next_pod_also_if_its_kind_did_not_exist_at_the_start() -> Outcome
{
    with_istio_alone(async |istio| {
        // The definition that a scenario before has deleted may still be there.
        eventually("the kind is defined", async || {
            istio.it.create_in_cluster(&definition()).await.map(drop)
        })
        .await?;
        proxy_config(istio).await
    })
    .await
}

async fn proxy_config(it: &Istio<'_>) -> Outcome {
    let object = json!({
        "apiVersion": "networking.istio.io/v1beta1",
        "kind": "ProxyConfig",
        "metadata": {"name": "all"},
        "spec": {"concurrency": 7},
    });
    eventually("the API server knows ProxyConfigs", async || it.create(&object).await.map(drop))
        .await?;
    eventually("the ProxyConfig takes effect", async || {
        let pod = it.pod("enabled", &annotated("e2e/any", "any")).await?;
        let config =
            proxy(&pod).and_then(|container| container["env"].as_array()).into_iter().flatten();
        let config = config
            .filter(|variable| variable["name"] == "PROXY_CONFIG")
            .find_map(|variable| variable["value"].as_str());
        let config = config.ok_or_else(|| failed("no PROXY_CONFIG"))?;
        expect_contains("PROXY_CONFIG", r#""concurrency":7"#, config)
    })
    .await
}

#[tokio::test]
async fn manifest_check_names_what_the_templates_of_a_cluster_paste_without_quotes() -> Outcome {
    with_istio(async |istio| pasted(istio).await).await
}

/// The template of [`Revision::small`] has quotes of its own around the image, which a value may end.
///
/// [`Revision::small`]: injectd_harness::istio::Revision::small
async fn pasted(it: &Istio<'_>) -> Outcome {
    const IMAGE: &str = "sidecar.istio.io/proxyImage";
    let rows = |config_map: &str| {
        [IMAGE, "sidecar.istio.io/proxyImageType"].map(|key| {
            json!({"namespace": it.control_plane, "configMap": config_map, "template": "sidecar",
                "value": format!("annotation {key}"), "lines": [13]})
        })
    };
    let canary = rows("istio-sidecar-injector-canary");
    let both = [canary.clone(), rows("istio-sidecar-injector")].concat();
    expect("what is pasted", both, unquoted(it).await?)?;
    let mut mended = it.revision("default")?.clone();
    let pasted = format!("\"{{{{ annotation .ObjectMeta `{IMAGE}` .ProxyImage }}}}\"");
    let quoted = format!("{{{{ annotation .ObjectMeta `{IMAGE}` .ProxyImage | quote }}}}");
    expect_contains("the template", &pasted, &mended.config)?;
    mended.config = mended.config.replace(&pasted, &quoted);
    it.configure(&mended).await?;
    expect("what is pasted after the change", canary.to_vec(), unquoted(it).await?)
}

/// What `manifest check --live` says of the scenario's `ConfigMaps`. Other scenarios have some, too.
async fn unquoted(it: &Istio<'_>) -> Outcome<Vec<Value>> {
    let mut command = Command::new(&it.lab.binary);
    command.args(["manifest", "check", "--live", "-o", "json", "--fail-on", "none"]);
    command.arg("--kubeconfig").arg(&it.lab.kubeconfig);
    let report: Value = serde_json::from_str(&run(command).await?.with_code(0)?)?;
    let mut rows: Vec<_> = report["unquoted"].as_array().into_iter().flatten().cloned().collect();
    rows.retain(|row| row["namespace"] == it.control_plane.as_str());
    rows.sort_by_key(|row| std::cmp::Reverse(row["configMap"].to_string()));
    Ok(rows)
}

/// As much of Istio's definition as the API server needs.
fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1beta1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "networking.istio.io",
            "names": {"kind": "ProxyConfig", "listKind": "ProxyConfigList",
                "plural": "proxyconfigs", "singular": "proxyconfig"},
            "scope": "Namespaced",
            "versions": [version],
        },
    })
}
