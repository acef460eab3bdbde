//! The templates of `schema.yaml`. The check has this module, and the scenario that asks API servers.

use serde_json::Value;

/// The file.
pub(crate) const TEXT: &str = include_str!("schema.yaml");

/// A template.
pub(crate) struct Case {
    /// What is changed.
    pub(crate) title: String,
    pub(crate) template: Value,
    /// Why it is refused.
    pub(crate) problem: Option<String>,
    /// Whether only the check refuses it.
    pub(crate) is_offline: bool,
}

/// The base and all cases of the file.
pub(crate) fn cases(table: &Value) -> Vec<Case> {
    let base = &table["base"];
    let unchanged = Case {
        title: "the base".to_owned(),
        template: base.clone(),
        problem: None,
        is_offline: false,
    };
    let changed = table["cases"].as_array().expect("cases").iter().map(|case| Case {
        title: case.to_string(),
        template: template(base.clone(), case),
        problem: case.get("problem").and_then(Value::as_str).map(str::to_owned),
        is_offline: case["offline"] == true,
    });
    [unchanged].into_iter().chain(changed).collect()
}

fn template(mut template: Value, case: &Value) -> Value {
    if let Some(kind) = case.get("kind") {
        template["kind"] = kind.clone();
    }
    let at = case["at"].as_str().expect("a pointer");
    let (parent, last) = at.rsplit_once('/').expect("a pointer");
    let parent = template.pointer_mut(parent).expect("a parent");
    match (value(case), parent) {
        (None, Value::Object(fields)) => drop(fields.shift_remove(last)),
        (Some(value), Value::Object(fields)) => drop(fields.insert(last.to_owned(), value)),
        (Some(value), Value::Array(items)) => {
            items[last.parse::<usize>().expect("an index")] = value;
        }
        (_, other) => panic!("{at}: {other}"),
    }
    template
}

/// The new value; `None` removes the field.
fn value(case: &Value) -> Option<Value> {
    let count = |name: &str| case.get(name).and_then(Value::as_u64);
    if let Some(letters) = count("letters") {
        return Some((0..letters).map(|_| 'a').collect::<String>().into());
    }
    let value = case.get("value")?;
    let Some(times) = count("times") else { return Some(value.clone()) };
    let text = value.to_string();
    let copy = |index: u64| serde_json::from_str(&text.replace('#', &index.to_string()));
    Some((0..times).map(|index| copy(index).unwrap_or(Value::Null)).collect())
}
