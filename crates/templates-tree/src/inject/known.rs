//! What a pod has of templates before they are applied: somebody may have removed the mark.

use std::collections::{BTreeMap, BTreeSet};

use injectd_templates::{
    Template,
    structure::{Constant, Structure},
};
use serde_json::Value;

use super::{Call, candidate::Candidate, meets::meets};
use crate::{
    lay::{Claims, Others, Turn},
    mark::{Mark, container_names},
    ports::Ports,
    run::{Run, Seen},
};

/// By template: names of the containers that a pod has, though its mark does not say so.
pub(super) type Met = BTreeMap<String, BTreeSet<String>>;

/// What a pod has of templates before they are applied.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) met: Met,
    /// Places that have what templates would write there.
    pub(super) claims: Claims,
    /// By template that is for the pod: the ports that are written in it.
    ports: BTreeMap<String, BTreeSet<i64>>,
}

impl Known {
    /// What a turn knows of others.
    pub(super) fn others(&self, turn: Turn) -> Others<'_> {
        let claims = Some(&self.claims).filter(|claims| !claims.is_empty());
        Others { turn, claims, records: false }
    }
}

/// Templates with their places.
type Placed<'c, 't> = Vec<(usize, &'c Candidate<'t>)>;

impl Call<'_> {
    /// What templates would have added, and the pod has. Containers of one template are no others' own
    /// then, either.
    pub(super) fn known(&self, candidates: &[Candidate<'_>], pod: &Value, mark: &Mark) -> Known {
        let on = candidates.iter().enumerate().filter(|(_, one)| one.is_on());
        let ports: BTreeMap<_, _> = if candidates.iter().any(|one| one.template.asks_for_ports) {
            let written =
                |(_, one): (_, &Candidate<'_>)| (one.template.key(), written_ports(one.template));
            on.clone().map(written).collect()
        } else {
            BTreeMap::new()
        };
        // What meets nothing in the pod was not there before.
        let met: Placed<'_, '_> = on
            .clone()
            .filter(|(_, one)| !one.is_unmet() && meets(one.template, pod))
            .filter(|(_, one)| mark.believed(&one.template.key(), pod).is_none())
            .collect();
        let look = |known: &Met| self.look(&met, Looked { pod, mark, ports: &ports, known });
        let mut known = look(&Met::new());
        // Rules see which containers are the pod's own only if those of the templates are known.
        for _ in on {
            if known.met.values().all(BTreeSet::is_empty) {
                break;
            }
            let next = look(&known.met);
            let is_stable = next.met == known.met;
            known = next;
            if is_stable {
                break;
            }
        }
        known
    }

    fn look(&self, candidates: &Placed<'_, '_>, of: Looked<'_>) -> Known {
        let mut known = Known { ports: of.ports.clone(), ..Known::default() };
        // From the last turn to the first: what is recorded counts for earlier turns.
        for is_last in [true, false] {
            for (at, candidate) in candidates.iter().rev() {
                let template = candidate.template;
                let turn = Turn { is_last, template: *at, rule: 0 };
                let ports = template
                    .asks_for_ports
                    .then(|| self.ports_of(template, of.pod, of.mark, &known));
                let others = Others { turn, claims: Some(&known.claims), records: true };
                let run = self.of(template, ports.as_ref(), others);
                if !matches!(candidate.unmet(&run), Ok(None)) {
                    continue;
                }
                if is_last {
                    if candidate.has_last_rules() {
                        let names = container_names(of.pod).map(str::to_owned).collect();
                        run.claim_rules(of.pod, Seen::Added, &names);
                    }
                } else {
                    let key = template.key();
                    run.claim_rules(of.pod, Seen::Own, &others_of(of.known, &key));
                    let met = run.met(of.pod);
                    known.met.insert(key, met);
                }
            }
        }
        known
    }

    /// A template that is evaluated.
    pub(super) fn of<'r>(
        &'r self,
        template: &'r Template,
        ports: Option<&'r Ports>,
        others: Others<'r>,
    ) -> Run<'r> {
        let none: &Ports = Ports::none();
        let ports = ports.unwrap_or(none);
        Run { template, base: self.base, layers: self.layers, ports, others }
    }

    /// What `freePorts` of a template knows of a pod that no template was applied to, if it asks for ports.
    pub(super) fn fresh_ports(&self, template: &Template) -> Option<Ports> {
        let (mark, known) = (Mark::default(), Known::default());
        template.asks_for_ports.then(|| self.ports_of(template, self.base.object, &mark, &known))
    }

    pub(super) fn ports_of(
        &self,
        template: &Template,
        pod: &Value,
        mark: &Mark,
        known: &Known,
    ) -> Ports {
        let key = template.key();
        let added = mark.0.get(&key).into_iter().flat_map(|entry| entry.added.iter().cloned());
        let mut own: BTreeSet<_> =
            added.chain(template.container_names().map(str::to_owned)).collect();
        let written = known.ports.iter().filter(|(of, _)| **of != key);
        let written: BTreeSet<_> = written.flat_map(|(_, ports)| ports.iter().copied()).collect();
        if structures(template).any(asks_for_ports) {
            // Names may be expressions, which do not depend on the ports.
            let ports = Ports::of(pod, &own, &written);
            own.extend(self.of(template, Some(&ports), Others::default()).container_names());
        }
        Ports::of(pod, &own, &written)
    }
}

/// What is looked at.
#[derive(Clone, Copy)]
struct Looked<'l> {
    pod: &'l Value,
    mark: &'l Mark,
    /// By template that is for the pod: the ports that are written in it.
    ports: &'l BTreeMap<String, BTreeSet<i64>>,
    /// What was met before.
    known: &'l Met,
}

/// Names of the containers of other templates.
pub(super) fn others_of(met: &Met, key: &str) -> BTreeSet<String> {
    met.iter().filter(|(known, _)| *known != key).flat_map(|(_, names)| names).cloned().collect()
}

/// Whether an expression of a structure asks for free ports.
fn asks_for_ports(structure: &Structure) -> bool {
    let mut asks = false;
    structure.each_expression(&mut |expression| asks |= expression.asks_for_ports());
    asks
}

/// The ports that are constant in a template. Other templates see them before they are added.
fn written_ports(template: &Template) -> BTreeSet<i64> {
    let mut ports = BTreeSet::new();
    structures(template).for_each(|structure| constants(structure, &mut ports));
    ports
}

fn constants(of: &Structure, ports: &mut BTreeSet<i64>) {
    match of {
        Structure::List(items) => items.iter().for_each(|item| constants(item, ports)),
        Structure::Map(entries) => {
            for (key, field) in &entries.fields {
                match field {
                    Structure::Constant(Constant::Number(number)) if is_port(key) => {
                        ports.extend(number.as_i64());
                    }
                    field => constants(field, ports),
                }
            }
        }
        Structure::Constant(_) | Structure::Slot(_) | Structure::Text(_) => {}
    }
}

fn is_port(key: &str) -> bool {
    ["containerPort", "hostPort"].contains(&key)
}

/// The structures of a template: variables, overlays of steps and rules.
fn structures(template: &Template) -> impl Iterator<Item = &Structure> {
    let variables = template.variables.iter();
    let steps = template.steps.iter();
    let of_items = steps.clone().filter_map(|step| step.for_each.as_ref());
    let variables = variables.chain(of_items.flat_map(|each| &each.variables));
    let overlays = steps.clone().filter_map(|step| step.overlay.as_ref());
    let rules = steps.flat_map(|step| step.rules.iter().map(|rule| &rule.overlay));
    variables.map(|variable| &variable.value).chain(overlays).chain(rules)
}
