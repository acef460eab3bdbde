//! Whether a template may be for a pod: what is the same however often it is evaluated.

use injectd_templates::{Template, object::ContainerKind};

use super::Call;
use crate::{enablement::enabled, lay::Others, matching::unselected_at, run::Run, scope::Failure};

/// A template, and whether it may be for a pod.
pub(super) struct Candidate<'t> {
    pub(super) template: &'t Template,
    pub(super) chance: Chance<'t>,
}

/// Whether a template may be for a pod.
pub(super) enum Chance<'t> {
    /// The pod is denied.
    Denied(String),
    /// It is not, for this reason.
    Unmatched(String),
    /// It is switched off; with warnings.
    Off(Vec<String>),
    /// Selectors and the switch say so.
    On {
        warnings: Vec<String>,
        /// The name of a condition that does not hold; `None` if that may depend on the ports of others.
        unmet: Option<Unmet<'t>>,
    },
}

/// The name of a condition that does not hold.
type Unmet<'t> = Result<Option<&'t str>, Failure>;

impl<'t> Candidate<'t> {
    /// Whether selectors and the switch say that it is for the pod.
    pub(super) fn is_on(&self) -> bool {
        matches!(self.chance, Chance::On { .. })
    }

    /// The name of a condition that does not hold.
    pub(super) fn unmet<'r>(&self, run: &Run<'r>) -> Unmet<'r>
    where
        't: 'r,
    {
        match &self.chance {
            Chance::On { unmet: Some(unmet), .. } => unmet.clone(),
            _ => run.unmet_condition(),
        }
    }

    /// The name of a condition that is known not to hold.
    pub(super) fn known_unmet(&self) -> Option<&'t str> {
        match &self.chance {
            Chance::On { unmet: Some(Ok(name)), .. } => *name,
            _ => None,
        }
    }

    /// Whether a condition is known not to hold, or fails.
    pub(super) fn is_unmet(&self) -> bool {
        let Chance::On { unmet, .. } = &self.chance else { return true };
        !matches!(unmet, None | Some(Ok(None)))
    }

    /// Whether it has rules for what others add.
    pub(super) fn has_last_rules(&self) -> bool {
        let mut rules = self.template.steps.iter().flat_map(|step| &step.rules);
        rules.any(|rule| rule.kinds.contains(&ContainerKind::Added))
    }
}

impl Call<'_> {
    /// Whether a template may be for the pod.
    pub(super) fn candidate<'c>(&'c self, template: &'c Template) -> Candidate<'c> {
        Candidate { template, chance: self.chance(template) }
    }

    fn chance<'c>(&'c self, template: &'c Template) -> Chance<'c> {
        if self.own_namespace.is_some() && self.own_namespace == self.place.namespace {
            return Chance::Unmatched("the namespace is injectd's own".to_owned());
        }
        let of = &template.spec.r#match;
        match unselected_at(&template.identity, of, self.layers, self.place) {
            Ok(None) => {}
            Ok(Some(reason)) => return Chance::Unmatched(reason.to_owned()),
            Err(problem) => return Chance::Denied(format!("spec.match: {problem}")),
        }
        let enablement = template.spec.enablement.as_ref();
        let (is_on, warnings) = enabled(enablement, &template.identity.name, self.layers);
        if !is_on {
            return Chance::Off(warnings);
        }
        let unmet = (!template.asks_for_ports)
            .then(|| self.of(template, None, Others::default()).unmet_condition());
        Chance::On { warnings, unmet }
    }
}
