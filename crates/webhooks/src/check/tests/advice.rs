//! What is proposed for conditions that fail.

use super::failing::of_pods;

const CREATE: &[&str] = &["CREATE"];

#[test]
fn the_guard_that_is_proposed_makes_it_right() {
    for expression in [
        "object.metadata.labels['app'] != 'x'",
        "'a' in object.metadata.annotations",
        "object.spec.hostNetwork == true",
        "object.metadata.ownerReferences[0].kind == 'Job'",
        "!object.spec.hostPID",
        "oldObject.metadata.labels['a'] == object.metadata.labels['a']",
    ] {
        let operations = &["CREATE", "UPDATE", "DELETE"];
        let all = of_pods(operations, expression);
        let advice = &all[0].2;
        let guard = advice.strip_prefix("Write ").and_then(|it| it.split_once(" && (…)"));
        let (guard, _) = guard.expect(advice);
        for guarded in
            [format!("{guard} && ({expression})"), format!("!({guard}) || ({expression})")]
        {
            assert_eq!(of_pods(operations, &guarded), [], "{guarded}");
        }
    }
}

/// Before the whole condition, a guard for a part of it would change what else the condition says.
#[test]
fn a_guard_of_a_part_is_for_this_part() {
    const WHERE: &str = "Guard what is read, where it is read: ";
    for (expression, advice) in [
        (
            "!has(object.spec.affinity) || object.spec.affinity.nodeAffinity == 1",
            "has(object.spec.affinity.nodeAffinity).",
        ),
        (
            "has(object.metadata.labels) && (object.metadata.labels['a'] == 'x' \
             || object.metadata.labels['b'] == 'x')",
            "'a' in object.metadata.labels && 'b' in object.metadata.labels.",
        ),
        (
            "has(object.metadata.labels) && ['a', 'b'].exists(k, object.metadata.labels[k] == 'x')",
            "k in object.metadata.labels.",
        ),
        ("object.spec.containers.all(c, c.stdin)", "has(c.stdin)."),
        (
            "request.operation == 'UPDATE' ? true : object.spec.hostPID == true",
            "has(object.spec.hostPID).",
        ),
        (
            "object.metadata.name == '' || {'a': 1}[object.metadata.name] == [2].filter(x, x == \
             size(object.kind))[0] || [2].filter(x, x == size(object.apiVersion)).max() == 1",
            "has(object.metadata.name). Look for the key before it is read: 'key' in … && …, or read \
             it with [?…] and orValue(…). Compare the size before the index, such as size(…) > 0 && …, \
             or use exists. Compare the size of the list before min() or max(): size(…) > 0 && ….",
        ),
    ] {
        let all = of_pods(CREATE, expression);
        let expected = format!("{WHERE}{advice}");
        assert_eq!(all[0].2, expected, "{expression}");
    }
}

#[test]
fn what_is_null_in_a_list_has_no_guard_with_a_path() {
    let all = of_pods(CREATE, "object.spec.volumes.all(v, size(v.projected.sources) > 0)");
    let advice = &all[0].2;
    assert!(advice.contains("has(v.projected)") && !advice.contains("[]"), "{advice}");
    assert!(advice.ends_with("Compare each element that may be null: … != null && …."), "{advice}");
}

/// What is left out is said, and no guard is proposed as if it were the whole.
#[test]
fn what_is_not_listed_is_said() {
    let labels = |count: usize| {
        let parts = (0..count).map(|it| format!("object.metadata.labels.a{it} == 'b'"));
        of_pods(CREATE, &parts.collect::<Vec<_>>().join(" && ")).remove(0)
    };
    let (_, problem, advice) = labels(7);
    assert!(!problem.contains("others"), "{problem}");
    assert!(advice.starts_with("Write has(object.metadata.labels) && has("), "{advice}");
    let (_, problem, advice) = labels(8);
    assert!(problem.contains(" and others; with Fail"), "{problem}");
    assert!(advice.starts_with("Guard what is read"), "{advice}");
}
