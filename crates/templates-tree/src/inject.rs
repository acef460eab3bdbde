//! Templates are applied to a pod.

mod fit;
mod known;

use std::{borrow::Borrow, collections::BTreeSet, fmt};

use injectd_cel::Datum;
use injectd_templates::{Template, object::FailurePolicy};
use serde_json::{Map, Value};

pub(crate) use self::fit::{Fit, fits, laid, selects};
use self::known::{Known, others_of};
use crate::{
    enablement::enabled,
    lay::{Others, Turn},
    layers::Layers,
    mark::{Entry, Mark, container_names},
    owner,
    run::{Done, Seen, Stop},
    scope::{Base, Failure},
    trace::Trace,
};

/// A pod, and what is known about where it comes from.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// The pod.
    pub pod: &'r Value,
    /// Its namespace.
    pub namespace: &'r Value,
    /// Its ServiceAccount, if it is there.
    pub service_account: Option<&'r Value>,
    /// The objects of its owners, the nearest first.
    pub owners: &'r [Value],
    /// injectd's own namespace: no pod of it is changed.
    pub own_namespace: Option<&'r str>,
}

/// What became of a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Injected {
    /// The pod afterwards.
    pub pod: Value,
    /// What a person should look at.
    pub warnings: Vec<String>,
    /// What became of each template, in the order in which they are applied.
    pub decisions: Vec<Decision>,
}

/// What became of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The key of the template.
    pub template: String,
    /// What became of it.
    pub state: State,
    /// The cost of its expressions, in units of cel-go.
    pub cost: u64,
}

/// What became of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is not for the pod, for this reason.
    Unmatched(String),
    /// A label or annotation, or its absence, switches it off.
    Disabled,
    /// It is left out, for this reason.
    Skipped(String),
    /// It is left out, because an expression fails.
    Failed {
        /// The field of the expression.
        field: String,
        /// The step or field, and the reason.
        text: String,
    },
    /// It is for the pod, and has nothing to add.
    Nothing,
    /// It was in the pod before.
    Present {
        /// Whether its `spec` has changed since.
        is_outdated: bool,
    },
    /// It was applied.
    Applied,
}

/// As a person reads it: `template agent: not matched: podSelector`.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template {}: {}", self.template, self.state)
    }
}

impl State {
    /// The state in one word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unmatched(_) => "unmatched",
            Self::Disabled => "disabled",
            Self::Skipped(_) | Self::Failed { .. } => "skipped",
            Self::Nothing => "nothing",
            Self::Present { is_outdated: false } => "present",
            Self::Present { is_outdated: true } => "outdated",
            Self::Applied => "applied",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmatched(reason) => write!(f, "not matched: {reason}"),
            Self::Disabled => f.write_str("disabled"),
            Self::Skipped(reason) | Self::Failed { text: reason, .. } => {
                write!(f, "skipped: {reason}")
            }
            Self::Nothing => f.write_str("nothing to add"),
            Self::Present { is_outdated: false } => f.write_str("in the pod already"),
            Self::Present { is_outdated: true } => f.write_str("an older revision is in the pod"),
            Self::Applied => f.write_str("applied"),
        }
    }
}

/// Why a pod is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template {template}: {text}")]
pub struct Denied {
    /// The key of the template.
    pub template: String,
    /// The step or field, and the reason.
    pub text: String,
    /// The field of the expression that fails; `None` if the template denies on purpose.
    pub failed_at: Option<String>,
}

/// Applies templates to a pod, in their order: cluster templates first, then by priority and name.
///
/// # Errors
/// Why the pod is denied.
pub fn inject(templates: &[Template], request: &Request<'_>) -> Result<Injected, Denied> {
    inject_in_order(&sorted(templates), request)
}

/// Templates in the order in which they are applied.
pub(crate) fn sorted<T: Borrow<Template>>(templates: &[T]) -> Vec<&Template> {
    let mut templates: Vec<_> = templates.iter().map(Borrow::borrow).collect();
    templates.sort_by_cached_key(|template| template.order());
    templates
}

/// Applies templates that are in their [order](Template::order).
///
/// # Errors
/// Why the pod is denied.
pub fn inject_in_order(templates: &[&Template], request: &Request<'_>) -> Result<Injected, Denied> {
    traced(templates, request, None, &mut Vec::new())
}

