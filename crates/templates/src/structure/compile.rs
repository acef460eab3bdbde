//! A structure is compiled for its place in a Pod.

use std::{collections::HashSet, sync::Arc};

use injectd_cel::TypeDef;
use injectd_core::spelling::most_like;
use injectd_merge::schema::Kind;
use serde_json::{Map, Value};

use super::{
    Constant, Entries, Slot, Structure, TextPart, enums,
    place::{expected, fits, found, holds, prints},
};
use crate::{
    Problem,
    expression::{Expression, Scope, Written, line_and_column},
    fill::{self, Part},
    named::NamedList,
    object::FieldValidation,
};

/// The key of an object that names its base.
const FROM: &str = "$from";
/// The key of a merge directive.
pub(crate) const DIRECTIVE: &str = "$patch";

/// A variable whose value is a structure, as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Origin<'t> {
    /// Its name.
    pub(crate) name: &'t str,
    /// The path of its value.
    pub(crate) field: String,
    /// Its value.
    pub(crate) value: &'t Value,
}

/// Compiles structures, and collects their problems.
#[derive(Debug)]
pub(crate) struct Compiler<'t> {
    pub(crate) scope: Scope,
    pub(crate) field_validation: FieldValidation,
    /// Whether `$patch` may stand in the structure.
    pub(crate) allows_directives: bool,
    /// Variables that `$from` may name.
    pub(crate) variables: Vec<Origin<'t>>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    /// Variables that were checked for a place, so that none is checked twice.
    checked: HashSet<(String, *const Kind)>,
    /// Names of fields, each once.
    names: HashSet<Arc<str>>,
}

