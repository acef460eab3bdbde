//! Structures with `${…}` in their texts: overlays, and values of variables.

mod compile;
mod constant;
mod enums;
mod place;

use std::sync::Arc;

use injectd_cel::TypeDef;
use injectd_merge::schema::Kind;

use crate::expression::Expression;

pub use compile::below;
pub(crate) use compile::{Compiler, DIRECTIVE, Origin};
pub use constant::Constant;
pub(crate) use place::found;
pub use place::{expected, holds};

/// A structure that is filled in for each pod. Templates have thousands of them, so that each is small.
#[derive(Debug)]
pub enum Structure {
    /// It is always this.
    Constant(Constant),
    /// The value of an expression.
    Slot(Box<Slot>),
    /// A text of several parts.
    Text(Box<[TextPart]>),
    /// A list.
    List(Box<[Self]>),
    /// An object.
    Map(Box<Entries>),
}

/// An object that is filled in.
#[derive(Debug)]
pub struct Entries {
    /// The structure that is its base.
    pub from: Option<Box<Slot>>,
    /// Its fields, in the order in which they are written. Objects of a template share their names.
    pub fields: Box<[(Arc<str>, Structure)]>,
    /// What it is in a Pod.
    pub kind: Option<&'static Kind>,
}

/// A place that an expression fills.
#[derive(Debug)]
pub struct Slot {
    /// The expression.
    pub expression: Expression,
    /// What the place is in a Pod; `None` if it may be anything.
    pub kind: Option<&'static Kind>,
}

/// A part of a text.
#[derive(Debug)]
pub enum TextPart {
    /// Text as it stands.
    Constant(Box<str>),
    /// An expression whose value is printed.
    Expression(Box<Expression>),
}

impl TextPart {
    /// The expression, if it is one.
    pub(crate) fn expression(&self) -> Option<&Expression> {
        match self {
            Self::Constant(_) => None,
            Self::Expression(expression) => Some(expression),
        }
    }
}

impl Structure {
    /// An expression in a place that may hold anything.
    pub(crate) fn slot(expression: Expression) -> Self {
        Self::Slot(Box::new(Slot { expression, kind: None }))
    }

    /// The type of what it becomes.
    #[must_use]
    pub fn type_of(&self) -> TypeDef {
        match self {
            Self::Slot(slot) => slot.expression.of.clone(),
            Self::Text(_) | Self::Constant(Constant::Text(_)) => TypeDef::String,
            Self::Constant(Constant::Bool(_)) => TypeDef::Bool,
            Self::Constant(Constant::Number(number)) if number.is_i64() => TypeDef::Int,
            Self::Constant(Constant::Number(_)) => TypeDef::Double,
            Self::List(items) if self.is_constant() => one_type(items.iter()).list(),
            Self::Map(entries) if self.is_constant() => {
                one_type(entries.fields.iter().map(|(_, field)| field)).map()
            }
            Self::Constant(_) | Self::List(_) | Self::Map(_) => TypeDef::Dyn,
        }
    }

    /// Whether it is the same for each pod.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::Slot(_) | Self::Text(_) => false,
            Self::List(items) => items.iter().all(Self::is_constant),
            Self::Map(entries) => {
                entries.from.is_none()
                    && entries.fields.iter().all(|(_, field)| field.is_constant())
            }
        }
    }

    /// The object, if it is one.
    pub(crate) fn entries(&self) -> Option<&Entries> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The field of an object.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => {
                entries.fields.iter().find(|(known, _)| **known == *name).map(|(_, field)| field)
            }
            _ => None,
        }
    }

    /// Calls a function for each expression in it.
    pub fn each_expression<'s>(&'s self, then: &mut impl FnMut(&'s Expression)) {
        match self {
            Self::Constant(_) => {}
            Self::Slot(slot) => then(&slot.expression),
            Self::Text(parts) => parts.iter().for_each(|part| {
                if let TextPart::Expression(expression) = part {
                    then(expression);
                }
            }),
            Self::List(items) => items.iter().for_each(|item| item.each_expression(then)),
            Self::Map(entries) => {
                entries.from.iter().for_each(|slot| then(&slot.expression));
                entries.fields.iter().for_each(|(_, field)| field.each_expression(then));
            }
        }
    }
}

/// The type that all of them have, as in a literal of CEL; any type if there is none.
fn one_type<'s>(mut all: impl Iterator<Item = &'s Structure>) -> TypeDef {
    let Some(first) = all.next().map(Structure::type_of) else { return TypeDef::Dyn };
    if all.all(|other| other.type_of() == first) { first } else { TypeDef::Dyn }
}
