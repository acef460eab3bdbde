//! Settings: the values with a pod's overrides applied (`inject.go`, `ApplyAnnotationOverrides`).
//!
//! A pure function of values and overrides. Each ignored override leads to a warning, also where
//! upstream is silent, and so does one that [`checks`] finds to be without its effect.

use std::borrow::Cow;

use super::{
    annotations::Annotation, checks, overrides::Overrides, release::Release, values::Values,
};
use crate::outcome::{Warning, Warnings};

pub(crate) mod effects;

/// The reason to deny every pod with these settings.
pub type Denial = Cow<'static, str>;

/// The annotations about native sidecars, of which the first one that is present decides.
pub(super) const NATIVE_SIDECAR: [Annotation; 3] =
    [Annotation::NativeSidecar, Annotation::BetaNativeSidecar, Annotation::AlphaNativeSidecar];

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
    /// The first native-sidecar annotation that is present decides, even if its value is invalid.
    native_sidecar: Option<Annotation>,
}

impl Settings {
    /// Applies the overrides to the values.
    #[must_use]
    pub fn new(values: &Values, overrides: &Overrides<'_>, release: Release) -> Self {
        let mut settings = Self::before_annotations(values, overrides);
        for (annotation, value) in overrides.settings() {
            match settings.apply(annotation, value, release) {
                Ok(()) => checks::warn(annotation, value, &mut settings.warnings),
                Err(problem) => settings.warnings.push(|| warning(annotation, value, problem)),
            }
        }
        settings
    }

    /// The settings before [`Settings::apply`].
    pub(super) fn before_annotations(values: &Values, overrides: &Overrides<'_>) -> Self {
        let mut settings = Self {
            values: values.clone(),
            debug_sidecar: false,
            warnings: Warnings::default(),
            denial: None,
            native_sidecar: NATIVE_SIDECAR.into_iter().find(|&key| overrides.get(key).is_some()),
        };
        if overrides.is_ingress() {
            settings.values.proxy.is_ingress = true;
        }
        settings
    }

    /// Applies one override.
    pub(super) fn apply(
        &mut self,
        annotation: Annotation,
        value: &str,
        release: Release,
    ) -> Result<(), effects::Problem> {
        annotation.effect()(self, value, release)
    }
}

/// A warning about a value, which is shortened.
#[must_use]
pub fn warning(annotation: Annotation, value: &str, problem: &str) -> Warning {
    const SHOWN_CHARS: usize = 64;
    let shown: String = value.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
    let more = if value.chars().nth(SHOWN_CHARS).is_some() { "…" } else { "" };
    Warning { annotation: annotation.key(), problem: format!("\"{shown}{more}\" {problem}") }
}

#[cfg(test)]
mod tests;
