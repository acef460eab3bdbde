//! T§9, L§2.7-1: the mounted values as Linkerd's Go structs decode them.
//!
//! Keys match in any case, and scalars become strings where a string is expected. Other wrong types
//! are errors. Keys that the release does not support are ignored.

use injectd_gocompat::number;
use std::borrow::Cow;

use serde_json::{Map, Number, Value, json};

use super::env_list::{self, Scalars};
use super::release::Release;
use fields::{FIELDS, Field, Kind};

mod fields;

/// The values with exact keys and types; missing keys have zero values.
#[derive(Clone, Debug)]
pub struct Values {
    tree: Value,
    missing: Vec<&'static str>,
}

impl Values {
    /// Reads a tree. The error says why the configuration is rejected.
    pub fn read(tree: &Value, release: Release) -> Result<Self, String> {
        let mut values = Self { tree: json!({}), missing: Vec::new() };
        for field in FIELDS {
            if field.is_known(release) {
                read_field(tree, field, &mut values.tree)?;
            }
        }
        for section in ["proxy", "proxyInit", "identityTrustDomain", "proxy.image"] {
            if !values.has(section) {
                return Err(format!("the values have no {section}"));
            }
        }
        values.add_optional_sections(release);
        Ok(values)
    }

    /// T§9: adds missing optional sections with the release's defaults.
    fn add_optional_sections(&mut self, release: Release) {
        for (path, default) in optional_sections(release) {
            if !self.has(path) {
                self.missing.push(path);
                self.set(path, default);
            }
        }
    }

    /// The optional sections that were missing.
    pub fn missing_sections(&self) -> &[&'static str] {
        &self.missing
    }

    fn find(&self, path: &str) -> Option<&Value> {
        let found = path.split('.').try_fold(&self.tree, |at, key| at.get(key));
        found.filter(|value| !value.is_null())
    }

    /// Whether a key or section is present and not null.
    pub fn has(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// Sets a value, as an annotation does.
    pub fn set(&mut self, path: &str, value: Value) {
        *place(&mut self.tree, path) = value;
    }

    /// A string, possibly empty.
    pub fn text(&self, path: &str) -> String {
        let text = self.find(path).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    }

    /// A string unless it is empty.
    pub fn set_text(&self, path: &str) -> Option<String> {
        Some(self.text(path)).filter(|text| !text.is_empty())
    }

    /// A boolean.
    pub fn flag(&self, path: &str) -> bool {
        self.find(path).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A number as in JSON; 0 if missing.
    pub fn number(&self, path: &str) -> Number {
        let number = self.find(path).and_then(Value::as_number);
        number.cloned().unwrap_or_else(|| 0.into())
    }

    /// A number as text, in plain decimals (T§10.3).
    pub fn decimal(&self, path: &str) -> String {
        decimal(&self.number(path))
    }

    /// A number as text unless it is 0.
    pub fn set_decimal(&self, path: &str) -> Option<String> {
        Some(self.decimal(path)).filter(|text| text != "0")
    }

    /// A map or a list.
    pub fn tree(&self, path: &str) -> Option<&Value> {
        self.find(path)
    }

    /// A list of strings.
    pub fn list(&self, path: &str) -> Vec<String> {
        let items = self.find(path).and_then(Value::as_array);
        let texts = items.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }
}

/// The optional sections of a release, with its defaults.
fn optional_sections(release: Release) -> Vec<(&'static str, Value)> {
    let resources = json!({"cpu": {}, "memory": {}, "ephemeral-storage": {}});
    let init_resources = json!({
        "cpu": {"limit": "100m", "request": "100m"},
        "memory": {"limit": "20Mi", "request": "20Mi"},
        "ephemeral-storage": {},
    });
    let liveness = json!({"initialDelaySeconds": 10, "timeoutSeconds": 1});
    let readiness = json!({"initialDelaySeconds": 2, "timeoutSeconds": 1});
    let startup = json!({"initialDelaySeconds": 0, "periodSeconds": 1, "failureThreshold": 120});
    let mut sections = vec![
        ("proxy.resources", resources),
        ("proxyInit.resources", init_resources),
        ("proxy.livenessProbe", liveness),
        ("proxy.readinessProbe", readiness),
        ("proxy.startupProbe", startup),
        ("proxy.metrics", json!({})),
        ("proxy.tracing", json!({})),
        ("debugContainer.image", json!({"name": "cr.l5d.io/linkerd/debug"})),
    ];
    // Before, a missing section omits the field.
    if !release.since((24, 6, 4)) {
        sections.retain(|(path, _)| *path != "proxy.resources");
    }
    sections.retain(|(path, _)| {
        let mut fields = FIELDS.iter().filter(|field| field.is_known(release));
        fields.any(|field| field.path.starts_with(path))
    });
    sections
}

/// A number in plain decimals.
pub fn decimal(number: &Number) -> String {
    if number.is_i64() || number.is_u64() {
        number.to_string()
    } else {
        number::plain_decimal(number.as_f64().unwrap_or(0.0))
    }
}

fn place<'a>(tree: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('.').fold(tree, |at, key| {
        if !at.is_object() {
            *at = json!({});
        }
        at.as_object_mut()
            .expect("a place must be inside of an object")
            .entry(key)
            .or_insert(Value::Null)
    })
}

