//! What an overlay may set.

use std::sync::LazyLock;

use injectd_merge::schema::{Kind, POD};
use serde_json::{Map, Value};

use super::Reader;
use crate::{
    fill::{self, Part},
    object::{self, Existing},
    structure::{Structure, below},
    template::CONTAINER_LISTS,
};

/// Fields of a Pod's `spec` that belong to the pod's author, the scheduler or the API server.
const NOT_IN_SPEC: [&str; 7] = [
    "nodeName",
    "hostname",
    "priority",
    "overhead",
    "ephemeralContainers",
    "serviceAccountName",
    // The old name of `serviceAccountName`.
    "serviceAccount",
];
/// Keys with this prefix are injectd's own.
const OWN_PREFIX: &str = "injectd.dev/";
/// Lists of what a template may have added itself.
const LISTS_OF_OWN: [&str; 3] = ["/spec/initContainers", "/spec/containers", "/spec/volumes"];

static NAMES: LazyLock<Kind> = LazyLock::new(|| Kind::List(Box::new(Kind::Text("string"))));
static NAME: Kind = Kind::Text("string");

/// A list of names.
pub(super) fn names() -> &'static Kind {
    &NAMES
}

/// A name.
pub(super) fn name() -> &'static Kind {
    &NAME
}

/// The type of a container.
fn container() -> &'static Kind {
    let field = |kind: &'static Kind, name| {
        kind.as_struct().and_then(|of| of.field(name)).map(|field| &field.kind)
    };
    match field(&POD, "spec").and_then(|spec| field(spec, "containers")) {
        Some(Kind::List(container)) => container,
        _ => &POD,
    }
}

/// An object; an empty one in the place of anything else.
fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

impl Reader<'_> {
    /// The overlay of a step.
    pub(super) fn overlay(&mut self, field: &str, step: &object::Step) -> Option<Structure> {
        let Some(overlay) = &step.overlay else {
            return None;
        };
        self.check_pod(field, overlay);
        Some(self.compiled(field, overlay, &POD, step.existing))
    }

    /// The overlay of a rule.
    pub(super) fn container_overlay(&mut self, field: &str, rule: &object::Rule) -> Structure {
        if rule.overlay.get("name").is_some() {
            let text = "a rule changes containers that are there, and not their names: \
                write select: {names: […]} to select one";
            self.problem(&below(field, "name"), text);
        }
        if self.is_namespaced {
            self.refuse_directives(field, &rule.overlay);
        }
        self.compiled(field, &rule.overlay, container(), rule.existing)
    }

    fn compiled(
        &mut self,
        field: &str,
        overlay: &Value,
        kind: &'static Kind,
        existing: Option<Existing>,
    ) -> Structure {
        self.compiler.allows_directives = existing == Some(Existing::Replace);
        let structure = self.compiler.compile(field, overlay, Some(kind));
        self.compiler.allows_directives = false;
        structure
    }

    fn check_pod(&mut self, field: &str, overlay: &Value) {
        let of_pod = object(Some(overlay));
        for name in of_pod.keys().filter(|name| !["metadata", "spec"].contains(&&***name)) {
            let text = "an overlay has metadata and spec only: remove this field";
            self.problem(&below(field, name), text);
        }
        self.check_metadata(&below(field, "metadata"), overlay.get("metadata"));
        let (spec, of_spec) = (below(field, "spec"), object(overlay.get("spec")));
        for name in of_spec.keys().filter(|name| NOT_IN_SPEC.contains(&&***name)) {
            let text = "an overlay may not set this field: it belongs to the pod's author, \
                the scheduler or the API server";
            self.problem(&below(&spec, name), text);
        }
        for list in CONTAINER_LISTS {
            let containers = of_spec.get(list).and_then(Value::as_array);
            for (index, container) in containers.into_iter().flatten().enumerate() {
                self.check_name(&format!("{spec}.{list}[{index}].name"), container);
            }
        }
        if self.is_namespaced {
            self.check_directives(field, overlay);
        }
    }

    fn check_metadata(&mut self, field: &str, metadata: Option<&Value>) {
        for (name, keys) in &object(metadata) {
            let path = below(field, name);
            if !["labels", "annotations"].contains(&&**name) {
                let text = "of metadata, an overlay may set labels and annotations only";
                self.problem(&path, text);
            }
            let keys = keys.as_object().into_iter().flat_map(Map::keys);
            for key in keys.filter(|key| key.starts_with(OWN_PREFIX)) {
                let text = "keys with injectd.dev/ are injectd's own: use another key";
                self.problem(&below(&path, key), text);
            }
        }
    }

    /// The name of a container must have a constant part, so that a person finds who added it.
    fn check_name(&mut self, field: &str, container: &Value) {
        match container.get("name") {
            Some(Value::String(name)) => {
                let parts = fill::parts(name).unwrap_or_default();
                if matches!(*parts, [Part::Expression { .. }]) {
                    let text = "the name of a container needs a constant part, such as \
                        tail-${index}";
                    self.problem(field, text);
                }
            }
            // A base may have the name.
            None if container.get("$from").is_some() => {}
            _ => self.problem(field, "a container needs a name"),
        }
    }

    /// A namespaced template removes nothing but what it adds itself: containers and volumes that the pod
    /// may have, and what is in them, are looked at when they are met.
    fn check_directives(&mut self, field: &str, overlay: &Value) {
        let mut rest = overlay.clone();
        for list in LISTS_OF_OWN {
            let entries = rest.pointer_mut(list).and_then(Value::as_array_mut);
            if let Some(entries) = entries {
                entries.retain(|entry| entry.get("name").is_none());
            }
        }
        self.refuse_directives(field, &rest);
    }

    fn refuse_directives(&mut self, field: &str, overlay: &Value) {
        if has_directive(overlay) {
            let text = "a SidecarTemplate may not use $patch on what it does not add itself";
            self.problem(field, text);
        }
    }
}

fn has_directive(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_directive),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name == "$patch" || has_directive(value))
        }
        _ => false,
    }
}