impl Compiler<'_> {
    pub(crate) fn new(scope: Scope, field_validation: FieldValidation) -> Self {
        Self {
            scope,
            field_validation,
            allows_directives: false,
            variables: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            checked: HashSet::new(),
            names: HashSet::new(),
        }
    }

    pub(crate) fn problem(&mut self, field: &str, text: impl Into<String>) {
        self.problems.push(Problem::new(field, text));
    }

    /// Keeps a problem; what has one becomes nothing, and is not evaluated: the template is rejected.
    pub(crate) fn keep<T>(&mut self, found: Result<T, Problem>) -> Option<T> {
        found.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// Compiles a value for a place of a Pod; for any place without one.
    pub(crate) fn compile(
        &mut self,
        field: &str,
        value: &Value,
        kind: Option<&'static Kind>,
    ) -> Structure {
        let kind = kind.filter(|kind| !matches!(kind, Kind::Any));
        match value {
            Value::String(text) => self.text(field, text, kind),
            Value::Array(items) => self.list(field, items, kind),
            Value::Object(fields) => self.map(field, fields, kind),
            Value::Null => {
                self.problem(field, "null is no value: leave the field out");
                Structure::Constant(Constant::Null)
            }
            other => {
                self.constant(field, other, kind);
                Structure::Constant(Constant::of(other))
            }
        }
    }

    fn constant(&mut self, field: &str, value: &Value, kind: Option<&'static Kind>) {
        if let Some(kind) = kind.filter(|kind| !holds(kind, value)) {
            let text = format!("expected {}, found {}", expected(kind), found(value));
            let hint = match (kind, value) {
                (Kind::Text(_), Value::Number(_) | Value::Bool(_)) => ": write it in quotes",
                _ => "",
            };
            self.problem(field, text + hint);
        }
        if let (Some(Kind::Text(of)), Value::String(text)) = (kind, value) {
            self.one_of(field, of, text);
        }
    }

    /// A text may be one of a few only. What the table of Kubernetes does not have is a problem, or is warned of.
    fn one_of(&mut self, field: &str, of: &str, text: &str) {
        let Some(values) = enums::values(of) else { return };
        if text.is_empty() || values.contains(&text) {
            return;
        }
        let hint = most_like(values.iter().copied(), text);
        let hint = hint.map_or_else(String::new, |value| format!("; did you mean {value}?"));
        let text = format!("expected one of {}, found the text {text:?}{hint}", values.join(", "));
        self.unknown(Problem::new(field, text));
    }

    /// Keeps a problem of something that another release of Kubernetes may know; whether it is only a warning.
    fn unknown(&mut self, problem: Problem) -> bool {
        let is_allowed = self.field_validation == FieldValidation::Warn;
        let list = if is_allowed { &mut self.warnings } else { &mut self.problems };
        list.push(problem);
        is_allowed
    }

    fn text(&mut self, field: &str, text: &str, kind: Option<&'static Kind>) -> Structure {
        let parts = match fill::parts(text) {
            Ok(parts) => parts,
            Err((at, problem)) => {
                let place = Some(line_and_column(&text[..at]));
                let problem = Problem { place, ..Problem::new(field, problem.to_string()) };
                self.problems.push(problem);
                return Structure::Constant(Constant::Null);
            }
        };
        if let [Part::Expression { text: expression, offset }] = *parts {
            let written = Written { field, whole: text, text: expression, offset };
            return self.slot(written, kind);
        }
        if parts.iter().all(|part| matches!(part, Part::Constant(_))) {
            let text = parts.iter().map(|part| match part {
                Part::Constant(text) | Part::Expression { text, .. } => *text,
            });
            let value = Value::String(text.collect());
            self.constant(field, &value, kind);
            return Structure::Constant(Constant::of(&value));
        }
        if let Some(kind) =
            kind.filter(|kind| !matches!(kind, Kind::Text(_) | Kind::IntOrString | Kind::Quantity))
        {
            let text = format!(
                "expected {}, found text around an expression: write one ${{…}} alone",
                expected(kind)
            );
            self.problem(field, text);
        }
        let parts = parts.iter().filter_map(|part| match *part {
            Part::Constant(text) => Some(TextPart::Constant(text.into())),
            Part::Expression { text: expression, offset } => {
                let written = Written { field, whole: text, text: expression, offset };
                let words = "a text, number, boolean, quantity or duration beside other text";
                let compiled = self.scope.compile_as(written, words, prints);
                self.keep(compiled).map(Box::new).map(TextPart::Expression)
            }
        });
        Structure::Text(parts.collect())
    }

    fn slot(&mut self, written: Written<'_>, kind: Option<&'static Kind>) -> Structure {
        let compiled = match kind {
            Some(kind) => {
                self.scope.compile_as(written, &expected(kind), |found| fits(found, kind))
            }
            None => self.scope.compile(written),
        };
        match self.keep(compiled) {
            Some(expression) => Structure::Slot(Box::new(Slot { expression, kind })),
            None => Structure::Constant(Constant::Null),
        }
    }

    fn list(&mut self, field: &str, items: &[Value], kind: Option<&'static Kind>) -> Structure {
        let item_kind = match kind {
            Some(Kind::List(item)) => Some(&**item),
            None => None,
            Some(kind) => {
                self.problem(field, format!("expected {}, found a list", expected(kind)));
                None
            }
        };
        let items = items.iter().enumerate();
        let items =
            items.map(|(index, item)| self.compile(&format!("{field}[{index}]"), item, item_kind));
        Structure::List(items.collect())
    }

    fn map(
        &mut self,
        field: &str,
        map: &Map<String, Value>,
        kind: Option<&'static Kind>,
    ) -> Structure {
        if let Some(kind) = kind.filter(|kind| !matches!(kind, Kind::Struct(_) | Kind::Map(..))) {
            self.problem(field, format!("expected {}, found an object", expected(kind)));
            return Structure::Constant(Constant::Null);
        }
        let from = map.get(FROM).and_then(|from| self.base(&below(field, FROM), from, kind));
        let mut fields = Vec::with_capacity(map.len());
        for (key, value) in map.iter().filter(|(key, _)| *key != FROM) {
            let path = below(field, key);
            if key == DIRECTIVE {
                self.directive(&path, value);
                fields.push((self.name(key), Structure::Constant(Constant::of(value))));
                continue;
            }
            if key.contains("${") {
                let text = "a key is no expression: write one ${…} for the whole object";
                self.problem(&path, text);
            }
            if self.is_known(&path, key, kind) {
                let list = kind.and_then(Kind::as_struct).and_then(|of| of.field(key));
                self.once(&path, value, list.and_then(NamedList::of));
                let kind = kind.and_then(|kind| field_of(kind, key));
                fields.push((self.name(key), self.compile(&path, value, kind)));
            }
        }
        let from = from.map(Box::new);
        Structure::Map(Box::new(Entries { from, fields: fields.into(), kind }))
    }

    /// The name of a field, shared with the other fields of that name.
    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    /// No two entries of a list may have one name. Names that are expressions are compared when they are
    /// filled in.
    fn once(&mut self, path: &str, value: &Value, list: Option<NamedList>) {
        let (Some(list), Value::Array(items)) = (list, value) else { return };
        let mut names = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let name = list.name(item).filter(|name| !name.contains("${"));
            if let Some(name) = name.filter(|name| !names.insert(name.clone())) {
                let key = list.key;
                let text = format!("found {name:?} again, expected each {key} once in the list");
                self.problem(&format!("{path}[{index}].{key}"), text);
            }
        }
    }

    /// Whether an object may have a field: what the table of Kubernetes does not have is a problem, or is
    /// warned of.
    fn is_known(&mut self, path: &str, key: &str, kind: Option<&'static Kind>) -> bool {
        let Some(of) = kind.and_then(Kind::as_struct).filter(|of| of.field(key).is_none()) else {
            return true;
        };
        let names = of.fields().iter().map(|field| field.name);
        let hint = most_like(names, key);
        let hint = hint.map_or_else(String::new, |name| format!("; did you mean {name}?"));
        self.unknown(Problem::new(path, format!("{} has no field {key:?}{hint}", of.name)))
    }

    /// The base of an object. A variable that it names must fit as if it stood there.
    fn base(&mut self, field: &str, value: &Value, kind: Option<&'static Kind>) -> Option<Slot> {
        let text = value.as_str().unwrap_or_default();
        let parts = fill::parts(text).unwrap_or_default();
        let [Part::Expression { text: expression, offset }] = *parts else {
            let text = format!("expected one ${{…}}, found {}", found(value));
            self.problem(field, text);
            return None;
        };
        let written = Written { field, whole: text, text: expression, offset };
        let is_object = |of: &TypeDef| {
            let of = if let TypeDef::Optional(of) = of { of } else { of };
            let is_map = matches!(of, TypeDef::Dyn | TypeDef::Map(_) | TypeDef::Object { .. });
            is_map || kind.is_some_and(|kind| fits(of, kind))
        };
        let compiled = self.scope.compile_as(written, "an object", is_object);
        let expression: Expression = self.keep(compiled)?;
        if let (Some(kind), Some(name)) = (kind, expression.text.strip_prefix("variables.")) {
            self.check_variable(name, kind);
        }
        Some(Slot { expression, kind })
    }

    fn check_variable(&mut self, name: &str, kind: &'static Kind) {
        let Some(origin) = self.variables.iter().rev().find(|origin| origin.name == name).cloned()
        else {
            return;
        };
        // The value of an expression is checked when it is known.
        if origin.value.is_null() {
            return;
        }
        if self.checked.insert((name.to_owned(), std::ptr::from_ref(kind))) {
            self.compile(&origin.field, origin.value, Some(kind));
        }
    }

    fn directive(&mut self, path: &str, value: &Value) {
        if !matches!(value.as_str(), Some("delete" | "replace")) {
            let text = format!("expected delete or replace, found {}", found(value));
            self.problem(path, text);
        } else if !self.allows_directives {
            self.problem(path, "$patch needs existing: Replace beside the overlay");
        }
    }
}

/// What a field of an object is; `None` if it may be anything.
fn field_of(kind: &'static Kind, key: &str) -> Option<&'static Kind> {
    match kind {
        Kind::Struct(of) => of.get().field(key).map(|field| &field.kind),
        Kind::Map(_, value) => Some(value),
        _ => None,
    }
}

/// The path of a field of an object.
#[must_use]
pub fn below(field: &str, key: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-$".contains(letter);
    if !key.is_empty() && key.chars().all(is_plain) {
        format!("{field}.{key}")
    } else {
        format!("{field}[{key:?}]")
    }
}
