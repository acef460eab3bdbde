//! What is constant in an expression.

use std::collections::HashSet;

use super::{Plan, is_free};
use crate::{
    ast::{Ast, Constant, Id, Literal, Node},
    check::{Checked, DOTTED_TYPES, Type},
};

/// The name of a type that a chain of names is.
pub(super) fn type_name(ast: &Ast, checked: &Checked, id: Id) -> Option<&'static str> {
    if !matches!(checked.types.get(id.index()), Some(Type::Of(_))) {
        return None;
    }
    DOTTED_TYPES.into_iter().find(|name| ast.is_chain(id, name))
}

/// Whether a node is a text for cel-go before it is evaluated.
pub(super) fn is_constant_text(ast: &Ast, plans: &[Plan], mut id: Id) -> bool {
    loop {
        let Node::Call(call) = ast.node(id) else { return ast.node(id).as_text().is_some() };
        let [argument] = *call.arguments else { return false };
        match &*call.function {
            "string" => return is_free(ast, plans, id),
            "dyn" => id = argument,
            _ => return false,
        }
    }
}

pub(super) fn is_primitive(node: &Node) -> bool {
    matches!(node, Node::Literal(literal) if !matches!(literal, Literal::Bytes(_) | Literal::Null))
}

/// A list or map of literals; `None` if it is none, or has other keys than texts.
pub(super) fn constant(ast: &Ast, plans: &mut [Plan], id: Id) -> Option<Constant> {
    let mut part = |id: Id| match ast.node(id) {
        Node::Literal(literal) => Some(Constant::Literal(literal.clone())),
        // Only this node has it.
        _ => match &mut plans[id.index()] {
            plan @ Plan::Constant(_) => match std::mem::replace(plan, Plan::Free) {
                Plan::Constant(constant) => Some(*constant),
                _ => None,
            },
            _ => None,
        },
    };
    match ast.node(id) {
        Node::List(items) if items.iter().all(|item| !item.is_optional) => {
            items.iter().map(|item| part(item.value)).collect::<Option<_>>().map(Constant::List)
        }
        Node::Map(entries) if entries.iter().all(|entry| !entry.is_optional) => {
            let mut found: Vec<(Box<str>, Constant)> = Vec::new();
            let mut keys = HashSet::new();
            for entry in entries {
                let key = ast.node(entry.key).as_text()?;
                if !keys.insert(key) {
                    return None;
                }
                found.push((key.into(), part(entry.value)?));
            }
            // A field is searched by halves.
            found.sort_by(|(one, _), (other, _)| one.cmp(other));
            Some(Constant::Map(found))
        }
        _ => None,
    }
}
