//! The key of enablement in CEL, as `injectd_templates_tree` decides it.

use injectd_templates::{
    matching::{OFF, ON},
    object::{Enablement, EnablementValues, KeyPlace, OptOut, Switch},
};

use super::super::selector::cel_list;

/// A name of a template among others, as Kubernetes has names of objects.
const NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Whether the key switches a template on.
pub(super) fn to_cel(enablement: &Enablement, template: &str) -> String {
    Switched { enablement, template }.from(0, false)
}

struct Switched<'e> {
    enablement: &'e Enablement,
    template: &'e str,
}

impl Switched<'_> {
    /// What the places from one on say. `is_pod_on`: a pod's own `true` is known, which names of the
    /// namespace complete.
    fn from(&self, place: usize, is_pod_on: bool) -> String {
        let Enablement { key, r#in, default, values, opt_out } = self.enablement;
        let Some(found) = r#in.get(place) else {
            return (is_pod_on || *default == Switch::Enabled).to_string();
        };
        let is_pod = matches!(found, KeyPlace::PodLabel | KeyPlace::PodAnnotation);
        let rest = self.from(place + 1, is_pod_on);
        if is_pod_on && is_pod {
            return rest;
        }
        let may_opt_out = !is_pod || *opt_out == OptOut::Honored;
        let is_name = *values == EnablementValues::Name;
        let value = format!("{}[?'{key}'].orValue('')", map_of(*found));
        let word = |words: [&str; 2]| {
            format!("{value}.lowerAscii() in {}", cel_list(&words.map(str::to_owned)))
        };
        let on = if is_pod && is_name { self.from(place + 1, true) } else { "true".to_owned() };
        let off = if may_opt_out && !is_pod_on { "false".to_owned() } else { rest.clone() };
        let mut cases = vec![(word(ON), on), (word(OFF), off)];
        if is_name {
            let names =
                format!("{value}.split(',').map(name, name.trim()).filter(name, name != '')");
            let are_names = format!("{names} != [] && {names}.all(name, name.matches('{NAME}'))");
            let others = if may_opt_out { "false".to_owned() } else { rest.clone() };
            let by_name = format!("('{}' in {names} ? true : {others})", self.template);
            cases.push((are_names.replace('\\', "\\\\"), by_name));
        }
        let cases = cases.into_iter().map(|(case, result)| format!("{case} ? {result} : "));
        format!("({}{rest})", cases.collect::<String>())
    }
}

fn map_of(place: KeyPlace) -> &'static str {
    match place {
        KeyPlace::PodLabel => "variables.podLabels",
        KeyPlace::PodAnnotation => "variables.podAnnotations",
        KeyPlace::NamespaceLabel => "variables.namespaceLabels",
        KeyPlace::NamespaceAnnotation => "variables.namespaceAnnotations",
    }
}
