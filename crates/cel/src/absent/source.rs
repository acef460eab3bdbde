//! Guards, written from the nodes that fail.

use super::{Lack, Step, display, path::is_name};
use crate::ast::{Ast, Id, Literal, Node};

/// Characters of a guard: a longer one does not help.
const MAX_LENGTH: usize = 200;

/// An expression that is true if a node does not fail because of what it lacks.
pub(super) fn guard(ast: &Ast, id: Id, lack: &Lack) -> Option<String> {
    let guard = match (lack, ast.node(id)) {
        // The element of a macro has no other name than its variable.
        (Lack::Null(path), _) => {
            let is_name = |step: &Step| matches!(step, Step::Field(name) if is_name(name));
            path.iter().all(is_name).then(|| format!("{} != null", display(path)))?
        }
        (_, Node::Select { operand, field }) if is_name(field) => {
            format!("has({}.{field})", text(ast, *operand)?)
        }
        (_, Node::Call(call)) => match (&*call.function, call.target, &*call.arguments) {
            ("_[_]", None, [of, key]) => {
                let of = text(ast, *of)?;
                let is_index = matches!(ast.node(*key), Node::Literal(Literal::Int(_)));
                let key = text(ast, *key)?;
                if is_index { format!("size({of}) > {key}") } else { format!("{key} in {of}") }
            }
            ("value", Some(of), []) => format!("{}.hasValue()", text(ast, of)?),
            _ => return None,
        },
        _ => return None,
    };
    (guard.len() <= MAX_LENGTH).then_some(guard)
}

/// The read of a field or of a key of a map as an optional.
pub(super) fn optional(ast: &Ast, id: Id) -> Option<String> {
    let optional = match ast.node(id) {
        Node::Select { operand, field } if is_name(field) => {
            format!("{}.?{field}", text(ast, *operand)?)
        }
        Node::Call(call) => match (&*call.function, call.target, &*call.arguments) {
            ("_[_]", None, [of, key]) => format!("{}[?{}]", text(ast, *of)?, text(ast, *key)?),
            _ => return None,
        },
        _ => return None,
    };
    (optional.len() <= MAX_LENGTH).then_some(optional)
}

/// Whether a node below another is evaluated in any case, and with the same variables: nothing between
/// them is a part of `&&`, `||`, `?:`, `or`, `orValue` or a macro.
pub(super) fn is_direct(ast: &Ast, root: Id, node: Id) -> bool {
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        if id == node {
            return true;
        }
        match ast.node(id) {
            Node::Fold(_) => {}
            Node::Call(call) => match &*call.function {
                "_&&_" | "_||_" | "_?_:_" => {}
                "or" | "orValue" => open.extend(call.target),
                _ => open.extend(call.target.iter().chain(&call.arguments)),
            },
            other => other.children(|child| open.push(child)),
        }
    }
    false
}

/// A chain of fields and elements, or a literal.
fn text(ast: &Ast, id: Id) -> Option<String> {
    match ast.node(id) {
        // The names that macros make cannot be written in an expression.
        Node::Ident(name) => (!name.contains('@')).then(|| name.to_string()),
        Node::Literal(Literal::Int(number)) => Some(number.to_string()),
        Node::Literal(Literal::Text(text)) => {
            let is_plain = !text
                .contains(|letter: char| letter == '\'' || letter == '\\' || letter.is_control());
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
