//! Expressions that are long, deep or costly: each has a result, and none of them takes long.

use serde_json::{Value, json};

use super::{Outcome, Program, outcome};

/// The problem of an expression that does not compile.
fn problem(expression: &str) -> String {
    Program::compile(expression).expect_err("it must not compile")
}

#[test]
fn long_chains_are_too_deep() {
    for expression in [
        format!("object{}", ".a".repeat(20_000)),
        format!("1{} == 1", "-1".repeat(20_000)),
        format!("'x'{} == 'x'", "+'x'".repeat(10_000)),
        format!("object{}", "[0]".repeat(20_000)),
        format!("object{}", ".f()".repeat(20_000)),
        format!("1{}", " < 1".repeat(20_000)),
        format!("true{}", " ? true : true".repeat(7_000)),
        format!("object{}", ".map(x, x)".repeat(9_000)),
    ] {
        assert!(problem(&expression).contains("more than 250 levels deep"), "{expression:.40}");
    }
}

#[test]
fn nested_brackets_are_too_deep() {
    for open in ["(", "[", "{1: ", "!(", "-(", "f(", "object[", "true ? true : ", "[].all(x, "] {
        let expression = open.repeat(99_000 / open.len());
        assert!(problem(&expression).contains("more than 250 levels deep"), "{open}");
    }
    for open in ["(", "[", "!", "-", "'", "\"\"\"", "b'", "`", "{", "?", ".", "//"] {
        problem(&open.repeat(100_000 / open.len()));
        problem(&open.repeat(100_001));
    }
}

#[test]
fn the_deepest_expressions_are_evaluated() {
    let nested = |open: &str, inner: &str, close: &str, depth: usize| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    let object = json!({"a": {}});
    for (expression, is_true) in [
        (nested("(", "true", ")", 249), true),
        (nested("!(", "true", ")", 249), false),
        (nested("[1].all(x, ", "true", ")", 240), true),
        (nested("[1].exists(x, x == 1 && ", "true", ")", 240), true),
        (format!("size({}) == 2", nested("[", "1", "]", 248)), false),
        (format!("object.{}hasValue()", "?a.".repeat(240)), false),
        (format!("1{} == 1", " - 0".repeat(240)), true),
        (format!("{}true", "true ? true : ".repeat(240)), true),
        (format!("size({}) == 1", nested("[1].filter(x, size(", "[x]", ") == 1)", 120)), true),
    ] {
        let found = outcome(&expression, &object);
        assert_eq!(found, Ok(Outcome::Bool(is_true)), "{expression:.60}");
    }
}

#[test]
fn long_expressions_are_read_once() {
    for term in ["true || ", "false || ", "true && ", "!false && "] {
        let expression = format!("{}true", term.repeat(99_000 / term.len()));
        let found = outcome(&expression, &Value::Null);
        assert_eq!(found, Ok(Outcome::Bool(true)), "{term}");
    }
    let list = format!("[{}1].size() > 0", "1,".repeat(49_000));
    assert_eq!(outcome(&list, &Value::Null), Ok(Outcome::Bool(true)));
    assert!(problem(&"a".repeat(100_001)).contains("100001 code points; 100000 are allowed"));
}

/// The conditions cost too much, also in an API server.
#[test]
fn costly_expressions_are_over_the_limit() {
    let containers: Vec<_> = (0..400).map(|index| json!({"name": index.to_string()})).collect();
    let object = json!({"spec": {"containers": containers}, "text": "x".repeat(1 << 20)});
    let list = "object.spec.containers";
    for expression in [
        format!("{list}.all(a, {list}.all(b, {list}.all(c, a.name != '' || b == c)))"),
        format!("{list}{} == []", format!(".map(x, {list}.map(y, {list}.map(z, x)))").repeat(8)),
        "lists.range(1000000000).size() == 1".to_owned(),
        "lists.range(100000).distinct().size() == 1".to_owned(),
        "lists.range(10).all(i, !object.text.matches('(x+x+)+y'))".to_owned(),
        "(object.text + object.text + object.text).contains('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')".to_owned(),
        "lists.range(1000).map(x, object.text.upperAscii()).size() == 1".to_owned(),
        "lists.range(1000).all(x, object.text + 'y' != '')".to_owned(),
    ] {
        match outcome(&expression, &object).expect("compiles") {
            Outcome::Error(problem) => assert!(problem.contains("costs more"), "{expression:.80}"),
            Outcome::OverBudget => {}
            other => panic!("{expression:.80}: {other:?}"),
        }
    }
}

/// The text of a condition that an API server also takes for too costly.
const COSTS: &str = "costs more";
/// The text of one that an API server takes for cheap; here it ends at the bytes that are read and
/// written.
const BYTES: &str = "128 MiB";

