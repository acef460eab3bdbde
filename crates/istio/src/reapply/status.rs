//! Reads the annotation `sidecar.istio.io/status`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::process::tree::{CONTAINERS, INIT_CONTAINERS};

/// The names of injected containers, by list.
#[derive(Debug, Default)]
pub(super) struct Injected(HashMap<&'static str, HashSet<String>>);

impl Injected {
    /// Whether an earlier injection added the container.
    pub(super) fn has(&self, field: &str, name: &str) -> bool {
        self.0.get(field).is_some_and(|names| names.contains(name))
    }
}

/// The answer is `None` if the text is not a JSON object. Lists of other things than names are
/// ignored; upstream panics.
///
/// Istio: `parseStatus`.
pub(super) fn read(text: &str) -> Option<Injected> {
    let status: Map<String, Value> = serde_json::from_str(text).ok()?;
    let names = |field| {
        let list = status.get(field).and_then(Value::as_array);
        let names = list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        (field, names.collect())
    };
    Some(Injected([CONTAINERS, INIT_CONTAINERS].into_iter().map(names).collect()))
}
