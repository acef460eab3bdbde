//! Whether templates are for a pod, whatever they would write.

use std::collections::BTreeSet;

use injectd_templates::{Template, object::FailurePolicy};
use serde_json::Value;

use super::{Call, Denied, Request, State, called, known::Known, named};
use crate::{
    enablement::enabled,
    lay::Others,
    mark::Mark,
    matching::unselected,
    run::Stop,
    trace::{Laid, Trace},
};

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
    called(request, None, |call| templates.iter().map(|template| call.fit(template)).collect())
}

/// For each template, whether selectors and its switch let it be for a pod: neither owners nor the ServiceAccount
/// are read.
pub(crate) fn selects(templates: &[&Template], request: &Request<'_>) -> Vec<bool> {
    called(request, None, |call| templates.iter().map(|template| call.is_for(template)).collect())
}

/// What a template would write into a pod if it were for it; nothing if that fails.
pub(crate) fn laid(template: &Template, request: &Request<'_>) -> Vec<Laid> {
    let (trace, key) = (Trace::default(), template.key());
    called(request, Some(&trace), |call| {
        let ports = call.ports_of(template, request.pod, &Mark::default(), &Known::default());
        trace.begin(&key);
        let mut pod = request.pod.clone();
        let applied =
            call.of(template, &ports, Others::default()).apply(&mut pod, &BTreeSet::new());
        if applied.is_ok() {
            trace.end(request.pod, &pod);
        }
    });
    trace.into_templates().remove(&key).map(|traced| traced.laid).unwrap_or_default()
}

impl Call<'_> {
    fn fit(&self, template: &Template) -> Fit {
        match self.left(template) {
            Ok(None) => Fit::Fits,
            Ok(Some(state)) => Fit::Left(state),
            Err(Stop::Skipped(reason)) => Fit::Left(State::Skipped(reason)),
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
        let unmatched = self.unmatched(template).map_err(|denied| Stop::Denied(denied.text))?;
        if let Some(reason) = unmatched {
            return Ok(Some(State::Unmatched(reason)));
        }
        let enablement = template.spec.enablement.as_ref();
        if !enabled(enablement, &template.identity.name, self.layers).0 {
            return Ok(Some(State::Disabled));
        }
        let ports = self.ports_of(template, self.base.object, &Mark::default(), &Known::default());
        let run = self.of(template, &ports, Others::default());
        if let Some(name) = run.unmet_condition()? {
            return Ok(Some(State::Unmatched(format!("condition {name}"))));
        }
        run.begins()?;
        Ok(None)
    }

    /// Why the template is not for the pod.
    pub(super) fn unmatched(&self, template: &Template) -> Result<Option<String>, Denied> {
        let namespace = self.base.object.pointer("/metadata/namespace").and_then(Value::as_str);
        if self.own_namespace.is_some() && self.own_namespace == namespace {
            return Ok(Some("the namespace is injectd's own".to_owned()));
        }
        let of = &template.spec.r#match;
        match unselected(&template.identity, of, self.layers, self.base.object) {
            Ok(reason) => Ok(reason.map(str::to_owned)),
            Err(problem) => {
                let (template, text) = (template.key(), format!("spec.match: {problem}"));
                Err(Denied { template, text, failed_at: Some("spec.match".to_owned()) })
            }
        }
    }
}
