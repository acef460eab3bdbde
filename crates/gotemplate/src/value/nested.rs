//! Drops values without recursion: a template can nest them deeper than the stack is.

use super::Value;

/// Drops values and all that is only in them.
pub(super) fn drop_all(mut values: Vec<Value>) {
    while let Some(mut value) = values.pop() {
        match &mut value {
            Value::List(list) => values.append(&mut list.take()),
            Value::Map(map) => values.append(&mut map.take()),
            _ => {}
        }
    }
}
