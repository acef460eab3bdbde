//! The lists of a rule.

use serde_json::Value;

/// What a rule may have in `operations`.
pub(super) const OPERATIONS: [&str; 5] = ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"];

/// A list of a rule. What is not a text is an empty one.
pub(super) fn list<'r>(rule: &'r Value, name: &str) -> Vec<&'r str> {
    let items = rule[name].as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap_or_default()).collect()
}
