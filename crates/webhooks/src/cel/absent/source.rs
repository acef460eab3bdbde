//! Guards, written from the nodes that fail.

use super::value::is_name;
use crate::cel::ast::{Ast, Id, Node};

/// Characters of a guard: a longer one does not help.
const MAX_LENGTH: usize = 200;

/// An expression that is true if a node does not fail.
pub(super) fn guard(ast: &Ast, id: Id) -> Option<String> {
    let guard = match ast.node(id) {
        Node::Select { operand, field } if is_name(field) => {
            format!("has({}.{field})", text(ast, *operand)?)
        }
        Node::Call(call) => match (&*call.function, call.target, &*call.arguments) {
            ("_[_]", None, [of, key]) => {
                let (of, is_text) = (text(ast, *of)?, ast.node(*key).as_text().is_some());
                let key = text(ast, *key)?;
                if is_text { format!("{key} in {of}") } else { format!("size({of}) > {key}") }
            }
            ("value", Some(of), []) => format!("{}.hasValue()", text(ast, of)?),
            _ => return None,
        },
        _ => return None,
    };
    (guard.len() <= MAX_LENGTH).then_some(guard)
}

/// A chain of fields and elements, or a literal.
fn text(ast: &Ast, id: Id) -> Option<String> {
    match ast.node(id) {
        Node::Ident(name) => Some(name.to_string()),
        Node::Literal(super::super::ast::Literal::Int(number)) => Some(number.to_string()),
        Node::Literal(super::super::ast::Literal::Text(text)) => {
            let is_plain = !text.contains(|it: char| it == '\'' || it == '\\' || it.is_control());
            is_plain.then(|| format!("'{text}'"))
        }
        Node::Select { operand, field } if is_name(field) => {
            Some(format!("{}.{field}", text(ast, *operand)?))
        }
        Node::Call(call) => match (&*call.function, call.target, &*call.arguments) {
            ("_[_]", None, [of, key]) => Some(format!("{}[{}]", text(ast, *of)?, text(ast, *key)?)),
            _ => None,
        },
        _ => None,
    }
}
