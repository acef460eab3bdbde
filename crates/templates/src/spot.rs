//! Places of a template's structures: what a template may write there, with what stands behind `$from` and
//! behind names of variables.
//!
//! Not for values: expressions are not evaluated, and what they decide is open.

use injectd_cel::{Program, reads::Path};
use injectd_merge::schema::{Kind, Merge, POD};
use serde_json::Value;

use crate::{
    Problem, Rule, Template, Variable,
    expression::Expression,
    structure::{Constant, DIRECTIVE, Entries, Structure, TextPart, below},
};

/// The key of an object that names its base.
const FROM: &str = "$from";
/// The directive for what is removed.
pub(crate) const DELETE: &str = "delete";

/// A place in a template that has a value.
#[derive(Debug, Clone)]
pub(crate) struct Spot<'t> {
    /// What the place is in a Pod; `None` if it may be anything.
    pub(crate) kind: Option<&'static Kind>,
    /// What is written for it, the first counts. Those behind it are bases (`$from`) of it.
    layers: Vec<Layer<'t>>,
    variables: Variables<'t>,
}

/// What is written for a place, and where.
#[derive(Debug, Clone)]
struct Layer<'t> {
    field: String,
    part: Part<'t>,
}

/// What is written for a place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'t> {
    /// It is always this: a scalar.
    Constant(&'t Constant),
    /// An expression decides.
    Open(&'t Expression),
    /// A text around expressions.
    Text(&'t [TextPart]),
    /// A list.
    List(&'t [Structure]),
    /// An object.
    Map(&'t Entries),
}

impl<'t> From<&'t Structure> for Part<'t> {
    fn from(structure: &'t Structure) -> Self {
        match structure {
            Structure::Constant(value) => Self::Constant(value),
            Structure::Slot(slot) => Self::Open(&slot.expression),
            Structure::Text(parts) => Self::Text(parts),
            Structure::List(items) => Self::List(items),
            Structure::Map(entries) => Self::Map(entries),
        }
    }
}

impl<'t> Part<'t> {
    /// The expressions that decide it; not those in a list or an object.
    pub(crate) fn expressions(self) -> Vec<&'t Expression> {
        match self {
            Self::Open(expression) => vec![expression],
            Self::Text(parts) => parts.iter().filter_map(TextPart::expression).collect(),
            Self::Constant(_) | Self::List(_) | Self::Map(_) => Vec::new(),
        }
    }
}

/// The variables that a structure may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variables<'t> {
    pub(crate) template: &'t Template,
    /// The step whose `forEach` has variables, too.
    pub(crate) step: usize,
}

impl<'t> Variables<'t> {
    /// A variable, and the path of its field.
    fn named(self, name: &str) -> Option<(String, &'t Variable)> {
        let find = |path: &str, variables: &'t [Variable]| {
            let place = variables.iter().position(|variable| variable.name == name)?;
            Some((format!("{path}[{place}]"), &variables[place]))
        };
        let for_each = self.template.steps.get(self.step).and_then(|step| step.for_each.as_ref());
        let of_step = for_each.and_then(|each| {
            find(&format!("spec.steps[{}].forEach.variables", self.step), &each.variables)
        });
        of_step.or_else(|| find("spec.variables", &self.template.variables))
    }

    /// The structure that an expression is the name of, and where it is written.
    fn structure(self, expression: &Expression) -> Option<Layer<'t>> {
        let (field, variable) = self.named(expression.text.strip_prefix("variables.")?)?;
        Some(Layer { field: below(&field, "value"), part: Part::from(&variable.value) })
    }

    /// The variables that expressions lead to by the paths that they have, each once, the nearest first.
    pub(crate) fn reached(
        self,
        from: &[&'t Expression],
        paths: fn(&Program) -> Vec<Path>,
    ) -> Vec<&'t Variable> {
        let mut open: Vec<&Expression> = from.to_vec();
        let mut found: Vec<&Variable> = Vec::new();
        while let Some(expression) = open.pop() {
            for path in paths(&expression.program) {
                let [root, name, ..] = &*path.steps else { continue };
                let Some((_, variable)) = self.named(name).filter(|_| root == "variables") else {
                    continue;
                };
                if !found.iter().any(|known| known.name == variable.name) {
                    found.push(variable);
                    variable.value.each_expression(&mut |expression| open.push(expression));
                }
            }
        }
        found
    }

    /// Expressions, and those of the variables that they lead to.
    pub(crate) fn with_reached(self, mut written: Vec<&'t Expression>) -> Vec<&'t Expression> {
        for variable in self.reached(&written, Program::reads_of) {
            variable.value.each_expression(&mut |expression| written.push(expression));
        }
        written
    }

    /// What is written for a place, with its bases.
    fn layers(self, field: String, part: Part<'t>) -> Vec<Layer<'t>> {
        let mut layers = Vec::new();
        let mut next = Some(Layer { field, part });
        while let Some(layer) = next.take() {
            match layer.part {
                // The name of a variable stands for its structure. A variable names only those before it.
                Part::Open(expression) => match self.structure(expression) {
                    Some(Layer { part: Part::Open(_), .. }) | None => layers.push(layer),
                    known => next = known,
                },
                Part::Map(Entries { from: Some(from), .. }) => {
                    let field = below(&layer.field, FROM);
                    next = Some(Layer { field, part: Part::Open(&from.expression) });
                    layers.push(layer);
                }
                _ => layers.push(layer),
            }
        }
        layers
    }
}

impl<'t> Spot<'t> {
    fn new(
        variables: Variables<'t>,
        field: String,
        structure: &'t Structure,
        kind: Option<&'static Kind>,
    ) -> Self {
        let layers = variables.layers(field, structure.into());
        Self { kind, layers, variables }
    }

    /// The overlay of a step.
    pub(crate) fn overlay(template: &'t Template, step: usize) -> Option<Self> {
        let overlay = template.steps.get(step)?.overlay.as_ref()?;
        let field = format!("spec.steps[{step}].overlay");
        Some(Self::new(Variables { template, step }, field, overlay, Some(&POD)))
    }

    /// The overlays of the rules of a step, each with its rule.
    pub(crate) fn rules(
        template: &'t Template,
        step: usize,
    ) -> impl Iterator<Item = (&'t Rule, Self)> {
        let rules = template.steps.get(step).map_or(&[][..], |step| &step.rules);
        rules.iter().enumerate().map(move |(index, rule)| {
            let field = format!("spec.steps[{step}].containers[{index}].overlay");
            let kind = match &rule.overlay {
                Structure::Map(entries) => entries.kind,
                _ => None,
            };
            (rule, Self::new(Variables { template, step }, field, &rule.overlay, kind))
        })
    }

    /// The path of the field where it is written.
    pub(crate) fn field(&self) -> &str {
        self.layers.first().map_or("", |layer| &layer.field)
    }

    /// What is written for it; bases are not counted.
    pub(crate) fn part(&self) -> Option<Part<'t>> {
        self.layers.first().map(|layer| layer.part)
    }

    /// The scalar that it always is.
    pub(crate) fn constant(&self) -> Option<Value> {
        match self.part()? {
            Part::Constant(value) => Some(value.to_value()),
            _ => None,
        }
    }

    /// The text that it always is.
    pub(crate) fn text(&self) -> Option<&'t str> {
        match self.part()? {
            Part::Constant(value) => value.as_str(),
            _ => None,
        }
    }

    /// What `$patch` says in it.
    pub(crate) fn directive(&self) -> Option<&'t str> {
        self.get(DIRECTIVE)?.text()
    }

    /// Whether an expression decides what is here, or what is in it besides what is written.
    pub(crate) fn is_open(&self) -> bool {
        self.layers.iter().any(|layer| matches!(layer.part, Part::Open(_)))
    }

    /// A problem of this place.
    pub(crate) fn problem(&self, text: impl Into<String>) -> Problem {
        Problem::new(self.field(), text)
    }

    /// A field of an object; what an expression may decide is open.
    pub(crate) fn get(&self, name: &str) -> Option<Self> {
        let mut layers = Vec::new();
        for layer in &self.layers {
            match layer.part {
                Part::Open(_) => layers.push(layer.clone()),
                Part::Map(entries) => {
                    let Some((_, value)) =
                        entries.fields.iter().find(|(known, _)| **known == *name)
                    else {
                        continue;
                    };
                    layers.extend(self.variables.layers(below(&layer.field, name), value.into()));
                }
                _ => break,
            }
            // An object is laid over its base, all else hides it.
            let hides = |layer: &Layer<'_>| matches!(layer.part, Part::Constant(_) | Part::Text(_));
            if layers.last().is_some_and(hides) {
                break;
            }
        }
        let kind = self.kind.and_then(|kind| field_kind(kind, name));
        let variables = self.variables;
        (!layers.is_empty()).then_some(Self { kind, layers, variables })
    }

    /// A field below fields.
    pub(crate) fn at(&self, path: &[&str]) -> Option<Self> {
        path.iter().try_fold(self.clone(), |spot, name| spot.get(name))
    }

    /// The fields of an object, without those that an expression may add.
    pub(crate) fn fields(&self) -> Vec<(&'t str, Self)> {
        let mut names: Vec<&'t str> = Vec::new();
        for layer in &self.layers {
            let Part::Map(entries) = layer.part else { continue };
            let own = entries.fields.iter().map(|(name, _)| &**name);
            names.extend(own.filter(|name| !names.contains(name)).collect::<Vec<_>>());
        }
        names.into_iter().filter_map(|name| Some((name, self.get(name)?))).collect()
    }

    /// The items of a list. A list that is merged by a key has those of its base as well.
    pub(crate) fn items(&self, merge: Merge) -> Vec<Self> {
        let kind = match self.kind {
            Some(Kind::List(item)) => Some(&**item),
            _ => None,
        };
        let lists = self.layers.iter().filter_map(|layer| match layer.part {
            Part::List(items) => Some((&layer.field, items)),
            _ => None,
        });
        let count = if merge == Merge::Replace { 1 } else { usize::MAX };
        let items = lists.take(count).flat_map(|(field, items)| {
            items.iter().enumerate().map(move |(index, item)| (format!("{field}[{index}]"), item))
        });
        items.map(|(field, item)| Self::new(self.variables, field, item, kind)).collect()
    }

    /// The items of a list in a field, and the field if an expression decides the list.
    pub(crate) fn list(&self, name: &str) -> (Vec<Self>, Option<Self>) {
        let Some(list) = self.get(name) else { return (Vec::new(), None) };
        let of = self.kind.and_then(Kind::as_struct);
        let merge = of.and_then(|of| of.field_of_any_release(name)).map(|field| field.merge);
        let items = list.items(merge.unwrap_or(Merge::Replace));
        let is_open = list.is_open();
        (items, is_open.then_some(list))
    }
}

/// What a field of an object is; `None` if it may be anything.
fn field_kind(kind: &'static Kind, name: &str) -> Option<&'static Kind> {
    match kind {
        Kind::Struct(of) => of.get().field_of_any_release(name).map(|field| &field.kind),
        Kind::Map(_, value) => Some(value),
        _ => None,
    }
}
