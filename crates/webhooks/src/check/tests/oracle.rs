//! Conditions that fail are those for which a request of a list is rejected, whatever the expression.

use serde_json::{Value, json};

use super::good;
use crate::{Configurations, Labels, Operation, Request, Verdict, check::check};

/// Random expressions.
const EXPRESSIONS: usize = 300;
/// The least number of those that fail, and of those that do not.
const LEAST: usize = 30;

const ATOMS: [&str; 36] = [
    "has(object.metadata.labels)",
    "has(object.metadata.labels.a)",
    "'a' in object.metadata.labels",
    "object.metadata.labels['a'] == 'x'",
    "object.metadata.labels.a != 'x'",
    "object.metadata.labels.a in ['x', 'y']",
    "object.metadata.?labels[?'a'].orValue('y') == 'x'",
    "object.metadata.?labels.a.hasValue()",
    "object.?metadata.labels[?'a'].optMap(v, v == 'x').orValue(false)",
    "object.metadata.labels.exists(k, k == 'a')",
    "object.metadata.labels.all(k, k != 'b')",
    "size(object.metadata.labels) > 0",
    "object.metadata.labels.size() == 0",
    "object.spec.hostNetwork == true",
    "has(object.spec.hostNetwork)",
    "object.spec.hostNetwork == false",
    "object == null",
    "oldObject != null",
    "request.operation == 'DELETE'",
    "has(oldObject.metadata) && has(oldObject.metadata.labels)",
    "oldObject.metadata.labels['a'] == 'x'",
    "object.spec.containers.all(c, has(c.securityContext))",
    "object.spec.containers.exists(c, c.securityContext.privileged)",
    "object.spec.containers[0].securityContext.privileged == true",
    "object.metadata.name != 'x'",
    "has(request.name) && request.name != 'x'",
    "object.spec.containers.filter(c, has(c.securityContext)).size() > 0",
    "object.spec.containers.filter(c, has(c.securityContext)) == []",
    "object.spec.containers.exists_one(c, has(c.securityContext))",
    "object.spec.containers.filter(c, has(c.securityContext))[0].securityContext.privileged == true",
    "object.spec.containers.filter(c, has(c.securityContext)).first().hasValue()",
    "object.spec.containers.map(c, has(c.securityContext))[0]",
    "(object.spec.containers + []).all(c, has(c.securityContext))",
    "[object.metadata.?labels].unwrapOpt()[0]['a'] == 'x'",
    "object.metadata.?labels.orValue({'a': 'x'})['a'] == 'x'",
    "{'x': true, 'y': false}[?object.metadata.labels['a']].orValue(true)",
];

/// With it, little is absent.
const GUARD: &str = "object != null && has(object.metadata.name) && has(object.metadata.labels) && \
                     'a' in object.metadata.labels && has(object.spec.hostNetwork)";

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).expect("a small number") % limit
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return ATOMS[self.below(ATOMS.len())].to_owned();
        }
        let one = self.expression(depth - 1);
        match self.below(7) {
            0 => one,
            1 => format!("!({one})"),
            2 | 3 => format!("({one}) && ({})", self.expression(depth - 1)),
            4 | 5 => format!("({one}) || ({})", self.expression(depth - 1)),
            _ => {
                let [yes, no] = [self.expression(depth - 1), self.expression(depth - 1)];
                format!("({one}) ? ({yes}) : ({no})")
            }
        }
    }
}

/// Pods with and without all that the expressions read.
fn pods() -> Vec<Value> {
    let mut pods = Vec::new();
    let labels = ["null", "{}", "a=x", "a=y", "a=z", "b=x", "c=x", "a=x b=x", "a=y b=x", "a=z b=x"];
    let labels = labels.map(|text| match text {
        "null" => Value::Null,
        text => text.split(' ').filter_map(|it| it.split_once('=')).collect(),
    });
    let contexts =
        [json!(null), json!({}), json!({"privileged": true}), json!({"privileged": false})];
    for labels in &labels {
        for network in [json!(null), json!(true), json!(false)] {
            for context in &contexts {
                for name in [json!(null), json!("x"), json!("y")] {
                    let mut pod =
                        json!({"metadata": {}, "kind": "Pod", "spec": {"containers": [{}]}});
                    for (pointer, key, value) in [
                        ("/metadata", "labels", labels),
                        ("/metadata", "name", &name),
                        ("/spec", "hostNetwork", &network),
                        ("/spec/containers/0", "securityContext", context),
                    ] {
                        if !value.is_null() {
                            pod.pointer_mut(pointer).expect("a parent")[key] = value.clone();
                        }
                    }
                    pods.push(pod);
                }
            }
        }
    }
    pods
}

