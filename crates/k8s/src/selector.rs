//! Label selectors (`metav1.LabelSelector`): read, evaluated, and met.
//!
//! Not for what no selector means, or one without requirements: the fields that have one differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Deserializer, Serialize};

use crate::{names, object::Labels};

/// A selector as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels with these values.
    #[serde(deserialize_with = "nullable")]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Vec<Expression>,
}

/// One of `matchExpressions` as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Expression {
    /// The label's key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values of `In` and `NotIn`.
    #[serde(deserialize_with = "nullable")]
    pub values: Vec<String>,
}

/// A label selector: all requirements have to be met. Without any it matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

/// A requirement of a selector; serialized, it is one of `matchExpressions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Requirement {
    key: String,
    operator: Operator,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
}

/// What a requirement asks of the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Operator {
    /// It has one of the values.
    In,
    /// It has another value than these, or is absent.
    NotIn,
    /// It is there.
    Exists,
    /// It is absent.
    DoesNotExist,
}

/// Why a selector is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSelector {
    /// The operator is not In, `NotIn`, Exists or `DoesNotExist`.
    #[error("operator {0:?} is none of In, NotIn, Exists and DoesNotExist")]
    Operator(String),
    /// In and `NotIn` need values.
    #[error("operator {operator} of key {key:?} needs values")]
    NoValues {
        /// The key.
        key: String,
        /// The operator.
        operator: Operator,
    },
    /// Exists and `DoesNotExist` have no values.
    #[error("operator {operator} of key {key:?} must not have values")]
    Values {
        /// The key.
        key: String,
        /// The operator.
        operator: Operator,
    },
    /// No label has such a key.
    #[error("{0:?} is not a label key")]
    Key(String),
    /// No label has such a value.
    #[error("{0:?} is not a label value")]
    Value(String),
}

/// Reads `null` as nothing.
fn nullable<'d, D: Deserializer<'d>, T: Default + Deserialize<'d>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

// === impl Selector ===

impl Selector {
    /// A selector whose keys and values may be those of no label.
    ///
    /// # Errors
    /// An operator is unknown, or has no values or too many.
    pub fn new(written: LabelSelector) -> Result<Self, InvalidSelector> {
        Self::read(written, Ok)
    }

    /// A selector that an API server accepts (`metav1.LabelSelectorAsSelector`).
    ///
    /// # Errors
    /// The first problem: also a key or a value that no label has.
    pub fn valid(written: LabelSelector) -> Result<Self, InvalidSelector> {
        Self::read(written, Requirement::named)
    }

    fn read(
        LabelSelector { match_labels, match_expressions }: LabelSelector,
        check: impl Fn(Requirement) -> Result<Requirement, InvalidSelector>,
    ) -> Result<Self, InvalidSelector> {
        let labels = match_labels.into_iter().map(|(key, value)| {
            Ok(Requirement { key, operator: Operator::In, values: vec![value] })
        });
        let expressions = match_expressions.into_iter().map(Expression::requirement);
        labels.chain(expressions).map(|requirement| requirement.and_then(&check)).collect()
    }

    /// Whether it matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The requirements, in the order in which they are written.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether it matches an object whose labels have these values by key.
    pub fn matches<'l>(&self, value: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.0.iter().all(|requirement| requirement.is_met(value(&requirement.key)))
    }

    /// The first requirement that labels do not meet.
    #[must_use]
    pub fn unmet(&self, labels: &Labels) -> Option<&Requirement> {
        self.all_unmet(labels).next()
    }

    /// The requirements that labels do not meet.
    pub fn all_unmet(&self, labels: &Labels) -> impl Iterator<Item = &Requirement> {
        let value = |key: &str| labels.get(key).map(String::as_str);
        self.0.iter().filter(move |requirement| !requirement.is_met(value(&requirement.key)))
    }

    /// The requirements of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.0.iter().chain(&other.0).cloned().collect()
    }

    /// Whether a requirement excludes objects that have a label.
    #[must_use]
    pub fn excludes(&self) -> bool {
        self.0.iter().any(|requirement| {
            matches!(requirement.operator, Operator::NotIn | Operator::DoesNotExist)
        })
    }

    /// The keys of labels that each object has that matches.
    pub fn required_keys(&self) -> impl Iterator<Item = &str> {
        let has_key = |it: &&Requirement| matches!(it.operator, Operator::In | Operator::Exists);
        self.0.iter().filter(has_key).map(|requirement| &*requirement.key)
    }

    /// The values that requirements on a key have, of those that must be one of them.
    pub fn values_of(&self, key: &str) -> impl Iterator<Item = &String> {
        let of_key = self.0.iter().filter(move |requirement| {
            requirement.key == key && requirement.operator == Operator::In
        });
        of_key.flat_map(|requirement| &requirement.values)
    }

    /// Labels that meet all requirements; `None` if there are none.
    #[must_use]
    pub fn example(&self) -> Option<Labels> {
        let mut keys: BTreeMap<&str, Vec<&Requirement>> = BTreeMap::new();
        for requirement in &self.0 {
            keys.entry(&requirement.key).or_default().push(requirement);
        }
        let mut labels = Labels::new();
        for (key, requirements) in keys {
            labels.extend(label_for(key, &requirements)?);
        }
        Some(labels)
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        Self(requirements.into_iter().collect())
    }
}

