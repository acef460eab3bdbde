//! Azure: the flags of the webhook, and its environment.

use serde_json::{Value, json};

use super::{
    super::{case::Case, example::Example},
    text,
};

/// The first release of Kubernetes with native sidecars that the webhook makes.
const FIRST_NATIVE: u32 = 32;

pub(super) fn fit(case: &Case, example: &Example) -> Vec<Value> {
    let mut example = example.clone();
    let (config, env) = (&case.config, &case.config["env"]);
    example.default("tenant", text(env, "AZURE_TENANT_ID"));
    let audience = text(config, "audience");
    let audience = if audience.is_empty() { "api://AzureADTokenExchange" } else { audience };
    let minor = text(config, "kubernetesVersion").split('.').nth(1);
    let minor: u32 = minor.and_then(|minor| minor.parse().ok()).unwrap_or_default();
    let suffix = text(config, "customTokenEndpointAnnotationSuffix");
    example.set(json!({
        "audience": audience,
        "authorityHost": authority_host(text(env, "AZURE_ENVIRONMENT")),
        "logLevel": config["logLevel"],
        "proxyImage": env["PROXY_IMAGE"],
        "proxyInitImage": env["PROXY_INIT_IMAGE"],
        "isNative": minor >= FIRST_NATIVE,
        "endpoint": {
            "isConfigured": !suffix.is_empty(),
            "audience": text(config, "customTokenEndpointAudience"),
            "url": text(env, "AZURE_KUBERNETES_TOKEN_PROXY"),
            "sniName": text(env, "AZURE_KUBERNETES_SNI_NAME"),
            "caData": text(env, "AZURE_KUBERNETES_CA_DATA"),
            "caConfigMap": text(env, "AZURE_KUBERNETES_CA_CONFIGMAP_NAME"),
            "caSigner": text(env, "AZURE_KUBERNETES_CA_CTB_SIGNER_NAME"),
            "caSelector": text(env, "AZURE_KUBERNETES_CA_CTB_LABEL_SELECTOR"),
        },
    }));
    if !suffix.is_empty() {
        example.replace("/use-identity-binding", &format!("/use-{suffix}"));
    }
    vec![example.into_template()]
}

fn authority_host(environment: &str) -> &str {
    match environment.to_ascii_uppercase().as_str() {
        "AZURECHINACLOUD" => "https://login.chinacloudapi.cn/",
        "AZUREUSGOVERNMENTCLOUD" => "https://login.microsoftonline.us/",
        "AZUREGERMANCLOUD" => "https://login.microsoftonline.de/",
        _ => "https://login.microsoftonline.com/",
    }
}
