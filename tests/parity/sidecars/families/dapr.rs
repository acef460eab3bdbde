//! Dapr: the settings of its injector.

use serde_json::{Value, json};

use super::{
    super::{case::Case, example::Example},
    flag, items, text,
};

pub(super) fn fit(case: &Case, example: &Example) -> Vec<Value> {
    let mut example = example.clone();
    let config = &case.config;
    example.default("image", text(config, "SidecarImage"));
    let native = flag(config, "EnableNativeSidecar");
    example.default("native", if native { "true" } else { "false" });
    let scheduler = format!(
        "dapr-scheduler-server-a.{}.svc.{}:443",
        text(config, "ControlPlaneNamespace"),
        text(config, "KubeClusterDomain")
    );
    let plain_command: Vec<_> = items(&config["IgnoreEntrypointTolerations"])
        .iter()
        .map(|toleration| {
            ["key", "operator", "value", "effect"].map(|field| text(toleration, field)).join("|")
        })
        .collect();
    let id = |field: &str| config[field].as_i64().unwrap_or(-1);
    example.set(json!({
        "imagePullPolicy": config["ImagePullPolicy"],
        "operatorAddress": config["OperatorAddress"],
        "sentryAddress": config["SentryAddress"],
        "placementAddress": text(config, "PlacementAddress"),
        "actorsService": text(config, "ActorsService"),
        "remindersService": text(config, "RemindersService"),
        "schedulerAddress": if flag(config, "SchedulerEnabled") { &scheduler } else { "" },
        "controlPlaneNamespace": config["ControlPlaneNamespace"],
        "trustDomain": config["ControlPlaneTrustDomain"],
        "sentryId": config["SentrySPIFFEID"],
        "trustAnchors": config["TrustAnchors"],
        "hasToken": !flag(config, "DisableTokenVolume"),
        "mtls": flag(config, "MTLSEnabled"),
        "runAsNonRoot": flag(config, "RunAsNonRoot"),
        "runAsUser": id("RunAsUser"),
        "runAsGroup": id("RunAsGroup"),
        "readOnlyRootFilesystem": flag(config, "ReadOnlyRootFilesystem"),
        "dropAll": flag(config, "SidecarDropALLCapabilities"),
        "hostIp": flag(config, "EnableK8sDownwardAPIs"),
        "plainCommand": plain_command,
    }));
    vec![example.into_template()]
}
