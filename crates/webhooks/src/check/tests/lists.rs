//! Conditions that read from lists and maps which they make, and fields that may be null.

use injectd_cel::made_by_functions;

use super::failing::{Case, of_pods};

const CREATE: &[&str] = &["CREATE"];

/// An expression for each function and macro that makes a list, a map or an optional, or that fails for
/// an empty list; with what it lacks for some pods, or nothing.
const MADE: [(&str, &str, &str); 41] = [
    ("literal", "['a'][1] == 'b'", "a list has no [1]"),
    ("literal", "['a'][0] == 'b'", ""),
    ("literal", "[?object.metadata.?labels][0]['a'] == 'b'", "a list has no [0]"),
    ("literal", "{'a': 1}['b'] == 1", "a map has no 'b'"),
    ("literal", "{'a': 1}[request.operation] == 1", "a map has no 'CREATE'"),
    ("literal", "{'CREATE': 1}[request.operation] == 1", ""),
    ("literal", "{'a': object.metadata.labels}.a.b == 'c'", "metadata.labels"),
    ("filter", "object.spec.containers.filter(c, c.name == 'x')[0].image == 'y'", "no [0]"),
    ("map", "object.spec.containers.map(c, c.name)[0] == 'x'", ""),
    ("map", "object.spec.containers.map(c, c.name == 'x', c.image)[0] == 'y'", "no [0]"),
    ("map", "object.spec.containers.map(c, c.name)[1] == 'x'", "no [1]"),
    (
        "transformList",
        "object.spec.containers.transformList(i, c, c.name == 'x', i)[0] == 0",
        "no [0]",
    ),
    (
        "transformMap",
        "{'a': 'b'}.transformMap(k, v, v == object.spec.nodeName, v)['a'] == 'b'",
        "spec.nodeName",
    ),
    ("cel.@mapInsert", "{'a': 'b'}.transformMap(k, v, v == 'b', v)['a'] == 'b'", ""),
    (
        "cel.@mapInsert",
        "{'a': request.operation}.transformMap(k, v, v == 'b', v)['a'] == 'b'",
        "no 'a'",
    ),
    ("_+_", "(object.spec.containers + [object.spec]).all(c, c.stdin)", "spec.containers[].stdin"),
    ("_+_", "([] + [1])[0] == 1", ""),
    (
        "_+_",
        "(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, c.stdin)",
        "spec.containers[].stdin or spec.initContainers[].stdin",
    ),
    (
        "flatten",
        "object.spec.containers.map(c, c.?ports.orValue([])).flatten()[0].name == 'x'",
        "no [0]",
    ),
    ("flatten", "[[1], [2]].flatten()[1] == 2", ""),
    ("slice", "object.spec.containers.slice(0, 2)[1].name == 'x'", "spec.containers[1]"),
    ("slice", "object.spec.containers.slice(0, 1)[0].name == 'x'", ""),
    (
        "distinct",
        "object.spec.containers.filter(c, c.name == 'x').distinct()[0].image == 'y'",
        "no [0]",
    ),
    (
        "reverse",
        "object.spec.containers.filter(c, c.name == 'x').reverse()[0].image == 'y'",
        "no [0]",
    ),
    ("reverse", "[1, 2].reverse()[1] == 1", ""),
    ("sort", "object.spec.containers.map(c, c.name == 'x', c.name).sort()[0] == 'y'", "no [0]"),
    ("sort", "['b', string(object.kind)].sort()[1] == 'y'", ""),
    (
        "@sortByAssociatedKeys",
        "object.spec.containers.filter(c, c.name == 'x').sortBy(c, c.name)[0].image == 'y'",
        "no [0]",
    ),
    (
        "first",
        "object.spec.containers.filter(c, c.name == 'x').first().value().image == 'y'",
        "an optional",
    ),
    ("first", "object.spec.containers.first().value().image == 'y'", ""),
    (
        "last",
        "object.spec.containers.filter(c, c.name == 'x').last().value().image == 'y'",
        "an optional",
    ),
    ("min", "object.spec.containers.map(c, c.name == 'x', c.name).min() == 'y'", "no [0]"),
    ("max", "object.spec.containers.map(c, c.name).max() == 'y'", ""),
    ("optional.of", "[optional.of(1)].unwrapOpt()[0] == 1", ""),
    ("optional.none", "[optional.none()].unwrapOpt()[0] == 1", "no [0]"),
    ("optional.unwrap", "optional.unwrap([object.metadata.?labels])[0]['a'] == 'b'", "no [0]"),
    ("unwrapOpt", "[object.metadata.?labels].unwrapOpt()[0]['a'] == 'b'", "no [0]"),
    ("optional.ofNonZeroValue", "optional.ofNonZeroValue([]).value() == [1]", "an optional"),
    ("or", "object.metadata.?labels.or(optional.none()).value()['a'] == 'b'", "an optional"),
    ("orValue", "object.metadata.?annotations.orValue({})['a'] == 'b'", "a map has no 'a'"),
    (
        "_[?_]",
        "object.spec.containers.filter(c, c.name == 'x')[?0].value().image == 'y'",
        "an optional",
    ),
];

