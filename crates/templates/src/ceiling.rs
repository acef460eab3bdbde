//! What a `SidecarTemplate` may add: the Pod Security Standards, newest version.
//!
//! They hold for each container and volume that it adds, and for each field that it writes. What a control
//! looks at must be constant. A pod's own fields are not known here, so that nothing that a pod sets as a
//! whole makes up for a container.

mod control;
mod walk;

use crate::{Problem, Template};

use walk::Walk;

/// The highest level of the Pod Security Standards that a `SidecarTemplate` may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceiling {
    /// There are no `SidecarTemplate`s.
    Off,
    /// Level restricted.
    Restricted,
    /// Level baseline.
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
        walk.problems()
    }
}

#[cfg(test)]
mod tests;
