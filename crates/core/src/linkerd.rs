//! Everything specific to Linkerd.
//!
//! [`mesh`] has the steps of a review: [`overrides`] layers the annotations, [`decide`] decides,
//! [`workload`] finds the root owner, [`snapshot`] finds or compiles the template for the overrides
//! ([`settings`] → [`template`]), and [`render`] fills it.

use std::borrow::Cow;

pub mod annotate;
pub mod annotations;
pub mod checks;
pub mod decide;
pub mod differences;
pub mod env_var;
pub mod events;
pub mod explain;
pub mod mesh;
pub mod overrides;
pub mod pod;
pub mod ports;
pub mod reasons;
pub mod release;
pub mod render;
pub mod settings;
pub mod snapshot;
pub mod template;
pub mod trust_roots;
pub mod uninject;
pub mod values;
pub mod workload;

/// Removes `<no value>`, which Go's templates print for missing values. Upstream's renderer deletes
/// it from annotations and labels, whatever its origin (`docs/spec/linkerd/injection.md` §7-16).
fn no_value(text: &str) -> Cow<'_, str> {
    const NO_VALUE: &str = "<no value>";
    if text.contains(NO_VALUE) {
        Cow::Owned(text.replace(NO_VALUE, ""))
    } else {
        Cow::Borrowed(text)
    }
}
