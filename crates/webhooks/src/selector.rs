//! Label selectors (`metav1.LabelSelector`), which tell what does not match.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Deserialize;

use crate::Labels;

/// The label of every namespace with its name.
pub(crate) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// A label selector; empty, it matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

/// A requirement of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// Why a selector is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSelector {
    /// The operator is none of In, `NotIn`, Exists and `DoesNotExist`.
    #[error("operator {0:?} is none of In, NotIn, Exists and DoesNotExist")]
    Operator(String),
    /// In and `NotIn` need values.
    #[error("operator {operator} of key {key:?} needs values")]
    NoValues {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
    },
    /// Exists and `DoesNotExist` have no values.
    #[error("operator {operator} of key {key:?} must not have values")]
    Values {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
    },
}

/// The selector of a configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    match_labels: Option<BTreeMap<String, String>>,
    match_expressions: Option<Vec<Expression>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

impl Selector {
    /// Reads a `metav1.LabelSelector`; `null` is an empty one.
    ///
    /// # Errors
    /// The problem with an expression.
    pub(crate) fn new(spec: Spec) -> Result<Self, InvalidSelector> {
        let labels = spec.match_labels.into_iter().flatten();
        let equals =
            |(key, value)| Requirement { key, operator: Operator::In, values: vec![value] };
        let mut requirements: Vec<_> = labels.map(equals).collect();
        for expression in spec.match_expressions.into_iter().flatten() {
            requirements.push(expression.requirement()?);
        }
        Ok(Self(requirements))
    }

    /// Whether it matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The requirements of both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// Whether a requirement excludes objects that have a label.
    pub(crate) fn excludes(&self) -> bool {
        self.0.iter().any(|it| matches!(it.operator, Operator::NotIn | Operator::DoesNotExist))
    }

    /// The keys of labels that each object has that matches.
    pub(crate) fn required_keys(&self) -> impl Iterator<Item = &str> {
        let has_key = |it: &&Requirement| matches!(it.operator, Operator::In | Operator::Exists);
        self.0.iter().filter(has_key).map(|it| &*it.key)
    }

    /// Labels that meet all requirements; `None` if there are none.
    pub(crate) fn example(&self) -> Option<Labels> {
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

    /// The first requirement that labels do not meet.
    #[must_use]
    pub fn unmet(&self, labels: &Labels) -> Option<&Requirement> {
        self.all_unmet(labels).next()
    }

    /// The values that requirements on a key have, of those that must be one of them.
    pub(crate) fn values_of(&self, key: &str) -> impl Iterator<Item = &String> {
        let of_key = self.0.iter().filter(move |it| it.key == key && it.operator == Operator::In);
        of_key.flat_map(|it| &it.values)
    }

    /// The requirements that labels do not meet.
    pub(crate) fn all_unmet(&self, labels: &Labels) -> impl Iterator<Item = &Requirement> {
        self.0.iter().filter(|requirement| !requirement.is_met(labels))
    }
}

/// The label with which, or without which, an object meets all requirements on one key; `None` if there
/// is none.
fn label_for(key: &str, requirements: &[&Requirement]) -> Option<Labels> {
    let label = |value: &str| Labels::from([(key.to_owned(), value.to_owned())]);
    let of = |operator| requirements.iter().filter(move |it| it.operator == operator);
    let denied: BTreeSet<&String> = of(Operator::NotIn).flat_map(|it| &it.values).collect();
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
    let mut found = first.values.iter().filter(|it| allowed.contains(it) && !denied.contains(it));
    found.next().filter(|_| !must_be_absent).map(|value| label(value))
}

impl Expression {
    fn requirement(self) -> Result<Requirement, InvalidSelector> {
        let Self { key, operator: name, values } = self;
        let values = values.unwrap_or_default();
        let operator = match &*name {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return Err(InvalidSelector::Operator(name)),
        };
        let needs_values = matches!(operator, Operator::In | Operator::NotIn);
        match (needs_values, values.is_empty()) {
            (true, true) => Err(InvalidSelector::NoValues { key, operator: name }),
            (false, false) => Err(InvalidSelector::Values { key, operator: name }),
            _ => Ok(Requirement { key, operator, values }),
        }
    }
}

/// How an object meets a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<'r> {
    /// The label gets this value.
    Set(&'r str),
    /// The label gets any value.
    Add,
    /// The label goes.
    Remove,
}

impl Requirement {
    /// The key of the label.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The change that meets it.
    pub(crate) fn change(&self) -> Change<'_> {
        match (self.operator, &*self.values) {
            (Operator::In, [value, ..]) => Change::Set(value),
            (Operator::In, []) | (Operator::Exists, _) => Change::Add,
            (Operator::NotIn | Operator::DoesNotExist, _) => Change::Remove,
        }
    }

    fn is_met(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let is_listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            Operator::In => is_listed,
            Operator::NotIn => !is_listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }

    /// The requirement, and the label that does not meet it.
    pub(crate) fn against(&self, labels: &Labels) -> String {
        let found = match labels.get(&self.key) {
            Some(value) => format!("it is {value:?}"),
            None => "it is absent".to_owned(),
        };
        format!("label {self}, but {found}")
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match (self.operator, &*self.values) {
            (Operator::In, [value]) => write!(f, "{key} must be {value:?}"),
            (Operator::In, values) => write!(f, "{key} must be one of {values:?}"),
            (Operator::NotIn, [value]) => write!(f, "{key} must not be {value:?}"),
            (Operator::NotIn, values) => write!(f, "{key} must be none of {values:?}"),
            (Operator::Exists, _) => write!(f, "{key} must be present"),
            (Operator::DoesNotExist, _) => write!(f, "{key} must be absent"),
        }
    }
}
