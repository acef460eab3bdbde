//! Settings: the values with a pod's overrides applied, and the [`effects`] that annotations may have
//! on them.
//!
//! [`Overrides::apply`](super::overrides::Overrides::apply) applies them.

use std::borrow::Cow;

use super::values::Values;
use crate::outcome::Warnings;

pub(crate) mod effects;

/// The reason to deny every pod with these settings.
pub type Denial = Cow<'static, str>;

/// The values of one template.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The values with the overrides applied.
    pub values: Values,
    /// Whether the debug container is added.
    pub debug_sidecar: bool,
    /// Warnings about overrides that are ignored or not as expected.
    pub warnings: Warnings,
    /// Set if an override leads to a denial of every pod.
    pub denial: Option<Denial>,
    /// The key of the native-sidecar annotation that decides, even if its value is invalid.
    native_sidecar: Option<&'static str>,
}

impl Settings {
    /// The values without an override. `native_sidecar` is the key of the annotation that decides.
    pub(super) fn new(values: &Values, native_sidecar: Option<&'static str>) -> Self {
        Self {
            values: values.clone(),
            debug_sidecar: false,
            warnings: Warnings::default(),
            denial: None,
            native_sidecar,
        }
    }
}

#[cfg(test)]
mod tests;
