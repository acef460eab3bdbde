//! Random Pods and patches from a seed, made from the types of a Pod.

use injectd_merge::schema::{Field, Kind, Merge, POD, Struct};
use injectd_testkit::generator::random::Random;
use serde_json::{Map, Value, json};

/// Fields that both sides should have often.
const FAVOURITES: &[(&str, &[&str])] = &[
    ("Pod", &["metadata", "spec", "spec", "spec"]),
    ("ObjectMeta", &["name", "labels", "annotations", "finalizers", "ownerReferences"]),
    (
        "PodSpec",
        &[
            "containers",
            "containers",
            "initContainers",
            "volumes",
            "imagePullSecrets",
            "hostAliases",
            "securityContext",
            "topologySpreadConstraints",
            "tolerations",
            "nodeSelector",
            "resourceClaims",
            "schedulingGates",
            "dnsConfig",
        ],
    ),
    (
        "Container",
        &[
            "image",
            "env",
            "env",
            "ports",
            "volumeMounts",
            "args",
            "securityContext",
            "resources",
            "livenessProbe",
            "volumeDevices",
        ],
    ),
    ("Volume", &["emptyDir", "hostPath", "configMap", "projected", "secret"]),
    ("EnvVar", &["value", "value", "valueFrom"]),
    ("SecurityContext", &["runAsUser", "privileged", "capabilities", "runAsNonRoot"]),
    ("ResourceRequirements", &["limits", "requests"]),
];

const TEXTS: &[&str] = &["a", "b", "c", "d", "a", "b", "istio-proxy", "", "x y", "\u{e9}"];
const QUANTITIES: &[&str] = &["1", "100m", "1Gi", "0.5", "1e3", "0", " 2 ", "1.5Gi", "1000m"];
const NO_QUANTITIES: &[&str] = &["", "x", "1x", "1 Gi", "1.5.5", "Gi", "1e", "1i", "--1", "1Gii"];
const TIMES: &[&str] = &[
    "2024-02-29T10:11:12Z",
    "2024-01-01T1:02:03+01:00",
    "2024-01-01T01:02:03.5Z",
    "2024-01-01T01:02:03,25-24:60",
];
const NO_TIMES: &[&str] = &[
    "2023-02-29T10:11:12Z",
    "2024-01-01",
    "",
    "2024-01-01T24:00:00Z",
    "2024-01-01t01:02:03Z",
    "2024-1-01T01:02:03Z",
    "2024-01-01T01:02:03",
    "2024-01-01T01:02:03.Z",
    "2024-01-01T01:02:03+25:00",
    "2024-13-01T01:02:03Z",
];

/// How much a side deviates from a Pod, in percent of its values.
#[derive(Clone, Copy, Default)]
struct Noise {
    nulls: usize,
    wrong_types: usize,
    directives: usize,
    missing_keys: usize,
    unknown_fields: usize,
    other_case: usize,
    empty: usize,
}

/// The base and the patch of a seed.
pub(crate) fn merge(seed: u64) -> (Value, Value) {
    let mut random = Random::new(seed);
    let base = match random.below(5) {
        0..=1 => Noise::default(),
        2..=3 => {
            Noise { nulls: 4, missing_keys: 5, unknown_fields: 3, empty: 6, ..Noise::default() }
        }
        _ => Noise {
            nulls: 3,
            wrong_types: 3,
            missing_keys: 2,
            unknown_fields: 2,
            ..Noise::default()
        },
    };
    let patch = match random.below(8) {
        0..=1 => Noise::default(),
        2 => Noise { nulls: 10, empty: 5, ..Noise::default() },
        3 => Noise { directives: 12, ..Noise::default() },
        4 => Noise { wrong_types: 4, ..Noise::default() },
        5 => Noise { nulls: 5, directives: 8, empty: 4, unknown_fields: 3, ..Noise::default() },
        6 => Noise { nulls: 3, unknown_fields: 3, other_case: 4, empty: 3, ..Noise::default() },
        _ => Noise {
            nulls: 3,
            wrong_types: 1,
            directives: 3,
            missing_keys: 2,
            unknown_fields: 1,
            other_case: 1,
            empty: 3,
        },
    };
    let base = Writer { random: &mut random, noise: base, depth: 0 }.value(&POD);
    let patch = Writer { random: &mut random, noise: patch, depth: 0 }.value(&POD);
    (object(base), object(patch))
}

