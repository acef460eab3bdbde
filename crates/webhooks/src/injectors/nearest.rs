//! Why no webhook of a product is called, shown by the one that passed most checks, and what to do.

use std::{cmp::Reverse, collections::BTreeSet};

use injectd_core::text::first_names;
use injectd_k8s::{object::labels, selector::Requirement};
use serde_json::Value;

use super::asks::{self, ISTIO_NAMESPACE, LINKERD_OWN};
use crate::{
    Labels, Reason, Request, Step, Verdict, Webhook,
    product::{ISTIO_REVISION, Product},
    selector::{Change, NAMESPACE_NAME},
};

/// The label of gateways and waypoints that Istio's control plane deploys, and labels of its own pods.
const ISTIO_GATEWAY: &str = "gateway.istio.io/managed";
const ISTIO_OWN: [(&str, &str); 4] =
    [("app", "istiod"), ("istio", "pilot"), ("app", "ztunnel"), ("k8s-app", "istio-cni-node")];
/// The label of pods and namespaces in the mesh without sidecars, and its value.
const AMBIENT_LABEL: &str = "istio.io/dataplane-mode";
const AMBIENT: &str = "ambient";
/// How an advice begins that asks for nothing.
const NOTHING: &str = "Nothing";
/// The stage of a webhook that only the labels of the pod keep from being called.
const SELECTED: u8 = 1;
/// Ways to a call that are named. More would not be read.
const MAX_WAYS: usize = 3;
/// How a way begins that ends with the pod.
const CREATE: &str = "create";
/// Names of revisions that are listed; more are counted.
const MAX_REVISIONS: usize = 10;

/// Why no webhook is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// The reason.
    pub text: String,
    /// What to do.
    pub advice: String,
    /// What the API server does then: never [`Verdict::Called`].
    pub verdict: Verdict,
}

impl Missed {
    /// Whether a webhook may be called: the reason is what is not known.
    #[must_use]
    pub fn is_doubt(&self) -> bool {
        self.verdict == Verdict::Unknown
    }

    /// Whether the pod should have no sidecar of an injector.
    #[must_use]
    pub fn is_as_wished(&self) -> bool {
        self.advice.starts_with(NOTHING)
    }

    /// Whether the API server rejects the request without calling a webhook.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        self.verdict == Verdict::Rejected
    }
}

/// The webhook, of any product, whose conditions let the API server reject the request; `None` if
/// there is none.
#[must_use]
pub fn rejected(steps: &[Step<'_>]) -> Option<Missed> {
    steps.iter().find(|step| step.verdict == Verdict::Rejected).map(Missed::rejected)
}

/// Why no webhook of a product is called for a request, and what to do; `None` if one is called.
/// `steps` are those of the request, and `namespace` are the labels of its namespace.
#[must_use]
pub fn missed(
    steps: &[Step<'_>],
    product: Product,
    request: &Request<'_>,
    namespace: Option<&Labels>,
) -> Option<Missed> {
    let own: Vec<_> = steps.iter().filter(|step| step.webhook.product() == Some(product)).collect();
    let with = |verdict| own.iter().find(move |step| step.verdict == verdict);
    // A pod that is refused has no other question, whichever webhook refuses it.
    if let Some(rejected) = rejected(steps) {
        return Some(rejected);
    }
    if own.is_empty() {
        return Some(Missed::without_webhook(product));
    }
    if with(Verdict::Called).is_some() {
        return None;
    }
    if let Some(step) = with(Verdict::Unknown) {
        return Some(Missed::doubt(step));
    }
    let none = Labels::new();
    let object = request.object.map(labels).unwrap_or_default();
    let namespace = namespace.unwrap_or(&none);
    let seen = Seen { namespace, object: &object, pod: request.object };
    let missed = if product == Product::Istio { seen.unserved(&own) } else { None };
    missed.or_else(|| seen.missed(product, &own))
}

/// The labels that selectors read.
#[derive(Debug, Clone, Copy)]
struct Seen<'a> {
    namespace: &'a Labels,
    object: &'a Labels,
    pod: Option<&'a Value>,
}

/// A webhook that is not called.
struct Candidate<'c> {
    step: &'c Step<'c>,
    /// What to do for a call, part by part; empty if that is not a matter of labels.
    changes: Vec<String>,
}

impl Missed {
    fn without_webhook(product: Product) -> Self {
        let name = product.as_str();
        let advice = if product == Product::Templates {
            "Install the webhook of sidecar templates: without it no pod gets any.".to_owned()
        } else {
            format!("Install the webhook of {name}'s injector: without it no pod gets a sidecar.")
        };
        let text = format!("no webhook of {name} is there");
        Self { text, advice, verdict: Verdict::NotCalled }
    }

