//! Google: a template for each `AuthProxyWorkload` in the namespace of the pod.

mod merged;

use serde_json::{Map, Value, json};

use super::{
    super::{case::Case, example::Example},
    constant, flag, items, text,
};

/// The longest name of a container or volume.
const LONGEST: usize = 63;

pub(super) fn fit(case: &Case, example: &Example) -> Vec<Value> {
    let mut objects: Vec<_> = case
        .of_kind("AuthProxyWorkload")
        .filter(|object| {
            let metadata = &object["metadata"];
            metadata["namespace"] == case.namespace() && metadata["deletionTimestamp"].is_null()
        })
        .collect();
    objects.sort_by_key(|object| text(&object["metadata"], "name"));
    let templates = objects.into_iter();
    let templates: Vec<_> =
        templates.map(|object| template(&case.config, object, example.clone())).collect();
    if templates.len() > 1 { vec![merged::merged(templates)] } else { templates }
}

fn template(config: &Value, object: &Value, mut example: Example) -> Value {
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
    let container = &spec["authProxyContainer"];
    let own_image = text(container, "image");
    let image = if own_image.is_empty() { text(config, "defaultProxyImage") } else { own_image };
    example.name(name);
    let used = &mut example.spec("match")["conditions"];
    used[0]["expression"] = format!("object.metadata.namespace == '{namespace}'").into();
    used[1]["expression"] = workload(&spec["workloadSelector"]).into();
    let port = |value: &Value| value.as_u64().unwrap_or_default();
    example.set(json!({
        "image": image,
        "isNative": flag(config, "useSidecar"),
        "httpPort": port(&container["telemetry"]["httpPort"]),
        "adminPort": port(&container["adminServer"]["port"]),
        "instances": items(&spec["instances"]).iter().map(instance).collect::<Vec<_>>(),
        "sockets": sockets(name, items(&spec["instances"])),
    }));
    *example.variable("moreEnv") = more_env(config, container).into();
    let proxy = example.variable("proxy");
    for field in ["resources", "securityContext"] {
        if !container[field].is_null() {
            proxy[field] = constant(&container[field]);
        }
    }
    if !container["container"].is_null() {
        whole_container(&container["container"], &mut example);
    }
    example.replace("csql-shop-db", &short_name(&format!("{namespace}-{name}")));
    let mark = if own_image.is_empty() { text(config, "defaultProxyImage") } else { "" };
    let key = format!("cloudsql.cloud.google.com/{name}");
    let mark = json!({key: format!("{},{mark}", metadata["generation"])});
    example.step("application")["overlay"]["metadata"]["annotations"] = mark;
    example.into_template()
}

/// A container that the resource writes itself: its variables are those of the instances.
fn whole_container(container: &Value, example: &mut Example) {
    let mut own = constant(container);
    let fields = own.as_object_mut().expect("a container must be an object");
    fields.shift_remove("name");
    fields.shift_remove("env");
    let env = items(&constant(&container["env"])).to_vec();
    own["env"] = "${variables.moreEnv + variables.env}".into();
    *example.variable("moreEnv") = env.into();
    *example.variable("proxy") = own;
    *example.variable("quitUrl") = "''".into();
    let native = &mut example.step("native")["overlay"]["spec"]["initContainers"][0];
    native.as_object_mut().expect("a container must be an object").shift_remove("restartPolicy");
}

/// CEL for the selector of a resource: the pod, or one of its owners.
fn workload(selector: &Value) -> String {
    let (kind, name) = (text(selector, "kind"), text(selector, "name"));
    let labels = labels(&selector["selector"]);
    let conditions = |object: &str, labels_of: &str, kind_of: Option<&str>| {
        let mut all = Vec::new();
        if !kind.is_empty()
            && let Some(kind_of) = kind_of
        {
            all.push(format!("{kind_of} == '{kind}'"));
        }
        if !name.is_empty() {
            all.push(format!("{object} == '{name}'"));
        }
        all.extend(labels.iter().map(|label| label.replace("LABELS", labels_of)));
        if all.is_empty() { "true".to_owned() } else { all.join(" && ") }
    };
    let owner = conditions("o.name", "o.labels", Some("o.kind"));
    let of_owner = format!("owners.exists(o, {owner})");
    if kind.is_empty() || kind == "Pod" {
        let labels = "object.metadata.?labels.orValue({})";
        let pod = conditions("object.metadata.?name.orValue('')", labels, None);
        return if kind.is_empty() { format!("{pod} || {of_owner}") } else { pod };
    }
    of_owner
}