/// Two sides with much noise.
pub(crate) fn nonsense(seed: u64) -> (Value, Value) {
    let mut random = Random::new(seed);
    let noise = Noise {
        nulls: 10,
        wrong_types: 15,
        directives: 20,
        missing_keys: 10,
        unknown_fields: 10,
        other_case: 5,
        empty: 10,
    };
    let mut side = || Writer { random: &mut random, noise, depth: 0 }.value(&POD);
    (side(), side())
}

fn object(value: Value) -> Value {
    if value.is_object() { value } else { json!({}) }
}

struct Writer<'a> {
    random: &'a mut Random,
    noise: Noise,
    depth: usize,
}

impl Writer<'_> {
    fn value(&mut self, kind: &'static Kind) -> Value {
        if self.random.percent(self.noise.wrong_types) && self.depth > 1 {
            return self.any();
        }
        self.depth += 1;
        let value = match kind {
            Kind::Struct(inner) => self.fields(inner.get()),
            Kind::List(inner) => {
                let length = self.length();
                (0..length).map(|_| self.value(inner)).collect()
            }
            Kind::Map(_, inner) => {
                let length = self.length();
                let entry = |_| (self.random.pick(TEXTS).to_owned(), self.element(inner));
                (0..length).map(entry).collect()
            }
            kind => self.scalar(kind),
        };
        self.depth -= 1;
        value
    }

    fn element(&mut self, kind: &'static Kind) -> Value {
        if self.random.percent(self.noise.nulls) { Value::Null } else { self.value(kind) }
    }

    fn length(&mut self) -> usize {
        if self.random.percent(self.noise.empty) {
            return 0;
        }
        let most = if self.depth > 3 { 2 } else { 3 };
        self.random.between(1, most)
    }

    fn scalar(&mut self, kind: &Kind) -> Value {
        let sloppy = self.random.percent(self.noise.wrong_types);
        match kind {
            Kind::Boolean => self.random.percent(50).into(),
            Kind::Int32 | Kind::Int64 if self.random.percent(2 * self.noise.nulls) => {
                self.random.pick(&[80.0, 1e3, 443.0, 1e9]).into()
            }
            Kind::Int32 | Kind::Int64 => self.random.pick(&[80, 443, 8080, 0, -1, 80]).into(),
            Kind::IntOrString if self.random.percent(50) => {
                self.random.pick(&[80, 0, 15020]).into()
            }
            Kind::Quantity if sloppy => self.random.pick(NO_QUANTITIES).into(),
            Kind::Quantity if self.random.percent(20) => self.random.pick(&[1.0, 2.5, 1e21]).into(),
            Kind::Quantity => self.random.pick(QUANTITIES).into(),
            Kind::Time if sloppy => self.random.pick(NO_TIMES).into(),
            Kind::Time => self.random.pick(TIMES).into(),
            Kind::Any => json!({"f:a": {}}),
            _ => self.random.pick(TEXTS).into(),
        }
    }

    fn any(&mut self) -> Value {
        match self.random.below(12) {
            0 => json!(5),
            1 => json!(1.5),
            2 => json!("text"),
            3 => json!(true),
            4 => json!([]),
            5 => json!({}),
            6 => json!(["a", 1]),
            7 => json!({"a": "b"}),
            8 => json!(3_000_000_000_u64),
            9 => json!(1e20),
            10 => json!([["a"], {"name": "a"}]),
            _ => Value::Null,
        }
    }

    fn fields(&mut self, types: &'static Struct) -> Value {
        let mut map = Map::new();
        let count = if self.depth == 1 { 2 } else { self.length() };
        for _ in 0..count {
            let field = self.choose(types);
            self.add(&mut map, field);
        }
        for field in types.fields().iter().filter(|field| is_key(field)) {
            if field.written && !self.random.percent(self.noise.missing_keys) {
                let value = self.scalar(&field.kind);
                map.insert(field.name.to_owned(), value);
            }
        }
        if self.random.percent(self.noise.unknown_fields) {
            let value = self.any();
            map.insert(self.random.pick(&["xUnknown", "yUnknown"]).to_owned(), value);
        }
        if self.depth > 1 && self.random.percent(self.noise.directives) {
            let value = self.random.pick(&["replace", "delete", "replace", "delete", "merge", "x"]);
            let value = if self.random.percent(3) { json!(5) } else { json!(value) };
            map.insert("$patch".to_owned(), value);
        }
        if self.random.percent(self.noise.directives) {
            let keys = map.keys().filter(|key| !key.starts_with('$'));
            let mut keys: Vec<_> = keys.map(|key| Value::from(key.as_str())).collect();
            if self.random.percent(15) {
                keys.pop();
            }
            map.insert("$retainKeys".to_owned(), keys.into());
        }
        map.into()
    }

    fn choose(&mut self, types: &'static Struct) -> &'static Field {
        let favourites = FAVOURITES.iter().find(|(name, _)| *name == types.name);
        let favourite = match favourites {
            Some((_, names)) if self.random.percent(85) => types.field(self.random.pick(names)),
            _ => None,
        };
        favourite.unwrap_or_else(|| self.random.one_of(types.fields()))
    }

    fn add(&mut self, map: &mut Map<String, Value>, field: &'static Field) {
        let mut name = field.name.to_owned();
        if self.random.percent(self.noise.other_case) && !field.written {
            name = match self.random.below(3) {
                0 => name.to_uppercase(),
                1 => name.replace('s', "\u{17f}"),
                _ => format!("{}{}", name[..1].to_uppercase(), &name[1..]),
            };
        }
        let value = match field.merge {
            Merge::Replace => self.element(&field.kind),
            _ => self.merged_list(map, field),
        };
        map.insert(name, value);
    }

    /// A list, and sometimes directives for it.
    fn merged_list(&mut self, map: &mut Map<String, Value>, field: &'static Field) -> Value {
        let list = self.element(&field.kind);
        let key = match field.merge {
            Merge::ByKey(key) => Some(key),
            _ => None,
        };
        if self.random.percent(self.noise.directives) {
            let elements = list.as_array().into_iter().flatten().filter(|value| {
                !value.get("$patch").is_some_and(|directive| directive == "delete")
            });
            let mut order: Vec<_> = match key {
                Some(key) => elements.map(|value| json!({key: value.get(key)})).collect(),
                None => elements.cloned().collect(),
            };
            let more = key.map_or(json!("z"), |key| json!({key: "b"}));
            if self.random.percent(50) {
                order.insert(self.random.below(order.len() + 1), more);
            }
            if self.random.percent(10) {
                self.random.shuffle(&mut order);
            }
            if self.random.percent(5) {
                order.clear();
            }
            map.insert(format!("$setElementOrder/{}", field.name), order.into());
        }
        if key.is_none() && self.random.percent(self.noise.directives * 2) {
            let deleted = json!([self.random.pick(TEXTS), self.random.pick(TEXTS)]);
            map.insert(format!("$deleteFromPrimitiveList/{}", field.name), deleted);
        }
        list
    }
}

/// Whether the field is the key of some list.
fn is_key(field: &Field) -> bool {
    let names =
        ["name", "ip", "topologyKey", "containerPort", "mountPath", "devicePath", "uid", "type"];
    names.contains(&field.name) && matches!(field.kind, Kind::Text(_) | Kind::Int32)
}