/// The same, with a record of what is done, and the decisions up to a denial.
pub(crate) fn traced(
    templates: &[&Template],
    request: &Request<'_>,
    trace: Option<&Trace>,
    decisions: &mut Vec<Decision>,
) -> Result<Injected, Denied> {
    called(request, trace, |call| call.run(templates, request.pod, decisions))
}

/// What is done in a call for a pod.
fn called<R>(request: &Request<'_>, trace: Option<&Trace>, then: impl FnOnce(&Call<'_>) -> R) -> R {
    let object = with_namespace(request);
    let owners = owner::owners(request.pod, request.owners);
    let (root, owners) = (owner::root(request.pod, &owners), Value::from(owners));
    let base = Base {
        object: &object,
        namespace: request.namespace,
        service_account: request.service_account.map(Datum::from),
        controller: owner::controller(request.pod).map(Datum::from),
        owner: &root,
        owners: &owners,
        trace,
    };
    let empty = Value::Null;
    let metadata = |object: &'_ Value| object.get("metadata").unwrap_or(&empty).clone();
    let account = request.service_account.map(metadata);
    let layers = Layers::new(&object, &metadata(request.namespace), account.as_ref());
    then(&Call { base: &base, layers: &layers, own_namespace: request.own_namespace })
}

/// The pod as expressions see it: an API server fills in its namespace after the webhook only.
fn with_namespace(request: &Request<'_>) -> Value {
    let mut object = request.pod.clone();
    let name = request.namespace.pointer("/metadata/name").cloned();
    if object.pointer("/metadata/namespace").is_none()
        && let (Value::Object(fields), Some(name)) = (&mut object, name)
    {
        let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(metadata) = metadata {
            metadata.insert("namespace".to_owned(), name);
        }
    }
    object
}

struct Call<'c> {
    base: &'c Base<'c>,
    layers: &'c Layers,
    own_namespace: Option<&'c str>,
}

/// A pod on its way.
struct Way {
    pod: Value,
    mark: Mark,
    known: Known,
    /// Keys of the templates that were evaluated.
    applied: BTreeSet<String>,
    warnings: Vec<String>,
}

impl Call<'_> {
    fn run(
        &self,
        templates: &[&Template],
        pod: &Value,
        decisions: &mut Vec<Decision>,
    ) -> Result<Injected, Denied> {
        let mut way = Way {
            pod: pod.clone(),
            mark: Mark::of(pod),
            known: self.known(templates, pod),
            applied: BTreeSet::new(),
            warnings: Vec::new(),
        };
        let mut active = Vec::new();
        for (at, template) in templates.iter().enumerate() {
            let (state, cost) = self.template(template, at, &mut way)?;
            if matches!(state, State::Applied | State::Present { .. } | State::Nothing) {
                active.push(at);
            }
            decisions.push(Decision { template: template.key(), state, cost });
        }
        // Rules for what other templates add come after all overlays.
        for at in active {
            self.last_rules(templates[at], at, &mut way)?;
        }
        way.forget_removed();
        if way.mark != Mark::of(pod) {
            way.mark.write(&mut way.pod);
        }
        Ok(Injected { pod: way.pod, warnings: way.warnings, decisions: decisions.clone() })
    }

    fn template(
        &self,
        template: &Template,
        at: usize,
        way: &mut Way,
    ) -> Result<(State, u64), Denied> {
        if let Some(reason) = self.unmatched(template)? {
            return Ok((State::Unmatched(reason), 0));
        }
        let (enablement, name) = (template.spec.enablement.as_ref(), &template.identity.name);
        let (is_on, warnings) = enabled(enablement, name, self.layers);
        let key = template.key();
        way.warn(&key, warnings);
        if !is_on {
            return Ok((State::Disabled, 0));
        }
        let others = way.others(&key);
        let ports = self.ports(template, way);
        let turn = Turn { template: at, ..Turn::default() };
        let claims = Others { turn, claims: Some(&way.known.claims), records: false };
        let run = self.of(template, &ports, claims);
        match run.unmet_condition() {
            Ok(None) => {}
            Ok(Some(name)) => return Ok((State::Unmatched(format!("condition {name}")), 0)),
            Err(failure) => return Ok((way.stopped(template, failure.into())?, 0)),
        }
        self.base.trace.iter().for_each(|trace| trace.begin(&key));
        let believed = way.mark.believed(&key, &way.pod).cloned();
        let mut pod = way.pod.clone();
        let done = match &believed {
            None => run.apply(&mut pod, &others),
            Some(entry) => run.rules(&mut pod, entry, &others, Seen::Own),
        };
        match done {
            Err(stop) => Ok((way.stopped(template, stop)?, 0)),
            Ok(done) => {
                let state = match &believed {
                    Some(entry) => State::Present { is_outdated: entry.hash != template.hash },
                    None if done.entry.is_some() => State::Applied,
                    None => State::Nothing,
                };
                let cost = done.cost;
                self.base.trace.iter().for_each(|trace| trace.end(&way.pod, &pod));
                way.applied.insert(key.clone());
                way.take(&key, pod, done);
                Ok((state, cost))
            }
        }
    }

    /// Applies rules for `Added` to what other templates have added.
    fn last_rules(&self, template: &Template, at: usize, way: &mut Way) -> Result<(), Denied> {
        let key = template.key();
        let ports = self.ports(template, way);
        let turn = Turn { is_last: true, template: at, rule: 0 };
        let claims = Others { turn, claims: Some(&way.known.claims), records: false };
        let run = self.of(template, &ports, claims);
        let default = || Entry { hash: template.hash.clone(), ..Entry::default() };
        let entry = way.mark.0.get(&key).cloned().unwrap_or_else(default);
        self.base.trace.iter().for_each(|trace| trace.begin(&key));
        let others = way.others(&key);
        let mut pod = way.pod.clone();
        match run.rules(&mut pod, &entry, &others, Seen::Added) {
            // Its warnings were given when it was applied.
            Ok(done) => {
                self.base.trace.iter().for_each(|trace| trace.end(&way.pod, &pod));
                way.take(&key, pod, Done { warnings: Vec::new(), ..done });
            }
            Err(stop) => {
                way.stopped(template, stop)?;
            }
        }
        Ok(())
    }
}

