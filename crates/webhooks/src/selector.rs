//! What labels lack that a selector requires, in words.

use injectd_k8s::selector::{Operator, Requirement};

use crate::Labels;

/// The label of every namespace with its name.
pub(crate) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

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

impl<'r> Change<'r> {
    /// The change that meets a requirement.
    pub(crate) fn to(requirement: &'r Requirement) -> Self {
        match (requirement.operator(), requirement.values()) {
            (Operator::In, [value, ..]) => Self::Set(value),
            (Operator::In, []) | (Operator::Exists, _) => Self::Add,
            (Operator::NotIn | Operator::DoesNotExist, _) => Self::Remove,
        }
    }
}

/// A requirement, and the label that does not meet it.
pub(crate) fn against(requirement: &Requirement, labels: &Labels) -> String {
    let found = match labels.get(requirement.key()) {
        Some(value) => format!("it is {value:?}"),
        None => "it is absent".to_owned(),
    };
    format!("label {} {}, but {found}", requirement.key(), required(requirement))
}

/// What the value of the label must be.
fn required(requirement: &Requirement) -> String {
    match (requirement.operator(), requirement.values()) {
        (Operator::In, [value]) => format!("must be {value:?}"),
        (Operator::In, values) => format!("must be one of {values:?}"),
        (Operator::NotIn, [value]) => format!("must not be {value:?}"),
        (Operator::NotIn, values) => format!("must be none of {values:?}"),
        (Operator::Exists, _) => "must be present".to_owned(),
        (Operator::DoesNotExist, _) => "must be absent".to_owned(),
    }
}
