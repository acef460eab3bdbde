//! Label selectors of the configuration (`metav1.LabelSelector`).

use injectd_gocompat::text::quote;
use injectd_k8s::selector::{self, Expression, InvalidSelector, LabelSelector};
use serde_json::{Map, Value};

use crate::fields::{shown_map, text_of};

/// A label selector: all of its labels and expressions have to match.
#[derive(Debug, Clone)]
pub struct Selector {
    written: LabelSelector,
    /// The selector, or the problem in Istio's words.
    read: Result<selector::Selector, String>,
}

impl Selector {
    /// A selector that may be invalid, which is reported once it is used.
    #[must_use]
    pub fn new(written: LabelSelector) -> Self {
        let read = selector::Selector::valid(written.clone());
        Self { written, read: read.map_err(|problem| text_of_problem(&problem)) }
    }

    /// The keys of the labels that it looks at.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let LabelSelector { match_labels, match_expressions } = &self.written;
        match_labels
            .keys()
            .chain(match_expressions.iter().map(|expression| &expression.key))
            .map(String::as_str)
    }

    /// Whether the selector matches a pod's labels; `false` for one without any conditions.
    ///
    /// # Errors
    /// The selector is invalid; the text is Istio's, of which `list` is a part.
    pub fn matches(&self, list: &str, labels: Option<&Map<String, Value>>) -> Result<bool, String> {
        match &self.read {
            Ok(selector) => {
                let value = |key: &str| labels.and_then(|labels| text_of(labels.get(key)?));
                Ok(!selector.is_empty() && selector.matches(value))
            }
            Err(problem) => {
                Err(format!("Invalid selector for {list}: {} ({problem})", self.shown()))
            }
        }
    }

    /// Go's `%v`: `{map[a:b] [{key In [x y]}]}`.
    fn shown(&self) -> String {
        let expressions = self.written.match_expressions.iter().map(|expression| {
            let Expression { key, operator, values } = expression;
            format!("{{{key} {operator} [{}]}}", values.join(" "))
        });
        let expressions: Vec<_> = expressions.collect();
        format!("{{{} [{}]}}", shown_map(&self.written.match_labels), expressions.join(" "))
    }
}

fn text_of_problem(problem: &InvalidSelector) -> String {
    match problem {
        InvalidSelector::Operator(operator) => {
            format!("{} is not a valid label selector operator", quote(operator))
        }
        InvalidSelector::NoValues { .. } => {
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                .to_owned()
        }
        InvalidSelector::Values { .. } => {
            "values: Invalid value: values set must be empty for exists and does not exist"
                .to_owned()
        }
        InvalidSelector::Key(key) => {
            format!("key: Invalid value: {}: not a label key", quote(key))
        }
        InvalidSelector::Value(value) => {
            format!("values: Invalid value: {}: not a label value", quote(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selector(written: Value) -> Selector {
        Selector::new(serde_json::from_value(written).expect("a selector"))
    }

    #[test]
    fn all_conditions_have_to_match() {
        let selector = selector(json!({"matchLabels": {"a": "1"},
            "matchExpressions": [{"key": "b", "operator": "Exists"}]}));
        let matches = |labels: Value| selector.matches("X", labels.as_object());
        assert_eq!(matches(json!({"a": "1", "b": ""})), Ok(true));
        assert_eq!(matches(json!({"a": "1"})), Ok(false));
        assert_eq!(matches(json!({"b": "1"})), Ok(false));
        assert_eq!(selector.matches("X", None), Ok(false));
    }

    #[test]
    fn an_empty_selector_never_matches() {
        let selector = selector(json!({}));
        assert_eq!(selector.matches("X", json!({}).as_object()), Ok(false));
        assert_eq!(selector.matches("X", json!({"a": "1"}).as_object()), Ok(false));
    }

    #[test]
    fn invalid_selectors_are_reported_as_istio_does() {
        for (key, operator, values, expected) in [
            (
                "x",
                "Bogus",
                &[][..],
                r#"{map[] [{x Bogus []}]} ("Bogus" is not a valid label selector operator)"#,
            ),
            (
                "x",
                "In",
                &[],
                "{map[] [{x In []}]} (values: Invalid value: []: for 'in', 'notin' operators, \
                 values set can't be empty)",
            ),
            (
                "x",
                "Exists",
                &["a"],
                "{map[] [{x Exists [a]}]} (values: Invalid value: values set must be empty for \
                 exists and does not exist)",
            ),
            (
                "-x",
                "Exists",
                &[],
                r#"{map[] [{-x Exists []}]} (key: Invalid value: "-x": not a label key)"#,
            ),
            (
                "x",
                "In",
                &["a", "b c"],
                r#"{map[] [{x In [a b c]}]} (values: Invalid value: "b c": not a label value)"#,
            ),
        ] {
            let expression = json!({"key": key, "operator": operator, "values": values});
            let error = selector(json!({"matchExpressions": [expression]})).matches("X", None);
            assert_eq!(error, Err(format!("Invalid selector for X: {expected}")));
        }
    }

    #[test]
    fn labels_are_checked_too() {
        let selector = selector(json!({"matchLabels": {"a b": "1", "c": "d"}}));
        let error = selector.matches("X", None).expect_err("the key must be invalid");
        assert!(error.starts_with("Invalid selector for X: {map[a b:1 c:d] []} ("), "{error}");
    }
}
