use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod attacks;
mod battery;

/// Data with an object only.
fn of(object: &Value) -> Data<'_> {
    let (object, null) = (object.into(), Datum::Null);
    Data { object, old_object: null, request: null, namespace_object: null }
}

/// The outcome for an object, with the budget of match conditions.
fn outcome(expression: &str, object: &Value) -> Result<Outcome, String> {
    Ok(Program::compile(expression)?.evaluate(of(object), &mut Budget::of_conditions()))
}

#[test]
fn what_is_not_known_matters_only_if_it_decides() {
    let object = json!({"a": 1});
    for (expression, want) in [
        ("authorizer.path('/x').check('get').allowed() || true", Some(true)),
        ("object.a == 2 && authorizer.path('/x').check('get').allowed()", Some(false)),
        ("authorizer.path('/x').check('get').allowed() || object.b", None),
        ("object.b || authorizer.path('/x').check('get').allowed()", None),
    ] {
        let found = outcome(expression, &object).expect("compiles");
        match want {
            Some(want) => assert_eq!(found, Outcome::Bool(want), "{expression}"),
            None => assert!(matches!(found, Outcome::Unknown(_)), "{expression}: {found:?}"),
        }
    }
}

#[test]
fn conditions_of_products_compile() {
    for expression in [
        "true",
        "!(request.resource.group == 'coordination.k8s.io' && request.resource.resource == 'leases')",
        "!('system:nodes' in request.userInfo.groups)",
        "request.resource.resource != 'pods' || !has(object.spec.hostNetwork) || !object.spec.hostNetwork",
        "object.metadata.?labels['a'].orValue('') == 'b'",
        "object.spec.containers.all(c, c.image.startsWith('x/')) && size(object.spec.containers) < 3",
        "request.userInfo.extra.exists(k, k == 'a' && request.userInfo.extra[k].size() > 1)",
        "authorizer.group('').resource('pods').namespace(request.namespace).check('create').allowed()",
        "authorizer.requestResource.check('breakglass').allowed()",
        "namespaceObject.metadata.labels['a'] == 'b'",
        "object.spec.containers.map(c, c.name).filter(n, n != 'a').size() == 0",
        "quantity(object.spec.x).isLessThan(quantity('1Gi')) || ip('1.2.3.4').family() == 4",
        "sets.contains(['a', 'b'], [request.name]) || [1, 2].sum() == 3",
        "(request.dryRun ? 'a' : 'b') == 'a' || type(object) == string",
        "request.options.x == 1 && dyn(1) == 'a'",
    ] {
        let problem = Program::compile(expression).map(|program| program.problem());
        assert_eq!(problem, Ok(None), "{expression}");
    }
}

/// Expressions, and what their errors have.
const PROBLEMS: [(&str, &str); 21] = [
    ("objekt.metadata.name == 'a'", "undeclared reference to \"objekt\""),
    ("object.metadata.name", "must evaluate to bool but got dyn"),
    ("'a'", "must evaluate to bool but got string"),
    ("request.foo == 'a'", "AdmissionRequest has no field \"foo\""),
    ("request.name.first == 'a'", "a string has no fields"),
    ("request.name == 1", "no overload of \"_==_\" for (string, int)"),
    ("sum(1, 2) == 3", "undeclared reference to \"sum\""),
    ("request.name.beginsWith('a')", "undeclared reference to \"beginsWith\""),
    ("request.name.startsWith(1)", "no overload of \"startsWith\""),
    ("params.x == 1", "undeclared reference"),
    ("[1, 'a'].size() == 2", "elements have the types"),
    ("request.name.all(c, c == 'a')", "cannot be iterated over"),
    ("1 in 'abc'", "no overload of \"@in\""),
    ("[object.a, 'b'].size() == 2", "elements have the types"),
    ("request.name.matches('(')", "invalid matches argument"),
    ("duration('x') == duration('1h')", "invalid duration argument"),
    ("timestamp('x') == timestamp(object.a)", "invalid timestamp argument"),
    ("1 +", "unexpected end, at line 1 column 4"),
    ("'a", "a text does not end, or has an escape that is not valid, at line 1 column 1"),
    ("a ; b", "unexpected character ';', at line 1 column 3"),
    ("(1", "unexpected end, wanted \")\", at line 1 column 3"),
];

#[test]
fn what_the_api_server_does_not_compile_is_named() {
    for (expression, problem) in PROBLEMS {
        let found = match Program::compile(expression) {
            Ok(program) => program.problem().expect(expression),
            Err(problem) => problem,
        };
        assert!(found.contains(problem), "{expression}: {found}");
    }
}

/// Parts of expressions, so that many texts compile.
const PARTS: &str = "object~.a~.?a~[0]~[?'b']~1~-1~1.5~2u~'x'~b'y'~null~true~(~)~[~]~{~}~,~:~?~ && ~ || ~\
    !~-~ == ~ < ~ in ~+~*~/~%~.map(i, ~.all(i, ~.exists(k, v, ~i~k~has(~.size()~string(~\
    int(~.matches('a+')~.split('')~.join(~.sort()~.replace('a', ~lists.range(9)~\
    quantity(~.optMap(o, ~dyn(~'%s'.format([~.sortBy(s, ~.transformMap(k, v, ~\"~\\~\
    \u{e9}~timestamp(~duration('1h')";

fn parts() -> impl Strategy<Value = String> {
    let words: Vec<_> = PARTS.split('~').collect();
    prop::collection::vec(prop::sample::select(words), 0..24).prop_map(|words| words.concat())
}

fn objects() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_compiled_and_evaluated(text in ".{0,60}", object in objects()) {
        drop(outcome(&text, &object));
    }

    #[test]
    fn any_expression_is_compiled_and_evaluated(text in parts(), object in objects()) {
        drop(outcome(&text, &object));
    }

    #[test]
    fn no_expression_costs_more_than_the_limit(text in parts(), object in objects()) {
        if let Ok(program) = Program::compile(&text) {
            let data = of(&object);
            let mut evaluator = program.evaluator(&data);
            let found = evaluator.eval(program.root);
            let is_over = evaluator.work.cost() > limits::MAX_COST;
            prop_assert_eq!(is_over, matches!(found, Err(Fault::Cost)));
        }
    }
}

/// A cluster keeps many expressions: each node of theirs is one of these.
#[test]
fn nodes_of_programs_are_small() {
    let sizes = [size_of::<Node>(), size_of::<Plan>(), size_of::<Facts>()];
    assert!(sizes.iter().zip([40, 24, 6]).all(|(size, most)| *size <= most), "{sizes:?}");
}
