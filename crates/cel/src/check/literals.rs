//! What cel-go validates after the types: elements of literals have one type, and formats fit.

use super::{Mismatch, Type, format};
use crate::ast::{Ast, Id, Node};

/// Checks the literals of an expression.
///
/// # Errors
/// The first one that is not valid.
pub(super) fn check(ast: &Ast, types: &[Type]) -> Result<(), Mismatch> {
    let mut is_exempt = vec![false; ast.len()];
    // The outermost literal with a mistake counts, which begins first.
    let mut first: Option<(usize, Mismatch)> = None;
    let mut keep = |id: Id, found: Result<(), Mismatch>| {
        if let Err(mismatch) = found
            && first.as_ref().is_none_or(|(offset, _)| ast.offset(id) <= *offset)
        {
            first = Some((ast.offset(id), mismatch));
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
            let found = formatted(ast, types, (target, *list));
            keep(id, found.map_err(|text| Mismatch { at: Some(id), text }));
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

fn formatted(ast: &Ast, types: &[Type], call: (Id, Id)) -> Result<(), String> {
    let (text, list) = call;
    let (Some(text), Node::List(items)) = (ast.node(text).as_text(), ast.node(list)) else {
        return Ok(());
    };
    let types: Vec<_> = items.iter().map(|item| types[item.value.index()].clone()).collect();
    format::check(text, &types)
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
