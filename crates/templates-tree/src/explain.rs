//! What became of each template, and who wrote what.

use std::{borrow::Borrow, collections::BTreeMap};

use injectd_templates::Template;

use crate::{
    inject::{self, Decision, Denied, Injected, Request},
    trace::{Trace, Write},
};

/// An injection that is explained.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The injection.
    pub result: Result<Injected, Denied>,
    /// The templates in the order in which they are applied, up to the one that denies the pod.
    pub templates: Vec<Explanation>,
}

/// What a template did.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Its key.
    pub template: String,
    /// The hash of its `spec`.
    pub hash: String,
    /// What became of it; `None` if it denies the pod.
    pub decision: Option<Decision>,
    /// Where the values of its parameters come from, by their names: a source, the default, or nothing. It
    /// has none if they were not read.
    pub parameters: BTreeMap<String, String>,
    /// The fields of the pod that it wrote.
    pub writes: Vec<Write>,
}

/// Applies templates to a pod as [`inject`](crate::inject()) does, and explains it.
#[must_use]
pub fn explain(templates: &[impl Borrow<Template>], request: &Request<'_>) -> Explained {
    let trace = Trace::default();
    let mut decisions = Vec::new();
    let templates = inject::sorted(templates);
    let result = inject::traced(&templates, request, Some(&trace), &mut decisions);
    let result = result.map(|injected| Injected { decisions: decisions.clone(), ..injected });
    let mut traced = trace.into_templates();
    let denied = result.as_ref().err().map(|denied| denied.template.clone());
    let is_decided = |key: &str| decisions.iter().any(|decision| decision.template == key);
    let denied = denied.filter(|key| !is_decided(key)).map(|key| (key, None));
    let all = decisions.iter().map(|decision| (decision.template.clone(), Some(decision.clone())));
    let hash = |key: &str| {
        let template = templates.iter().find(|template| template.key() == key);
        template.map(|template| template.hash.clone()).unwrap_or_default()
    };
    let all = all.chain(denied).collect::<Vec<_>>().into_iter();
    let templates = all.map(|(template, decision)| {
        let traced = traced.remove(&template).unwrap_or_default();
        let (parameters, writes) = (traced.parameters, traced.writes);
        Explanation { hash: hash(&template), template, decision, parameters, writes }
    });
    let templates = templates.collect();
    Explained { result, templates }
}
