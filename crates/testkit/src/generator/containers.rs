//! Containers of pods: ports, probes, mounts, capabilities, existing sidecars.

use serde_json::{Map, Value, json};

use super::json_parts::{Fields, maybe, wrong_type};
use super::random::Random;
use super::shapes::PORT_NAMES;
use super::texts;

/// Where a service account's token is mounted.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A path that differs by one letter.
const OTHER_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount/";

/// Names and images of sidecars, and similar ones.
const SIDECARS: &[(&str, &str)] = &[
    ("linkerd-proxy", "x"),
    ("istio-proxy", "x"),
    ("linkerd-init", "x"),
    ("istio-init", "x"),
    ("x", "cr.l5d.io/linkerd/proxy:edge-1"),
    ("x", "cr.l5d.io/linkerd/proxy-init:v2"),
    ("x", "gcr.io/istio-release/proxyv2:1"),
    ("x", "gcr.io/istio-release/proxy_init:1"),
    ("x", "cr.l5d.io/linkerd/proxy"),
    ("x", "my/cr.l5d.io/linkerd/proxy:1"),
    ("linkerd-network-validator", "x"),
    ("linkerd-debug", "x"),
    ("Linkerd-Proxy", "x"),
];

/// A list of containers: missing, null, empty, or up to this many items.
pub(super) fn list(random: &mut Random, most: usize) -> Option<Value> {
    match random.below(30) {
        0 => Some(Value::Null),
        1 => Some(json!([])),
        2 => None,
        _ => {
            let containers = (0..random.between(1, most)).map(|_| container(random));
            Some(containers.collect())
        }
    }
}

/// A container.
pub(super) fn container(random: &mut Random) -> Value {
    if random.percent(1) {
        return Value::Null;
    }
    let mut fields = Map::new();
    let (name, image) = if random.percent(4) {
        random.pick(SIDECARS)
    } else {
        random.pick(&[("app", "app:1"), ("web", "nginx"), ("db", "reg:5000/db@sha256:00")])
    };
    fields.put("name", name);
    fields.put("image", image);
    maybe(random, &mut fields, "ports", 60, ports);
    maybe(random, &mut fields, "livenessProbe", 25, probe);
    maybe(random, &mut fields, "readinessProbe", 25, probe);
    maybe(random, &mut fields, "startupProbe", 10, probe);
    maybe(random, &mut fields, "volumeMounts", 60, mounts);
    maybe(random, &mut fields, "securityContext", 40, security_context);
    if random.percent(30) {
        fields.put("env", json!([{"name": "A", "value": "managedFields"}]));
        fields.put("resources", json!({"limits": {"cpu": "1"}}));
    }
    if random.percent(1) {
        let field = ["name", "ports", "livenessProbe", "volumeMounts", "securityContext"];
        fields.put(random.pick(&field), wrong_type(random));
    }
    fields.into()
}

fn ports(random: &mut Random) -> Value {
    let port = |random: &mut Random| {
        let mut fields = Map::new();
        if random.percent(60) {
            fields.put("name", name(random, PORT_NAMES));
        }
        if random.percent(97) {
            fields.put("containerPort", number(random));
        }
        if random.percent(40) {
            fields.put("protocol", random.pick(&["TCP", "UDP"]));
        }
        Value::from(fields)
    };
    (0..random.below(5)).map(|_| port(random)).collect()
}

/// A port's number; rarely an invalid one.
pub(super) fn number(random: &mut Random) -> Value {
    match random.below(1_000) {
        0 => json!("8080"),
        1 => json!(8080.0),
        2 => json!(2_147_483_648_i64),
        3..20 => Value::Null,
        20..40 => json!(-1),
        40..60 => json!(2_147_483_647),
        60..100 => json!(random.below(65_536)),
        _ => json!(random.pick(&[80, 8080, 3306, 5432, 25, 443, 9090, 10_000, 0, 65_535])),
    }
}

/// A port as probes and Services have it: a number or a name.
pub(super) fn number_or_name(random: &mut Random) -> Value {
    match random.below(8) {
        0 => json!(random.pick(PORT_NAMES)),
        1 => json!("8081"),
        2 => json!(""),
        _ => number(random),
    }
}

fn name(random: &mut Random, usual: &[&str]) -> Value {
    match random.below(20) {
        0 => Value::Null,
        _ => texts::text(random, usual).into(),
    }
}

fn probe(random: &mut Random) -> Value {
    let mut fields = Map::new();
    match random.below(10) {
        0 => fields.put("tcpSocket", json!({"port": 9000})),
        1 => fields.put("grpc", json!({"port": 9001})),
        2 => fields.put("exec", json!({"command": ["true"]})),
        3 => fields.put("httpGet", Value::Null),
        4 => fields.put("httpGet", json!({})),
        _ => fields.put("httpGet", json!({"path": "/", "port": number_or_name(random)})),
    }
    fields.into()
}

fn mounts(random: &mut Random) -> Value {
    let mount = |random: &mut Random| {
        let mut fields = Map::new();
        if random.percent(95) {
            fields.put("name", name(random, &["kube-api-access-x7k2p", "data", "123"]));
        }
        let paths = [TOKEN_PATH, TOKEN_PATH, OTHER_PATH, "/data", ""];
        fields.put("mountPath", random.pick(&paths));
        match random.below(4) {
            0 => fields.put("readOnly", true),
            1 => fields.put("readOnly", false),
            2 => fields.put("readOnly", Value::Null),
            _ => {}
        }
        Value::from(fields)
    };
    (0..random.below(4)).map(|_| mount(random)).collect()
}

fn security_context(random: &mut Random) -> Value {
    let mut fields = Map::new();
    match random.below(8) {
        0 => {}
        1 => fields.put("capabilities", Value::Null),
        2 => fields.put("capabilities", json!({})),
        _ => fields.put("capabilities", capabilities(random)),
    }
    if random.percent(30) {
        fields.put("runAsUser", 1_000_650_000);
    }
    fields.into()
}

fn capabilities(random: &mut Random) -> Value {
    let names = |random: &mut Random| match random.below(10) {
        0 => Value::Null,
        1 => json!([null]),
        2 => json!([texts::ugly(random)]),
        _ => {
            let names = ["NET_ADMIN", "NET_RAW", "ALL", "SYS_TIME", "net_raw"];
            let items = (0..random.below(4)).map(|_| random.pick(&names));
            items.map(Value::from).collect()
        }
    };
    let mut fields = Map::new();
    maybe(random, &mut fields, "add", 60, names);
    maybe(random, &mut fields, "drop", 60, names);
    fields.into()
}
