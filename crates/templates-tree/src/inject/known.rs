//! What a pod has of templates before they are applied: somebody may have removed the mark.

use std::collections::{BTreeMap, BTreeSet};

use injectd_templates::{Template, structure::Structure};
use serde_json::Value;

use super::{Call, Way};
use crate::{
    enablement::enabled,
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

impl Call<'_> {
    /// What templates would have added, and the pod has. Containers of one template are no others' own
    /// then, either.
    pub(super) fn known(&self, templates: &[&Template], pod: &Value) -> Known {
        let is_for = |(_, template): &(usize, &Template)| self.is_for(template);
        let of_pod: Vec<_> = templates.iter().copied().enumerate().filter(is_for).collect();
        let mut known = self.look(&of_pod, pod, &Met::new());
        // Rules see which containers are the pod's own only if those of the templates are known.
        for _ in 0..of_pod.len() {
            if known.met.values().all(BTreeSet::is_empty) {
                break;
            }
            let next = self.look(&of_pod, pod, &known.met);
            let is_stable = next.met == known.met;
            known = next;
            if is_stable {
                break;
            }
        }
        known
    }

    fn look(&self, of_pod: &[(usize, &Template)], pod: &Value, met: &Met) -> Known {
        let mark = Mark::of(pod);
        let ports = of_pod.iter().map(|(_, template)| (template.key(), written_ports(template)));
        let mut known = Known { ports: ports.collect(), ..Known::default() };
        // From the last turn to the first: what is recorded counts for earlier turns.
        for is_last in [true, false] {
            for (at, template) in of_pod.iter().rev() {
                let key = template.key();
                if mark.believed(&key, pod).is_some() {
                    continue;
                }
                let turn = Turn { is_last, template: *at, rule: 0 };
                let ports = self.ports_of(template, pod, &mark, &known);
                let others = Others { turn, claims: Some(&known.claims), records: true };
                let run = self.of(template, &ports, others);
                if !matches!(run.unmet_condition(), Ok(None)) {
                    continue;
                }
                if is_last {
                    run.claim_rules(
                        pod,
                        Seen::Added,
                        &container_names(pod).map(str::to_owned).collect(),
                    );
                } else {
                    run.claim_rules(pod, Seen::Own, &others_of(met, &key));
                    let met = run.met(pod);
                    known.met.insert(key, met);
                }
            }
        }
        known
    }

    /// Whether a template may be for the pod: selectors and the switch say so.
    pub(super) fn is_for(&self, template: &Template) -> bool {
        let enablement = template.spec.enablement.as_ref();
        let (is_on, _) = enabled(enablement, &template.identity.name, self.layers);
        is_on && matches!(self.unmatched(template), Ok(None))
    }

    /// A template that is evaluated.
    pub(super) fn of<'r>(
        &'r self,
        template: &'r Template,
        ports: &'r Ports,
        others: Others<'r>,
    ) -> Run<'r> {
        Run { template, base: self.base, layers: self.layers, ports, others }
    }

    /// What `freePorts` of a template knows of a pod on its way.
    pub(super) fn ports(&self, template: &Template, way: &Way) -> Ports {
        self.ports_of(template, &way.pod, &way.mark, &way.known)
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
        if asks_for_ports(template) {
            // Names may be expressions, which do not depend on the ports.
            let ports = Ports::of(pod, &own, &written);
            own.extend(self.of(template, &ports, Others::default()).container_names());
        }
        Ports::of(pod, &own, &written)
    }
}

/// Names of the containers of other templates.
pub(super) fn others_of(met: &Met, key: &str) -> BTreeSet<String> {
    met.iter().filter(|(known, _)| *known != key).flat_map(|(_, names)| names).cloned().collect()
}

/// Whether an expression of a template asks for free ports.
fn asks_for_ports(template: &Template) -> bool {
    let mut asks = false;
    for structure in structures(template) {
        structure.each_expression(&mut |expression| asks |= expression.text.contains("freePorts"));
    }
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
                    Structure::Constant(Value::Number(number)) if is_port(key) => {
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