/// Copies one field, and creates the sections of its path that are present.
fn read_field(tree: &Value, field: &Field, into: &mut Value) -> Result<(), String> {
    let mut at = Some(Cow::Borrowed(tree));
    let mut walked: Vec<&str> = Vec::new();
    for key in field.path.split('.') {
        let Some(section) = at.filter(|section| !section.is_null()) else {
            return Ok(());
        };
        if !section.is_object() {
            return Err(format!("{} must be a section", walked.join(".")));
        }
        if !walked.is_empty() {
            let section = place(into, &walked.join("."));
            if section.is_null() {
                *section = json!({});
            }
        }
        walked.push(key);
        at = match section {
            Cow::Borrowed(section) => fold_keys(section, key),
            Cow::Owned(section) => {
                fold_keys(&section, key).map(|value| Cow::Owned(value.into_owned()))
            }
        };
    }
    let Some(value) = at.filter(|value| !value.is_null()) else {
        return Ok(());
    };
    let value = convert(field.kind, &value)
        .ok_or_else(|| format!("{} must be of type {:?}", field.path, field.kind))?;
    *place(into, field.path) = value;
    Ok(())
}

/// Merges keys as Go's decoder does: in any case; later ones, in byte order, win or add members.
fn fold_keys<'a>(section: &'a Value, key: &str) -> Option<Cow<'a, Value>> {
    let entries = section.as_object().into_iter().flatten();
    let mut matching: Vec<_> = entries.filter(|(name, _)| name.eq_ignore_ascii_case(key)).collect();
    matching.sort_by_key(|(name, _)| name.as_str());
    matching.into_iter().map(|(_, value)| Cow::Borrowed(value)).reduce(|first, second| {
        match (first.as_object(), second.as_object()) {
            (Some(one), Some(other)) => {
                let both = one.clone().into_iter().chain(other.clone());
                Cow::Owned(both.collect::<Map<_, _>>().into())
            }
            _ => second,
        }
    })
}

fn convert(kind: Kind, value: &Value) -> Option<Value> {
    Some(match kind {
        Kind::Text => scalar_text(value)?.into(),
        Kind::Flag => value.as_bool()?.into(),
        Kind::Int(bits) => {
            let wide = whole(value)?;
            let limit = 1_i128 << (bits - 1);
            let fits = (-limit..limit).contains(&wide);
            i64::try_from(wide).ok().filter(|_| fits)?.into()
        }
        Kind::Uint => u64::try_from(whole(value)?).ok()?.into(),
        Kind::Float => value.as_number()?.clone().into(),
        Kind::Texts => text_map(value)?.into(),
        Kind::List => {
            let texts = value.as_array()?.iter().map(scalar_text);
            texts.collect::<Option<Vec<_>>>()?.into()
        }
        Kind::Params => params(value)?,
        Kind::Env => env_list::decode(value, Scalars::BecomeText)?.into(),
        Kind::Free => value.as_object()?.clone().into(),
    })
}

/// L§2.7-1: a scalar where a string is expected.
pub fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) if number.is_f64() => Some(number::format_float(number.as_f64()?)),
        Value::Number(number) => Some(number.to_string()),
        Value::Null => Some(String::new()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// A float without a fraction becomes an integer in JSON.
fn whole(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    if let Some(int) = number.as_i64() {
        return Some(int.into());
    }
    if let Some(int) = number.as_u64() {
        return Some(int.into());
    }
    let float = number.as_f64()?;
    let plain = float.fract() == 0.0 && float.abs() < 1e21;
    plain.then(|| format!("{float:.0}").parse().ok()).flatten()
}

fn text_map(value: &Value) -> Option<Map<String, Value>> {
    let entries = value.as_object()?.iter();
    entries.map(|(key, value)| Some((key.clone(), scalar_text(value)?.into()))).collect()
}

/// T§2.2.2: scopes and protocols must be maps; a missing one is empty.
fn params(value: &Value) -> Option<Value> {
    for scope in value.as_object()?.values().filter(|scope| !scope.is_null()) {
        for protocol in scope.as_object()?.values() {
            if !protocol.is_null() && !protocol.is_object() {
                return None;
            }
        }
    }
    Some(value.clone())
}
