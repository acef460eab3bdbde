//! The values of an installation: a valid base with a few fields set, invalid, empty or missing.

use std::sync::LazyLock;

use serde_json::json;

use super::env_lists;
use super::fields::{FIELDS, Holds, SECTIONS};
use super::parameters;
use super::random::Random;
use super::releases;
use super::shapes::Shape;
use super::texts;
use super::yaml_text::Node;
use crate::reference::Release;
use crate::yaml;

/// Values for a release.
pub(super) fn any(random: &mut Random, release: Release) -> Node {
    let mut values = base();
    switches(&mut values, random, release);
    for _ in 0..random.pick(&[0, 1, 3, 3, 6, 12]) {
        let (path, holds) = random.pick(FIELDS);
        change(&mut values, random, path, holds);
    }
    if random.percent(12) {
        let section = random.pick(SECTIONS);
        if random.percent(50) {
            values.remove(section);
        } else {
            *values.place(section) = Node::plain("null");
        }
    }
    if random.percent(10) {
        nulls(&mut values);
    }
    if random.percent(4) {
        spoil(&mut values, random);
    }
    set_release(&mut values, random, release);
    values
}

/// Values that are valid for every release, with keys of other releases.
pub(super) fn base() -> Node {
    static NODE: LazyLock<Node> =
        LazyLock::new(|| Node::of(&yaml::tree(BASE).expect("the base must be YAML")));
    NODE.clone()
}

const BASE: &str = r#"
linkerdVersion: ""
clusterDomain: cluster.local
clusterNetworks: 10.0.0.0/8,fd00::/8
identityTrustDomain: trust.local
imagePullPolicy: IfNotPresent
cniEnabled: false
disableIPv6: true
egress: {globalEgressNetworkNamespace: linkerd-egress}
identity: {serviceAccountTokenProjection: true}
podMonitor: {controller: {honorTimestamps: true}}
proxyInjector: {podAnnotations: {}}
proxy:
  image: {name: cr.l5d.io/linkerd/proxy, version: "", pullPolicy: ""}
  await: true
  nativeSidecar: false
  cores: 0
  uid: 2102
  gid: -1
  ports: {admin: 4191, control: 4190, inbound: 4143, outbound: 4140}
  opaquePorts: "25,587,3306,5432"
  logLevel: warn
  logFormat: plain
  logHTTPHeaders: "off"
  defaultInboundPolicy: all-unauthenticated
  inboundConnectTimeout: 100ms
  outboundConnectTimeout: 1000ms
  resources:
    cpu: {limit: "", request: ""}
    memory: {limit: "", request: ""}
    ephemeral-storage: {limit: "", request: ""}
  runtime: {workers: {minimum: 1}}
  livenessProbe: {initialDelaySeconds: 10, timeoutSeconds: 1}
  readinessProbe: {initialDelaySeconds: 2, timeoutSeconds: 1}
  startupProbe: {initialDelaySeconds: 0, periodSeconds: 1, failureThreshold: 120}
  control: {streams: {initialTimeout: 3s, idleTimeout: 5m, lifetime: 1h}}
  metrics: {hostnameLabels: false}
  inbound: {server: {http2: {keepAliveInterval: 10s, keepAliveTimeout: 3s}}}
  outbound: {server: {http2: {keepAliveInterval: 10s, keepAliveTimeout: 3s}}}
  securityContext: {}
  tracing:
    enable: false
    enabled: false
    traceServiceName: linkerd-proxy
    labels: {k8s.pod.ip: $(_pod_ip), k8s.pod.uid: $(_pod_uid)}
    collector:
      endpoint: collector:4317
      meshIdentity: {serviceAccountName: collector, namespace: tracing}
proxyInit:
  image: {name: cr.l5d.io/linkerd/proxy-init, version: v2.4.3}
  iptablesMode: nft
  ignoreInboundPorts: "4567,4568"
  ignoreOutboundPorts: "4567,4568"
  closeWaitTimeoutSecs: 0
  runAsRoot: false
  runAsUser: 65534
  runAsGroup: 65534
  xtMountPath: {mountPath: /run, name: linkerd-proxy-init-xtables-lock}
  resources: {cpu: {limit: 100m}, memory: {limit: 20Mi}}
networkValidator:
  logLevel: debug
  logFormat: plain
  timeout: 10s
  connectAddr: ""
  listenAddr: ""
  enableSecurityContext: true
  securityContext: {}
