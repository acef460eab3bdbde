//! Limit ranges: the defaults that they give to containers, and what they want of containers and pods.
//!
//! From k8s.io/kubernetes v1.37.2: `plugin/pkg/admission/limitranger/admission.go`, the same since
//! 1.34, and `SetDefaults_LimitRangeItem`, with which the API server completes a limit range.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Cause, Effect, Found, items, present,
    resources::{
        Amounts, Resources, Side, add_missing, amounts, names::is_compute, pod::PodResources,
    },
    text,
};

mod constraints;

use self::constraints::{Rule, Set};

/// A limit range, completed.
#[derive(Debug)]
pub(super) struct LimitRange {
    /// Limits for containers without any.
    pub(super) default: Amounts,
    /// Requests for containers without any.
    pub(super) default_request: Amounts,
    name: Arc<str>,
    items: Vec<Item>,
}

/// What one item wants.
#[derive(Debug)]
struct Item {
    of: Type,
    min: Amounts,
    max: Amounts,
    ratio: Amounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Container,
    Pod,
}

impl LimitRange {
    pub(super) fn read(range: &Value) -> Self {
        let name: Arc<str> = text(range, "/metadata/name").unwrap_or_default().into();
        let (mut default, mut default_request) = (Amounts::new(), Amounts::new());
        let mut read = Vec::new();
        for item in items(range.pointer("/spec/limits")) {
            let of = match text(item, "/type") {
                Some("Container") => Type::Container,
                Some("Pod") => Type::Pod,
                _ => continue,
            };
            let map = |pointer| amounts(present(item, pointer));
            let (min, max, ratio) = (map("/min"), map("/max"), map("/maxLimitRequestRatio"));
            if of == Type::Container {
                let mut limits = map("/default");
                add_missing(&mut limits, &max);
                let mut requests = map("/defaultRequest");
                add_missing(&mut requests, &limits);
                add_missing(&mut requests, &min);
                default.append(&mut given_by(&name, limits));
                default_request.append(&mut given_by(&name, requests));
            }
            read.push(Item { of, min, max, ratio });
        }
        Self { default, default_request, name, items: read }
    }

    /// What it objects to.
    pub(super) fn objections(&self, pod: &PodResources) -> Vec<Found> {
        let mut found = Vec::new();
        for item in &self.items {
            match item.of {
                Type::Container => {
                    for container in pod.all() {
                        let who = format!("container {}", container.name);
                        found.extend(item.problems(&who, &container.resources));
                    }
                }
                Type::Pod => {
                    let of = |side| pod.effective(side, is_compute);
                    let all = Resources { requests: of(Side::Requests), limits: of(Side::Limits) };
                    found.extend(item.problems("the pod", &all));
                }
            }
        }
        let by = format!("LimitRange {}", self.name);
        found
            .into_iter()
            .map(|(check, text)| Found::new(Effect::Refuses, Cause::LimitRange, &by, check, text))
            .collect()
    }
}

fn given_by(name: &Arc<str>, mut amounts: Amounts) -> Amounts {
    for amount in amounts.values_mut() {
        amount.given_by = Some(name.clone());
    }
    amounts
}

impl Item {
    /// What is wrong: which check of which resource, and a text.
    fn problems(&self, who: &str, resources: &Resources) -> Vec<(String, String)> {
        let rules: [(_, _, Rule); 3] = [
            ("min", &self.min, constraints::min),
            ("max", &self.max, constraints::max),
            ("maxLimitRequestRatio", &self.ratio, constraints::ratio),
        ];
        let mut found = Vec::new();
        for (kind, amounts, rule) in rules {
            for (name, enforced) in amounts {
                let set = Set {
                    request: resources.requests.get(name),
                    limit: resources.limits.get(name),
                    enforced,
                };
                let problem = rule(&set).map(|problem| format!("{who}: {name}: {problem}"));
                found.extend(problem.map(|text| (format!("{who} {kind} {name}"), text)));
            }
        }
        found
    }
}
