//! Whether an API server compiles an expression: names, fields, functions and types, as cel-go checks
//! them with the declarations of match conditions.
//!
//! A type that is not known here fits everything. Not for evaluation, which takes from here only the
//! overloads that cel-go finds, because its costs depend on them.

use std::{collections::HashMap, sync::Arc};

use super::{
    ast::{Ast, Call, Entry, Fold, Id, Literal, Node},
    limits::shortened,
};

mod calls;
mod format;
mod functions;
mod types;

pub use self::functions::making;

pub(super) use self::functions::Overload;
#[cfg(test)]
pub(super) use self::functions::declared;
pub(super) use self::types::Type;

/// Names of types, as values.
pub(super) const TYPE_NAMES: [&str; 11] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional_type",
];

/// What an expression is, besides its nodes.
#[derive(Debug)]
pub(super) struct Checked {
    /// Its type.
    pub(super) of: Type,
    /// What is called, by the places of the calls.
    pub(super) calls: HashMap<usize, Resolved>,
}

/// A function that is called.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    /// Its name in the table; a dot before it means that its first argument is the target.
    pub(super) name: String,
    /// The one overload that fits the types; `None` if it depends on the values.
    pub(super) overload: Option<&'static Overload>,
}

/// Checks an expression.
///
/// # Errors
/// Why it does not compile.
pub(super) fn check(ast: &Ast, root: Id) -> Result<Checked, String> {
    let mut checker = Checker {
        ast,
        scope: Vec::new(),
        types: vec![None; ast.len()],
        mixed: 0,
        calls: HashMap::new(),
    };
    let of = checker.check(root)?;
    Ok(Checked { of, calls: checker.calls })
}

struct Checker<'e> {
    ast: &'e Ast,
    /// Variables of comprehensions, the innermost last.
    scope: Vec<(&'e str, Type)>,
    /// Types of the nodes that are checked. A macro may use a node twice, in the same scope.
    types: Vec<Option<Type>>,
    /// The depth of calls whose lists may have elements of several types.
    mixed: usize,
    calls: HashMap<usize, Resolved>,
}

type Found = Result<Type, String>;

impl<'e> Checker<'e> {
    fn check(&mut self, id: Id) -> Found {
        if let Some(found) = &self.types[id.index()] {
            return Ok(found.clone());
        }
        let found = self.check_node(id)?;
        self.types[id.index()] = Some(found.clone());
        Ok(found)
    }

    fn check_node(&mut self, id: Id) -> Found {
        match self.ast.node(id) {
            Node::Literal(literal) => Ok(literal_type(literal)),
            Node::Ident(name) => self.variable(name),
            Node::Select { operand, field } => match self.qualified(*operand, field) {
                Some(found) => Ok(found),
                None => self.check(*operand)?.field(field),
            },
            Node::Has { operand, field } => {
                self.check(*operand)?.field(field)?;
                Ok(Type::named("bool"))
            }
            Node::Call(call) => self.call(id, call),
            Node::Fold(fold) => self.fold(fold),
            Node::List(items) => {
                let item = self.same(items.iter().map(|item| (item.value, item.is_optional)))?;
                Ok(Type::list_of(item))
            }
            Node::Map(entries) => {
                let key = |entry: &Entry| (entry.key, false);
                let value = |entry: &Entry| (entry.value, entry.is_optional);
                // A list or map is not a key. Types of keys would double the type at each level.
                let key = match self.same(entries.iter().map(key))? {
                    Type::List(_) | Type::Map(_) | Type::Optional(_) => Type::Dyn,
                    key => key,
                };
                Ok(Type::Map(Arc::new((key, self.same(entries.iter().map(value))?))))
            }
            Node::Message(values) => {
                values.iter().try_for_each(|value| self.check(*value).map(drop))?;
                Ok(Type::Dyn)
            }
        }
    }

