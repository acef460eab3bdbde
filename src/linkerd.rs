//! Linkerd: what belongs to this mesh and to no other.
//!
//! On the way of a review: [`overrides`] layers the annotations, [`decide`] decides, [`snapshot`]
//! has the template for the overrides ([`settings`] → [`template`]), [`render`] fills it.
//! Not for wire formats, caches of cluster objects or doors: a second mesh shares those.

use std::borrow::Cow;

pub mod annotations;
pub mod decide;
pub mod differences;
pub mod env_var;
pub mod events;
pub mod log_lines;
pub mod overrides;
pub mod ports;
pub mod release;
pub mod render;
pub mod settings;
pub mod snapshot;
pub mod template;
pub mod trust_roots;
pub mod values;

mod parameters;

/// Removes the text that Go's templates print for nothing: upstream's renderer deletes it from
/// annotations and labels, wherever it comes from (`linkerd.md` §7-16).
fn no_value(text: &str) -> Cow<'_, str> {
    const NO_VALUE: &str = "<no value>";
    if text.contains(NO_VALUE) {
        Cow::Owned(text.replace(NO_VALUE, ""))
    } else {
        Cow::Borrowed(text)
    }
}