#[test]
fn work_that_costs_nothing_is_bounded() {
    let object = json!({"text": "x".repeat(100_000), "list": vec![0; 1000]});
    let doubled = |start: &str, times: usize| {
        (0..times).fold(format!("[{start}]"), |list, _| format!("{list}.map(x, x + x)"))
    };
    let conditional = " && (true ? true : false)".repeat(3000);
    for (expression, limit) in [
        (format!("{}.size() == 1", doubled("object.list", 40)), BYTES),
        (format!("{} == []", doubled("[1]", 60)), BYTES),
        ("object.text.replace('x', object.text).size() == 1".to_owned(), BYTES),
        (
            "object.text.replace('', object.text).replace('', object.text).size() == 1".to_owned(),
            BYTES,
        ),
        ("object.list.all(x, object.list.all(y, object.list == object.list))".to_owned(), BYTES),
        (format!("lists.range(300000).all(x, true{conditional})"), BYTES),
        ("object.list.map(x, object.text.split('')).size() == 1".to_owned(), BYTES),
        ("object.list.all(x, object.text.matches('a{' + string(x) + '}'))".to_owned(), COSTS),
        ("lists.range(9999).all(x, !''.matches('a' + string(x)))".to_owned(), BYTES),
        ("lists.range(9999).all(x, !{object.text + 'y': 1}.exists(k, k == ''))".to_owned(), COSTS),
        ("object.list.map(x, {object.text: x}[object.text]).size() == 1".to_owned(), BYTES),
    ] {
        let found = match outcome(&expression, &object).expect("compiles") {
            Outcome::Unknown(text) | Outcome::Error(text) => text,
            other => format!("{other:?}"),
        };
        assert!(found.contains(limit), "{expression:.80}: {found}");
    }
}

/// It is not read at all.
#[test]
fn a_long_regular_expression_is_unknown() {
    let pattern = r"\pL".repeat(4000);
    let object = json!({"pattern": pattern});
    for expression in
        [format!(r"''.matches(r'{pattern}')"), "''.matches(object.pattern)".to_owned()]
    {
        let found = outcome(&expression, &object).expect("compiles");
        let Outcome::Unknown(reason) = found else { panic!("{found:?}") };
        assert!(reason.contains("longer than 8192 bytes"), "{reason}");
    }
}

/// A constant map costs nothing, however often it is searched.
#[test]
fn a_large_constant_map_is_searched_by_halves() {
    let entries: Vec<_> = (0..8000).map(|key| format!("'k{key}':0")).collect();
    let map = format!("{{{}}}", entries.join(","));
    let found = outcome(&format!("[{map}].all(m, m == m && 'k7999' in m)"), &Value::Null);
    assert_eq!(found, Ok(Outcome::Bool(true)));
}

/// The type of the result would have twice the size at each level.
#[test]
fn types_of_keys_do_not_double() {
    let maps = (0..100).fold("[1]".to_owned(), |list, _| list + ".map(x, {x: x})");
    let found = outcome(&format!("{maps} == []"), &Value::Null).expect("compiles");
    assert!(matches!(found, Outcome::Error(_)), "{found:?}");
}

/// Each name has the type of the list.
#[test]
fn many_names_with_deep_types_are_checked() {
    let list = format!("{}1{}", "[".repeat(240), "]".repeat(240));
    let names = "x == x && ".repeat(9_000);
    let found = outcome(&format!("{list}.all(x, {names}true)"), &Value::Null);
    assert!(matches!(found, Ok(Outcome::Bool(true))), "{found:?}");
    assert!(problem(&format!("{list}.f({})", "x, ".repeat(30_000) + "x")).len() < 300);
    assert!(problem(&"x".repeat(99_000)).len() < 300);
}

/// Each level would have a copy of the list.
#[test]
fn constants_are_kept_once() {
    let list = format!("{}{}1{}", "[".repeat(240), "1,".repeat(48_000), "]".repeat(240));
    assert_eq!(outcome(&format!("{list}.size() == 1"), &Value::Null), Ok(Outcome::Bool(true)));
}

/// Threads of servers and tests have stacks of 2 MiB.
#[test]
fn what_is_not_deep_needs_half_of_a_stack() {
    for expression in [
        format!("{}true{}", "(".repeat(64), ")".repeat(64)),
        format!("{}true{}", "[1].exists(x, x == 1 && ".repeat(16), ")".repeat(16)),
        format!("1{} == 1", " - 0".repeat(60)),
        format!("object{} == 1 || true", ".a[0]".repeat(30)),
    ] {
        let thread = std::thread::Builder::new().stack_size(1 << 20);
        let evaluated = thread.spawn(move || outcome(&expression, &Value::Null));
        let found = evaluated.expect("a thread").join().expect("no panic");
        assert_eq!(found, Ok(Outcome::Bool(true)));
    }
}

/// The target of `optMap` is there twice when it is expanded.
#[test]
fn chains_of_optional_macros_are_not_multiplied() {
    let chain =
        |times: usize| format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(times));
    assert_eq!(outcome(&chain(10), &Value::Null), Ok(Outcome::Bool(true)));
    let found = outcome(&chain(120), &Value::Null).expect("compiles");
    assert!(matches!(found, Outcome::Error(_)), "{found:?}");
}
