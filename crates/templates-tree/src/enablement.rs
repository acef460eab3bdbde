//! The label or annotation that switches a template on and off.

use injectd_k8s::names::is_dns_subdomain;
use injectd_templates::{
    matching::{OFF, ON},
    object::{Enablement, EnablementValues, KeyPlace, OptOut, ParameterSource, Switch},
};

use crate::layers::Layers;

/// What a value of the key means for a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// `enabled` or `true`.
    On,
    /// `disabled` or `false`.
    Off,
    /// Names of templates, and whether that of the template is among them.
    Names(bool),
    /// Another value.
    Unknown,
}

/// Whether a template is switched on for a pod, and warnings about values that do not count. A template without
/// `enablement` is on.
#[must_use]
pub fn enabled(
    enablement: Option<&Enablement>,
    template: &str,
    layers: &Layers,
) -> (bool, Vec<String>) {
    let Some(enablement) = enablement else { return (true, Vec::new()) };
    let mut warnings = Vec::new();
    let mut is_pod_on = false;
    for place in &enablement.r#in {
        let Some(value) = layers.at(*place, &enablement.key) else { continue };
        let is_pod = matches!(place, KeyPlace::PodLabel | KeyPlace::PodAnnotation);
        if is_pod_on && is_pod {
            continue;
        }
        // A pod's `true` is nearer than all that is behind it, but for the names of the namespace.
        let may_opt_out = !is_pod || enablement.opt_out == OptOut::Honored;
        match word(value, template, enablement.values) {
            Word::Unknown => warnings.push(unknown(enablement, *place)),
            Word::Names(is_named) if is_named || may_opt_out => return (is_named, warnings),
            Word::On if is_pod && enablement.values == EnablementValues::Name => is_pod_on = true,
            Word::On => return (true, warnings),
            Word::Off if may_opt_out && !is_pod_on => return (false, warnings),
            Word::Off | Word::Names(_) => {}
        }
    }
    (is_pod_on || enablement.default == Switch::Enabled, warnings)
}

fn word(value: &str, template: &str, values: EnablementValues) -> Word {
    let is_one_of = |words: [&str; 2]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    if is_one_of(ON) {
        return Word::On;
    }
    if is_one_of(OFF) {
        return Word::Off;
    }
    let names = || value.split(',').map(str::trim).filter(|name| !name.is_empty());
    if values == EnablementValues::Switch || names().next().is_none() {
        return Word::Unknown;
    }
    if names().all(is_dns_subdomain) {
        Word::Names(names().any(|name| name == template))
    } else {
        Word::Unknown
    }
}

fn unknown(enablement: &Enablement, place: KeyPlace) -> String {
    let source = ParameterSource::of_place(place, enablement.key.clone());
    let names = match enablement.values {
        EnablementValues::Switch => "",
        EnablementValues::Name => ", or names of templates with commas between them",
    };
    format!("{source} does not count; expected enabled, true, disabled or false{names}")
}

#[cfg(test)]
mod tests {
    use injectd_templates::object::KeyPlace::{
        NamespaceAnnotation, NamespaceLabel, PodAnnotation, PodLabel,
    };
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "example.com/inject";
    const ALL: [KeyPlace; 4] = [PodLabel, PodAnnotation, NamespaceLabel, NamespaceAnnotation];

    fn switch(places: &[KeyPlace]) -> Enablement {
        Enablement {
            key: KEY.to_owned(),
            r#in: places.to_vec(),
            default: Switch::Disabled,
            values: EnablementValues::Switch,
            opt_out: OptOut::Honored,
        }
    }

    fn names(places: &[KeyPlace]) -> Enablement {
        Enablement { values: EnablementValues::Name, ..switch(places) }
    }

    fn layers(values: &[(KeyPlace, &str)]) -> Layers {
        let mut layers = Layers::default();
        for (place, value) in values {
            let layer = match place {
                PodLabel => &mut layers.pod_labels,
                PodAnnotation => &mut layers.pod_annotations,
                NamespaceLabel => &mut layers.namespace_labels,
                NamespaceAnnotation => &mut layers.namespace_annotations,
            };
            layer.insert(KEY.to_owned(), (*value).to_owned());
        }
        layers
    }

    /// Whether the template `agent` is on; there must be no warnings.
    fn is_on(enablement: &Enablement, values: &[(KeyPlace, &str)]) -> bool {
        let (is_on, warnings) = enabled(Some(enablement), "agent", &layers(values));
        assert!(warnings.is_empty(), "{values:?}: {warnings:?}");
        is_on
    }

    #[test]
    fn a_template_without_enablement_is_on() {
        assert_eq!(enabled(None, "agent", &layers(&[(PodLabel, "false")])), (true, Vec::new()));
    }

    #[test]
    fn four_words_count_in_any_case() {
        for (on, off) in [("enabled", "disabled"), ("True", "FALSE"), ("ENABLED", "Disabled")] {
            for place in ALL {
                for enablement in [switch(&ALL), names(&ALL)] {
                    assert!(is_on(&enablement, &[(place, on)]), "{on}");
                    let by_default = Enablement { default: Switch::Enabled, ..enablement };
                    assert!(!is_on(&by_default, &[(place, off)]), "{off}");
                }
            }
        }
    }