/// The label with which, or without which, an object meets all requirements on one key; `None` if there
/// is none.
fn label_for(key: &str, requirements: &[&Requirement]) -> Option<Labels> {
    let label = |value: &str| Labels::from([(key.to_owned(), value.to_owned())]);
    let of =
        |operator| requirements.iter().filter(move |requirement| requirement.operator == operator);
    let denied: BTreeSet<&String> =
        of(Operator::NotIn).flat_map(|requirement| &requirement.values).collect();
    let must_be_absent = of(Operator::DoesNotExist).next().is_some();
    let Some(first) = of(Operator::In).next() else {
        return match (of(Operator::Exists).next().is_some(), must_be_absent) {
            (true, true) => None,
            // Not a valid label value, so no selector lists it.
            (true, false) => Some(label("?")),
            (false, _) => Some(Labels::new()),
        };
    };
    let mut allowed: BTreeSet<&String> = first.values.iter().collect();
    for other in of(Operator::In).skip(1) {
        let values: BTreeSet<_> = other.values.iter().collect();
        allowed.retain(|value| values.contains(value));
    }
    let mut found =
        first.values.iter().filter(|value| allowed.contains(value) && !denied.contains(value));
    found.next().filter(|_| !must_be_absent).map(|value| label(value))
}

// === impl Expression ===

impl Expression {
    fn requirement(self) -> Result<Requirement, InvalidSelector> {
        let Self { key, operator, values } = self;
        let Some(known) = Operator::ALL.into_iter().find(|known| known.as_str() == operator) else {
            return Err(InvalidSelector::Operator(operator));
        };
        let needs_values = matches!(known, Operator::In | Operator::NotIn);
        match (needs_values, values.is_empty()) {
            (true, true) => Err(InvalidSelector::NoValues { key, operator: known }),
            (false, false) => Err(InvalidSelector::Values { key, operator: known }),
            _ => Ok(Requirement { key, operator: known, values }),
        }
    }
}

// === impl Requirement ===

impl Requirement {
    /// A requirement whose key and values are not checked; [`Self::named`] does.
    #[must_use]
    pub fn new(key: &str, operator: Operator, values: &[&str]) -> Self {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        Self { key: key.to_owned(), operator, values }
    }

    /// The requirement, if labels may have its key and its values.
    ///
    /// # Errors
    /// The first of them that no label has.
    pub fn named(self) -> Result<Self, InvalidSelector> {
        if !names::is_qualified_name(&self.key) {
            return Err(InvalidSelector::Key(self.key));
        }
        match self.values.iter().find(|value| !names::is_label_value(value)) {
            Some(value) => Err(InvalidSelector::Value(value.clone())),
            None => Ok(self),
        }
    }

    /// The key of the label.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What it asks of the label.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values of `In` and `NotIn`.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether an object meets it whose label has this value, or that lacks the label.
    #[must_use]
    pub fn is_met(&self, value: Option<&str>) -> bool {
        let is_listed = value.is_some_and(|value| self.values.iter().any(|listed| listed == value));
        match self.operator {
            Operator::In => is_listed,
            Operator::NotIn => !is_listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

// === impl Operator ===

impl Operator {
    const ALL: [Self; 4] = [Self::In, Self::NotIn, Self::Exists, Self::DoesNotExist];

    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(key: &str, operator: &str, values: &[&str]) -> Expression {
        Expression {
            key: key.into(),
            operator: operator.into(),
            values: values.iter().map(|&value| value.into()).collect(),
        }
    }

    fn read(expression: Expression) -> Result<Selector, InvalidSelector> {
        let match_expressions = vec![expression];
        Selector::valid(LabelSelector { match_expressions, ..LabelSelector::default() })
    }

    #[test]
    fn each_operator_matches() {
        let labels = Labels::from([("a", "1"), ("empty", "")].map(|(k, v)| (k.into(), v.into())));
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
            let selector = read(expression(key, operator, values)).expect("a selector");
            let found = selector.matches(|key| labels.get(key).map(String::as_str));
            assert_eq!(found, expected, "{key} {operator} {values:?}");
            assert_eq!(selector.unmet(&labels).is_none(), expected);
        }
    }

    #[test]
    fn selectors_that_an_api_server_rejects_are_not_valid() {
        for invalid in [
            expression("x", "Bogus", &[]),
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
            assert!(read(invalid.clone()).is_err(), "{invalid:?}");
        }
        assert!(read(expression("openshift.io/build.name", "Exists", &[])).is_ok());
        assert!(read(expression("x", "In", &[""])).is_ok());
    }

    #[test]
    fn null_is_nothing() {
        let json = r#"{"matchLabels": null, "matchExpressions": [
            {"key": "a", "operator": "Exists", "values": null}]}"#;
        let written: LabelSelector = serde_json::from_str(json).expect("a selector");
        let selector = Selector::new(written).expect("a selector");
        assert_eq!(selector.requirements(), [Requirement::new("a", Operator::Exists, &[])]);
    }
}
