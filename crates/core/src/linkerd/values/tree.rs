//! Reading a values tree as upstream's structs read it (`docs/linkerd/injection.md` §2.7-1).
//!
//! Keys match in any case, unknown keys are ignored, and scalars become strings where a string is
//! expected. A missing or `null` key has Go's zero value.

#![expect(clippy::disallowed_types, reason = "configuration is read once per change")]

use injectd_gocompat::number::format_float;
use serde_json::{Map, Value};

use super::ValuesError;
use crate::linkerd::release::{Delta, Release};

type Result<T> = std::result::Result<T, ValuesError>;

/// A map of the values, with its path.
#[derive(Debug)]
pub(crate) struct Section<'v> {
    path: String,
    map: Option<&'v Map<String, Value>>,
    release: Release,
}

/// Keys that releases before a change do not support, and ignore.
const KNOWN_SINCE: &[(&str, Delta)] = &[
    ("disableIPv6", Delta::InitIpv6),
    ("networkValidator.securityContext", Delta::SecurityContexts),
    ("proxy.additionalEnv", Delta::AdditionalEnv),
    ("proxy.control", Delta::ControlStreams),
    ("proxy.disableInboundProtocolDetectTimeout", Delta::DetectTimeout),
    ("proxy.disableOutboundProtocolDetectTimeout", Delta::DetectTimeout),
    ("proxy.enableShutdownEndpoint", Delta::ShutdownEndpoint),
    ("proxy.experimentalEnv", Delta::ExperimentalEnv),
    ("proxy.gid", Delta::Gid),
    ("proxy.inbound", Delta::Parameters),
    ("proxy.livenessProbe", Delta::ProbesFromValues),
    ("proxy.logHTTPHeaders", Delta::LogWithoutHeaders),
    ("proxy.metrics", Delta::HostnameLabels),
    ("proxy.nativeSidecar", Delta::NativeSidecar),
    ("proxy.outbound", Delta::Parameters),
    ("proxy.readinessProbe", Delta::ProbesFromValues),
    ("proxy.runtime", Delta::Workers),
    ("proxy.securityContext", Delta::SecurityContexts),
    ("proxy.startupProbe", Delta::NativeSidecar),
    ("proxy.tracing", Delta::Tracing),
    ("proxy.tracing.collector.meshIdentity.namespace", Delta::TracingEnabled),
    ("proxy.tracing.enabled", Delta::TracingEnabled),
    ("proxy.tracing.labels", Delta::TracingLabels),
    ("proxyInit.runAsGroup", Delta::Gid),
];

/// Keys that a change removes.
const KNOWN_BEFORE: &[(&str, Delta)] = &[
    ("networkValidator.enableSecurityContext", Delta::SecurityContexts),
    ("proxy.tracing.enable", Delta::TracingEnabled),
    ("proxyInit.image", Delta::InitUsesProxyImage),
    ("proxyInit.resources", Delta::SharedResources),
];

impl<'v> Section<'v> {
    /// The whole tree; `null` is an empty one.
    pub(crate) fn root(tree: &'v Value, release: Release) -> Result<Self> {
        Self::nested(String::new(), Some(tree), release)
    }

    /// A section below this one.
    pub(crate) fn section(&self, key: &str) -> Result<Self> {
        Self::nested(self.path_of(key), self.get(key), self.release)
    }

    /// A section below this one, if it is present.
    pub(crate) fn optional(&self, key: &str) -> Result<Option<Self>> {
        Ok(Some(self.section(key)?).filter(|section| section.map.is_some()))
    }

    /// A required section below this one.
    pub(crate) fn required(&self, key: &str) -> Result<Self> {
        self.optional(key)?.ok_or_else(|| ValuesError::Missing(self.path_of(key)))
    }

    /// A string; other scalars are converted as Go's YAML libraries do.
    pub(crate) fn text(&self, key: &str) -> Result<String> {
        Ok(match self.get(key) {
            None => String::new(),
            Some(value) => scalar(value).ok_or_else(|| self.mismatch(key, "a string", value))?,
        })
    }