    fn rejected(step: &Step<'_>) -> Self {
        let webhook = step.webhook;
        Self {
            text: format!("webhook {} rejects the pod: {}", webhook.name, step.reason),
            advice: format!("Correct the matchConditions of {}.", webhook.configuration),
            verdict: Verdict::Rejected,
        }
    }

    fn doubt(step: &Step<'_>) -> Self {
        let webhook = step.webhook;
        let advice = match &step.reason {
            Reason::NamespaceUnknown => {
                "Add the Namespace to the input, or let it be read from the cluster.".to_owned()
            }
            Reason::ConditionUnknown { name, .. } => {
                format!("See whether condition {name} of {} is true.", webhook.configuration)
            }
            _ => format!("See whether {} is called.", webhook.configuration),
        };
        Self {
            text: format!("{}: {}", webhook.name, step.reason),
            advice,
            verdict: Verdict::Unknown,
        }
    }
}

impl Seen<'_> {
    /// Of the webhook that got furthest; of several by the one that needs the fewest changes.
    fn missed(self, product: Product, own: &[&Step<'_>]) -> Option<Missed> {
        let candidates: Vec<_> = own
            .iter()
            .map(|step| Candidate { step, changes: self.changes(step.webhook) })
            .collect();
        // The entry that passed most checks, then the one with fewest labels to change, then the
        // first.
        let rank = |(index, it): &(usize, &Candidate<'_>)| {
            (stage(it.step), Reverse(it.changes.len()), Reverse(*index))
        };
        let (_, nearest) = candidates.iter().enumerate().max_by_key(rank)?;
        let (webhook, reason) = (nearest.step.webhook, &nearest.step.reason);
        let name = product.as_str();
        let is_selected = stage(nearest.step) > SELECTED;
        let text = if product == Product::Istio
            && !is_selected
            && asks::has_no_label(self.object, self.namespace)
        {
            "no webhook of Istio is called: neither the namespace nor the pod has a label that asks \
             for the sidecar"
                .to_owned()
        } else {
            format!("the webhook of {name} is not called: {}: {reason}", webhook.name)
        };
        let configuration = &webhook.configuration;
        let advice = match reason {
            // Advice to inject a control plane, or a gateway that is a proxy itself, would break
            // it.
            _ if self.is_of_mesh(product) => {
                format!("{NOTHING}: the pod belongs to {name} itself, or has a proxy of its own.")
            }
            _ if product == Product::Istio && self.is_ambient() => format!(
                "{NOTHING}: the pod is in the mesh without a sidecar, by the label \
                 {AMBIENT_LABEL}={AMBIENT}."
            ),
            Reason::NamespaceSelector(_) | Reason::ObjectSelector(_) => ways(nearest, &candidates),
            Reason::Condition(name) | Reason::ConditionFails { name, .. } => {
                format!("Change the pod, or condition {name} of {configuration}.")
            }
            _ => format!("Correct the rules of {configuration}: they must have CREATE of pods."),
        };
        Some(Missed { text, advice, verdict: Verdict::NotCalled })
    }

    /// What an object needs for a call of a webhook, as far as labels decide.
    fn changes(self, webhook: &Webhook) -> Vec<String> {
        let of_namespace = webhook.namespace_selector.all_unmet(self.namespace);
        let of_object = webhook.object_selector.all_unmet(self.object);
        let of_namespace = of_namespace.map(|unmet| self.of_namespace(unmet, webhook));
        let of_object = of_object.map(|unmet| change(unmet, self.object, "the pod template"));
        of_namespace.chain(of_object).collect()
    }

    fn of_namespace(self, unmet: &Requirement, webhook: &Webhook) -> String {
        if unmet.key() == NAMESPACE_NAME {
            let configuration = &webhook.configuration;
            return format!(
                "{CREATE} the pod in a namespace that {configuration} does not leave out"
            );
        }
        change(unmet, self.namespace, "the namespace")
    }

    /// Whether the pod is one of the mesh itself, or has a proxy in its own template.
    fn is_of_mesh(self, product: Product) -> bool {
        let has = |key: &str| self.object.contains_key(key);
        match product {
            Product::Linkerd => LINKERD_OWN.iter().any(|key| has(key)),
            Product::Istio => {
                let is = |(key, value): &(&str, &str)| {
                    self.object.get(*key).is_some_and(|found| found == value)
                };
                has(ISTIO_GATEWAY) || ISTIO_OWN.iter().any(is) || self.has_own_proxy()
            }
            Product::Consul | Product::Dapr | Product::Kuma | Product::Templates => false,
        }
    }

    /// Whether the traffic of the pod goes through its node's proxy: the label of the pod comes before
    /// that of the namespace.
    fn is_ambient(self) -> bool {
        let label = self.object.get(AMBIENT_LABEL).or_else(|| self.namespace.get(AMBIENT_LABEL));
        label.is_some_and(|label| label == AMBIENT)
    }

    /// Whether the pod has Istio's proxy without the mark of its injector.
    fn has_own_proxy(self) -> bool {
        let Some(pod) = self.pod else { return false };
        let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
        let mut containers = containers.into_iter().flatten();
        containers
            .any(|container| container.get("name").and_then(Value::as_str) == Some("istio-proxy"))
            && pod.pointer("/metadata/annotations/sidecar.istio.io~1status").is_none()
    }

    /// A revision or tag of Istio that labels name and no webhook has.
    fn unserved(self, own: &[&Step<'_>]) -> Option<Missed> {
        let revision = asks::istio_revision(self.object, self.namespace)?;
        // Some webhook selects the namespace whatever its revision is.
        let is_of_namespace = self.namespace.contains_key(ISTIO_REVISION);
        if is_of_namespace && own.iter().any(|step| stage(step) > 0) {
            return None;
        }
        let served: BTreeSet<_> = own.iter().flat_map(|step| revisions(step.webhook)).collect();
        if served.contains(revision) {
            return None;
        }
        let listed = first_names(served.iter().copied(), served.len(), MAX_REVISIONS);
        let place = if is_of_namespace { "namespace" } else { "pod template" };
        Some(Missed {
            text: format!(
                "no webhook serves the revision or tag {revision} of Istio, which the label \
                 {ISTIO_REVISION} of the {place} names; webhooks serve {listed}"
            ),
            advice: format!(
                "Change the label {ISTIO_REVISION} of the {place}, or install the revision or tag \
                 {revision}."
            ),
            verdict: Verdict::NotCalled,
        })
    }
}

/// The revisions and tags that a webhook selects by; the revision of its injector if it selects by
/// other labels.
fn revisions(webhook: &Webhook) -> impl Iterator<Item = &str> {
    let selectors = [&webhook.namespace_selector, &webhook.object_selector];
    let mut listed =
        selectors.into_iter().flat_map(|selector| selector.values_of(ISTIO_REVISION)).peekable();
    let own = listed.peek().is_none().then(|| webhook.istio_revision());
    listed.map(String::as_str).chain(own)
}

/// How far a webhook got.
pub(super) fn stage(step: &Step<'_>) -> u8 {
    match step.verdict {
        Verdict::Called => return 5,
        Verdict::Unknown => return 4,
        Verdict::NotCalled | Verdict::Rejected => {}
    }
    match &step.reason {
        Reason::Exempt | Reason::NamespaceUnknown | Reason::NamespaceSelector(_) => 0,
        Reason::ObjectSelector(_) => 1,
        Reason::Rules(_) | Reason::VersionsUnknown(_) => 2,
        Reason::Condition(_)
        | Reason::ConditionFails { .. }
        | Reason::ConditionUnknown { .. }
        | Reason::Matches
        | Reason::MatchesEquivalent(_) => 3,
    }
}

fn change(unmet: &Requirement, labels: &Labels, whose: &str) -> String {
    let key = unmet.key();
    match (Change::to(unmet), labels.get(key)) {
        (Change::Set(value), None) => format!("label {whose} {key}={value}"),
        (Change::Set(value), Some(found)) => {
            format!("change the label {key}={found} of {whose} to {value}")
        }
        (Change::Add, _) => format!("give {whose} the label {key}"),
        (Change::Remove, Some(found)) => format!("remove the label {key}={found} from {whose}"),
        (Change::Remove, None) => format!("remove the label {key} from {whose}"),
    }
}

/// The changes of the nearest webhook, and those of others that need no more.
fn ways(nearest: &Candidate<'_>, all: &[Candidate<'_>]) -> String {
    let mut ways: Vec<String> = Vec::new();
    let others = all.iter().filter(|other| other.changes.len() == nearest.changes.len());
    for Candidate { changes, .. } in [nearest].into_iter().chain(others) {
        let way = changes.join(" and ");
        if ways.len() < MAX_WAYS && !ways.contains(&way) {
            ways.push(way);
        }
    }
    // The label that most people know comes first.
    ways.sort_by_key(|way| !way.contains(ISTIO_NAMESPACE));
    sentence(&ways.join(", or "))
}

/// A text with a capital letter, and what follows from it.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    let end = if text.starts_with(CREATE) { "." } else { "; then create the pod anew." };
    first.into_iter().chain(letters).collect::<String>() + end
}
