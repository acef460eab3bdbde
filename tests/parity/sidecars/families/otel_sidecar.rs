//! The OpenTelemetry operator's collectors: a template for each `OpenTelemetryCollector` of mode `sidecar`.

use serde_json::{Value, json};

use super::{
    super::{case::Case, example::Example},
    constant, flag, items, text,
};

const RECEIVERS: &str = "receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: 0.0.0.0:4317\n      \
     http:\n        endpoint: 0.0.0.0:4318\nexporters:\n  debug: {}\n";
const PIPELINES: &str = "  pipelines:\n    traces:\n      exporters:\n        - debug\n      receivers:\n        - otlp\n";
/// The longest value of a label.
const LONGEST: usize = 63;

pub(super) fn fit(case: &Case, example: &Example) -> Vec<Value> {
    let sidecars: Vec<_> = collectors(case).collect();
    if sidecars.is_empty() {
        // The annotation `false` still takes containers out.
        return vec![template(
            case,
            example.clone(),
            &json!({"metadata": {"name": "", "namespace": ""}}),
        )];
    }
    sidecars.into_iter().map(|collector| template(case, example.clone(), collector)).collect()
}

fn collectors(case: &Case) -> impl Iterator<Item = &Value> {
    case.of_kind("OpenTelemetryCollector").filter(|object| object["spec"]["mode"] == "sidecar")
}

fn template(case: &Case, mut example: Example, collector: &Value) -> Value {
    let (metadata, spec) = (&collector["metadata"], &collector["spec"]);
    let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
    let in_namespace = collectors(case).filter(|other| other["metadata"]["namespace"] == namespace);
    let native = flag(&case.config["internal"], "nativeSidecarSupport");
    example.name(&format!("{namespace}-{name}"));
    example.set(json!({"namespace": namespace, "name": name, "isOnly": in_namespace.count() == 1,
        "isNative": native, "label": label(namespace, name)}));
    *example.variable("collector") = container(&case.config, spec);
    if !items(&spec["initContainers"]).is_empty() {
        let step = json!({"name": "prepared", "when": "!variables.isRemoved",
            "overlay": {"spec": {"initContainers": constant(&spec["initContainers"])}}});
        example.insert_step("native", step);
    }
    let volumes = volumes(spec);
    if !volumes.is_empty() {
        let step = json!({"name": "volumes", "when": "!variables.isRemoved",
            "overlay": {"spec": {"volumes": volumes}}});
        example.insert_step("label", step);
    }
    example.into_template()
}

/// `NAMESPACE.NAME`, cut at the end of the namespace.
fn label(namespace: &str, name: &str) -> String {
    let room = LONGEST.saturating_sub(name.len() + 1).max(1);
    let mut label = format!("{}.{name}", &namespace[..namespace.len().min(room)]);
    label.truncate(LONGEST);
    label
}

fn container(config: &Value, spec: &Value) -> Value {
    let image =
        if text(spec, "image").is_empty() { &config["collectorImage"] } else { &spec["image"] };
    let mut args: Vec<_> = spec["args"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("--{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    args.sort();
    args.push("--config=env:OTEL_CONFIG".to_owned());
    let mut container =
        json!({"image": image, "args": args, "env": env(spec), "ports": ports(spec)});
    for field in ["imagePullPolicy", "envFrom", "resources", "securityContext", "lifecycle"] {
        if !spec[field].is_null() {
            container[field] = constant(&spec[field]);
        }
    }
    let mut mounts = items(&spec["volumeMounts"]).to_vec();
    for map in items(&spec["configmaps"]) {
        let (name, path) = (text(map, "name"), text(map, "mountpath").trim_matches('/'));
        mounts.push(json!({"name": format!("configmap-{name}"),
            "mountPath": format!("/var/conf/{path}/configmap-{name}")}));
    }
    if !mounts.is_empty() {
        container["volumeMounts"] = mounts.into();
    }
    if checks_health(spec) {
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            container[probe] = json!({"httpGet": {"path": "/", "port": 13133}});
            for (field, value) in spec[probe].as_object().into_iter().flatten() {
                container[probe][field] = value.clone();
            }
        }
    }
    container
}

fn checks_health(spec: &Value) -> bool {
    !spec["config"]["extensions"]["health_check"].is_null()
}

fn volumes(spec: &Value) -> Vec<Value> {
    let mut volumes = items(&spec["volumes"]).to_vec();
    for map in items(&spec["configmaps"]) {
        let name = text(map, "name");
        volumes.push(json!({"name": format!("configmap-{name}"), "configMap": {"name": name}}));
    }
    volumes
}

fn env(spec: &Value) -> Vec<Value> {
    let mut env = items(&constant(&spec["env"])).to_vec();
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let limit = |resource: &str| {
        json!({"resourceFieldRef":
            {"containerName": "otc-container", "divisor": "0", "resource": resource}})
    };
    let attributes_are_set =
        items(&spec["env"]).iter().any(|entry| entry["name"] == "OTEL_RESOURCE_ATTRIBUTES");
    let extensions = "extensions:\n  health_check:\n    endpoint: 0.0.0.0:13133\n";
    let configuration = if checks_health(spec) {
        format!("{RECEIVERS}{extensions}service:\n  extensions:\n    - health_check\n{PIPELINES}")
    } else {
        format!("{RECEIVERS}service:\n{PIPELINES}")
    };
    let own = [
        json!({"name": "POD_NAME", "valueFrom": field("metadata.name")}),
        json!({"name": "GOMEMLIMIT", "valueFrom": limit("limits.memory")}),
        json!({"name": "GOMAXPROCS", "valueFrom": limit("limits.cpu")}),
        json!({"name": "OTEL_CONFIG", "value": configuration}),
    ];
    let attributes = [
        json!({"name": "OTEL_RESOURCE_ATTRIBUTES_POD_NAME", "valueFrom": field("metadata.name")}),
        json!({"name": "OTEL_RESOURCE_ATTRIBUTES_POD_UID", "valueFrom": field("metadata.uid")}),
        json!({"name": "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME", "valueFrom": field("spec.nodeName")}),
        json!({"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "${variables.attributes}"}),
    ];
    let attributes = attributes.into_iter().filter(|_| !attributes_are_set);
    for entry in own.into_iter().chain(attributes) {
        if env.iter().all(|known| known["name"] != entry["name"]) {
            env.push(entry);
        }
    }
    env
}

/// Ports of the configuration and of the resource, by name. Of one number the resource's counts; of one
/// name the resource's keeps it.
fn ports(spec: &Value) -> Vec<Value> {
    let own: Vec<_> = items(&spec["ports"])
        .iter()
        .map(|port| {
            let mut entry = json!({"name": port["name"], "containerPort": port["port"]});
            if !port["protocol"].is_null() {
                entry["protocol"] = port["protocol"].clone();
            }
            entry
        })
        .collect();
    let mut found = vec![
        json!({"name": "otlp-grpc", "containerPort": 4317}),
        json!({"name": "otlp-http", "containerPort": 4318}),
        json!({"name": "metrics", "containerPort": 8888, "protocol": "TCP"}),
    ];
    if checks_health(spec) {
        found.push(json!({"name": "health-check", "containerPort": 13133}));
    }
    found.retain(|port| own.iter().all(|known| known["containerPort"] != port["containerPort"]));
    for port in &mut found {
        if own.iter().any(|known| known["name"] == port["name"]) {
            port["name"] = format!("port-{}", port["containerPort"]).into();
        }
    }
    found.extend(own);
    found.sort_by_key(|port| text(port, "name").to_owned());
    found
}
