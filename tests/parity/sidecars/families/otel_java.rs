//! The OpenTelemetry operator's Java agent: a template for each `Instrumentation`.

use serde_json::{Value, json};

use super::{
    super::{case::Case, example::Example},
    constant, flag, items, text,
};

const AGENT: &str = "/otel-auto-instrumentation-java";

pub(super) fn fit(case: &Case, example: &Example) -> Vec<Value> {
    if !flag(&case.config, "enableJavaAutoInstrumentation") {
        return Vec::new();
    }
    let from_flags = json!({"metadata": {"name": "", "namespace": case.namespace()},
        "spec": case.config["instrumentation"]["spec"]});
    let objects: Vec<_> = if flag(&case.config, "enableInstrumentationCRDs") {
        case.of_kind("Instrumentation").collect()
    } else {
        vec![&from_flags]
    };
    let has_files = |object: &&&Value| certificates_exist(case, &object["spec"]["exporter"]["tls"]);
    let found = objects.iter().filter(has_files);
    found.map(|object| template(case, &objects, object, example.clone())).collect()
}

/// The webhook looks for the Secret and the ConfigMap.
fn certificates_exist(case: &Case, tls: &Value) -> bool {
    let exists = |kind: &str, field: &str| {
        text(tls, field).is_empty() || case.object(kind, text(tls, field)).is_some()
    };
    exists("Secret", "secretName") && exists("ConfigMap", "configMapName")
}

fn template(case: &Case, all: &[&Value], object: &Value, mut example: Example) -> Value {
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    let java = &spec["java"];
    let namespace = text(metadata, "namespace");
    let count = all.iter().filter(|other| other["metadata"]["namespace"] == namespace).count();
    example.name(&format!("{namespace}-{}", text(metadata, "name")));
    let attributes = &spec["resource"]["resourceAttributes"];
    let propagators: Vec<_> =
        items(&spec["propagators"]).iter().filter_map(Value::as_str).collect();
    example.set(json!({
        "namespace": namespace,
        "name": metadata["name"],
        "isOnly": count == 1,
        "isMulti": flag(&case.config, "enableMultiInstrumentation"),
        "usesLabels": flag(&spec["defaults"], "useLabelsForResourceAttributes"),
        "addsUids": flag(&spec["resource"], "addK8sUIDAttributes"),
        "propagators": propagators.join(","),
        "sampler": text(&spec["sampler"], "type"),
        "samplerArgument": text(&spec["sampler"], "argument"),
        "hasExtensions": !items(&java["extensions"]).is_empty(),
        "attributes": if attributes.is_null() { json!({}) } else { constant(attributes) },
    }));
    *example.variable("javaEnv") = items(&constant(&java["env"])).into();
    *example.variable("env") = items(&constant(&spec["env"])).into();
    let (env, certificates, volumes) = exporter(&spec["exporter"]);
    *example.variable("exporterEnv") = env.into();
    *example.variable("certificates") = certificates.into();
    if !volumes.is_empty() {
        let step = json!({"name": "certificates", "onConflict": "Keep",
            "overlay": {"spec": {"volumes": volumes}}});
        example.insert_step("volume", step);
    }
    let agent = example.variable("agent");
    agent["image"] = java["image"].clone();
    agent["resources"] =
        if java["resources"].is_null() { json!({}) } else { java["resources"].clone() };
    if !spec["imagePullPolicy"].is_null() {
        agent["imagePullPolicy"] = spec["imagePullPolicy"].clone();
    }
    if !spec["initContainerSecurityContext"].is_null() {
        agent["securityContext"] = spec["initContainerSecurityContext"].clone();
    }
    volume(java, &mut example);
    extensions(java, &mut example);
    example.into_template()
}

fn volume(java: &Value, example: &mut Example) {
    let volume = &mut example.step("volume")["overlay"]["spec"]["volumes"][0];
    let name = volume["name"].clone();
    if !java["volumeClaimTemplate"].is_null() {
        *volume = json!({"name": name,
            "ephemeral": {"volumeClaimTemplate": java["volumeClaimTemplate"]}});
    } else if !java["volumeLimitSize"].is_null() {
        volume["emptyDir"]["sizeLimit"] = java["volumeLimitSize"].clone();
    }
}

fn extensions(java: &Value, example: &mut Example) {
    let containers: Vec<_> = items(&java["extensions"])
        .iter()
        .enumerate()
        .map(|(index, extension)| {
            let from = format!("{}/.", text(extension, "dir"));
            json!({"name": format!("opentelemetry-auto-instrumentation-extension-{index}"),
                "image": extension["image"],
                "command": ["cp", "-r", from, format!("{AGENT}/extensions")],
                "$from": "${variables.agent}"})
        })
        .collect();
    let list = &mut example.step("agent")["overlay"]["spec"]["initContainers"];
    list.as_array_mut().expect("the step must have init containers").extend(containers);
}

/// Variables, mounts and volumes of the exporter.
fn exporter(exporter: &Value) -> (Vec<Value>, Vec<Value>, Vec<Value>) {
    let tls = &exporter["tls"];
    let (secret, map) = (text(tls, "secretName"), text(tls, "configMapName"));
    let directory = |kind: &str, name: &str| format!("/otel-auto-instrumentation-{kind}-{name}");
    let (mut mounts, mut volumes) = (Vec::new(), Vec::new());
    for (kind, name, source) in [
        ("secret", secret, json!({"secret": {"secretName": secret}})),
        ("configmap", map, json!({"configMap": {"name": map}})),
    ] {
        if name.is_empty() {
            continue;
        }
        let volume = format!("otel-auto-{kind}-{name}");
        let path = directory(kind, name);
        mounts.push(json!({"name": volume, "mountPath": path, "readOnly": true}));
        let mut source = source;
        source["name"] = volume.into();
        volumes.push(source);
    }
    let of_secret = directory("secret", secret);
    let of_authority = if map.is_empty() { of_secret.clone() } else { directory("configmap", map) };
    let file = |field: &str, directory: &str| match text(tls, field) {
        "" => String::new(),
        absolute if absolute.starts_with('/') => absolute.to_owned(),
        relative => format!("{directory}/{relative}"),
    };
    let env = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", text(exporter, "endpoint").to_owned()),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", file("ca_file", &of_authority)),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", file("cert_file", &of_secret)),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", file("key_file", &of_secret)),
    ];
    let env = env.into_iter().filter(|(_, value)| !value.is_empty());
    (env.map(|(name, value)| json!({"name": name, "value": value})).collect(), mounts, volumes)
}
