//! Label selectors of the configuration (`metav1.LabelSelector`).

#![expect(clippy::disallowed_types, reason = "labels are read from the pod's tree")]

use std::collections::BTreeMap;

use injectd_gocompat::text::quote;
use injectd_k8s::names;
use serde_json::{Map, Value};

use crate::fields::{shown_map, text_of};

/// One of `matchExpressions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expression {
    /// The label's key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values of `In` and `NotIn`.
    pub values: Vec<String>,
}

/// A label selector: all of its labels and expressions have to match.
#[derive(Debug, Clone)]
pub struct Selector {
    labels: BTreeMap<String, String>,
    expressions: Vec<(Operator, Expression)>,
    problem: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Selector {
    /// A selector with these `matchLabels` and `matchExpressions`.
    ///
    /// It is invalid if an operator is unknown, has too many or no values, or if a key or a value is
    /// not that of a label (`metav1.LabelSelectorAsSelector`).
    #[must_use]
    pub fn new(labels: BTreeMap<String, String>, expressions: Vec<Expression>) -> Self {
        let mut problem =
            labels.iter().find_map(|(key, value)| label_problem(key, std::slice::from_ref(value)));
        let mut known = Vec::with_capacity(expressions.len());
        for expression in expressions {
            let operator = operator(&expression);
            problem = problem.or_else(|| operator.clone().err());
            // An invalid selector is only shown.
            known.push((operator.unwrap_or(Operator::Exists), expression));
        }
        Self { labels, expressions: known, problem }
    }

    /// The keys of the labels that it looks at.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let expressions = self.expressions.iter().map(|(_, expression)| &expression.key);
        self.labels.keys().chain(expressions).map(String::as_str)
    }