fn configuration(expressions: &[String]) -> Value {
    let mut object = good();
    let webhook = &mut object["webhooks"][0];
    webhook["failurePolicy"] = "Fail".into();
    webhook["rules"][0]["operations"] = json!(["CREATE", "DELETE"]);
    let conditions = expressions.iter().enumerate();
    webhook["matchConditions"] = conditions
        .map(|(at, text)| json!({"name": format!("c{at}"), "expression": text}))
        .collect();
    object
}

/// What an API server does with requests to create and delete a pod.
fn verdicts(read: &Configurations, pod: &Value) -> [Verdict; 2] {
    let create = Request::creates_pod(pod, "shop");
    let mut delete = create.clone();
    delete.operation = Operation::Delete;
    delete.object = None;
    delete.old_object = Some(pod);
    [create, delete].map(|request| read.walk(&request, Some(&Labels::new()))[0].verdict)
}

/// What is proposed compiles, has no finding of its own, and says the same as before of each request for
/// which the condition did not fail.
#[test]
fn an_advised_condition_does_not_fail_and_keeps_its_verdicts() {
    let mut pods = pods();
    // The API server leaves empty maps out.
    pods.retain(|pod| pod["metadata"]["labels"] != json!({}));
    let read = |expression: &str| {
        let object = configuration(&[expression.to_owned()]);
        let conditions = check([&object]);
        let fails = conditions.into_iter().find(|it| it.problem.contains("it fails"));
        (Configurations::read([&object]).expect("a configuration"), fails)
    };
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut count = 0;
    for index in 0..EXPRESSIONS {
        let expression = random.expression(index % 3);
        let (before, Some(finding)) = read(&expression) else { continue };
        let Some(advice) = finding.advice.strip_prefix("Write ") else { continue };
        let (guard, more) = advice.split_once(" && (…) if").expect(advice);
        let otherwise = format!("!({guard}) || ({expression})");
        let otherwise = more.contains("|| (…)").then_some((otherwise, Verdict::Called));
        count += 1;
        let first = (format!("{guard} && ({expression})"), Verdict::NotCalled);
        for (advised, failed) in [first].into_iter().chain(otherwise) {
            let (after, finding) = read(&advised);
            assert_eq!(finding, None, "{advised}");
            for pod in pods.iter().step_by(7) {
                let expected = verdicts(&before, pod)
                    .map(|it| if it == Verdict::Rejected { failed } else { it });
                assert_eq!(verdicts(&after, pod), expected, "{advised} {pod}");
            }
        }
    }
    assert!(count >= LEAST, "{count}");
}

#[test]
fn a_condition_fails_exactly_if_a_request_is_rejected() {
    let pods = pods();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut counts = [0, 0];
    for index in 0..EXPRESSIONS {
        let expressions: Vec<_> =
            (0..=index % 3 / 2).map(|_| random.expression(1 + index % 2)).collect();
        let expressions: Vec<_> = expressions
            .into_iter()
            .map(|it| if index % 4 == 0 { it } else { format!("{GUARD} && ({it})") })
            .collect();
        let object = configuration(&expressions);
        let found = check([&object]);
        let is_found = found.iter().any(|it| it.problem.contains("it fails"));
        let read = Configurations::read([&object]).expect("a configuration");
        let rejected = pods.iter().find(|pod| verdicts(&read, pod).contains(&Verdict::Rejected));
        counts[usize::from(is_found)] += 1;
        assert_eq!(is_found, rejected.is_some(), "{expressions:#?}\n{found:?}\n{rejected:?}");
    }
    assert!(counts.iter().all(|count| *count >= LEAST), "{counts:?}");
}
