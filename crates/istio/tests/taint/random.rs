//! Random hostile values in annotations, labels and names, under `deny`: an injected pod has the fields
//! of one with neutral values.
//!
//! `INJECTD_TAINT_CASES` (default 300) is the number of pods for each configuration, a sixth of it for each
//! recorded one; a pod has two such values on average. `INJECTD_TAINT_SEED` (default 0) chooses other pods.

use std::{env, fmt, fs, path::Path};

use injectd_testkit::istio;

use super::*;

/// What hostile values are made of: YAML, JSON, Go templates, quotes and line breaks of every kind.
const PARTS: [&str; 48] = [
    "\n",
    "\r",
    "\r\n",
    "\u{85}",
    "\u{2028}",
    "\u{2029}",
    "\"",
    "'",
    "\\",
    ": ",
    ":",
    " #",
    "- ",
    "? ",
    "|",
    ">-\n",
    "&a ",
    "*a",
    "!!map ",
    "!x ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "%",
    "@",
    "`",
    "\n---\n",
    "\n...\n",
    "\t",
    "  ",
    "    ",
    "\n  - name: c",
    "\n    image: b",
    "null",
    "~",
    "true",
    "0",
    "{{ .Values }}",
    "{{",
    "a",
    "b/c",
    "\u{0}",
    "\u{feff}",
    "<<: *a",
    "$patch: delete",
    "\n    - x",
];

/// All that the default templates of a recorded release read, and two that injection reads for them.
const ANNOTATIONS: [&str; 36] = [
    LOG_LEVEL,
    "sidecar.istio.io/componentLogLevel",
    "sidecar.istio.io/agentLogLevel",
    "sidecar.istio.io/proxyImage",
    "sidecar.istio.io/proxyImageType",
    "sidecar.istio.io/bootstrapOverride",
    "sidecar.istio.io/proxyCPU",
    "sidecar.istio.io/proxyCPULimit",
    "sidecar.istio.io/proxyMemory",
    "sidecar.istio.io/proxyMemoryLimit",
    "sidecar.istio.io/userVolume",
    "sidecar.istio.io/userVolumeMount",
    "sidecar.istio.io/capNetBindService",
    "sidecar.istio.io/enableCoreDump",
    "sidecar.istio.io/interceptionMode",
    "sidecar.istio.io/nativeSidecar",
    "status.sidecar.istio.io/port",
    "readiness.status.sidecar.istio.io/failureThreshold",
    "readiness.status.sidecar.istio.io/initialDelaySeconds",
    "readiness.status.sidecar.istio.io/periodSeconds",
    "traffic.sidecar.istio.io/includeInboundPorts",
    "traffic.sidecar.istio.io/excludeInboundPorts",
    "traffic.sidecar.istio.io/includeOutboundIPRanges",
    "traffic.sidecar.istio.io/excludeOutboundIPRanges",
    "traffic.sidecar.istio.io/includeOutboundPorts",
    "traffic.sidecar.istio.io/excludeOutboundPorts",
    "traffic.sidecar.istio.io/excludeInterfaces",
    "traffic.sidecar.istio.io/kubevirtInterfaces",
    "istio.io/reroute-virtual-interfaces",
    "gateway.istio.io/agentgatewayImage",
    "kubectl.kubernetes.io/default-container",
    "kubectl.kubernetes.io/default-logs-container",
    "k8s.v1.cni.cncf.io/networks",
    "apm.datadoghq.com/env",
    "proxy.istio.io/config",
    "example.org/none",
];

/// All that the default templates of a recorded release read.
const LABELS: [&str; 9] = [
    "app",
    "app.kubernetes.io/name",
    "app.kubernetes.io/version",
    "service.istio.io/canonical-name",
    "service.istio.io/canonical-revision",
    "service.istio.io/workload-name",
    "security.istio.io/tlsMode",
    "networking.istio.io/tunnel",
    "topology.istio.io/network",
];

/// All other texts of a pod that they read: objects and their keys.
const NAMES: [(&str, &str); 8] = [
    ("/metadata", "name"),
    ("/metadata", "generateName"),
    ("/metadata", "namespace"),
    ("/metadata/ownerReferences/0", "name"),
    ("/metadata/ownerReferences/0", "kind"),
    ("/metadata/ownerReferences/0", "apiVersion"),
    ("/spec", "serviceAccountName"),
    ("/spec/containers/0", "name"),
];

/// What stands for the characters of a hostile value.
const NEUTRAL: &str = "zqz";

/// A generator of random numbers: xorshift.
struct Random(u64);

