//! Templates are applied to a pod.

mod candidate;
mod decision;
mod fit;
mod known;
mod meets;
mod way;

use std::{
    borrow::{Borrow, Cow},
    collections::BTreeSet,
};

use injectd_cel::Datum;
use injectd_core::lookups::Patience;
use injectd_templates::{
    Template,
    named::member,
    object::{FailurePolicy, Spec},
};
use serde_json::{Map, Value};

pub use self::decision::{Changed, Decision, Denied, Injected, State};
pub(crate) use self::fit::{Fit, fits, laid, selects};
use self::{
    candidate::{Candidate, Chance},
    way::Way,
};
use crate::{
    lay::Turn,
    layers::Layers,
    mark::{Entry, Mark},
    matching::PodPlace,
    owner::{self, Owners},
    ports::Ports,
    run::{InPod, Seen, Work},
    scope::Base,
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
    inject_while(None, templates, request).map(|changed| changed.of(request.pod))
}

/// The same, as long as the caller waits: then the pod is denied soon, and the denial says nothing about it.
///
/// # Errors
/// Why the pod is denied.
pub fn inject_while(
    patience: Option<&dyn Patience>,
    templates: &[&Template],
    request: &Request<'_>,
) -> Result<Changed, Denied> {
    let mut decisions = Vec::with_capacity(templates.len());
    let changed = settled(templates, request, &Caller { trace: None, patience }, &mut decisions)?;
    Ok(Changed { decisions, ..changed })
}

/// The same, with a record of what is done; the decisions, up to a denial, are apart.
pub(crate) fn traced(
    templates: &[&Template],
    request: &Request<'_>,
    trace: Option<&Trace>,
    decisions: &mut Vec<Decision>,
) -> Result<Injected, Denied> {
    let changed = settled(templates, request, &Caller { trace, patience: None }, decisions)?;
    Ok(changed.of(request.pod))
}

/// Passes over all templates, at most. More than two are needed only where templates make room for each other in
/// turn.
const MAX_PASSES: usize = 4;

/// Who wants a pod to be injected: with a record of what is done, or as long as it waits.
struct Caller<'t> {
    trace: Option<&'t Trace>,
    patience: Option<&'t dyn Patience>,
}

impl Caller<'_> {
    const PLAIN: Self = Self { trace: None, patience: None };
}

/// Applies templates until no later one has replaced what was in the way of one that is left out: a second call
/// has nothing more to do.
fn settled(
    templates: &[&Template],
    request: &Request<'_>,
    caller: &Caller<'_>,
    decisions: &mut Vec<Decision>,
) -> Result<Changed, Denied> {
    let mut settled =
        called(request, templates, caller, |call| call.run(templates, request.pod, decisions))?;
    for _ in 1..MAX_PASSES {
        let Some(pod) = settled.changed.pod.as_ref().filter(|_| settled.is_open) else { break };
        let mut later = Vec::with_capacity(templates.len());
        let again = called(&Request { pod, ..*request }, templates, caller, |call| {
            call.run(templates, pod, &mut later)
        })?;
        settled.add(again);
        for (decision, later) in decisions.iter_mut().zip(later) {
            decision.add(later);
        }
    }
    Ok(settled.changed)
}

/// What became of a pod in a pass over all templates.
struct Passed {
    changed: Changed,
    /// Whether a second pass may have more to do.
    is_open: bool,
}

impl Passed {
    /// Adds what became of the pod in a pass after this one.
    fn add(&mut self, later: Self) {
        self.is_open = later.is_open;
        if later.changed.pod.is_some() {
            self.changed.pod = later.changed.pod;
        }
        for warning in later.changed.warnings {
            if !self.changed.warnings.contains(&warning) {
                self.changed.warnings.push(warning);
            }
        }
    }
}

