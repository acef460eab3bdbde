use serde_json::{Value, json};

use crate::{Datum, Environment, FieldDef, Program, TypeDef, Typed, Variables};

/// A pod, and parameters.
struct World {
    pod: Value,
    params: Typed,
    own: Value,
    taken: Value,
}

impl Variables for World {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        match name {
            "object" => Some((&self.pod).into()),
            "params" => Some(self.params.datum()),
            "container" => self.pod["spec"]["containers"].get(0).map(Datum::from),
            "controller" => Some(Datum::Absent),
            crate::OWN_CONTAINERS => Some((&self.own).into()),
            crate::TAKEN_PORTS => Some((&self.taken).into()),
            _ => None,
        }
    }
}

fn params() -> TypeDef {
    TypeDef::object(
        "params",
        vec![
            FieldDef::required("cpu", TypeDef::Quantity),
            FieldDef::required("memory", TypeDef::Quantity),
            FieldDef::required("wait", TypeDef::Duration),
            FieldDef::optional("role", TypeDef::String),
            FieldDef::required("limits", TypeDef::Quantity.list()),
            FieldDef::required("secret", TypeDef::String.map()),
            FieldDef::required("image", TypeDef::String.optional()),
        ],
    )
}

fn environment() -> Environment {
    Environment::templates().with("params", params()).with("container", TypeDef::container())
}

fn world() -> World {
    let pod = json!({
        "metadata": {"name": "web", "labels": {"b": "2", "a": "1"}},
        "spec": {
            "initContainers": [{"name": "sidecar", "ports": [{"containerPort": 9000}]}],
            "containers": [
                {
                    "name": "app",
                    "image": "registry.example.com:5000/team/app:1.2@sha256:ab",
                    "env": [
                        {"name": "OPTS", "value": "-a -b"},
                        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                        {"name": "TWICE", "value": "1"},
                        {"name": "TWICE", "value": "2"},
                    ],
                    "ports": [{"containerPort": 9001, "hostPort": 9003}],
                    "volumeMounts": [{"name": "data", "mountPath": "/var/data/"}],
                    "resources": {"limits": {"memory": "64Mi", "cpu": 2}},
                },
                {"name": "own", "ports": [{"containerPort": 9002}]},
            ],
        },
    });
    let values = json!({
        "cpu": "0.25",
        "memory": "1.5Gi",
        "wait": "90s",
        "limits": ["100m", "1"],
        "secret": {"z": "1", "a": "2"},
        "image": "x",
    });
    let params = Typed::of(&params(), Some(&values));
    World { pod, params, own: json!(["own"]), taken: json!([9005]) }
}

fn value(expression: &str) -> Result<Option<Value>, String> {
    Program::compile_in(&environment(), expression)?.value(&world()).value
}

