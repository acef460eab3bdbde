//! The resources of a pod: of its containers, its own, and its overhead.

use serde_json::Value;

use super::{
    super::{items, present, text},
    Amounts, Resources, Side, add, amounts,
    names::is_of_pods,
    raise,
};

/// A container that takes resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Container {
    pub(in super::super) name: String,
    pub(in super::super) resources: Resources,
    /// Whether an init container runs beside the others: a native sidecar.
    restarts: bool,
}

/// The resources of a pod. Ephemeral containers have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct PodResources {
    pub(in super::super) init: Vec<Container>,
    pub(in super::super) containers: Vec<Container>,
    /// `spec.resources`.
    pub(in super::super) own: Option<Resources>,
    /// `spec.overhead`, which the runtime class gives.
    overhead: Amounts,
}

impl PodResources {
    /// What the tree of a pod has.
    pub(in super::super) fn read(pod: &Value) -> Self {
        let list =
            |pointer: &str| items(pod.pointer(pointer)).iter().map(Container::read).collect();
        let own = present(pod, "/spec/resources");
        Self {
            init: list("/spec/initContainers"),
            containers: list("/spec/containers"),
            own: own.map(Resources::read),
            overhead: amounts(present(pod, "/spec/overhead")),
        }
    }

    /// Every container, init containers first.
    pub(in super::super) fn all(&self) -> impl Iterator<Item = &Container> {
        self.init.iter().chain(&self.containers)
    }

    pub(in super::super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Container> {
        self.init.iter_mut().chain(&mut self.containers)
    }

    /// Whether the pod itself has resources that count.
    pub(in super::super) fn has_own(&self) -> bool {
        let own = self.own.iter().flat_map(|own| own.requests.keys().chain(own.limits.keys()));
        own.into_iter().any(|name| is_of_pods(name))
    }

    /// What the containers take together: all that run side by side, or an init container with the
    /// native sidecars that started before it, whichever is more (k8s.io/component-helpers v0.37.2,
    /// `AggregateContainerRequests` and `AggregateContainerLimits`).
    pub(in super::super) fn of_containers(&self, side: Side) -> Amounts {
        let mut together = Amounts::new();
        for container in &self.containers {
            add(&mut together, container.resources.side(side));
        }
        let (mut sidecars, mut at_start) = (Amounts::new(), Amounts::new());
        for container in &self.init {
            let amounts = container.resources.side(side);
            if container.restarts {
                add(&mut together, amounts);
                add(&mut sidecars, amounts);
                raise(&mut at_start, &sidecars);
            } else {
                let mut running = amounts.clone();
                add(&mut running, &sidecars);
                raise(&mut at_start, &running);
            }
        }
        raise(&mut together, &at_start);
        together
    }

    /// The same, in which the pod's own resources of some names replace those of its containers.
    pub(in super::super) fn effective(&self, side: Side, is_own: fn(&str) -> bool) -> Amounts {
        let mut all = self.of_containers(side);
        for (name, amount) in self.own.iter().flat_map(|own| own.side(side)) {
            if is_own(name) {
                all.insert(name.clone(), amount.clone());
            }
        }
        all
    }

    /// What the pod takes from a node and from quotas: with its overhead (k8s.io/component-helpers
    /// v0.37.2, `PodRequests` and `PodLimits`).
    pub(in super::super) fn taken(&self, side: Side) -> Amounts {
        let mut taken = self.effective(side, is_of_pods);
        let mut overhead = self.overhead.clone();
        if side == Side::Limits {
            // What is not limited has no limit with the overhead either.
            overhead.retain(|name, _| taken.get(name).is_some_and(super::Amount::is_positive));
        }
        add(&mut taken, &overhead);
        taken
    }
}

impl Container {
    fn read(container: &Value) -> Self {
        Self {
            name: text(container, "/name").unwrap_or_default().to_owned(),
            resources: present(container, "/resources").map(Resources::read).unwrap_or_default(),
            restarts: text(container, "/restartPolicy") == Some("Always"),
        }
    }
}