/// What is done in a call for a pod.
fn called<R>(
    request: &Request<'_>,
    templates: &[&Template],
    caller: &Caller<'_>,
    then: impl FnOnce(&Call<'_>) -> R,
) -> R {
    let object = with_namespace(request);
    let base = Base {
        object: &object,
        namespace: request.namespace,
        service_account: request.service_account.map(Datum::from),
        controller: owner::controller(request.pod).map(Datum::from),
        owners: Owners::of(request.pod, request.owners),
        trace: caller.trace,
        patience: caller.patience,
    };
    let account = request.service_account.map(metadata);
    // Labels and annotations are copied, and many templates read none of a pod.
    let of_pod = Some(&*object).filter(|_| templates.iter().any(|one| reads_pod(&one.spec)));
    let layers = Layers::of(of_pod, metadata(request.namespace), account);
    let own_namespace = request.own_namespace;
    let call = Call { base: &base, layers: &layers, own_namespace, place: PodPlace::of(&object) };
    then(&call)
}

/// Whether selectors, the switch or parameters may read labels or annotations of a pod.
fn reads_pod(spec: &Spec) -> bool {
    let has_more = spec.enablement.is_some() || !spec.parameters.is_empty();
    has_more || spec.parameter_keys.is_some() || spec.r#match.pod_selector.is_some()
}

fn metadata(object: &Value) -> &Value {
    static NONE: Value = Value::Null;
    member(object, "metadata").unwrap_or(&NONE)
}

/// The pod as expressions see it: an API server fills in its namespace after the webhook only.
fn with_namespace<'r>(request: &Request<'r>) -> Cow<'r, Value> {
    let field = |object: &'r Value, name| member(member(object, "metadata")?, name);
    let Some(name) = field(request.namespace, "name") else { return Cow::Borrowed(request.pod) };
    if field(request.pod, "namespace").is_some() {
        return Cow::Borrowed(request.pod);
    }
    let mut object = request.pod.clone();
    if let Value::Object(fields) = &mut object {
        let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(metadata) = metadata {
            metadata.insert("namespace".to_owned(), name.clone());
        }
    }
    Cow::Owned(object)
}

struct Call<'c> {
    base: &'c Base<'c>,
    layers: &'c Layers,
    own_namespace: Option<&'c str>,
    place: PodPlace<'c>,
}

