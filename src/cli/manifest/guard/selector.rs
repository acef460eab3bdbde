//! Label selectors: read as `kubectl -l` reads them, written as Kubernetes objects and as CEL.

#![expect(clippy::disallowed_types, reason = "the command line prints objects as trees")]

use injectd_istio::selector::{Expression, Selector};
use serde_json::{Value, json};

use super::CommandError;

/// One of `matchExpressions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement(Expression);

impl Requirement {
    /// A requirement that is known to be valid.
    pub(super) fn new(key: &str, operator: &str, values: &[&str]) -> Self {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        Self(Expression { key: key.to_owned(), operator: operator.to_owned(), values })
    }

    /// An item of `matchExpressions`.
    pub(super) fn to_json(&self) -> Value {
        let Expression { key, operator, values } = &self.0;
        if values.is_empty() {
            return json!({"key": key, "operator": operator});
        }
        json!({"key": key, "operator": operator, "values": values})
    }

    /// Whether the labels of the map `variables.podLabels` meet the requirement.
    fn to_cel(&self) -> String {
        let Expression { key, operator, values } = &self.0;
        let label = format!("variables.podLabels[?'{key}']");
        let values = cel_list(values);
        match &**operator {
            "In" => format!("{label}.optMap(value, value in {values}).orValue(false)"),
            "NotIn" => format!("!{label}.optMap(value, value in {values}).orValue(false)"),
            "Exists" => format!("{label}.hasValue()"),
            _ => format!("!{label}.hasValue()"),
        }
    }
}

/// A list of texts in CEL, for texts without quotes.
pub(super) fn cel_list(texts: &[String]) -> String {
    format!("['{}']", texts.join("', '"))
}

/// Whether one of several selectors matches the pod's labels, in CEL; `None` without selectors.
pub(super) fn any_to_cel(selectors: &[Vec<Requirement>]) -> Option<String> {
    let all = |selector: &Vec<Requirement>| {
        let parts: Vec<_> = selector.iter().map(Requirement::to_cel).collect();
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
        let expression = expression(part.trim()).ok_or_else(|| wrong("not a label selector"))?;
        let selector = Selector::new([].into(), vec![expression.clone()]);
        selector
            .matches(flag, None)
            .map_err(|_| wrong("a key or a value is not that of a label"))?;
        requirements.push(Requirement(expression));
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

fn expression(text: &str) -> Option<Expression> {
    let made = |key: &str, operator: &str, values: Vec<String>| {
        let key = key.trim();
        let is_key = !key.is_empty() && !key.contains([' ', '(', ')', '=', '!']);
        is_key.then(|| Expression { key: key.to_owned(), operator: operator.to_owned(), values })
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some(list) = text.strip_suffix(')') {
        let (head, list) = list.split_once('(')?;
        let (key, operator) = head.trim().rsplit_once(' ')?;
        let operator = match operator {
            "in" => "In",
            "notin" => "NotIn",
            _ => return None,
        };
        return made(key, operator, list.split(',').map(|it| it.trim().to_owned()).collect());
    }
    if let Some((key, value)) = text.split_once("!=") {
        return made(key, "NotIn", one(value));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return made(key, "In", one(value));
    }
    match text.strip_prefix('!') {
        Some(key) => made(key, "DoesNotExist", Vec::new()),
        None => made(text, "Exists", Vec::new()),
    }
}