debugContainer: {image: {name: cr.l5d.io/linkerd/debug, version: ""}}
"#;

/// Sets the switches that change the structure of a patch, often to each of their values.
fn switches(values: &mut Node, random: &mut Random, release: Release) {
    let native = if release.since((26, 5, 2)) { 60 } else { 30 };
    for (path, chance) in [
        ("proxy.nativeSidecar", native),
        ("proxy.await", 60),
        ("cniEnabled", 20),
        ("disableIPv6", 50),
        ("identity.serviceAccountTokenProjection", 80),
        ("proxy.tracing.enabled", 25),
        ("proxy.tracing.enable", 25),
        ("proxy.disableOutboundProtocolDetectTimeout", 30),
        ("proxy.disableInboundProtocolDetectTimeout", 30),
        ("proxy.metrics.hostnameLabels", 30),
        ("proxyInit.runAsRoot", 20),
        ("networkValidator.enableSecurityContext", 50),
    ] {
        *values.place(path) = Node::plain(random.percent(chance).to_string());
    }
    for (path, holds, chance) in [
        ("proxy.additionalEnv", Holds::Env, 35),
        ("proxy.experimentalEnv", Holds::Env, 35),
        ("proxy.logHTTPHeaders", Holds::Text(Shape::Headers), 30),
        ("proxy.opaquePorts", Holds::Text(Shape::OpaquePorts), 30),
        ("proxy.waitBeforeExitSeconds", Holds::Uint, 12),
    ] {
        if random.percent(chance) {
            *values.place(path) = held(random, holds);
        }
    }
}

fn change(values: &mut Node, random: &mut Random, path: &str, holds: Holds) {
    match random.below(20) {
        0 => values.remove(path),
        1 => *values.place(path) = Node::plain(random.pick(&["null", "~", ""])),
        2 => spell_otherwise(values, random, path),
        _ => *values.place(path) = held(random, holds),
    }
}

/// A value of the right type; rarely out of bounds.
fn held(random: &mut Random, holds: Holds) -> Node {
    match holds {
        Holds::Text(shape) => text(random, shape),
        Holds::Flag => Node::plain(random.pick(&["true", "false", "yes", "off", "True", "on"])),
        Holds::Port => number(random, &["4143", "1", "65536", "0", "-1", "2147483647"]),
        Holds::Int => number(random, INTS),
        Holds::Uint => number(random, &["0", "1", "10", "300", "1000000", "18446744073709551615"]),
        Holds::Ratio => Node::plain(random.pick(&["0", "0.5", "1e-5", ".25", "1", "3.50", "-1"])),
        Holds::Texts => names(random),
        Holds::Labels => labels(random),
        Holds::Params => parameters::map(random),
        Holds::Env => env_lists::list(random),
        Holds::Context => context(random),
    }
}

const INTS: &[&str] = &[
    "0",
    "1",
    "-1",
    "5",
    "65534",
    "1000650000",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775295",
    "-9223372036854775808",
    "0777",
    "0x10",
    "1_000",
    "+5",
];

fn number(random: &mut Random, usual: &[&str]) -> Node {
    Node::plain(match random.below(40) {
        0 => random.pick(&["1e3", "2102.0", "1.0e1"]),
        1 => random.pick(&["9223372036854775808", "2147483648", "-1", "1.5"]),
        _ => random.pick(usual),
    })
}

/// Scalars with a type in YAML 1.1, and similar ones. Without those that the product's YAML library
/// types differently: `tRUE`, `1__0`, `1_000.5`, `1e400`.
const SCALARS: &[&str] = &[
    "3306",
    "1.10",
    "true",
    "off",
    "0777",
    "~",
    "1e3",
    "1_0",
    "1e21",
    "-0",
    "y",
    "N",
    "Yes",
    "NULL",
    "Null",
    ".5",
    "5.",
    "+1",
    "-.5",
    "0x1F",
    "0b11",
    "0o17",
    "0_7",
    "00",
    "09",
    "0.0",
    "-0.0",
    "12e03",
    "1e+3",
    "1:30",
    "1:30:00",
    "2001-01-01",
    "1e-7",
    "123456789.5",
    "-0x10",
    "nULL",
    "1.0",
    "18446744073709551616",
    "0xFFFFFFFFFFFFFFFFFF",
    "100000000.0",
];

