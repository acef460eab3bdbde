//! What is found about much of the same: no more than in proportion to it.

use serde_json::{Value, json};

use super::{Severity, good};
use crate::check::check;

/// A configuration with this much of something.
type Shape = fn(usize) -> Value;

const SHAPES: [(&str, Shape); 9] = [
    ("equal rules", |count| with("rules", (0..count).map(|_| rule("a", "pods")).collect())),
    ("rules of which the first covers the others", |count| {
        let others = (1..count).map(|index| rule("", &format!("pods/x{index}")));
        with("rules", [rule("*", "*/*")].into_iter().chain(others).collect())
    }),
    ("rules that differ", |count| {
        with("rules", (0..count).map(|index| rule(&format!("a{index}.b.c"), "pods")).collect())
    }),
    ("resources and groups that are not known", |count| {
        let mut rule = rule("", "");
        rule["resources"] = (0..count).map(|index| format!("x{index}")).collect();
        rule["apiGroups"] = (0..count).map(|_| "").collect();
        rule["apiVersions"] = (0..count).map(|index| format!("v{index}")).collect();
        with("rules", json!([rule]))
    }),
    ("groups that are not known", |count| {
        let mut rule = rule("", "");
        rule["resources"] = (0..count).map(|index| format!("x{index}")).collect();
        rule["apiGroups"] = (0..count).map(|index| format!("x{index}")).collect();
        with("rules", json!([rule]))
    }),
    ("resources behind a wildcard", |count| {
        let mut rule = rule("", "");
        rule["resources"] = (0..count).map(|_| "pods/*").collect();
        with("rules", json!([rule]))
    }),
    ("operations", |count| {
        let mut rule = rule("", "");
        rule["resources"] = (0..count).map(|index| format!("pods/log{index}")).collect();
        rule["operations"] = (0..count).map(|_| "CONNECT").collect();
        with("rules", json!([rule]))
    }),
    ("requirements of a selector", |count| {
        let values: Vec<_> = (0..count).map(|index| format!("v{index}")).collect();
        let all =
            (0..count).map(|_| json!({"key": "a", "operator": "NotIn", "values": [&values[0]]}));
        with("objectSelector", json!({"matchExpressions": all.collect::<Vec<_>>()}))
    }),
    ("webhooks", |count| {
        let mut object = good();
        let webhook = object["webhooks"][0].clone();
        let named = |index| {
            let mut webhook = webhook.clone();
            webhook["name"] = format!("a{index}.injector.example.com").into();
            webhook
        };
        object["webhooks"] = (0..count).map(named).collect();
        object
    }),
];

fn rule(group: &str, resource: &str) -> Value {
    json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": [resource], "scope": "*"})
}

fn with(field: &str, value: Value) -> Value {
    let mut object = good();
    object["webhooks"][0][field] = value;
    object
}

#[test]
fn what_is_found_grows_with_what_is_there() {
    let length = |shape: Shape, count| {
        let found = check([&shape(count)]);
        found.iter().map(|it| it.field.len() + it.problem.len() + it.advice.len()).sum::<usize>()
    };
    for (name, shape) in SHAPES {
        let [few, many] = [200, 800].map(|count| length(shape, count));
        // Numbers of more digits are longer.
        assert!(many < 5 * few.max(500), "{name}: {few} and {many} bytes");
    }
}

#[test]
fn rules_that_another_one_covers_are_reported_together() {
    let found = |rules: Value| {
        let all = check([&with("rules", rules)]);
        let all = all.into_iter().filter(|it| it.problem.contains("rules"));
        all.map(|it| (it.severity, it.field, it.problem)).collect::<Vec<_>>()
    };
    let pods = || rule("", "pods");
    let warning = |field: &str, problem: &str| {
        vec![(Severity::Warning, field.to_owned(), problem.to_owned())]
    };
    let of = |count: usize| found((0..count).map(|_| pods()).collect());
    assert_eq!(of(1), []);
    assert_eq!(of(2), warning("rules[1]", "rules[0] matches all that it matches"));
    let text = "rules[0] matches all that it matches, and all that rules[2] matches";
    assert_eq!(of(3), warning("rules[1]", text));
    let text = "rules[0] matches all that it matches, and all that 298 others after it match";
    assert_eq!(of(300), warning("rules[1]", text));
    // Behind the limit only equal rules are found, and that is reported.
    let names = (0..300).map(|index| rule(&format!("a{index}.b.c"), "pods"));
    let all = found(names.clone().chain([rule("a299.b.c", "pods")]).collect());
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!((all[0].0, &*all[0].1), (Severity::Warning, "rules[300]"));
    assert_eq!((all[1].0, &*all[1].1), (Severity::Suggestion, "rules"));
}
