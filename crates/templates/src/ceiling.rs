//! What a `SidecarTemplate` may add: the Pod Security Standards, newest version.
//!
//! They hold for each container and volume that it adds, and for each field that it writes. What a control
//! looks at must be constant. Pods of the system are for `ClusterSidecarTemplate`s only. A pod's own fields are not known here, so that nothing that a pod sets as a
//! whole makes up for a container.

mod control;
mod walk;

use crate::{Problem, Template, matching::SYSTEM_NAMESPACE, object::SystemPods};

use walk::Walk;

/// The highest level of the Pod Security Standards that a `SidecarTemplate` may need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ceiling {
    /// There are no `SidecarTemplate`s.
    Off,
    /// Level restricted.
    Restricted,
    /// Level baseline.
    #[default]
    Baseline,
    /// Anything.
    Privileged,
}

impl Ceiling {
    /// All, the strictest first.
    pub const ALL: [Self; 4] = [Self::Off, Self::Restricted, Self::Baseline, Self::Privileged];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Restricted => "restricted",
            Self::Baseline => "baseline",
            Self::Privileged => "privileged",
        }
    }

    /// Where a template is above the ceiling, in the order of its fields. A `ClusterSidecarTemplate` has
    /// no ceiling.
    #[must_use]
    pub fn problems(self, template: &Template) -> Vec<Problem> {
        if template.identity.namespace.is_none() || self == Self::Privileged {
            return Vec::new();
        }
        if self == Self::Off {
            let text = "SidecarTemplates are switched off (--namespaced-templates off): write a \
                ClusterSidecarTemplate";
            return vec![Problem::new("kind", text)];
        }
        let mut walk = Walk::new(self);
        for step in 0..template.steps.len() {
            walk.step(template, step);
        }
        let mut problems = of_system_pods(template);
        problems.extend(walk.problems());
        problems
    }
}

/// Below level privileged, the pods of the system are no matter of a namespace's: a sidecar there has the
/// priority of the system.
fn of_system_pods(template: &Template) -> Vec<Problem> {
    let mut problems = Vec::new();
    if template.identity.namespace.as_deref() == Some(SYSTEM_NAMESPACE) {
        let text = format!(
            "the pods of {SYSTEM_NAMESPACE} are pods of the system: only a ClusterSidecarTemplate may be for them"
        );
        problems.push(Problem::new("metadata.namespace", text));
    }
    if template.spec.r#match.system_pods == SystemPods::Include {
        let text = "expected Exclude, found Include: only a ClusterSidecarTemplate may be for pods of the system";
        problems.push(Problem::new("spec.match.systemPods", text));
    }
    problems
}

#[cfg(test)]
mod tests;
