//! What `freePorts` knows of a pod besides the pod as it came.

use std::{collections::BTreeSet, sync::LazyLock};

use injectd_cel::{TypeDef, Typed};
use serde_json::Value;

use crate::mark::containers;

/// Containers whose ports are free for a template, and ports that are not.
#[derive(Debug)]
pub(crate) struct Ports {
    /// Names of the template's own containers.
    pub(crate) own: Typed,
    /// Ports of the other containers of the pod, with those that earlier templates have added.
    pub(crate) taken: Typed,
}

impl Ports {
    /// For a template that does not ask for ports.
    pub(crate) fn none() -> &'static Self {
        static NONE: LazyLock<Ports> =
            LazyLock::new(|| Ports::of(&Value::Null, &BTreeSet::new(), &BTreeSet::new()));
        &NONE
    }

    /// The ports of a pod on its way, for a template with these containers, and ports that others will take.
    pub(crate) fn of(pod: &Value, own: &BTreeSet<String>, others: &BTreeSet<i64>) -> Self {
        let is_own = |container: &&Value| {
            container.get("name").and_then(Value::as_str).is_some_and(|name| own.contains(name))
        };
        let foreign = containers(pod).filter(|container| !is_own(container));
        let ports = foreign.filter_map(|container| container.get("ports")?.as_array()).flatten();
        let numbers = ports.flat_map(|port| ["containerPort", "hostPort"].map(|key| port.get(key)));
        let taken = numbers.filter_map(|number| number?.as_i64());
        let taken: BTreeSet<_> = taken.chain(others.iter().copied()).collect();
        let list = |of: TypeDef, items: Value| Typed::of(&of.list(), Some(&items));
        Self {
            own: list(TypeDef::String, own.iter().map(String::as_str).collect()),
            taken: list(TypeDef::Int, taken.into_iter().collect()),
        }
    }
}