impl Random {
    /// Each configuration has values of its own.
    fn named(name: &str) -> Self {
        let seed = 0x9e37_79b9_7f4a_7c15 ^ number("INJECTD_TAINT_SEED", 0);
        Self(name.bytes().fold(seed, |seed, byte| seed.rotate_left(7) ^ u64::from(byte)).max(1))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// A hostile text and its neutral one.
    fn text(&mut self) -> [String; 2] {
        let hostile: String = (0..=self.below(7)).map(|_| self.of(&PARTS)).collect();
        let start = self.of(&["", "a", "a/b", "1"]);
        let hostile = format!("{start}{hostile}");
        // Letters and digits stand for themselves: `true` turns a part of a template on, and `0` off.
        if hostile.chars().all(|one| one.is_ascii_alphanumeric()) {
            return [hostile.clone(), hostile];
        }
        // Templates ask for a slash.
        let slash = if hostile[start.len()..].contains('/') { "/" } else { "" };
        [hostile, format!("{start}{NEUTRAL}{slash}{NEUTRAL}")]
    }

    /// A hostile value of an annotation and its neutral one: a text, or a text in JSON.
    fn value(&mut self, key: &str) -> [String; 2] {
        let [hostile, neutral] = self.text();
        let both = [hostile, neutral];
        match (key, self.below(3)) {
            (_, 0) => both,
            ("proxy.istio.io/config", _) => {
                both.map(|text| json!({"proxyMetadata": {"A": text}}).to_string())
            }
            ("apm.datadoghq.com/env", _) => both.map(|text| json!({"A": text}).to_string()),
            ("sidecar.istio.io/userVolume", 1) => {
                both.map(|text| json!({text: {"emptyDir": {}}}).to_string())
            }
            ("sidecar.istio.io/userVolume" | "sidecar.istio.io/userVolumeMount", _) => {
                both.map(|text| json!({"v": {"mountPath": text}}).to_string())
            }
            ("k8s.v1.cni.cncf.io/networks", _) => {
                both.map(|text| json!([{"name": text}]).to_string())
            }
            _ => both,
        }
    }

    /// A pod with hostile values, the same with neutral ones, and how many values these are.
    fn pods(&mut self) -> ([Value; 2], usize) {
        let mut pods = [pod(&json!({})), pod(&json!({}))];
        let templates =
            self.of(&["sidecar", "sidecar", "sidecar", "gateway", "grpc-agent", "grpc-simple"]);
        let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": true});
        for pod in &mut pods {
            pod["metadata"]["annotations"]["inject.istio.io/templates"] = templates.into();
            pod["metadata"]["ownerReferences"] = json!([owner]);
        }
        let count = 1 + self.below(3);
        for _ in 0..count {
            let (values, pointer, key) = match self.below(8) {
                0 => (self.text(), "/metadata/labels", self.of(&LABELS)),
                1 | 2 => {
                    let (object, key) = NAMES[self.below(NAMES.len())];
                    (self.text(), object, key)
                }
                _ => {
                    let key = self.of(&ANNOTATIONS);
                    (self.value(key), "/metadata/annotations", key)
                }
            };
            for (pod, value) in pods.iter_mut().zip(values) {
                if key == "generateName" {
                    // A name of its own would be read in its place.
                    pod["metadata"]["name"] = "".into();
                }
                pod.pointer_mut(pointer).expect("an object")[key] = value.into();
            }
        }
        (pods, count)
    }
}

/// Whether a pod has the fields of another, but for scalars that hold neutral values.
fn has_fields(pod: &Value, neutral: &Value) -> bool {
    let is_neutral = |value: &Value| value.as_str().is_some_and(|text| text.contains(NEUTRAL));
    match (pod, neutral) {
        (Value::Object(members), Value::Object(neutral)) => {
            members.keys().all(|key| {
                neutral.contains_key(key) || neutral.keys().any(|key| key.contains(NEUTRAL))
            }) && neutral.iter().all(|(key, neutral)| match members.get(key) {
                Some(value) => has_fields(value, neutral),
                // A value that is null leaves its field out.
                None => key.contains(NEUTRAL) || is_neutral(neutral),
            })
        }
        (Value::Array(items), Value::Array(neutral)) => {
            items.len() == neutral.len()
                && items.iter().zip(neutral).all(|(item, neutral)| has_fields(item, neutral))
        }
        (value, neutral) if is_neutral(neutral) => !value.is_object() && !value.is_array(),
        (value, neutral) => value == neutral,
    }
}

/// How many random values and pods there were, how many pods had a tainted value, how many were injected
/// under `deny`, and how many of those could be compared.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    values: usize,
    pods: usize,
    tainted: usize,
    injected: usize,
    compared: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.values += other.values;
        self.pods += other.pods;
        self.tainted += other.tainted;
        self.injected += other.injected;
        self.compared += other.compared;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { values, pods, tainted, injected, compared } = self;
        write!(
            f,
            "{values} values in {pods} pods, {tainted} tainted, {injected} injected, {compared} compared"
        )
    }
}

