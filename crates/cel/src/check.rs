//! Whether an API server compiles an expression: names, fields, functions and types, as cel-go checks
//! them with the declarations of match conditions.
//!
//! The way is that of cel-go (`checker/checker.go`): types that are not known yet are bound by what they
//! are used for. Not for evaluation, which takes from here only the overloads that cel-go finds, because
//! its costs depend on them.

use std::{collections::HashMap, sync::Arc};

use self::unify::{Bindings, most_general, scalar};

use super::{
    ast::{Ast, Call, Entry, Fold, Id, Item, Literal, Node, OWN_CONTAINERS, TAKEN_PORTS},
    limits::shortened,
};

mod calls;
mod definition;
mod environment;
mod format;
mod functions;
mod literals;
mod shown;
mod types;
mod unify;

pub use self::{
    definition::{FieldDef, TypeDef},
    environment::Environment,
    functions::making,
};

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

/// The names of types that have dots.
pub(super) const DOTTED_TYPES: [&str; 4] =
    ["google.protobuf.Duration", "google.protobuf.Timestamp", "net.CIDR", "net.IP"];

/// What an expression is, besides its nodes.
#[derive(Debug)]
pub(super) struct Checked {
    /// The types of the nodes, by their places.
    pub(super) types: Vec<Type>,
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

/// Why an expression does not compile, and at which node.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) at: Option<Id>,
    pub(super) text: String,
}

impl From<String> for Mismatch {
    fn from(text: String) -> Self {
        Self { at: None, text }
    }
}

/// Checks an expression.
///
/// # Errors
/// Why it does not compile.
pub(super) fn check(ast: &Ast, root: Id, of: &Environment) -> Result<Checked, Mismatch> {
    let mut checker = Checker {
        ast,
        environment: of,
        scope: Vec::new(),
        types: vec![None; ast.len()],
        bindings: Bindings::default(),
        calls: HashMap::new(),
    };
    checker.check(root)?;
    let Checker { bindings, types, calls, .. } = checker;
    let resolved = |of: Option<Type>| bindings.resolved(&of.unwrap_or(Type::Dyn), true);
    let types: Vec<_> = types.into_iter().map(resolved).collect();
    literals::check(ast, &types)?;
    Ok(Checked { types, calls })
}

struct Checker<'e> {
    ast: &'e Ast,
    environment: &'e Environment,
    /// Variables of comprehensions, the innermost last.
    scope: Vec<(&'e str, Type)>,
    /// Types of the nodes that are checked. A macro may use a node twice, in the same scope.
    types: Vec<Option<Type>>,
    bindings: Bindings,
    calls: HashMap<usize, Resolved>,
}

type Found = Result<Type, Mismatch>;

impl<'e> Checker<'e> {
    fn check(&mut self, id: Id) -> Found {
        if let Some(found) = &self.types[id.index()] {
            return Ok(found.clone());
        }
        // The innermost node has the error.
        let found = self.check_node(id).map_err(|mismatch| {
            let at = mismatch.at.or(Some(id));
            Mismatch { at, ..mismatch }
        })?;
        self.types[id.index()] = Some(found.clone());
        Ok(found)
    }

    fn check_node(&mut self, id: Id) -> Found {
        match self.ast.node(id) {
            Node::Literal(literal) => Ok(literal_type(literal)),
            Node::Ident(name) => self.variable(name),
            Node::Select { operand, field } => match self.qualified(*operand, field) {
                Some(found) => Ok(found),
                None => self.field(*operand, field, false),
            },
            Node::Has { operand, field } => {
                self.field(*operand, field, false)?;
                Ok(Type::named("bool"))
            }
            Node::Call(call) => self.call(id, call),
            Node::Fold(fold) => self.fold(fold),
            Node::List(items) => {
                let mut all = None;
                for Item { value, is_optional } in items {
                    let item = self.element(*value, *is_optional)?;
                    all = Some(self.joined(all, item));
                }
                let item = all.unwrap_or_else(|| self.bindings.new_var());
                Ok(Type::list_of(item))
            }
            Node::Map(entries) => self.map(entries),
            Node::Message(values) => {
                values.iter().try_for_each(|value| self.check(*value).map(drop))?;
                Ok(Type::Dyn)
            }
        }
    }

    fn map(&mut self, entries: &[Entry]) -> Found {
        let mut all = None;
        for Entry { key, value, is_optional } in entries {
            let key = scalar(self.check(*key)?);
            let value = self.element(*value, *is_optional)?;
            all = Some(match all {
                None => (key, value),
                Some((keys, values)) => {
                    (self.joined(Some(keys), key), self.joined(Some(values), value))
                }
            });
        }
        let (key, value) =
            all.unwrap_or_else(|| (self.bindings.new_var(), self.bindings.new_var()));
        Ok(Type::Map(Arc::new((scalar(key), value))))
    }