    #[test]
    fn the_first_place_that_has_the_key_counts() {
        let values = [(PodLabel, "false"), (NamespaceLabel, "true")];
        assert!(!is_on(&switch(&[PodLabel, NamespaceLabel]), &values));
        assert!(is_on(&switch(&[NamespaceLabel, PodLabel]), &values));
        assert!(is_on(&switch(&[PodAnnotation, NamespaceLabel]), &values));
    }

    #[test]
    fn places_that_are_not_listed_do_not_count() {
        assert!(!is_on(&switch(&[PodLabel]), &[(PodAnnotation, "true"), (NamespaceLabel, "true")]));
    }

    #[test]
    fn without_the_key_the_default_counts() {
        for default in [Switch::Enabled, Switch::Disabled] {
            let enablement = Enablement { default, ..switch(&ALL) };
            assert_eq!(is_on(&enablement, &[]), default == Switch::Enabled);
        }
    }

    #[test]
    fn another_value_counts_as_not_set_with_a_warning() {
        let enablement = switch(&[PodAnnotation, NamespaceLabel]);
        for value in ["", "yes", "marker-value", "agent"] {
            let layers = layers(&[(PodAnnotation, value), (NamespaceLabel, "true")]);
            let expected = "annotation example.com/inject does not count; expected enabled, true, \
                disabled or false";
            let found = enabled(Some(&enablement), "agent", &layers);
            assert_eq!(found, (true, vec![expected.to_owned()]), "{value}");
        }
        let layers = layers(&[(NamespaceLabel, "Not,A_Name")]);
        let (is_on, warnings) = enabled(Some(&names(&ALL)), "agent", &layers);
        assert!(!is_on);
        let expected = "label example.com/inject of the namespace does not count; expected enabled, true, \
            disabled or false, or names of templates with commas between them";
        assert_eq!(warnings, [expected]);
    }

    #[test]
    fn a_template_is_on_if_it_is_named() {
        let enablement = names(&[PodAnnotation, NamespaceAnnotation]);
        assert!(is_on(&enablement, &[(PodAnnotation, "agent")]));
        assert!(is_on(&enablement, &[(PodAnnotation, " other , agent,")]));
        assert!(!is_on(&enablement, &[(PodAnnotation, "agents,other")]));
        assert!(is_on(&enablement, &[(NamespaceAnnotation, "agent")]));
        // The pod's names are nearer.
        let both = [(PodAnnotation, "other"), (NamespaceAnnotation, "agent")];
        assert!(!is_on(&enablement, &both));
    }

    #[test]
    fn names_of_the_namespace_complete_a_true_of_the_pod() {
        let enablement = names(&[PodLabel, PodAnnotation, NamespaceLabel]);
        assert!(is_on(&enablement, &[(PodLabel, "true"), (NamespaceLabel, "agent")]));
        assert!(!is_on(&enablement, &[(PodLabel, "true"), (NamespaceLabel, "other")]));
        // There are no names that narrow it.
        for namespace in ["true", "false"] {
            assert!(is_on(&enablement, &[(PodLabel, "true"), (NamespaceLabel, namespace)]));
        }
        assert!(is_on(&enablement, &[(PodLabel, "true")]));
        assert!(is_on(&enablement, &[(PodLabel, "true"), (PodAnnotation, "other")]));
        // A namespace's own `true`.
        assert!(is_on(&enablement, &[(NamespaceLabel, "true")]));
    }

    #[test]
    fn a_pod_cannot_switch_off_what_must_stay() {
        let ignored = |enablement| Enablement { opt_out: OptOut::Ignored, ..enablement };
        let enablement = Enablement { default: Switch::Enabled, ..ignored(switch(&ALL)) };
        for word in ["false", "disabled"] {
            for place in [PodLabel, PodAnnotation] {
                assert!(is_on(&enablement, &[(place, word)]));
                assert!(is_on(&ignored(switch(&ALL)), &[(place, word), (NamespaceLabel, "true")]));
            }
            assert!(!is_on(&enablement, &[(NamespaceLabel, word)]));
        }
        let named = ignored(names(&ALL));
        assert!(is_on(&named, &[(PodLabel, "other"), (NamespaceLabel, "agent")]));
        assert!(is_on(&named, &[(PodLabel, "agent"), (NamespaceLabel, "false")]));
    }

    proptest! {
        /// No value is in a warning, and a pod never switches off what must stay.
        #[test]
        fn any_value_is_read(
            values in prop::array::uniform4(prop::option::of("(marker\\PC{0,9}|true|FALSE|agent|b)")),
            is_name: bool,
        ) {
            let set: Vec<_> = ALL.into_iter().zip(&values)
                .filter_map(|(place, value)| Some((place, value.as_deref()?))).collect();
            let mut enablement = if is_name { names(&ALL) } else { switch(&ALL) };
            let (_, warnings) = enabled(Some(&enablement), "agent", &layers(&set));
            prop_assert!(!warnings.concat().contains("marker"));
            enablement.opt_out = OptOut::Ignored;
            let of_pod = |place: KeyPlace| matches!(place, PodLabel | PodAnnotation);
            let others: Vec<_> = set.iter().copied().filter(|(place, _)| !of_pod(*place)).collect();
            let (is_on, _) = enabled(Some(&enablement), "agent", &layers(&set));
            let (is_on_without, _) = enabled(Some(&enablement), "agent", &layers(&others));
            prop_assert!(is_on || !is_on_without);
        }
    }
}
