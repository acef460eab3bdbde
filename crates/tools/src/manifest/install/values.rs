//! Values over values, as Helm merges them.

use serde_json::{Map, Value};

/// Maximum index of a list in `--set`.
// An index fills the list before it with nulls: a mistyped number must not take the memory.
const MAX_INDEX: usize = 1000;

/// Merges `over` into `values`: mappings key by key, `null` removes a key, all else replaces.
pub(super) fn merge(values: &mut Value, over: Value) {
    match (values, over) {
        (Value::Object(values), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    values.shift_remove(&key);
                } else {
                    merge(values.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (_, Value::Null) => {}
        (values, over) => *values = over,
    }
}

/// Sets one value: `a.b[0].c=VALUE`; a dot in a key is written `\.`. As in Helm, the value `null`
/// removes a key of a mapping.
pub(super) fn set(values: &mut Value, assignment: &str) -> Result<(), String> {
    let (path, text) = assignment.split_once('=').ok_or("expected KEY=VALUE")?;
    let value = typed(text)?;
    let mut steps = steps(path)?;
    // Not from a list, whose further items would move up.
    let removed = steps.pop_if(|last| value.is_null() && matches!(last, Step::Key(_)));
    let mut place = values;
    for step in steps {
        place = match step {
            Step::Key(key) => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                place.as_object_mut().ok_or("not a mapping")?.entry(key).or_insert(Value::Null)
            }
            Step::Index(index) => {
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let items = place.as_array_mut().ok_or("not a list")?;
                if items.len() <= index {
                    items.resize(index + 1, Value::Null);
                }
                &mut items[index]
            }
        };
    }
    match (removed, place) {
        (None, place) => *place = value,
        (Some(Step::Key(key)), Value::Object(entries)) => drop(entries.shift_remove(&key)),
        (Some(_), _) => {}
    }
    Ok(())
}

/// A value as Helm reads it, or one in YAML that begins with a bracket, a brace or a quote. Other text
/// stays text: `on` and `*` have another meaning in YAML.
fn typed(text: &str) -> Result<Value, String> {
    // `007` and `+1` are texts, such as a tag or a name; as numbers they would lose their form.
    let integer = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    match text {
        "null" => Ok(Value::Null),
        "true" | "false" => Ok(Value::Bool(text == "true")),
        _ if text.starts_with(['[', '{', '"', '\'']) => {
            let value = injectd_core::yaml::parse(text)?;
            // Helm's form of a list is a mapping of nothing in YAML.
            let is_list = |all: &Map<_, Value>| !all.is_empty() && all.values().all(Value::is_null);
            if value.as_object().is_some_and(is_list) {
                return Err("a list is written in brackets, as [a, b]".to_owned());
            }
            Ok(value)
        }
        _ => Ok(integer.map_or_else(|| text.into(), Value::from)),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

fn steps(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    // `\0` is no character of a key.
    for part in path.replace("\\.", "\0").split('.') {
        let (key, mut indices) = part.split_once('[').map_or((part, None), |(k, i)| (k, Some(i)));
        if key.is_empty() {
            return Err("a key is empty".to_owned());
        }
        steps.push(Step::Key(key.replace('\0', ".")));
        while let Some(rest) = indices {
            let (index, rest) = rest.split_once(']').ok_or("a bracket is not closed")?;
            let index = index.parse().ok().filter(|&index: &usize| index <= MAX_INDEX);
            steps.push(Step::Index(index.ok_or("expected a number up to 1000 in brackets")?));
            indices = match rest {
                "" => None,
                rest => Some(rest.strip_prefix('[').ok_or("expected a dot or a bracket after ]")?),
            };
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_merged_as_helm_does() {
        let mut values = json!({"a": {"b": 1, "c": [1]}, "d": 2});
        merge(&mut values, json!({"a": {"b": null, "c": [2]}, "e": {"f": 3}}));
        assert_eq!(values, json!({"a": {"c": [2]}, "d": 2, "e": {"f": 3}}));
    }

    #[test]
    fn one_value_is_set_by_its_path() {
        let mut values = json!({"a": {"b": 1}, "g": {"h": 1, "i": 2}});
        for assignment in [
            "a.b=x",
            "l[1].k=true",
            "n.app\\.io/x=\"7\"",
            "e=",
            "w=['*']",
            "w[1]=*/*",
            "t[0]=on",
            "t[1]=07",
            "t[2]=7",
            "t[3]=a: b",
            "g.h=null",
            "none=null",
            "e.none=null",
        ] {
            set(&mut values, assignment).expect(assignment);
        }
        let expected = json!({
            "a": {"b": "x"}, "g": {"i": 2}, "l": [null, {"k": true}], "n": {"app.io/x": "7"}, "e": "",
            "w": ["*", "*/*"], "t": ["on", "07", 7, "a: b"],
        });
        assert_eq!(values, expected);
        for wrong in ["a", "=1", "a..b=1", "a[=1", "a[x]=1", "a[0]b=1", "a[9999]=1", "a=[1"] {
            assert!(set(&mut values, wrong).is_err(), "{wrong}");
        }
    }
}
