//! A finished overlay is put into a pod.
//!
//! *Finished* means: all `${…}` are filled in, and absent values are removed. [`steps`] lays overlays of
//! a whole template on a pod, [`rule`] lays a piece of a Container on one container, [`refused`] names
//! what an API server would refuse in the result, and [`patch`] is the way from one pod to the other.
//!
//! Whose a value is decides what happens to it. What the template itself wrote is merged with what a
//! later overlay of it says. What somebody else wrote follows `existing`, and for containers and volumes
//! `onConflict`. Fields that an API server would not write count as absent: `null`, and `false`, `0`,
//! `""`, `[]` and `{}` of fields that are no pointers in Go.
//!
//! Not for filling in, nor for deciding which containers a rule is for.

mod agreed;
mod claims;
mod directive;
pub(crate) mod fresh;
mod layer;
pub(crate) mod leaves;
mod lists;
mod patch;
mod path;
mod place;
mod refused;
mod same;
mod section;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use injectd_merge::schema::POD;
use injectd_templates::{
    named::member,
    object::{Existing, OnConflict, Position},
};
use serde_json::{Value, json};

use layer::{Layer, NO_EXCEPTIONS};
pub(crate) use lists::{container, meets_another_volume};
use path::Path;
pub(crate) use path::{entry, shown};
use section::{Section, Whole};

pub use claims::{Claims, Others, Turn};
pub use patch::{patch, patch_text};
pub(crate) use refused::Refused;
pub use refused::refused;

/// What a template has put into the pod so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// Names of its containers, of both lists. A container that was in the pod already and has all that
    /// the template would write counts as the template's.
    pub containers: BTreeSet<String>,
    /// Names of its volumes, likewise.
    pub volumes: BTreeSet<String>,
    /// Places of its other fields, entries of lists, and entries of maps.
    written: BTreeSet<Path>,
}

/// Where new containers of a step are put. Those of one step stay together, in the order of the
/// overlay. With several steps, `First` puts the later step's in front.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placed {
    /// Where.
    pub position: Position,
    /// The container that `Before` and `After` name, filled in.
    pub name: Option<String>,
    /// Where, if the list has no container of that name: `First`, or else the end.
    pub otherwise: Position,
}

/// The overlay of a step, or of one item of its `forEach`.
#[derive(Debug, Clone)]
pub struct StepOverlay<'a> {
    /// A piece of a Pod.
    pub overlay: &'a Value,
    /// What happens to what the overlay meets.
    pub existing: Option<Existing>,
    /// What a container or volume of the same name does.
    pub on_conflict: Option<OnConflict>,
    /// Where init containers are put.
    pub init_containers: Placed,
    /// Where containers are put.
    pub containers: Placed,
    /// Whether the template is of the namespaced kind: `$patch` then removes only what is the template's.
    pub is_namespaced: bool,
    /// What is known about other templates.
    pub others: Others<'a>,
}

impl StepOverlay<'_> {
    /// The step where nothing is known about other templates.
    fn alone(&self) -> Self {
        Self { others: Others::default(), ..self.clone() }
    }
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Laid {
    /// The pod has it.
    Done,
    /// The step is left out: nothing of it is in the pod.
    SkipStep,
    /// The template is left out: the pod is as it was.
    SkipTemplate,
}

/// Why a pod is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// The index of the step.
    pub step: usize,
    /// The place in the pod, the cause and the remedy.
    pub text: String,
}

/// Lays the overlay of one step on a pod: [`steps`] for a template with one step.
///
/// # Errors
///
/// The reason why the pod is denied; the pod is as it was then.
pub fn step(pod: &mut Value, own: &mut Own, step: &StepOverlay) -> Result<Laid, String> {
    let laid = steps(pod, own, std::slice::from_ref(step)).map_err(|denied| denied.text)?;
    Ok(laid.first().copied().unwrap_or(Laid::Done))
}

