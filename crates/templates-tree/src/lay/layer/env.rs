//! The order of variables: one stands behind those that its value names by `$(X)`.

use std::collections::BTreeSet;

use injectd_templates::named::{NamedList, member};
use serde_json::Value;

/// Arranges a list of which all variables are new.
pub(in crate::lay) fn arrange_all(variables: &mut Vec<Value>, list: NamedList) {
    if variables.iter().any(names_others) {
        let names = variables.iter().filter_map(|variable| list.name(variable)).collect();
        arrange(variables, names);
    }
}

/// Whether the value of a variable may name others.
pub(in crate::lay) fn names_others(variable: &Value) -> bool {
    let value = member(variable, "value").and_then(Value::as_str).unwrap_or_default();
    value.contains('$') && value.contains("$(")
}

/// Moves changed variables behind those that their values name. Others keep their place, and so do
/// changed ones that name each other in a circle.
pub(super) fn arrange(variables: &mut Vec<Value>, changed: Vec<String>) {
    if !variables.iter().any(names_others) {
        return;
    }
    let mut waiting = changed;
    while !waiting.is_empty() {
        let unsettled: BTreeSet<&String> = waiting.iter().collect();
        let waits = |name: &String| {
            let named = position(variables, name).and_then(|at| variables.get(at)).map(named_by);
            let mut others = named.into_iter().flatten().filter(|other| other != name);
            others.any(|other| unsettled.contains(&other))
        };
        let (later, ready): (Vec<_>, Vec<_>) =
            waiting.iter().cloned().partition(|name| waits(name));
        if ready.is_empty() {
            return;
        }
        // From the last, so that those behind the same variable keep their order.
        for name in ready.iter().rev() {
            settle(variables, name);
        }
        waiting = later;
    }
}

/// Moves a variable behind the last one that its value names, if it is before it.
fn settle(variables: &mut Vec<Value>, name: &str) {
    let Some(at) = position(variables, name) else { return };
    let named: BTreeSet<String> =
        variables.get(at).map(named_by).unwrap_or_default().into_iter().collect();
    let last = variables.iter().rposition(|other| {
        let other = name_of(other);
        other != name && named.contains(other)
    });
    if let Some(last) = last.filter(|last| *last > at) {
        let variable = variables.remove(at);
        variables.insert(last, variable);
    }
}

fn position(variables: &[Value], name: &str) -> Option<usize> {
    variables.iter().rposition(|variable| name_of(variable) == name)
}

fn name_of(variable: &Value) -> &str {
    variable.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The variables that the value of a variable names.
///
/// Kubernetes: `expansion.Expand`; `$$` is a dollar sign, so `$$(X)` names nothing.
fn named_by(variable: &Value) -> Vec<String> {
    let mut rest = variable.get("value").and_then(Value::as_str).unwrap_or_default();
    let mut names = Vec::new();
    while let Some((_, behind)) = rest.split_once('$') {
        rest = behind;
        if let Some(behind) = rest.strip_prefix('$') {
            rest = behind;
        } else if let Some((name, behind)) =
            rest.strip_prefix('(').and_then(|inner| inner.split_once(')'))
        {
            names.push(name.to_owned());
            rest = behind;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arranged(variables: &[(&str, &str)], changed: &[&str]) -> String {
        let variable = |(name, value): &(&str, &str)| json!({"name": name, "value": value});
        let mut list = variables.iter().map(variable).collect();
        arrange(&mut list, changed.iter().map(|name| (*name).to_owned()).collect());
        list.iter().map(name_of).collect()
    }

    #[test]
    fn dollars_in_pairs_name_nothing() {
        for (value, expected) in [
            ("$(A)/$(B)", vec!["A", "B"]),
            ("$$(A)", vec![]),
            ("$$$(A)", vec!["A"]),
            ("$(A", vec![]),
            ("$A ($(B)$(", vec!["B"]),
        ] {
            assert_eq!(named_by(&json!({"value": value})), expected, "{value}");
        }
    }

    #[test]
    fn a_changed_variable_stands_behind_the_last_one_it_names() {
        assert_eq!(arranged(&[("A", "$(C)$(B)"), ("B", ""), ("C", ""), ("D", "")], &["A"]), "BCAD");
        assert_eq!(arranged(&[("A", "$(C)"), ("C", "")], &[]), "AC");
        assert_eq!(arranged(&[("A", "$(A)$(X)"), ("C", "")], &["A"]), "AC");
    }

    #[test]
    fn variables_behind_the_same_one_keep_their_order() {
        assert_eq!(arranged(&[("A", "$(X)"), ("B", "$(X)"), ("X", "")], &["A", "B"]), "XAB");
    }

    #[test]
    fn chains_are_followed_and_circles_stay() {
        let chain = [("A", "$(B)"), ("B", "$(C)"), ("C", "")];
        assert_eq!(arranged(&chain, &["A", "B", "C"]), "CBA");
        assert_eq!(arranged(&[("A", "$(B)"), ("B", "$(A)")], &["A", "B"]), "AB");
    }
}
