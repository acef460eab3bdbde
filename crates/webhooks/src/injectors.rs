//! The webhooks of sidecar injectors among those of a cluster: which of them are called.
//!
//! Not for whose webhook is which (`product.rs`), nor for what the injectors decide.

use crate::{
    Step, Verdict, Webhook,
    product::{self, DEFAULT_REVISION},
};

mod asks;
mod nearest;

pub use crate::product::{Injector, Product};
pub use asks::{asks_for, mentions};
pub use nearest::{Missed, missed, rejected};

impl Webhook {
    /// Whether injectd's chart made its configuration.
    pub(crate) fn is_of_injectd(&self) -> bool {
        product::is_of_injectd(&self.labels)
    }

    /// The product whose injector it calls.
    #[must_use]
    pub fn product(&self) -> Option<Product> {
        self.injector.as_ref().map(|injector| injector.product)
    }

    /// The revision of Istio whose injector it calls.
    #[must_use]
    pub fn istio_revision(&self) -> &str {
        let revision = self.injector.as_ref().and_then(|injector| injector.revision.as_deref());
        revision.unwrap_or(DEFAULT_REVISION)
    }
}

/// The webhook of a product that got furthest: one that is called, else one that may be called.
#[must_use]
pub fn furthest<'s>(steps: &'s [Step<'_>], product: Product) -> Option<&'s Step<'s>> {
    let own = steps.iter().filter(|step| step.webhook.product() == Some(product));
    // Of several, the first.
    own.rev().max_by_key(|step| nearest::stage(step))
}

/// The injectors that are called, in their order.
pub fn called<'s>(steps: &'s [Step<'_>]) -> impl Iterator<Item = (Product, &'s Step<'s>)> {
    let called = steps.iter().filter(|step| step.verdict == Verdict::Called);
    called.filter_map(|step| Some((step.webhook.product()?, step)))
}

#[cfg(test)]
mod tests;
