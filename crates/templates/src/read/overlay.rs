//! Overlays of steps and rules are read.

use std::sync::LazyLock;

use injectd_merge::schema::{Kind, POD};
use serde_json::Value;

use super::Reader;
use crate::{
    object::{self, Existing},
    structure::{Structure, below},
};

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

impl Reader<'_> {
    /// The overlay of a step.
    pub(super) fn overlay(&mut self, field: &str, step: &object::Step) -> Option<Structure> {
        let Some(overlay) = &step.overlay else {
            return None;
        };
        if self.is_namespaced {
            self.check_directives(field, overlay);
        }
        Some(self.compiled(field, overlay, &POD, step.existing))
    }

    /// The overlay of a rule.
    pub(super) fn container_overlay(&mut self, field: &str, rule: &object::Rule) -> Structure {
        if rule.overlay.get("name").is_some() {
            let text = "a rule changes containers that are there, and not their names: \
                write select: {names: […]} to select one";
            self.problem(&below(field, "name"), text);
        }
        if rule.overlay.get("$patch").is_some() {
            let text = "a rule removes no container: write $patch in its fields";
            self.problem(&below(field, "$patch"), text);
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