impl Call<'_> {
    fn run(
        &self,
        templates: &[&Template],
        pod: &Value,
        decisions: &mut Vec<Decision>,
    ) -> Result<Passed, Denied> {
        let candidates: Vec<_> = templates.iter().map(|one| self.candidate(one)).collect();
        let mark = Mark::of(pod);
        let mut way = Way {
            work: Work::of(pod),
            known: self.known(&candidates, pod, &mark),
            mark,
            applied: BTreeSet::new(),
            warnings: Vec::new(),
            is_blocked: false,
            is_open: false,
        };
        let before = way.mark.clone();
        let mut active = Vec::new();
        for (at, candidate) in candidates.iter().enumerate() {
            let key = candidate.template.key();
            let decided = self.template(candidate, at, &key, &mut way);
            self.base.trace.iter().for_each(|trace| trace.rest());
            let (state, cost) = decided?;
            if matches!(state, State::Applied | State::Present { .. } | State::Nothing) {
                active.push(at);
            }
            decisions.push(Decision { template: key, state, cost });
        }
        // Rules for what other templates add come after all overlays.
        for at in active {
            if candidates[at].has_last_rules() {
                self.last_rules(&candidates[at], at, &mut way)?;
                self.base.trace.iter().for_each(|trace| trace.rest());
            }
        }
        way.forget_removed();
        // A mark that stays the same is not written: an injection that changes nothing has no
        // patch.
        let is_marked = way.mark != before;
        let mut pod = match way.work.pod {
            Cow::Borrowed(_) if !is_marked => None,
            pod => Some(pod.into_owned()),
        };
        if let Some(pod) = pod.as_mut().filter(|_| is_marked) {
            way.mark.write(pod);
        }
        let changed = Changed { pod, warnings: way.warnings, decisions: Vec::new() };
        Ok(Passed { changed, is_open: way.is_open })
    }

    fn template(
        &self,
        candidate: &Candidate<'_>,
        at: usize,
        key: &str,
        way: &mut Way<'_>,
    ) -> Result<(State, u64), Denied> {
        let template = candidate.template;
        let (warnings, is_on) = match &candidate.chance {
            Chance::Denied(text) => {
                let (template, text) = (key.to_owned(), text.clone());
                return Err(Denied { template, text, failed_at: Some("spec.match".to_owned()) });
            }
            Chance::Unmatched(reason) => return Ok((State::Unmatched(reason.clone()), 0)),
            Chance::Off(warnings) => (warnings, false),
            Chance::On { warnings, .. } => (warnings, true),
        };
        // Of a template that is off as well: the warning may say why its switch was not understood.
        way.warn(key, warnings.clone());
        if !is_on {
            return Ok((State::Disabled, 0));
        }
        if let Some(name) = candidate.known_unmet() {
            return Ok((State::unmet(name), 0));
        }
        let ports = self.ports(template, way);
        let turn = Turn { template: at, ..Turn::default() };
        let run = self.of(template, ports.as_ref(), way.known.others(turn));
        match candidate.unmet(&run) {
            Ok(None) => {}
            Ok(Some(name)) => return Ok((State::unmet(name), 0)),
            Err(failure) => return Ok((way.stopped(template, failure.into())?, 0)),
        }
        self.base.trace.iter().for_each(|trace| trace.begin(key));
        let others = way.others(template, key);
        let believed = way.mark.believed(key, &way.work.pod).cloned();
        let before = self.before(template, &way.work);
        let mut warnings = Vec::new();
        let done = match &believed {
            None => run.apply(&mut way.work, &others, &mut warnings),
            // Its steps were applied in an earlier call. Containers that came since still get what
            // its rules give.
            Some(entry) => {
                let of = InPod { entry, others: &others, seen: Seen::Own };
                run.rules(&mut way.work, of, &mut warnings)
            }
        };
        // Of a template that is left out as well: they may say what led to it.
        way.warn(key, warnings);
        match done {
            Err(stop) => {
                way.restore(before);
                Ok((way.stopped(template, stop)?, 0))
            }
            Ok(done) => {
                let state = match &believed {
                    Some(entry) => State::Present { is_outdated: entry.hash != template.hash },
                    None if done.entry.is_some() => State::Applied,
                    None => State::Nothing,
                };
                let cost = done.cost;
                self.trace_end(before.as_ref(), &way.work);
                way.take(key, done);
                way.applied.insert(key.to_owned());
                Ok((state, cost))
            }
        }
    }

    /// What `freePorts` of a template knows of a pod on its way, if it asks for ports.
    fn ports(&self, template: &Template, way: &Way<'_>) -> Option<Ports> {
        template
            .asks_for_ports
            .then(|| self.ports_of(template, &way.work.pod, &way.mark, &way.known))
    }

    /// The pod before a template, if somebody may ask for it. If an error denies the pod, nobody does.
    fn before<'p>(&self, template: &Template, work: &Work<'p>) -> Option<Work<'p>> {
        let denies = template.spec.failure_policy == FailurePolicy::Fail;
        // If a failure denies the pod, no way back is needed: most templates are laid without a
        // copy.
        (!denies || self.base.trace.is_some()).then(|| work.clone())
    }

    fn trace_end(&self, before: Option<&Work<'_>>, work: &Work<'_>) {
        if let (Some(trace), Some(before)) = (self.base.trace, before) {
            trace.end(&before.pod, &work.pod);
        }
    }

    /// Applies rules for `Added` to what other templates have added.
    fn last_rules(
        &self,
        candidate: &Candidate<'_>,
        at: usize,
        way: &mut Way<'_>,
    ) -> Result<(), Denied> {
        let template = candidate.template;
        let key = template.key();
        let ports = self.ports(template, way);
        let turn = Turn { is_last: true, template: at, rule: 0 };
        let run = self.of(template, ports.as_ref(), way.known.others(turn));
        let default = || Entry { hash: template.hash.clone(), ..Entry::default() };
        let entry = way.mark.0.get(&key).cloned().unwrap_or_else(default);
        self.base.trace.iter().for_each(|trace| trace.begin(&key));
        let others = way.others(template, &key);
        let before = self.before(template, &way.work);
        let of = InPod { entry: &entry, others: &others, seen: Seen::Added };
        // Its warnings were given when it was applied.
        match run.rules(&mut way.work, of, &mut Vec::new()) {
            Ok(done) => {
                self.trace_end(before.as_ref(), &way.work);
                way.take(&key, done);
            }
            Err(stop) => {
                way.restore(before);
                way.stopped(template, stop)?;
            }
        }
        Ok(())
    }
}
