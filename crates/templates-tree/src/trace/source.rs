//! Where a value of a filled overlay is written in its template.

use injectd_templates::{
    Template, Variable,
    expression::Expression,
    structure::{Slot, Structure, TextPart, below},
};

use crate::lay::leaves::Part;

/// Most variables that are followed one after another.
const MAX_DEPTH: usize = 8;

/// The place in a template where a value is written, while a filled overlay is walked.
#[derive(Debug, Clone)]
pub(super) enum Source<'s> {
    /// A constant, at this path.
    Constant(String),
    /// An expression that gives the whole, at this path.
    Expression(&'s Expression, String),
    /// A structure at this path, and what is below it for what it does not write itself.
    Structure(&'s Structure, String, Option<Box<Self>>),
}

/// The names that an overlay may read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'s> {
    pub(super) template: &'s Template,
    /// The variables of the `forEach` around it, and the path of the step.
    pub(super) each: &'s [Variable],
    pub(super) step: usize,
}

impl<'s> Source<'s> {
    pub(super) fn of(structure: &'s Structure, field: String, names: Names<'s>) -> Self {
        Self::followed(structure, field, names, 0)
    }

    /// A structure; of one that is a variable, the variable's, if that is one.
    fn followed(structure: &'s Structure, field: String, names: Names<'s>, depth: usize) -> Self {
        match structure {
            Structure::Constant(_) => Self::Constant(field),
            Structure::Slot(slot) => {
                let variable = names.variable(slot).filter(|_| depth < MAX_DEPTH);
                match variable {
                    Some((value, path)) => Self::followed(value, path, names, depth + 1),
                    None => Self::Structure(structure, field, None),
                }
            }
            _ => Self::Structure(structure, field, None),
        }
    }

    /// The source of a part of the value.
    pub(super) fn part(&self, part: &Part<'_>, names: Names<'s>) -> Self {
        let (structure, field, base) = match self {
            Self::Constant(_) | Self::Expression(..) => return self.clone(),
            Self::Structure(structure, field, base) => (*structure, field, base),
        };
        let base = || base.as_ref().map(|base| base.part(part, names));
        let (own, base) = match (structure, part) {
            (Structure::Map(entries), Part::Field(key)) => {
                let own = entries.fields.iter().find(|(known, _)| &**known == *key);
                let own = own.map(|(_, own)| (own, below(field, key)));
                let from = entries.from.as_deref().map(|slot| base_of(slot, field, names));
                (own, from.map(|from| from.part(part, names)).or_else(base))
            }
            (Structure::List(items), Part::Entry(key, name)) => {
                let has_name = |item: &Structure| match item.field(key) {
                    Some(Structure::Constant(value)) => value.is(name),
                    _ => false,
                };
                let at = items.iter().position(has_name);
                // The name of an entry may be an expression.
                let at = at.or_else(|| items.iter().position(|item| !is_named(item, key)));
                (at.map(|at| (&items[at], format!("{field}[{at}]"))), base())
            }
            _ => (None, base()),
        };
        match (own, base) {
            (Some((own, path)), base) => match Self::of(own, path, names) {
                Self::Structure(structure, path, None) => {
                    Self::Structure(structure, path, base.map(Box::new))
                }
                source => source,
            },
            (None, Some(base)) => base,
            (None, None) => self.clone(),
        }
    }

    /// The path of the field, and the text of its expressions; `None` if it has none.
    pub(super) fn written(&self) -> (String, Option<String>) {
        match self {
            Self::Constant(field) => (field.clone(), None),
            Self::Expression(expression, field) => (field.clone(), Some(expression.text.clone())),
            Self::Structure(structure, field, _) => match structure {
                Structure::Slot(slot) => {
                    (slot.expression.field.clone(), Some(slot.expression.text.clone()))
                }
                Structure::Text(parts) => (field.clone(), Some(text(parts))),
                _ => {
                    let mut texts = Vec::new();
                    structure.each_expression(&mut |one: &Expression| texts.push(one.text.clone()));
                    (field.clone(), (!texts.is_empty()).then(|| texts.join(", ")))
                }
            },
        }
    }
}

/// Whether an item of a list has a constant name, which is another one then.
fn is_named(item: &Structure, key: &str) -> bool {
    matches!(item.field(key), Some(Structure::Constant(_)))
        || matches!(item, Structure::Constant(_))
}

/// The structure that `$from` names, or its expression.
fn base_of<'s>(slot: &'s Slot, field: &str, names: Names<'s>) -> Source<'s> {
    match names.variable(slot) {
        Some((value, path)) => Source::of(value, path, names),
        None => Source::Expression(&slot.expression, below(field, "$from")),
    }
}

impl<'s> Names<'s> {
    /// The structure of the variable that an expression is.
    fn variable(self, slot: &Slot) -> Option<(&'s Structure, String)> {
        let name = slot.expression.text.strip_prefix("variables.")?;
        let each = self.each.iter().enumerate();
        let path = format!("spec.steps[{}].forEach.variables", self.step);
        let found = each.map(|(at, one)| (one, format!("{path}[{at}]")));
        let template = self.template.variables.iter().enumerate();
        let outer = template.map(|(at, one)| (one, format!("spec.variables[{at}]")));
        let (variable, path) = found.chain(outer).find(|(one, _)| one.name == name)?;
        let is_structure = !matches!(&variable.value, Structure::Slot(slot) if slot.expression.field.ends_with(".expression"));
        is_structure.then(|| (&variable.value, format!("{path}.value")))
    }
}

/// A text as it is written.
fn text(parts: &[TextPart]) -> String {
    let parts = parts.iter().map(|part| match part {
        TextPart::Constant(text) => text.to_string(),
        TextPart::Expression(expression) => format!("${{{}}}", expression.text),
    });
    parts.collect()
}
