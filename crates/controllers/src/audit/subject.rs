//! A pod that no mesh injects now, or that the API server would reject: what asks for a sidecar, and
//! why no webhook is called.
//!
//! Not for pods that a mesh injects: `audit.rs` compares their sidecars.

use injectd_explain::{Creation, later::Checks};
use injectd_webhooks::{
    Request, Step,
    injectors::{self, Missed, Product},
};
use serde_json::Value;

use super::{Finding, Judgement, Namespace, sidecar::Sidecar};

/// The meshes that are judged, in the order in which they are asked.
const KNOWN: [Product; 2] = [Product::Istio, Product::Linkerd];

/// A pod that is judged, and what is known of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'s> {
    /// As its author wrote it: without what an injector added.
    pub(super) pod: &'s Value,
    /// The sidecar that it has.
    pub(super) found: Option<&'s Sidecar>,
    /// `None` if it is not known.
    pub(super) namespace: Option<&'s Namespace>,
    pub(super) steps: &'s [Step<'s>],
}

impl<'s> Subject<'s> {
    pub(super) fn creation(self) -> Creation<'s> {
        Creation {
            pod: self.pod,
            namespace: self.namespace_name(),
            checks: Checks {
                namespace: self.namespace.map(|namespace| &namespace.object),
                ..Checks::default()
            },
        }
    }

    /// The first mesh besides these for whose sidecar something asks, and what.
    fn asked(self, decided: &[Product]) -> Option<(Product, String)> {
        let namespace = self.namespace.map_or(&Value::Null, |namespace| &namespace.object);
        let undecided = KNOWN.into_iter().filter(|product| !decided.contains(product));
        let mut asked = undecided.filter_map(|product| {
            Some((product, injectors::asks_for(product, self.pod, namespace)?))
        });
        asked.next()
    }

    /// The judgement on a pod that the API server would reject now.
    pub(super) fn rejected(self, rejected: &Missed) -> Judgement {
        match (self.asked(&[]), self.found) {
            (Some((product, by)), None) => self.without_call(product, &by, rejected),
            (_, Some(_)) => Judgement::Unknown(format!("a new pod is refused: {}", rejected.text)),
            (None, None) => Judgement::Unmeshed,
        }
    }

    /// The judgement on a pod that no mesh would inject now; those that decided so are named.
    pub(super) fn not_injected(self, decided: &[Product]) -> Judgement {
        let found = self.found;
        match (self.asked(decided), found) {
            (Some((product, by)), found)
                if found.is_none_or(|sidecar| sidecar.product != product) =>
            {
                self.uncalled(product, &by)
            }
            (Some((product, _)), _) => self.unserved(product),
            (None, None) => {
                // Linkerd injects only pods that ask for it and that do not use the network of their node.
                let may_ask =
                    |product: &&Product| **product != Product::Linkerd || self.namespace.is_none();
                let mut undecided =
                    KNOWN.iter().filter(|product| !decided.contains(product)).filter(may_ask);
                let doubt = undecided.find_map(|product| self.doubt(*product));
                doubt.map_or(Judgement::Unmeshed, |doubt| Judgement::Unknown(doubt.text))
            }
            (None, Some(found)) => self.unexpected(found, decided),
        }
    }

    /// The judgement on a sidecar that nothing asks for.
    fn unexpected(self, found: &Sidecar, decided: &[Product]) -> Judgement {
        let product = found.product;
        if !found.is_injected {
            return Judgement::NotCompared;
        }
        if decided.contains(&product) {
            let name = product.as_str();
            let why = format!("{name} would not inject the pod now; injectd explain says why");
            return Judgement::Wrong(Finding::Unexpected, why);
        }
        if !self.has_webhook(product) {
            return Judgement::Unserved { product, has_webhook: false };
        }
        match self.missed(product) {
            Some(missed) if missed.is_doubt() => Judgement::Unknown(missed.text),
            Some(missed) => Judgement::Wrong(Finding::Unexpected, missed.text),
            None => Judgement::NotCompared,
        }
    }

    /// The judgement on a pod without the sidecar that something asks for.
    fn uncalled(self, product: Product, by: &str) -> Judgement {
        match self.missed(product) {
            Some(missed) if missed.is_doubt() => Judgement::Unknown(missed.text),
            Some(missed) => self.without_call(product, by, &missed),
            None => without_mesh(product, None),
        }
    }

    fn without_call(self, product: Product, by: &str, missed: &Missed) -> Judgement {
        let reason = format!("{by} asks for the sidecar, but {}", missed.text);
        Judgement::Uncalled { product, reason, has_webhook: self.has_webhook(product) }
    }

    /// The judgement on a pod that has the sidecar that something asks for.
    fn unserved(self, product: Product) -> Judgement {
        match self.missed(product) {
            Some(missed) if missed.is_doubt() => Judgement::Unknown(missed.text),
            Some(_) => Judgement::Unserved { product, has_webhook: self.has_webhook(product) },
            None => Judgement::NotCompared,
        }
    }

    /// Why no webhook of a product would be called.
    fn missed(self, product: Product) -> Option<Missed> {
        let request = Request::creates_pod(self.pod, self.namespace_name());
        injectors::missed(
            self.steps,
            product,
            &request,
            self.namespace.map(|namespace| &namespace.labels),
        )
    }

    pub(super) fn namespace_name(self) -> &'s str {
        let name = self.pod.pointer("/metadata/namespace").and_then(Value::as_str);
        name.unwrap_or_default()
    }

    fn has_webhook(self, product: Product) -> bool {
        injectors::furthest(self.steps, product).is_some()
    }

    /// What is not known of the webhook of a product, if it may be called.
    fn doubt(self, product: Product) -> Option<Missed> {
        self.missed(product).filter(Missed::is_doubt)
    }
}

/// The judgement if a webhook is called whose mesh cannot decide here.
pub(super) fn without_mesh(product: Product, found: Option<&Sidecar>) -> Judgement {
    match found {
        Some(_) => Judgement::NotCompared,
        None => {
            Judgement::Unknown(format!("the configuration of {} is not known", product.as_str()))
        }
    }
}
