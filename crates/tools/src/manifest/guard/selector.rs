//! Label selectors: read as `kubectl -l` reads them, written as CEL.

use injectd_k8s::selector::{Operator, Requirement};

use super::CommandError;

/// Whether the labels of a map, such as `variables.podLabels`, meet a requirement.
pub(super) fn to_cel(labels: &str, requirement: &Requirement) -> String {
    let label = format!("{labels}[?'{}']", requirement.key());
    let values = cel_list(requirement.values());
    match requirement.operator() {
        Operator::In => format!("{label}.optMap(value, value in {values}).orValue(false)"),
        Operator::NotIn => format!("!{label}.optMap(value, value in {values}).orValue(false)"),
        Operator::Exists => format!("{label}.hasValue()"),
        Operator::DoesNotExist => format!("!{label}.hasValue()"),
    }
}

/// A list of texts in CEL, for texts without quotes.
pub(super) fn cel_list(texts: &[String]) -> String {
    format!("['{}']", texts.join("', '"))
}

/// Whether one of several selectors matches the pod's labels, in CEL; `None` without selectors.
pub(super) fn any_to_cel(selectors: &[Vec<Requirement>]) -> Option<String> {
    let all = |selector: &Vec<Requirement>| {
        let of_pod = |requirement| to_cel("variables.podLabels", requirement);
        let parts: Vec<_> = selector.iter().map(of_pod).collect();
        parts.join(" && ")
    };
    let parts: Vec<_> = selectors.iter().map(all).collect();
    (!parts.is_empty()).then(|| parts.join(" ||\n"))
}

/// Reads the selector of a flag, such as `team=shop,env in (a, b),!legacy`.
pub(super) fn parse(flag: &str, text: &str) -> Result<Vec<Requirement>, CommandError> {
    let wrong = |problem: &str| {
        CommandError::Usage(format!("{flag} {text:?}: {problem}; expected such as team=shop,!old"))
    };
    let mut requirements = Vec::new();
    for part in parts(text) {
        let requirement = requirement(part.trim()).ok_or_else(|| wrong("not a label selector"))?;
        let named = requirement.named();
        requirements.push(named.map_err(|_| wrong("a key or a value is not that of a label"))?);
    }
    Ok(requirements)
}

/// Splits at the commas outside of parentheses.
fn parts(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    text.split(|letter| {
        is_inside = letter == '(' || (is_inside && letter != ')');
        letter == ',' && !is_inside
    })
    .collect()
}

fn requirement(text: &str) -> Option<Requirement> {
    let made = |key: &str, operator: Operator, values: &[&str]| {
        let key = key.trim();
        let is_key = !key.is_empty() && !key.contains([' ', '(', ')', '=', '!']);
        is_key.then(|| Requirement::new(key, operator, values))
    };
    if let Some(list) = text.strip_suffix(')') {
        let (head, list) = list.split_once('(')?;
        let (key, operator) = head.trim().rsplit_once(' ')?;
        let operator = match operator {
            "in" => Operator::In,
            "notin" => Operator::NotIn,
            _ => return None,
        };
        return made(key, operator, &list.split(',').map(str::trim).collect::<Vec<_>>());
    }
    if let Some((key, value)) = text.split_once("!=") {
        return made(key, Operator::NotIn, &[value.trim()]);
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return made(key, Operator::In, &[value.trim()]);
    }
    match text.strip_prefix('!') {
        Some(key) => made(key, Operator::DoesNotExist, &[]),
        None => made(text, Operator::Exists, &[]),
    }
}
