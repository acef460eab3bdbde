//! What a pod has of templates before they are applied: somebody may have removed the mark.

use std::collections::{BTreeMap, BTreeSet};

use injectd_templates::{Template, structure::Structure};
use serde_json::Value;

use super::{Call, Way};
use crate::{
    enablement::enabled,
    lay::{Claims, Others, Turn},
    mark::Mark,
    ports::Ports,
    run::{Run, Seen},
};

/// What a pod has of templates before they are applied.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By template: names of the containers that the pod has, though the mark does not say so.
    pub(super) met: BTreeMap<String, BTreeSet<String>>,
    /// Places that have what templates would write there.
    pub(super) claims: Claims,
    /// By template that is for the pod: the ports that are written in it.
    ports: BTreeMap<String, BTreeSet<i64>>,
}

impl Call<'_> {
    /// What templates would have added, and the pod has. Containers of one template are no others' own
    /// then, either.
    pub(super) fn known(&self, templates: &[&Template], pod: &Value) -> Known {
        let mark = Mark::of(pod);
        let mut known = Known::default();
        let of_pod: Vec<_> =
            templates.iter().enumerate().filter(|(_, template)| self.is_for(template)).collect();
        for (_, template) in &of_pod {
            known.ports.insert(template.key(), written_ports(template));
        }
        let is_new = |key: &str| mark.believed(key, pod).is_none();
        // From the last turn to the first: what is recorded counts for earlier turns.
        for is_last in [true, false] {
            for (at, template) in of_pod.iter().rev().filter(|(_, one)| is_new(&one.key())) {
                let turn = Turn { is_last, template: *at, rule: 0 };
                let ports = self.ports_of(template, pod, &mark, &known);
                let others = Others { turn, claims: Some(&known.claims), records: true };
                let run = self.of(template, &ports, others);
                if !matches!(run.unmet_condition(), Ok(None)) {
                    continue;
                }
                run.claim_rules(pod, if is_last { Seen::Added } else { Seen::Own });
                if !is_last {
                    let met = run.met(pod);
                    known.met.insert(template.key(), met);
                }
            }
        }
        known
    }

    /// Whether a template may be for the pod: selectors and the switch say so.
    fn is_for(&self, template: &Template) -> bool {
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

    fn ports_of(&self, template: &Template, pod: &Value, mark: &Mark, known: &Known) -> Ports {
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