/// Each expression must have its value.
fn check<const COUNT: usize>(rows: [(&str, Value); COUNT]) {
    let mut wrong = Vec::new();
    for (expression, want) in rows {
        let found = value(expression);
        if found != Ok(Some(want)) {
            wrong.push(format!("{expression}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn containers_are_read() {
    check([
        ("env(container, 'OPTS').value", json!("-a -b")),
        ("env(container, 'OPTS').isSet", json!(true)),
        ("env(container, 'TWICE').value", json!("2")),
        ("env(container, 'NONE').isSet || env(container, 'NONE').entry.hasValue()", json!(false)),
        ("env(container, 'NONE').value", json!("")),
        ("env(container, 'SECRET').fromSource", json!(true)),
        ("env(container, 'SECRET').value", json!("")),
        ("env(container, 'OPTS').entry", json!({"name": "OPTS", "value": "-a -b"})),
        ("mount(container, 'data').?mountPath", json!("/var/data/")),
        ("mount(container, '/var/data').?name", json!("data")),
        ("mount(container, '/other').hasValue()", json!(false)),
        ("appended(env(container, 'OPTS').value, ' ', '-c')", json!("-a -b -c")),
        ("appended('-a -b', ' ', '-a')", json!("-a -b")),
        ("appended('-ab -b', ' ', '-a')", json!("-ab -b -a")),
        ("appended('-x -a -b', ' ', '-a -b')", json!("-x -a -b")),
        ("appended('', ' ', '-a')", json!("-a")),
        ("freePorts(9000, 3)", json!([9002, 9004, 9006])),
        ("freePorts(80, 0)", json!([])),
    ]);
}

#[test]
fn texts_and_maps_are_made() {
    check([
        (
            "toJson({'b': [dyn(1), dyn(2.5), dyn(true)], 'a': [dyn('x\"')]})",
            json!(r#"{"a":["x\""],"b":[1,2.5,true]}"#),
        ),
        ("toJson(params.secret)", json!(r#"{"a":"2","z":"1"}"#)),
        ("toJson(object.metadata.labels)", json!(r#"{"a":"1","b":"2"}"#)),
        ("fromJson('{\"a\": [1, 1.5, null]}').a[1]", json!(1.5)),
        ("base64('a?>')", json!("YT8+")),
        ("base64(b'\\xff')", json!("/w==")),
        ("sha256('')", json!("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")),
        ("dirname('/etc//secrets/db.yaml')", json!("/etc/secrets")),
        ("dirname('x')", json!(".")),
        (
            "image(container.image)",
            json!({
                "registry": "registry.example.com:5000",
                "repository": "team/app",
                "tag": "1.2",
                "digest": "sha256:ab",
            }),
        ),
        ("image('nginx').repository + image('team/nginx:1').registry", json!("nginx")),
        ("keys(params.secret)", json!(["a", "z"])),
        ("merge({'a': '1', 'b': '1'}, {'b': '2'})", json!({"a": "1", "b": "2"})),
        ("dnsName('My_App.x', 63)", json!("my-app-x")),
        ("dnsName('-abcdefghijkl', 12)", json!("abcdefghijkl")),
        ("dnsName('abc-efghijklm', 12)", json!("abc-12e1f646")),
    ]);
}

#[test]
fn quantities_are_whole_bytes_or_thousandths() {
    check([
        ("sum([params.cpu, quantity('1')])", json!("1250m")),
        ("sum([params.memory, quantity('1')])", json!("1610612737")),
        ("sum(params.limits)", json!("1100m")),
        (
            "sum(object.spec.containers.map(c, c.?resources.?limits.?cpu).unwrapOpt())",
            json!("2000m"),
        ),
        ("max(params.limits)", json!("1000m")),
        ("min([quantity('64Mi'), params.memory])", json!("67108864")),
        ("scale(params.memory, 0.1)", json!("161061274")),
        ("scale(params.cpu, 3)", json!("750m")),
        ("scale(quantity('1'), 0.0001)", json!("1m")),
        ("quantity('1Gi').add(quantity('1Mi'))", json!("1025Mi")),
        ("quantity('100m').add(quantity('1'))", json!("1100m")),
    ]);
}

#[test]
fn parameters_have_their_types() {
    check([
        ("params.memory", json!("1.5Gi")),
        ("params.wait", json!("1m30s")),
        ("params.wait > duration('1m')", json!(true)),
        ("has(params.role)", json!(false)),
        ("params.?role.orValue('x')", json!("x")),
        ("params.image.orValue('y')", json!("x")),
        ("controller.hasValue()", json!(false)),
    ]);
}

#[test]
fn an_optional_without_a_value_is_none() {
    for expression in ["params.?role", "env(container, 'NONE').entry", "mount(container, '/x')"] {
        assert_eq!(value(expression), Ok(None), "{expression}");
    }
}

#[test]
fn what_cannot_be_is_an_error() {
    for (expression, problem) in [
        ("freePorts(65535, 2)", "are not free"),
        ("freePorts(0, 2)", "found base 0 and count 2, expected a base from 1 to 65535"),
        ("freePorts(80, 100000)", "and a count from 0 to 65535"),
        ("appended('a', '', 'b')", "separator is empty"),
        ("dnsName('abc', 9)", "too few"),
        ("dnsName('--', 63)", "no letter"),
        ("fromJson('{')", "invalid JSON at line 1"),
        ("max(params.limits.filter(q, false))", "empty list"),
        ("toJson(optional.none())", "has no form"),
        ("scale(params.cpu, 1e300)", "too large"),
        ("params.role", "no such key"),
        ("objekt.a", "undeclared reference"),
        ("env(object, 'x')", "no overload of \"env\" for (Pod, string)"),
        ("env(container, 'x').values", "no field \"values\""),
        ("params.cpus", "params has no field \"cpus\""),
        ("[].map(object, freePorts('a', 1))", "no overload of \"freePorts\""),
    ] {
        let found = value(expression).expect_err(expression);
        assert!(found.contains(problem), "{expression}: {found}");
    }
}

#[test]
fn json_may_be_nested_so_deep() {
    let nested = |levels| format!("fromJson('{}{}')", "[".repeat(levels), "]".repeat(levels));
    assert!(value(&nested(127)).is_ok());
    let found = value(&nested(128)).expect_err("it is too deep");
    assert!(found.contains("nested more than 127 levels deep"), "{found}");
}

#[test]
fn conditions_do_not_have_the_functions() {
    for expression in ["freePorts(1, 1)", "toJson(1)", "keys({})", "sum([quantity('1')])"] {
        let found = Program::compile(expression).expect_err(expression);
        assert!(found.contains("undeclared reference"), "{expression}: {found}");
    }
}

#[test]
fn results_have_types() {
    let of =
        |expression| Program::compile_in(&environment(), expression).expect(expression).type_of();
    for (expression, want) in [
        ("env(container, 'x').entry", TypeDef::from("EnvVar").optional()),
        ("mount(container, 'x').?mountPath", TypeDef::String.optional()),
        ("freePorts(1, 1)", TypeDef::Int.list()),
        ("image('x').tag", TypeDef::String),
        ("object", TypeDef::pod()),
        ("container", TypeDef::container()),
        ("container.env", TypeDef::from("EnvVar").list()),
        ("params.limits", TypeDef::Quantity.list()),
        ("params.?wait", TypeDef::Duration.optional()),
        ("params.secret.map(k, params.secret[k])", TypeDef::String.list()),
        ("owner.labels", TypeDef::String.map()),
        ("controller.?kind", TypeDef::String.optional()),
        ("serviceAccount.?metadata.?annotations", TypeDef::String.map().optional()),
        ("container.resources.limits", TypeDef::Dyn.map()),
        ("{1: 'a'}", TypeDef::Other("map<int,string>".to_owned())),
        ("fromJson('1')", TypeDef::Dyn),
    ] {
        assert_eq!(of(expression), want, "{expression}");
    }
}

#[test]
fn work_is_charged_by_what_is_read_and_written() {
    let cost = |expression: &str| {
        let program = Program::compile_in(&environment(), expression).expect(expression);
        program.value(&world()).cost
    };
    let long = "x".repeat(1000);
    for function in ["base64", "sha256", "toJson", "dirname"] {
        let (short, long) =
            (cost(&format!("{function}('x')")), cost(&format!("{function}('{long}')")));
        assert!(long >= short + 99, "{function}: {short}, {long}");
    }
    assert!(cost("freePorts(9000, 100)") >= cost("freePorts(9000, 1)") + 99);
    assert_eq!(cost("env(container, 'OPTS')"), 7);
}

#[test]
fn free_ports_read_the_ports_of_the_pod() {
    let program = Program::compile_in(&environment(), "freePorts(1, 1)").expect("it compiles");
    let paths = program.reads_of();
    assert_eq!(paths.len(), 9);
    assert!(paths.iter().all(|path| path.steps[..2] == ["object", "spec"]), "{paths:?}");
    assert!(program.reads("object"));
}

#[test]
fn fields_have_releases() {
    for (release, expression, problem) in [
        (36, "object.spec.evictionResponders", Some("exists from Kubernetes 1.37")),
        (37, "object.spec.evictionResponders[0].priority", None),
        (36, "object.spec.containers[0].volumeMounts[0].name", None),
        (
            37,
            "object.status.nodeAllocatableResourceClaimStatuses[0].resources",
            Some("exists up to Kubernetes 1.36"),
        ),
        (37, "object.spec.containerz", Some("PodSpec has no field \"containerz\"")),
    ] {
        let environment = environment().for_release(release);
        let found = Program::compile_in(&environment, expression).err();
        match (&found, problem) {
            (None, None) => {}
            (Some(found), Some(problem)) => assert!(found.contains(problem), "{found}"),
            _ => panic!("{expression}: {found:?}"),
        }
    }
}