    /// A boolean.
    pub(crate) fn boolean(&self, key: &str) -> Result<bool> {
        match self.get(key) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(value) => Err(self.mismatch(key, "a boolean", value)),
        }
    }

    /// An integer; accepts `2102.0`.
    pub(crate) fn integer(&self, key: &str) -> Result<i64> {
        match self.get(key) {
            None => Ok(0),
            Some(value) => integer(value).ok_or_else(|| self.mismatch(key, "an integer", value)),
        }
    }

    /// A 32-bit integer.
    pub(crate) fn small_integer(&self, key: &str) -> Result<i64> {
        let number = self.integer(key)?;
        match (i32::try_from(number), self.get(key)) {
            (Err(_), Some(value)) => Err(self.mismatch(key, "a 32-bit integer", value)),
            _ => Ok(number),
        }
    }

    /// An unsigned integer.
    pub(crate) fn unsigned(&self, key: &str) -> Result<u64> {
        match self.get(key) {
            None => Ok(0),
            Some(value) => value
                .as_u64()
                .or_else(|| integer(value)?.try_into().ok())
                .ok_or_else(|| self.mismatch(key, "an integer of 0 or more", value)),
        }
    }

    /// A floating-point number.
    pub(crate) fn float(&self, key: &str) -> Result<f64> {
        match self.get(key) {
            None => Ok(0.0),
            Some(value) => value.as_f64().ok_or_else(|| self.mismatch(key, "a number", value)),
        }
    }

    /// A list of strings.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<String>> {
        let list = self.list(key)?;
        list.iter()
            .map(|item| match item {
                Value::Null => Ok(String::new()),
                item => scalar(item).ok_or_else(|| self.mismatch(key, "a list of strings", item)),
            })
            .collect()
    }

    /// A list.
    pub(crate) fn list(&self, key: &str) -> Result<&'v [Value]> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(value) => Err(self.mismatch(key, "a list", value)),
        }
    }

    /// A map with any content; `None` if empty.
    pub(crate) fn map(&self, key: &str) -> Result<Option<&'v Map<String, Value>>> {
        Ok(self.section(key)?.map.filter(|map| !map.is_empty()))
    }

    /// The entries of this section.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'v String, &'v Value)> {
        self.map.into_iter().flatten()
    }

    /// Whether the key is present and not `null`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The path of a key, joined with dots.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The error for a value of the wrong type at `key`.
    pub(crate) fn mismatch(&self, key: &str, expected: &'static str, found: &Value) -> ValuesError {
        ValuesError::Type { key: self.path_of(key), expected, found: described(found) }
    }

    fn nested(path: String, value: Option<&'v Value>, release: Release) -> Result<Self> {
        let map = match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map),
            Some(value) => {
                let found = described(value);
                return Err(ValuesError::Type { key: path, expected: "a map", found });
            }
        };
        Ok(Self { path, map, release })
    }

    fn is_known(&self, key: &str) -> bool {
        let path = self.path_of(key);
        let delta = |table: &[(&str, Delta)]| {
            table.iter().find(|(known, _)| *known == path).map(|(_, delta)| *delta)
        };
        delta(KNOWN_SINCE).is_none_or(|delta| self.release.has(delta))
            && delta(KNOWN_BEFORE).is_none_or(|delta| !self.release.has(delta))
    }

    /// The value of a key, unless it is `null`. The exact spelling wins over other cases.
    fn get(&self, key: &str) -> Option<&'v Value> {
        let map = self.map.filter(|_| self.is_known(key))?;
        map.get(key)
            .or_else(|| map.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, v)| v))
            .filter(|value| !value.is_null())
    }
}

/// A scalar as a string, with numbers as Go prints them.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) if number.is_f64() => number.as_f64().map(format_float),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        let whole = number.fract() == 0.0 && number.abs() < 1e21;
        whole.then(|| format!("{number:.0}").parse().ok())?
    })
}

fn described(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Array(_) => return "a list".to_owned(),
        Value::Object(_) => return "a map".to_owned(),
        Value::Bool(_) => "the boolean",
        Value::Number(_) => "the number",
        Value::String(_) => "the string",
    };
    format!("{kind} {value}")
}