    /// The type of all elements; that of an optional element is within an optional.
    fn same(&mut self, elements: impl Iterator<Item = (Id, bool)>) -> Found {
        let mut all = Type::Unknown;
        for (element, is_optional) in elements {
            let mut found = self.check(element)?;
            if is_optional {
                found = match found {
                    Type::Optional(item) => (*item).clone(),
                    open if open.is_open() => open,
                    other => return Err(format!("expected an optional, found {other}")),
                };
            }
            if !all.is_same(&found) && self.mixed > 0 {
                all = Type::Dyn;
            } else if !all.is_same(&found) {
                return Err(format!("elements have the types {all} and {found}"));
            }
            if all == Type::Unknown {
                all = found;
            }
        }
        Ok(all)
    }

    fn local(&self, name: &str) -> Option<Type> {
        let found = self.scope.iter().rev().find(|(known, _)| *known == name);
        found.map(|(_, of)| of.clone())
    }

    fn variable(&self, name: &str) -> Found {
        let (name, is_global) = name.strip_prefix('.').map_or((name, false), |name| (name, true));
        if let Some(local) = self.local(name).filter(|_| !is_global) {
            return Ok(local);
        }
        match name {
            "object" | "oldObject" => Ok(Type::Dyn),
            "request" => Ok(Type::named("AdmissionRequest")),
            "namespaceObject" => Ok(Type::named("Namespace")),
            "authorizer" => Ok(Type::named("authorizer")),
            name if TYPE_NAMES.contains(&name) => Ok(Type::named("type")),
            _ => Err(format!("undeclared reference to {:?}", shortened(name))),
        }
    }

    /// Names with dots that are no fields.
    fn qualified(&self, operand: Id, field: &str) -> Option<Type> {
        let mut root = self.ast.node(operand);
        while let Node::Select { operand, .. } = root {
            root = self.ast.node(*operand);
        }
        let name = root.as_ident()?;
        if self.local(name).is_some() {
            return None;
        }
        match (name, self.ast.node(operand), field) {
            ("authorizer", Node::Ident(_), "requestResource") => Some(Type::named("check")),
            // Types of protocol buffers, and those that Kubernetes adds.
            ("google" | "kubernetes" | "net", ..) => Some(Type::Dyn),
            _ => None,
        }
    }

    /// A macro, as the parser expands it.
    fn fold(&mut self, fold: &'e Fold) -> Found {
        let (key, item, value) = match self.check(fold.range)? {
            Type::List(item) => (Type::named("int"), (*item).clone(), (*item).clone()),
            Type::Map(pair) => (pair.0.clone(), pair.0.clone(), pair.1.clone()),
            open if open.is_open() => (open.clone(), open.clone(), open),
            other => return Err(format!("a {other} cannot be iterated over")),
        };
        let accumulated = self.check(fold.start)?;
        let outside = self.scope.len();
        self.scope.push((&fold.accumulator, accumulated));
        match &fold.second {
            Some(second) => {
                self.scope.push((&fold.variable, key));
                self.scope.push((second, value));
            }
            None => self.scope.push((&fold.variable, item)),
        }
        let parts = self.check(fold.condition).and_then(|condition| {
            let step = self.check(fold.step)?;
            Ok((condition, step))
        });
        self.scope.truncate(outside);
        let (condition, step) = parts?;
        if !condition.is_same(&Type::named("bool")) && !condition.is_open() {
            return Err(format!("expected a bool, found {condition}"));
        }
        self.scope.push((&fold.accumulator, step));
        let result = self.check(fold.result);
        self.scope.truncate(outside);
        result
    }
}

fn literal_type(literal: &Literal) -> Type {
    Type::named(match literal {
        Literal::Bool(_) => "bool",
        Literal::Bytes(_) => "bytes",
        Literal::Double(_) => "double",
        Literal::Int(_) => "int",
        Literal::Null => "null",
        Literal::Text(_) => "string",
        Literal::Uint(_) => "uint",
    })
}