/// Lays the overlays of a template on a pod, in the order of its steps.
///
/// - **Containers and volumes** that the pod does not have are added: containers by placement, volumes at
///   the end. If the pod has one with all that the overlay, or the overlays of all steps together, would
///   write, nothing happens: a pod that has been injected stays as it is. One that the template put there
///   is merged strategically. Everything else is a conflict: `onConflict` decides, for volumes else
///   `existing` if the step sets it, else it is `Fail`. With `Replace`, the template's stands in the place of
///   the other one. A container of that name in the other list of containers is a conflict too; `Replace`
///   then moves it to the list of the overlay.
/// - **Entries** of `hostAliases`, `imagePullSecrets` and other lists with keys follow `existing` as a
///   whole, **other fields** one by one; structs and maps are gone into, other lists are one value. Labels
///   are only added: `Replace` counts as `Keep` for them. Equal values are never a conflict.
/// - What an earlier step of the template wrote is no conflict: the later step's value stands.
/// - **`$patch: delete`** removes an entry of a list with keys, or an object; **`$patch: replace`** puts
///   the overlay's object in its place, and as an element of its own in a list, the whole list. Both need
///   `existing: Replace`.
///
/// Steps that write the same container or volume must have the same `onConflict`: if one were skipped because
/// of it and another one replaced it, a second call would find no conflict and lay the first step, too.
///
/// What a field or an entry of the pod has that the steps together would write there is no conflict, either.
///
/// There is an answer for each step. If one is [`Laid::SkipTemplate`], all are, and pod and `own` are as
/// they were.
///
/// # Errors
///
/// The step and the reason why the pod is denied; pod and `own` are as they were then.
pub fn steps(pod: &mut Value, own: &mut Own, steps: &[StepOverlay]) -> Result<Vec<Laid>, Denied> {
    let (laid, changed) = self::laid(pod, own, steps)?;
    if let Some(changed) = changed {
        *pod = changed;
    }
    Ok(laid)
}

/// What became of each step, as [`steps`] says, and the pod with what they have put there; `None` if that is
/// nothing.
pub(crate) fn laid(
    pod: &Value,
    own: &mut Own,
    steps: &[StepOverlay],
) -> Result<(Vec<Laid>, Option<Value>), Denied> {
    agreed::check(steps)?;
    let mut laid = vec![Laid::Done; steps.len()];
    while laid.contains(&Laid::Done) {
        // Each attempt begins with the pod as it came: a step that turns out to be skipped leaves
        // nothing of it.
        let (mut new_pod, mut new_own) = (pod.clone(), own.clone());
        let expected = expected(steps, &laid)?;
        match attempt(&mut new_pod, &mut new_own, Attempt { steps, laid: &laid, expected })? {
            None => {
                *own = new_own;
                return Ok((laid, Some(new_pod)));
            }
            Some((_, Laid::SkipTemplate)) => {
                return Ok((vec![Laid::SkipTemplate; steps.len()], None));
            }
            // What the other steps meet may be another thing without this one: from the beginning.
            Some((step, _)) => laid[step] = Laid::SkipStep,
        }
    }
    Ok((laid, None))
}

/// A try to lay all steps that are not left out.
struct Attempt<'a> {
    steps: &'a [StepOverlay<'a>],
    laid: &'a [Laid],
    expected: Value,
}

/// What the steps give on an empty pod: all that the template writes.
fn expected(steps: &[StepOverlay], laid: &[Laid]) -> Result<Value, Denied> {
    let mut pod = json!({"spec": {}});
    let steps: Vec<_> = steps.iter().map(StepOverlay::alone).collect();
    let attempt = Attempt { steps: &steps, laid, expected: Value::Null };
    self::attempt(&mut pod, &mut Own::default(), attempt)?;
    Ok(pod)
}

/// The same without containers and volumes.
fn expected_besides(steps: &[StepOverlay]) -> Result<Value, Denied> {
    let (mut pod, mut own) = (json!({"spec": {}}), Own::default());
    for (at, step) in steps.iter().enumerate() {
        let laid = besides(&mut pod, &mut own, &step.alone(), &[], &BTreeSet::new());
        laid.map_err(|text| Denied { step: at, text })?;
    }
    Ok(pod)
}

/// Lays steps on a pod until one is left out; the answer is that one.
fn attempt(
    pod: &mut Value,
    own: &mut Own,
    attempt: Attempt,
) -> Result<Option<(usize, Laid)>, Denied> {
    let steps = attempt.steps.iter().enumerate().zip(attempt.laid);
    let taken: Vec<_> =
        steps.filter(|(_, laid)| **laid == Laid::Done).map(|(step, _)| step).collect();
    let steps: Vec<_> = taken.iter().map(|(_, step)| *step).collect();
    let whole = Whole::of(pod, own, attempt.expected, &steps);
    for (index, (at, step)) in taken.into_iter().enumerate() {
        let around =
            Around { whole: &whole, following: steps.get(index + 1..).unwrap_or_default() };
        let laid = one_step(pod, own, step, around);
        match laid.map_err(|text| Denied { step: at, text })? {
            Laid::Done => {}
            skip => return Ok(Some((at, skip))),
        }
    }
    Ok(None)
}

/// What a step is laid with.
#[derive(Clone, Copy)]
struct Around<'a> {
    whole: &'a Whole,
    following: &'a [&'a StepOverlay<'a>],
}