/// CEL for a label selector over `LABELS`.
fn labels(selector: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        all.push(format!("LABELS[?'{key}'].orValue('\\n') == '{value}'"));
    }
    for expression in items(&selector["matchExpressions"]) {
        let (key, values) = (text(expression, "key"), &expression["values"]);
        all.push(match text(expression, "operator") {
            "In" => format!("LABELS[?'{key}'].orValue('\\n') in {values}"),
            "NotIn" => format!("!(LABELS[?'{key}'].orValue('\\n') in {values})"),
            "Exists" => format!("'{key}' in LABELS"),
            _ => format!("!('{key}' in LABELS)"),
        });
    }
    all
}

fn instance(instance: &Value) -> Value {
    let options: Map<String, Value> =
        [("auto-iam-authn", "autoIAMAuthN"), ("private-ip", "privateIP"), ("psc", "psc")]
            .into_iter()
            .filter(|(_, field)| !instance[field].is_null())
            .map(|(option, field)| (option.to_owned(), instance[field].to_string().into()))
            .collect();
    json!({
        "connection": instance["connectionString"],
        "port": instance["port"].as_u64().unwrap_or_default(),
        "options": options,
        "hostEnv": text(instance, "hostEnvName"),
        "portEnv": text(instance, "portEnvName"),
        "socket": text(instance, "unixSocketPath"),
        "socketEnv": text(instance, "unixSocketPathEnvName"),
    })
}

/// The volume of each directory with sockets.
fn sockets(resource: &str, instances: &[Value]) -> Vec<Value> {
    let mut sockets: Vec<Value> = Vec::new();
    for instance in instances {
        let Some((directory, _)) = text(instance, "unixSocketPath").rsplit_once('/') else {
            continue;
        };
        if sockets.iter().all(|known| known["directory"] != directory) {
            let connection = text(instance, "connectionString").to_lowercase().replace(':', "-");
            let volume = short_name(&format!("{resource}-unix-{connection}"));
            sockets.push(json!({"volume": volume, "directory": directory}));
        }
    }
    sockets
}

/// `csql-` and a name; of a long one both ends, and its hash.
fn short_name(name: &str) -> String {
    const PREFIX: &str = "csql-";
    if PREFIX.len() + name.len() <= LONGEST {
        return format!("{PREFIX}{name}").to_lowercase();
    }
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let hash = format!("-{hash:x}");
    let half = (LONGEST - PREFIX.len() - hash.len()) / 2;
    format!("{PREFIX}{}{}{hash}", &name[..half], &name[name.len() - half..]).to_lowercase()
}

fn more_env(config: &Value, container: &Value) -> Vec<Value> {
    let (telemetry, admin) = (&container["telemetry"], &container["adminServer"]);
    let number = |value: &Value, unit: &str| match value.as_u64() {
        None | Some(0) => String::new(),
        Some(number) => format!("{number}{unit}"),
    };
    let truth = |is_true: bool| if is_true { "true".to_owned() } else { String::new() };
    let own = |field: &str| text(telemetry, field).to_owned();
    let has_prometheus = flag(telemetry, "prometheus") || !own("prometheusNamespace").is_empty();
    let chain = items(&container["authentication"]["impersonationChain"]).iter();
    let chain: Vec<_> = chain.filter_map(Value::as_str).collect();
    let apis = items(&admin["enableAPIs"]);
    let entries = [
        ("TELEMETRY_SAMPLE_RATE", number(&telemetry["telemetrySampleRate"], "")),
        ("DISABLE_TRACES", truth(flag(telemetry, "disableTraces"))),
        ("DISABLE_METRICS", truth(flag(telemetry, "disableMetrics"))),
        ("PROMETHEUS", truth(has_prometheus)),
        ("PROMETHEUS_NAMESPACE", own("prometheusNamespace")),
        ("TELEMETRY_PROJECT", own("telemetryProject")),
        ("TELEMETRY_PREFIX", own("telemetryPrefix")),
        ("QUOTA_PROJECT", own("quotaProject")),
        ("DEBUG", truth(apis.iter().any(|api| api == "Debug"))),
        ("IMPERSONATE_SERVICE_ACCOUNT", chain.join(",")),
        ("USER_AGENT", text(config, "userAgent").to_owned()),
        ("STRUCTURED_LOGS", truth(true)),
        ("QUIET", truth(flag(container, "quiet"))),
        ("LAZY_REFRESH", truth(container["refreshStrategy"] == "lazy")),
        ("SQLADMIN_API_ENDPOINT", text(container, "sqlAdminAPIEndpoint").to_owned()),
        ("MAX_CONNECTIONS", number(&container["maxConnections"], "")),
        ("MAX_SIGTERM_DELAY", number(&container["maxSigtermDelay"], "s")),
        ("MIN_SIGTERM_DELAY", number(&container["minSigtermDelay"], "s")),
    ];
    let entries = entries.into_iter().filter(|(_, value)| !value.is_empty());
    entries
        .map(|(name, value)| json!({"name": format!("CSQL_PROXY_{name}"), "value": value}))
        .collect()
}