/// Functions that make lists, maps or optionals of texts, numbers and other values: what is in them
/// depends on values.
const OF_VALUES: [&str; 6] =
    ["split", "findAll", "lists.range", "getQuery", "format.named", "validate"];

#[test]
fn what_is_read_from_a_list_or_map_that_is_made_must_be_there() {
    for (_, expression, lack) in MADE {
        let all = of_pods(CREATE, expression);
        assert_eq!(all.is_empty(), lack.is_empty(), "{expression}: {all:?}");
        assert!(all.iter().all(|it| it.1.contains(lack)), "{expression}: {all:?}");
    }
    for function in made_by_functions() {
        let function = function.trim_start_matches('.');
        let is_known = MADE.iter().any(|(name, ..)| *name == function);
        assert!(is_known != OF_VALUES.contains(&function), "{function} has no expression here");
    }
}

#[test]
fn a_comparison_guards_what_is_read_from_a_list() {
    let list = "object.spec.containers.filter(c, c.name == 'x')";
    for guard in [
        format!("size({list}) > 0"),
        format!("{list}.size() == 1"),
        format!("1 <= {list}.size()"),
        format!("{list} != []"),
        "object.spec.containers.exists(c, c.name == 'x')".to_owned(),
        "object.spec.containers.exists_one(c, c.name == 'x')".to_owned(),
        format!("{list}.first().hasValue()"),
        format!("{list}[?0].hasValue()"),
    ] {
        let read = format!("{list}[0].image == 'y'");
        for guarded in [format!("{guard} && {read}"), format!("!({guard}) || {read}")] {
            assert_eq!(of_pods(CREATE, &guarded), [], "{guarded}");
        }
        assert_eq!(of_pods(CREATE, &format!("{guard} || {read}")).len(), 1, "{guard}");
    }
    for expression in [
        format!("size({list}) > 1 && {list}[1].image == 'y'"),
        format!("{list}[?0].?image.orValue('') == 'y'"),
        format!("{list}.all(c, c.image == 'y')"),
        format!("{list}.map(c, c.image) == ['y']"),
    ] {
        assert_eq!(of_pods(CREATE, &expression), [], "{expression}");
    }
    // The list may be longer than one element: what comes behind it is looked at.
    let behind = format!("size({list}) > 1 && object.metadata.labels.a == 'b'");
    assert!(of_pods(CREATE, &behind)[0].1.contains("metadata.labels"));
}

