//! Whether templates are for a pod, whatever they would write.

use std::collections::BTreeSet;

use super::{Call, Caller, Request, State, called, candidate::Chance, way::named};
use crate::{
    lay::Others,
    run::{Stop, Work},
    trace::{Laid, Trace},
};
use injectd_templates::{Template, object::FailurePolicy};

/// Whether a template is for a pod.
#[derive(Debug)]
pub(crate) enum Fit {
    /// It is.
    Fits,
    /// It is not, for the reason of this state.
    Left(State),
    /// It denies the pod, for this reason.
    Denied(String),
}

/// For each template, whether it is for a pod by selectors, switch, conditions, parameters and validations.
pub(crate) fn fits(templates: &[&Template], request: &Request<'_>) -> Vec<Fit> {
    called(request, templates, &Caller::PLAIN, |call| {
        templates.iter().map(|template| call.fit(template)).collect()
    })
}

/// For each template, whether selectors and its switch let it be for a pod: neither owners nor the ServiceAccount
/// are read.
pub(crate) fn selects(templates: &[&Template], request: &Request<'_>) -> Vec<bool> {
    called(request, templates, &Caller::PLAIN, |call| {
        templates.iter().map(|template| call.candidate(template).is_on()).collect()
    })
}

/// What a template would write into a pod if it were for it; nothing if that fails.
pub(crate) fn laid(template: &Template, request: &Request<'_>) -> Vec<Laid> {
    let (trace, key) = (Trace::default(), template.key());
    called(request, &[template], &Caller { trace: Some(&trace), patience: None }, |call| {
        let ports = call.fresh_ports(template);
        trace.begin(&key);
        let mut work = Work::of(request.pod);
        let applied = call.of(template, ports.as_ref(), Others::default()).apply(
            &mut work,
            &BTreeSet::new(),
            &mut Vec::new(),
        );
        if applied.is_ok() {
            trace.end(request.pod, &work.pod);
        }
    });
    trace.into_templates().remove(&key).map(|traced| traced.laid).unwrap_or_default()
}

impl Call<'_> {
    fn fit(&self, template: &Template) -> Fit {
        match self.left(template) {
            Ok(None) => Fit::Fits,
            Ok(Some(state)) => Fit::Left(state),
            Err(Stop::Skipped(reason) | Stop::InTheWay(reason)) => {
                Fit::Left(State::Skipped(reason))
            }
            Err(Stop::Denied(text)) => Fit::Denied(text),
            Err(Stop::Failed(failure)) => {
                let text = named(template, &failure);
                match template.spec.failure_policy {
                    FailurePolicy::Fail => Fit::Denied(text),
                    FailurePolicy::Ignore => Fit::Left(State::Skipped(text)),
                }
            }
        }
    }

    /// Why a template is left out.
    fn left(&self, template: &Template) -> Result<Option<State>, Stop> {
        let candidate = self.candidate(template);
        match &candidate.chance {
            Chance::Denied(text) => return Err(Stop::Denied(text.clone())),
            Chance::Unmatched(reason) => return Ok(Some(State::Unmatched(reason.clone()))),
            Chance::Off(_) => return Ok(Some(State::Disabled)),
            Chance::On { .. } => {}
        }
        let ports = self.fresh_ports(template);
        let run = self.of(template, ports.as_ref(), Others::default());
        if let Some(name) = candidate.unmet(&run)? {
            return Ok(Some(State::unmet(name)));
        }
        run.begins()?;
        Ok(None)
    }
}