impl Way {
    fn warn(&mut self, key: &str, warnings: Vec<String>) {
        let texts = warnings.into_iter().map(|text| format!("template {key}: {text}"));
        self.warnings.extend(texts);
    }

    /// Names of the containers that other templates added.
    fn others(&self, key: &str) -> BTreeSet<String> {
        let entries = self.mark.0.iter().filter(|(known, _)| *known != key);
        let added = entries.flat_map(|(_, entry)| &entry.added);
        added.cloned().chain(others_of(&self.known.met, key)).collect()
    }

    /// What one template added and another one removed is in the mark of neither.
    fn forget_removed(&mut self) {
        let names: BTreeSet<_> = container_names(&self.pod).map(str::to_owned).collect();
        let of_call = self.mark.0.iter_mut().filter(|(key, _)| self.applied.contains(*key));
        for (_, entry) in of_call {
            entry.added.retain(|name| names.contains(name));
            entry.served.retain(|name| names.contains(name));
        }
    }

    fn take(&mut self, key: &str, pod: Value, done: Done) {
        self.warn(key, done.warnings);
        if let Some(entry) = done.entry {
            self.mark.0.insert(key.to_owned(), entry);
            self.pod = pod;
        }
    }

    /// A template that is left out, if it does not deny the pod.
    fn stopped(&mut self, template: &Template, stop: Stop) -> Result<State, Denied> {
        let key = template.key();
        match stop {
            Stop::Denied(text) => Err(Denied { template: key, text, failed_at: None }),
            Stop::Skipped(reason) => Ok(State::Skipped(reason)),
            Stop::Failed(failure) => {
                let text = named(template, &failure);
                match template.spec.failure_policy {
                    FailurePolicy::Fail => {
                        Err(Denied { template: key, text, failed_at: Some(failure.field) })
                    }
                    FailurePolicy::Ignore => {
                        self.warn(&key, vec![format!("left out: {text}")]);
                        Ok(State::Failed { field: failure.field, text })
                    }
                }
            }
        }
    }
}

/// A failure with the name of its step.
fn named(template: &Template, failure: &Failure) -> String {
    let Failure { field, text } = failure;
    let index = field.strip_prefix("spec.steps[").and_then(|rest| rest.split_once(']'));
    let step = index.and_then(|(index, _)| template.steps.get(index.parse::<usize>().ok()?));
    match step {
        Some(step) => format!("step {}: {field}: {text}", step.name),
        None => format!("{field}: {text}"),
    }
}
