//! What cel-go validates after the types: elements of literals have one type, and formats fit.

use super::{Mismatch, Type, format};
use crate::ast::{Ast, Id, Node};

/// Checks the literals of an expression.
///
/// # Errors
/// The first one that is not valid.
pub(super) fn check(ast: &Ast, types: &[Type]) -> Result<(), Mismatch> {
    let mut is_exempt = vec![false; ast.len()];
    // The mistake that comes first in the text counts.
    let mut first: Option<(usize, Mismatch)> = None;
    let mut keep = |id: Id, found: Result<(), Mismatch>| {
        let Err(mismatch) = found else { return };
        let offset = ast.offset(mismatch.at.unwrap_or(id));
        if first.as_ref().is_none_or(|(known, _)| offset <= *known) {
            first = Some((offset, mismatch));
        }
    };
    // Nodes above others come later. Macros use some nodes several times.
    for id in ast.ids().rev() {
        let node = ast.node(id);
        if let Node::Call(call) = node
            && let ("format", Some(target), [list]) =
                (&*call.function, call.target, &*call.arguments)
        {
            (is_exempt[target.index()], is_exempt[list.index()]) = (true, true);
            keep(id, formatted(ast, types, &Formatted { call: id, text: target, list: *list }));
        }
        if is_exempt[id.index()] {
            node.children(|child| is_exempt[child.index()] = true);
            continue;
        }
        keep(id, of_node(node, types));
    }
    first.map_or(Ok(()), |(_, mismatch)| Err(mismatch))
}

fn of_node(node: &Node, types: &[Type]) -> Result<(), Mismatch> {
    match node {
        Node::List(items) => same(items.iter().map(|item| (item.value, item.is_optional)), types),
        Node::Map(entries) => {
            same(entries.iter().map(|entry| (entry.key, false)), types)?;
            same(entries.iter().map(|entry| (entry.value, entry.is_optional)), types)
        }
        _ => Ok(()),
    }
}

/// A call of `format`.
struct Formatted {
    call: Id,
    text: Id,
    list: Id,
}

fn formatted(ast: &Ast, types: &[Type], of: &Formatted) -> Result<(), Mismatch> {
    let Formatted { call, text, list } = *of;
    let (Some(text), Node::List(items)) = (ast.node(text).as_text(), ast.node(list)) else {
        return Ok(());
    };
    format::Arguments { ast, types, items }
        .check(text)
        .map_err(|mismatch| Mismatch { at: mismatch.at.or(Some(call)), ..mismatch })
}

fn same(elements: impl Iterator<Item = (Id, bool)>, types: &[Type]) -> Result<(), Mismatch> {
    let mut first: Option<&Type> = None;
    for (id, is_optional) in elements {
        let found = match &types[id.index()] {
            Type::Optional(item) if is_optional => item,
            found => found,
        };
        match first {
            None => first = Some(found),
            Some(first) if first == found => {}
            Some(first) => {
                let text = format!(
                    "elements have the types {first} and {found}; dyn(…) makes them one type"
                );
                return Err(Mismatch { at: Some(id), text });
            }
        }
    }
    Ok(())
}