/// Random pods of a configuration in every mode.
fn check(name: &str, revision: fn(TaintedValues) -> Revision, cases: usize) -> Counts {
    check_modes(name, TaintedValues::ALL.map(revision), cases)
}

fn check_modes(name: &str, [off, warn, deny]: [Revision; 3], cases: usize) -> Counts {
    let mut random = Random::named(name);
    let mut counts = Counts { pods: cases, ..Counts::default() };
    for case in 0..cases {
        let ([pod, neutral], values) = random.pods();
        counts.values += values;
        let off = inject(&off, &pod);
        let warned = inject(&warn, &pod);
        let pod_of = |found: &Result<Injected, String>| {
            found.as_ref().map(|found| found.pod.clone()).map_err(Clone::clone)
        };
        assert_eq!(pod_of(&warned), pod_of(&off), "{name} {case}: warn changes nothing: {pod}");
        let denied = inject(&deny, &pod);
        let is_tainted = warned.as_ref().is_ok_and(|warned| !warned.tainted.is_empty());
        assert!(!is_tainted || denied.is_err(), "{name} {case}");
        counts.tainted += usize::from(is_tainted);
        let Ok(found) = denied else { continue };
        counts.injected += 1;
        assert_eq!(off.map(|off| off.pod).as_ref(), Ok(&found.pod), "{name} {case}");
        // A template names a container: with another name, of which YAML takes a part, it makes
        // another container.
        let is_named = pod["spec"]["containers"][0]["name"] == "web";
        let Some(neutral) = inject(&deny, &neutral).ok().filter(|_| is_named) else { continue };
        counts.compared += 1;
        assert!(
            has_fields(&found.pod, &neutral.pod),
            "{name} {case}: {pod:#}\n{:#}\n{:#}",
            found.pod,
            neutral.pod
        );
    }
    println!("{name}: {counts}");
    assert!(counts.compared * 4 > counts.injected, "most must be comparable");
    counts
}

/// The keys of annotations and labels that the default templates name have random values.
#[test]
fn every_key_that_a_template_names_has_random_values() {
    let Some(corpus) = env::var_os("INJECTD_CORPUS").filter(|corpus| !corpus.is_empty()) else {
        return;
    };
    for (release, _) in releases::recorded() {
        let config = Path::new(&corpus).join("istio").join(&release).join("config-default.yaml");
        let config = fs::read_to_string(config).expect("a configuration");
        let quoted = config.split('`').skip(1).step_by(2);
        let is_key = |text: &&str| {
            text.contains('/')
                && text.chars().all(|one| one.is_ascii_alphanumeric() || "./-".contains(one))
        };
        for key in quoted.filter(is_key).filter(|key| *key != CNI) {
            assert!(ANNOTATIONS.contains(&key) || LABELS.contains(&key), "{release}: {key}");
        }
    }
}

/// A network that templates name, and no key.
const CNI: &str = "default/istio-cni";

/// A number in a variable.
fn number(variable: &str, default: u64) -> u64 {
    let number = env::var_os(variable);
    number.and_then(|number| number.to_str()?.parse().ok()).unwrap_or(default)
}

fn cases() -> usize {
    usize::try_from(number("INJECTD_TAINT_CASES", 300)).expect("a number of cases")
}

#[test]
fn an_injected_pod_has_the_fields_of_a_neutral_one() {
    let mut all = Counts::default();
    all.add(check("small", |mode| small().with_tainted_values(mode), cases()));
    let testkit = |mode| {
        istio::revision_of(istio::CONFIG, istio::VALUES, istio::MESH).with_tainted_values(mode)
    };
    all.add(check("testkit", testkit, cases()));
    let recorded = || releases::recorded().into_iter();
    let [off, warn] = [TaintedValues::Off, TaintedValues::Warn]
        .map(|mode| recorded().map(move |(_, one)| one.with_tainted_values(mode)));
    for ((release, deny), (off, warn)) in recorded().zip(off.zip(warn)) {
        let deny = deny.with_tainted_values(TaintedValues::Deny);
        all.add(check_modes(&release, [off, warn, deny], cases() / 6));
    }
    println!("all: {all}");
}