#[test]
fn a_field_that_may_be_null_needs_a_guard() {
    let found = |resource: &str, expression: &str| {
        let case = Case { operations: CREATE, resources: &[resource], expressions: &[expression] };
        let all = case.found("ValidatingWebhookConfiguration", "Fail");
        all.into_iter().map(|it| it.1).collect::<Vec<_>>()
    };
    for (resource, expression, lack) in [
        (
            "clusterroles",
            "object.rules.all(r, 'get' in r.verbs)",
            "clusterroles where object.rules is null",
        ),
        ("roles", "has(object.rules) && object.rules.size() > 0", "where object.rules is null"),
        ("roles", "object.?rules.orValue([]).size() > 0", "where object.rules is null"),
        (
            "roles",
            "object.rules != null && object.rules[0].verbs == ['get']",
            "roles without rules[0]",
        ),
        ("limitranges", "object.spec.limits.all(l, l.type == 'Pod')", "object.spec.limits is null"),
        ("csinodes", "object.spec.drivers.size() > 1", "object.spec.drivers is null"),
        ("endpointslices", "object.ports.exists(p, p.port == 1)", "object.ports is null"),
        ("pods", "object.spec.volumes.all(v, v.projected.sources.size() > 0)", "spec.volumes"),
        ("roles", "object.rules == null || object.rules.all(r, 'get' in r.verbs)", ""),
        ("roles", "object.rules != null && object.rules.exists(r, 'get' in r.verbs)", ""),
        ("deployments", "object.spec.selector.matchLabels.size() > 0", "spec.selector.matchLabels"),
        (
            "endpointslices",
            "object.endpoints == null || object.endpoints.all(e, e.addresses[0] != '')",
            "",
        ),
    ] {
        let all = found(resource, expression);
        assert_eq!(all.is_empty(), lack.is_empty(), "{resource} {expression}: {all:?}");
        assert!(all.iter().all(|it| it.contains(lack)), "{resource} {expression}: {all:?}");
    }
}

#[test]
fn fields_are_those_of_the_version_of_the_rule() {
    let found = |version: &str| {
        let case = Case {
            operations: CREATE,
            resources: &["horizontalpodautoscalers"],
            expressions: &["object.spec.metrics.size() > 0"],
        };
        let mut object = case.object("ValidatingWebhookConfiguration", "Fail");
        object["webhooks"][0]["rules"][0]["apiVersions"] = serde_json::json!([version]);
        crate::check::check([&object]).len()
    };
    assert_eq!(["v2", "v1", "*"].map(found), [0, 1, 1]);
}

/// A list that is made of another is as long as a comparison with either of them says.
#[test]
fn a_comparison_of_a_list_guards_one_that_is_made_of_it() {
    let (list, labels) = ("object.spec.containers", "object.metadata.labels");
    let of_labels = format!("!has({labels}) || {labels}.size() < 2");
    for (of, shorter, read) in [
        (list, "", format!("{list}.map(c, c.name)[1] == 'x'")),
        (list, "", format!("{list}.map(c, c.name).reverse()[1] == 'x'")),
        (list, "", format!("{list}.map(c, c.name).sort()[1] == 'x'")),
        (list, "", format!("{list}.map(c, c.name).slice(0, 2) == ['x', 'y']")),
        (list, "", format!("({list} + [{list}[0]])[2].name == 'x'")),
        (list, "", format!("{list}.map(c, [c.name]).flatten()[1] == 'x'")),
        (&format!("{list}.map(c, c.name)"), "", format!("{list}[1].name == 'x'")),
        (labels, &of_labels, format!("{labels}.map(k, k)[1] == 'x'")),
        (labels, &of_labels, format!("{labels}.map(k, k).sort()[1] == 'x'")),
    ] {
        let shorter = if shorter.is_empty() { format!("{of}.size() < 2") } else { shorter.into() };
        for guarded in [
            format!("!({shorter}) && {read}"),
            format!("{read} && !({shorter})"),
            format!("{shorter} || {read}"),
            format!("{read} || {shorter}"),
            format!("{shorter} ? false : {read}"),
        ] {
            assert_eq!(of_pods(CREATE, &guarded), [], "{guarded}");
        }
        assert!(!of_pods(CREATE, &read).is_empty(), "{read}");
    }
}

#[test]
fn a_type_is_a_guard_for_null() {
    let case = |expression: &str| {
        let resources = &["clusterroles"];
        let case = Case { operations: CREATE, resources, expressions: &[expression] };
        case.found("MutatingWebhookConfiguration", "Fail")
    };
    let size = "size(object.rules) > 0";
    for guarded in [
        format!("type(object.rules) == list && {size}"),
        format!("{size} && type(object.rules) == type([])"),
        format!("type(object.rules) in [list] && {size}"),
        format!("type(object.rules) == null_type || {size}"),
        format!("type(object.rules) == type(null) ? false : {size}"),
    ] {
        assert_eq!(case(&guarded), [], "{guarded}");
    }
    for open in [size.to_owned(), format!("type(object.rules) != list && {size}")] {
        assert!(!case(&open).is_empty(), "{open}");
    }
}