fn one_step(
    pod: &mut Value,
    own: &mut Own,
    step: &StepOverlay,
    Around { whole, following }: Around<'_>,
) -> Result<Laid, String> {
    directive::check(step.overlay, step.existing)?;
    check_spec(pod)?;
    for list in lists::LISTS {
        let Some(entries) = list.written(step.overlay) else { continue };
        let mut section = Section { list, pod, own, step, whole, following, new: Vec::new() };
        match section.lay(entries)? {
            Laid::Done => {}
            skip => return Ok(skip),
        }
    }
    besides(pod, own, step, following, &whole.met)?;
    Ok(Laid::Done)
}

fn check_spec(pod: &Value) -> Result<(), String> {
    if !member(pod, "spec").is_some_and(Value::is_object) {
        return Err("spec: the pod has no `spec` that is an object; it needs one".to_owned());
    }
    Ok(())
}

/// Lays what a step writes besides containers and volumes.
fn besides(
    pod: &mut Value,
    own: &mut Own,
    step: &StepOverlay,
    following: &[&StepOverlay],
    met: &BTreeSet<Path>,
) -> Result<(), String> {
    let (Value::Object(pod), Value::Object(overlay)) = (pod, step.overlay) else {
        return Err("the overlay of a step must be an object".to_owned());
    };
    let mut layer = Layer {
        existing: step.existing.unwrap_or_default(),
        existing_env: &NO_EXCEPTIONS,
        env_first: false,
        is_own: false,
        may_remove: !step.is_namespaced,
        written: Some(&mut own.written),
        met: Some(met),
        others: step.others,
        following,
        place: Path::new(),
    };
    let types = POD.as_struct().expect("a Pod must be a struct");
    let others = overlay.iter().filter(|(key, _)| *key != directive::PATCH);
    others.map(|(key, value)| (key, lists::besides(key, value))).try_for_each(|(key, value)| {
        match value {
            Some(value) => layer.one(pod, key, &value, types),
            None => Ok(()),
        }
    })
}

/// The overlay of a rule for one container.
#[derive(Debug, Clone)]
pub struct RuleOverlay<'a> {
    /// A piece of a Container.
    pub overlay: &'a Value,
    /// What happens to what the overlay meets.
    pub existing: Option<Existing>,
    /// Exceptions for variables, by name.
    pub existing_env: &'a BTreeMap<String, Existing>,
    /// Whether new variables are put in front.
    pub env_first: bool,
    /// What is known about other templates, and later rules.
    pub others: Others<'a>,
}

/// Lays the overlay of a rule on a container.
///
/// - Entries of `env` (by name), `volumeMounts` (by `mountPath`, as in Kubernetes: a container cannot mount
///   two volumes at one path, but one volume at two), `volumeDevices` (by `devicePath`) and `ports` (by
///   `containerPort` and `protocol`) follow `existing` as a whole, and variables `existing_env` first.
///   Other fields follow it one by one, other lists as a whole. Equal values are never a conflict.
/// - New variables are put at the end, or in front with `env_first`. A new or replaced variable that names
///   others by `$(X)` and is not behind them moves behind the last of them.
/// - Rules of a template count as written by others for each other: with `Keep`, the first wins.
/// - `$patch` as in [`steps`]. The caller does not pass it on for the namespaced kind, where nothing of
///   these containers is the template's.
///
/// # Errors
///
/// The reason why the pod is denied. The container may be changed in part then.
pub fn rule(container: &mut Value, rule: &RuleOverlay) -> Result<(), String> {
    if directive::check(rule.overlay, None).is_err() {
        directive::check(rule.overlay, rule.existing)?;
    } else if !rule.env_first
        && let (Value::Object(container), Value::Object(overlay)) = (&mut *container, rule.overlay)
        && fresh::add_entries(container, overlay)
    {
        return Ok(());
    }
    compared(container, rule)
}

/// Lays the overlay of a rule on a container, and compares each entry and field with what is there.
fn compared(container: &mut Value, rule: &RuleOverlay) -> Result<(), String> {
    let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
    let place = vec!["container".to_owned(), entry(name)];
    let (Value::Object(container), Value::Object(overlay)) = (container, rule.overlay) else {
        return Err("the overlay of a rule must be an object".to_owned());
    };
    if overlay.contains_key("name") {
        return Err(
            "the overlay of a rule has `name`: a container cannot be renamed; remove it, and \
                    use `select` to choose containers"
                .to_owned(),
        );
    }
    let mut layer = Layer {
        existing: rule.existing.unwrap_or_default(),
        existing_env: rule.existing_env,
        env_first: rule.env_first,
        is_own: false,
        may_remove: true,
        written: None,
        met: None,
        others: rule.others,
        following: &[],
        place,
    };
    layer.fields(container, overlay, lists::container())
}