/// A quoted text, or a scalar that becomes a string.
fn text(random: &mut Random, shape: Shape) -> Node {
    if random.percent(6) {
        return Node::plain(random.pick(SCALARS));
    }
    Node::Text(shape.text(random))
}

fn names(random: &mut Random) -> Node {
    let names = ["NET_RAW", "NET_ADMIN", "ALL", "SYS_TIME", "net_raw", ""];
    let item = |random: &mut Random| match random.below(12) {
        0 => Node::plain(random.pick(&["1", "null", "yes"])),
        1 => Node::Text(texts::ugly(random)),
        _ => Node::Text((random.pick(&names)).to_owned()),
    };
    Node::List((0..random.below(4)).map(|_| item(random)).collect())
}

fn labels(random: &mut Random) -> Node {
    let keys = ["service.name", "k8s.pod.ip", "a", "B", "", "a/b"];
    let entries = (0..random.below(4)).map(|_| {
        let value = match random.below(8) {
            0 => Node::plain(random.pick(&["1", "null", "yes", "1.50"])),
            _ => Node::Text(texts::text(random, &["x", "$(_pod_ip)", "a b"])),
        };
        ((random.pick(&keys)).to_owned(), value)
    });
    Node::Map(entries.collect())
}

fn context(random: &mut Random) -> Node {
    Node::of(random.one_of(&[
        json!({}),
        json!({"runAsUser": 1_000_650_000, "capabilities": {"drop": ["ALL"]}}),
        json!({"seLinuxOptions": {"level": "s0:c1,c2"}, "x": [null, 1.5, "\"", {"y": []}]}),
        json!({"allowPrivilegeEscalation": false, "": "<>&"}),
    ]))
}

/// Sets sections to null, as installations by the CLI do.
fn nulls(values: &mut Node) {
    for path in [
        "proxy.capabilities",
        "proxy.saMountPath",
        "proxy.additionalEnv",
        "proxy.experimentalEnv",
        "proxy.cores",
        "proxy.securityContext",
        "proxyInit.capabilities",
        "proxyInit.saMountPath",
        "networkValidator.securityContext",
        "nodeSelector",
    ] {
        *values.place(path) = Node::plain("null");
    }
}

/// Sets a field to a value of another type.
fn spoil(values: &mut Node, random: &mut Random) {
    let (path, _) = random.pick(FIELDS);
    let path = match random.below(6) {
        0 => random.pick(SECTIONS),
        _ => path,
    };
    *values.place(path) = random
        .one_of(&[
            Node::plain("7"),
            Node::plain("true"),
            Node::Text("x".to_owned()),
            Node::List(vec![Node::Map(Vec::new())]),
            Node::Map(vec![("x".to_owned(), Node::plain("1"))]),
        ])
        .clone();
}

/// Spells a key in another case, which must not matter.
fn spell_otherwise(values: &mut Node, random: &mut Random, path: &str) {
    if let Some((entries, at)) = values.entry(path) {
        let other = match random.below(2) {
            0 => entries[at].0.to_uppercase(),
            _ => entries[at].0.to_lowercase(),
        };
        if random.percent(20) {
            let node = entries[at].1.clone();
            entries.push((other, node));
        } else {
            entries[at].0 = other;
        }
    }
}

/// Sets the version of a release, or an unknown version with or without marker keys.
fn set_release(values: &mut Node, random: &mut Random, release: Release) {
    let version = values.place("linkerdVersion");
    if random.percent(90) {
        *version = Node::Text(releases::version_of(release, random));
        return;
    }
    let unknown = ["dev-undefined", "git-0123abc", "v2", "", "edge-26.6", "\"", "stable-2.13.1"];
    *version = Node::Text((random.pick(&unknown)).to_owned());
    if random.percent(10) {
        *version = Node::plain(random.pick(&["26", "null", "1.10"]));
    }
    let markers = [
        "podMonitor",
        "proxy.securityContext",
        "networkValidator.securityContext",
        "proxy.tracing",
        "proxy.metrics",
        "proxy.runtime",
        "proxyInjector",
        "egress",
        "proxy.logHTTPHeaders",
        "disableIPv6",
        "proxy.control",
    ];
    for marker in &markers[..random.below(markers.len() + 1)] {
        values.remove(marker);
    }
}
