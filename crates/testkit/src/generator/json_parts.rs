//! Small parts of JSON objects.

use serde_json::{Map, Value, json};

use super::random::Random;

/// Members of an object.
pub(super) trait Fields {
    /// Sets a member.
    fn put(&mut self, name: &str, value: impl Into<Value>);
}

impl Fields for Map<String, Value> {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.insert(name.to_owned(), value.into());
    }
}

/// Sets a member in this percentage of cases; rarely to null.
pub(super) fn maybe(
    random: &mut Random,
    fields: &mut Map<String, Value>,
    name: &str,
    chance: usize,
    make: impl FnOnce(&mut Random) -> Value,
) {
    if random.percent(chance) {
        let value = match random.below(25) {
            0 => Value::Null,
            _ => make(random),
        };
        fields.put(name, value);
    }
}

/// A value of a type that almost no field accepts.
pub(super) fn wrong_type(random: &mut Random) -> Value {
    let values = [json!(7), json!(true), json!("x"), json!([7]), json!({"x": []}), json!(1.5)];
    random.one_of(&values).clone()
}
