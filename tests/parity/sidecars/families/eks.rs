//! AWS: the flags of the webhook.

use serde_json::{Value, json};

use super::{
    super::{case::Case, example::Example},
    flag, items, text,
};

pub(super) fn fit(case: &Case, example: &Example) -> Vec<Value> {
    let mut example = example.clone();
    let config = &case.config;
    let prefix = format!("Annotation\":\"{}/", text(config, "annotationPrefix"));
    example.replace("Annotation\":\"eks.amazonaws.com/", &prefix);
    example.default("audience", text(config, "tokenAudience"));
    let regional = flag(config, "stsRegionalEndpoint");
    example.default("regional", if regional { "true" } else { "false" });
    example.set(json!({
        "tokenMountPath": config["tokenMountPath"],
        "tokenExpiration": config["tokenExpiration"],
        "region": config["awsDefaultRegion"],
    }));
    let compose = &config["ComposeRoleArn"];
    if flag(compose, "Enabled") {
        example.set(json!({"account": compose["AccountID"], "partition": compose["Partition"]}));
    }
    let credentials = &config["containerCredentials"];
    if credentials.is_object() {
        let identities = items(&credentials["identities"]).iter();
        let identities: Vec<_> = identities
            .map(|identity| {
                format!("{}/{}", text(identity, "namespace"), text(identity, "serviceAccount"))
            })
            .collect();
        let field = |name: &str| credentials[name].clone();
        example.set(json!({"identities": identities, "agent": {
            "audience": field("audience"), "volumeName": field("volumeName"),
            "mountPath": field("mountPath"), "tokenPath": field("tokenPath"),
            "fullUri": field("fullUri")}}));
    }
    vec![example.into_template()]
}
