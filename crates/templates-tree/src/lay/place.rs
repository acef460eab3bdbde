//! Where new containers are put.

use injectd_templates::object::Position;
use serde_json::Value;

use super::Placed;

/// Puts new containers into a list, in their order and together.
pub(super) fn insert(list: &mut Vec<Value>, new: Vec<Value>, placed: &Placed) {
    let named = placed.name.as_deref().and_then(|name| {
        list.iter().position(|container| container.get("name").is_some_and(|other| other == name))
    });
    let at = match (placed.position, named) {
        (Position::First, _) => 0,
        (Position::Before, Some(at)) => at,
        (Position::After, Some(at)) => at + 1,
        (Position::Before | Position::After, None) if placed.otherwise == Position::First => 0,
        _ => list.len(),
    };
    list.splice(at..at, new);
}