    /// Whether the selector matches a pod's labels; `false` for one without any conditions.
    ///
    /// # Errors
    /// The selector is invalid; the text is Istio's, of which `list` is a part.
    pub fn matches(&self, list: &str, labels: Option<&Map<String, Value>>) -> Result<bool, String> {
        if let Some(problem) = &self.problem {
            return Err(format!("Invalid selector for {list}: {} ({problem})", self.shown()));
        }
        if self.labels.is_empty() && self.expressions.is_empty() {
            return Ok(false);
        }
        let value = |key: &str| labels.and_then(|labels| text_of(labels.get(key)?));
        let has_labels = self.labels.iter().all(|(key, text)| value(key) == Some(text));
        let holds = |(operator, expression): &(Operator, Expression)| {
            let value = value(&expression.key);
            let is_listed = value.is_some_and(|value| expression.values.iter().any(|v| v == value));
            match operator {
                Operator::In => is_listed,
                Operator::NotIn => !is_listed,
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        };
        Ok(has_labels && self.expressions.iter().all(holds))
    }

    /// Go's `%v`: `{map[a:b] [{key In [x y]}]}`.
    fn shown(&self) -> String {
        let expressions = self.expressions.iter().map(|(_, expression)| {
            let Expression { key, operator, values } = expression;
            format!("{{{key} {operator} [{}]}}", values.join(" "))
        });
        let expressions: Vec<_> = expressions.collect();
        format!("{{{} [{}]}}", shown_map(&self.labels), expressions.join(" "))
    }
}

/// The operator of an expression, or why the expression is invalid.
fn operator(expression: &Expression) -> Result<Operator, String> {
    let Expression { key, operator, values } = expression;
    let known = match &**operator {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return Err(format!("{} is not a valid label selector operator", quote(operator))),
    };
    match (known, values.is_empty()) {
        (Operator::In | Operator::NotIn, true) => {
            Err("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                .to_owned())
        }
        (Operator::Exists | Operator::DoesNotExist, false) => {
            Err("values: Invalid value: values set must be empty for exists and does not exist"
                .to_owned())
        }
        _ => label_problem(key, values).map_or(Ok(known), Err),
    }
}

fn label_problem(key: &str, values: &[String]) -> Option<String> {
    if !names::is_qualified_name(key) {
        return Some(format!("key: Invalid value: {}: not a label key", quote(key)));
    }
    let value = values.iter().find(|value| !names::is_label_value(value))?;
    Some(format!("values: Invalid value: {}: not a label value", quote(value)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expression(key: &str, operator: &str, values: &[&str]) -> Expression {
        Expression {
            key: key.into(),
            operator: operator.into(),
            values: values.iter().map(|&value| value.into()).collect(),
        }
    }

    fn matches(expressions: &[Expression], labels: &Value) -> Result<bool, String> {
        Selector::new(BTreeMap::new(), expressions.to_vec()).matches("X", labels.as_object())
    }

    #[test]
    fn each_operator_matches() {
        let labels = json!({"a": "1", "empty": ""});
        for (key, operator, values, expected) in [
            ("a", "In", &["0", "1"][..], true),
            ("a", "In", &["0"], false),
            ("b", "In", &["1"], false),
            ("a", "NotIn", &["1"], false),
            ("a", "NotIn", &["0"], true),
            ("b", "NotIn", &["1"], true),
            ("empty", "Exists", &[], true),
            ("b", "Exists", &[], false),
            ("b", "DoesNotExist", &[], true),
            ("a", "DoesNotExist", &[], false),
        ] {
            let expression = expression(key, operator, values);
            assert_eq!(
                matches(&[expression], &labels),
                Ok(expected),
                "{key} {operator} {values:?}"
            );
        }
    }

    #[test]
    fn all_conditions_have_to_match() {
        let selector = Selector::new(
            [("a".to_owned(), "1".to_owned())].into(),
            vec![expression("b", "Exists", &[])],
        );
        let matches = |labels: Value| selector.matches("X", labels.as_object());
        assert_eq!(matches(json!({"a": "1", "b": ""})), Ok(true));
        assert_eq!(matches(json!({"a": "1"})), Ok(false));
        assert_eq!(matches(json!({"b": "1"})), Ok(false));
        assert_eq!(selector.matches("X", None), Ok(false));
    }

    #[test]
    fn an_empty_selector_never_matches() {
        assert_eq!(matches(&[], &json!({})), Ok(false));
        assert_eq!(matches(&[], &json!({"a": "1"})), Ok(false));
    }

    #[test]
    fn invalid_selectors_are_reported_as_istio_does() {
        let error = matches(&[expression("x", "Bogus", &[])], &json!({}));
        let expected = r#"Invalid selector for X: {map[] [{x Bogus []}]} ("Bogus" is not a valid label selector operator)"#;
        assert_eq!(error, Err(expected.to_owned()));
        for invalid in [
            expression("x", "In", &[]),
            expression("x", "NotIn", &[]),
            expression("x", "Exists", &["a"]),
            expression("x", "DoesNotExist", &["a"]),
            expression("", "Exists", &[]),
            expression("-x", "Exists", &[]),
            expression("A/x", "Exists", &[]),
            expression("a/b/c", "Exists", &[]),
            expression("x", "In", &["a b"]),
        ] {
            assert!(matches(std::slice::from_ref(&invalid), &json!({})).is_err(), "{invalid:?}");
        }
        assert!(
            matches(&[expression("openshift.io/build.name", "Exists", &[])], &json!({})).is_ok()
        );
        assert!(matches(&[expression("x", "In", &[""])], &json!({})).is_ok());
    }

    #[test]
    fn labels_are_checked_too() {
        let labels = [("a b".to_owned(), "1".to_owned()), ("c".to_owned(), "d".to_owned())];
        let selector = Selector::new(labels.into(), vec![]);
        let error = selector.matches("X", None).expect_err("the key must be invalid");
        assert!(error.starts_with("Invalid selector for X: {map[a b:1 c:d] []} ("), "{error}");
    }
}