    /// The type of an element; that of an optional element is within an optional.
    fn element(&mut self, id: Id, is_optional: bool) -> Found {
        let found = self.check(id)?;
        match found {
            found if !is_optional => Ok(found),
            Type::Optional(item) => Ok((*item).clone()),
            open if open.is_open() => Ok(open),
            other => {
                let text = format!("expected an optional, found {other}");
                Err(Mismatch { at: Some(id), text })
            }
        }
    }

    /// The type of all elements so far. Literals with elements of several types are found later.
    fn joined(&mut self, all: Option<Type>, item: Type) -> Type {
        match all {
            None => item,
            Some(all) if self.bindings.is_assignable(&all, &item) => most_general(&all, &item),
            Some(_) => Type::Dyn,
        }
    }

    fn field(&mut self, operand: Id, name: &str, is_optional: bool) -> Found {
        let of = self.check(operand)?;
        let of = self.bindings.resolved(&of, false);
        let (target, is_optional) = match of {
            Type::Optional(item) => ((*item).clone(), true),
            of => (of, is_optional),
        };
        if let Type::Var(_) = target {
            self.bindings.is_assignable(&Type::Dyn, &target);
        }
        let found = self.bindings.resolved(&target.field(name, self.environment.release())?, false);
        Ok(if is_optional { Type::optional_of(found) } else { found })
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
        if let Some(of) = self.environment.variable(name) {
            return Ok(of.clone());
        }
        if TYPE_NAMES.contains(&name) {
            return Ok(Type::Of(Arc::new(Type::of_name(name))));
        }
        if name == OWN_CONTAINERS {
            return Ok(Type::read("list<string>"));
        }
        if name == TAKEN_PORTS {
            return Ok(Type::read("list<int>"));
        }
        Err(format!("undeclared reference to {:?}", shortened(name)).into())
    }

    /// Names with dots that are no fields.
    fn qualified(&self, operand: Id, field: &str) -> Option<Type> {
        let is_it = |name: &&str| {
            let rest = name.strip_suffix(field).and_then(|rest| rest.strip_suffix('.'));
            rest.is_some_and(|rest| self.ast.is_chain(operand, rest))
        };
        if let Some(name) = DOTTED_TYPES.into_iter().find(is_it) {
            return Some(Type::Of(Arc::new(Type::of_name(name))));
        }
        let mut root = self.ast.node(operand);
        while let Node::Select { operand, .. } = root {
            root = self.ast.node(*operand);
        }
        let name = root.as_ident()?;
        if self.local(name).is_some() {
            return None;
        }
        match (name, self.ast.node(operand), field) {
            ("authorizer", Node::Ident(_), "requestResource")
                if self.environment.variable("authorizer").is_some() =>
            {
                Some(Type::named("check"))
            }
            // Types of protocol buffers. Those that are not here are not known.
            ("google", ..) => Some(Type::Dyn),
            _ => None,
        }
    }

    /// A macro, as the parser expands it.
    fn fold(&mut self, fold: &'e Fold) -> Found {
        let range = self.check(fold.range)?;
        let accumulated = self.check(fold.start)?;
        let range = self.bindings.resolved(&range, false);
        let (key, item, value) = match &range {
            Type::List(item) => (Type::named("int"), (**item).clone(), (**item).clone()),
            Type::Map(pair) => (pair.0.clone(), pair.0.clone(), pair.1.clone()),
            open if open.is_open() => {
                self.bindings.is_assignable(&Type::Dyn, open);
                (Type::Dyn, Type::Dyn, Type::Dyn)
            }
            other => {
                let text = format!("a {other} cannot be iterated over");
                return Err(Mismatch { at: Some(fold.range), text });
            }
        };
        let outside = self.scope.len();
        self.scope.push((&fold.accumulator, accumulated.clone()));
        match &fold.second {
            Some(second) => {
                self.scope.push((&fold.variable, key));
                self.scope.push((second, value));
            }
            None => self.scope.push((&fold.variable, item)),
        }
        self.expect(fold.condition, &Type::named("bool"))?;
        self.expect(fold.step, &accumulated)?;
        self.scope.truncate(outside + 1);
        let result = self.check(fold.result)?;
        self.scope.truncate(outside);
        Ok(self.bindings.resolved(&result, false))
    }

    fn expect(&mut self, id: Id, wanted: &Type) -> Result<(), Mismatch> {
        let found = self.check(id)?;
        if self.bindings.is_assignable(wanted, &found) {
            return Ok(());
        }
        let (wanted, found) =
            (self.bindings.resolved(wanted, true), self.bindings.resolved(&found, true));
        Err(Mismatch { at: Some(id), text: format!("expected a {wanted}, found {found}") })
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
