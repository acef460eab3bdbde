use injectd_yaml::Options;

use super::*;

fn read(spec: &str) -> Result<Template, Vec<Problem>> {
    let text = format!(
        "
      apiVersion: injectd.dev/v1alpha1
      kind: SidecarTemplate
      metadata: {{name: agent, namespace: team-a}}
      spec:
        parameters:
        - {{name: free, type: String, default: a, from: [{{podLabel: a}}]}}
        - {{name: bound, type: String, default: a, pattern: '^a$', from: [{{podLabel: b}}]}}
        - {{name: named, type: String, default: a, enum: [a], from: [{{podLabel: c}}]}}
        - {{name: number, type: Integer, default: '1', from: [{{podLabel: d}}]}}
        - {{name: list, type: List, from: [{{podAnnotation: e}}]}}
        {}",
        spec.trim_start()
    );
    Template::read(&injectd_yaml::parse(&text, Options::default()).expect(&text))
}

fn of(topic: Topic, spec: &str) -> Vec<String> {
    let template = read(spec).unwrap_or_else(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        panic!("{}\n{spec}", problems.join("\n"))
    });
    let all = advice(&template).into_iter().filter(|advice| advice.topic == topic);
    all.map(|advice| advice.problem.to_string()).collect()
}

const ADDED: &str = "steps:
        - name: agent
          overlay: {spec: {initContainers: [{name: agent, image: 'a:1', restartPolicy: Always,";

#[test]
fn a_parameter_without_pattern_joined_to_text_of_a_command_is_named() {
    for (written, expected) in [
        (
            "args: ['--x=${params.free}']",
            "args[0]: line 1, column 7: parameter free has no pattern",
        ),
        ("command: ['${\"--x=\" + params.free}']", "command[0]: line 1, column 3: parameter free"),
        ("args: ['${params.free}']", ""),
        ("args: ['--x=${params.bound}${params.named}${params.number}']", ""),
        ("args: ['--x=${base64(params.free)}']", ""),
        ("args: ['--x=${params.free == \"a\" ? \"b\" : \"c\"}']", ""),
        (
            "args: ['--x=${params.?list.orValue([]).join(\",\")}']",
            "args[0]: line 1, column 7: parameter list",
        ),
        (
            "args: \"${params.?list.orValue([]).map(x, '--x=' + x)}\"",
            "args: line 1, column 3: parameter list",
        ),
        ("args: \"${params.?list.orValue([])}\"", ""),
        (
            "lifecycle: {preStop: {exec: {command: [sh, -c, 'kill ${params.free}']}}}",
            "command[2]: ",
        ),
        ("env: [{name: A, value: 'x ${params.free}'}]", ""),
    ] {
        let found = of(Topic::JoinedParameter, &format!("{ADDED} {written}}}]}}}}"));
        assert_eq!(found.len(), usize::from(!expected.is_empty()), "{written}: {found:?}");
        assert!(found.iter().all(|text| text.contains(expected)), "{written}: {found:?}");
    }
}

#[test]
fn a_parameter_without_pattern_joined_to_text_below_to_json_is_named() {
    for (value, expected) in [
        ("{a: 'x ${params.free}'}", "spec.variables[0].value.a: line 1, column 5: parameter free"),
        ("{a: '${params.free}'}", ""),
        ("{a: ['x ${params.bound}']}", ""),
        ("{a: \"${'x' + params.free}\"}", "spec.variables[0].value.a: "),
    ] {
        let spec = format!(
            "variables:
        - {{name: config, value: {value}}}
        {ADDED} env: [{{name: A, value: '${{toJson(variables.config)}}'}}]}}]}}}}"
        );
        let found = of(Topic::JoinedParameter, &spec);
        assert_eq!(found.len(), usize::from(!expected.is_empty()), "{value}: {found:?}");
        assert!(found.iter().all(|text| text.contains(expected)), "{value}: {found:?}");
    }
    let alone =
        format!("{ADDED} env: [{{name: A, value: \"${{toJson(['x' + params.free])}}\"}}]}}]}}}}");
    assert_eq!(of(Topic::JoinedParameter, &alone).len(), 1);
}

#[test]
fn a_plain_container_is_named_if_nothing_asks_for_jobs() {
    let step = "steps: [{name: a, overlay: {spec: {containers: [{name: a, image: 'a:1'}]}}}]";
    let found = of(Topic::Jobs, step);
    assert!(found.len() == 1 && found[0].starts_with("spec.steps[0].overlay.spec.containers[0]: "));
    for asks in [
        "match: {conditions: [{name: a, expression: \"owner.kind != 'Job'\"}]}",
        "validations: [{expression: \"owner.kind != 'Job'\", action: Skip, message: a}]",
        "variables: [{name: a, expression: \"owner.kind == 'CronJob'\"}]
        validations: [{expression: '!variables.a', action: Skip, message: a}]",
    ] {
        assert_eq!(of(Topic::Jobs, &format!("{asks}\n        {step}")), [""; 0], "{asks}");
    }
    let denies = "validations: [{expression: \"owner.kind != 'Job'\", action: Warn, message: a}]";
    assert_eq!(of(Topic::Jobs, &format!("{denies}\n        {step}")).len(), 1);
    assert_eq!(of(Topic::Jobs, &format!("{ADDED} args: [a]}}]}}}}")), [""; 0]);
}

#[test]
fn reads_of_what_may_be_absent_have_the_form_with_a_question_mark() {
    let step = |value: &str| format!("{ADDED} env: [{{name: A, value: '{value}'}}]}}]}}}}");
    assert_eq!(
        of(Topic::MayBeAbsent, &step("on ${object.spec.nodeName}")),
        ["spec.steps[0].overlay.spec.initContainers[0].env[0].value: line 1, column 17: \
          object.spec.nodeName may be absent, and the expression fails then: write \
          object.spec.?nodeName, an optional value"]
    );
    for guarded in ["${object.spec.?nodeName.orValue(\"\")}", "${owner.name}", "${params.free}"] {
        assert_eq!(of(Topic::MayBeAbsent, &step(guarded)), [""; 0], "{guarded}");
    }
}

#[test]
fn who_reads_a_whole_pod_is_named() {
    let step = |value: &str| format!("{ADDED} env: [{{name: A, value: '{value}'}}]}}]}}}}");
    for (value, expected) in [
        ("${toJson(object)}", "line 1, column 3: the expression reads object as a whole"),
        ("${sha256(toJson(object.spec))}", "the expression reads object.spec as a whole"),
        ("${toJson(object.spec.containers[0])}", ""),
    ] {
        let found = of(Topic::ReadsAll, &step(value));
        assert_eq!(found.len(), usize::from(!expected.is_empty()), "{value}: {found:?}");
        assert!(found.iter().all(|text| text.contains(expected)), "{found:?}");
    }
}

#[test]
fn a_variable_that_is_replaced_reads_itself_by_appended_only() {
    let rule = |rest: &str, value: &str| {
        let spec = format!(
            "variables: [{{name: own, expression: \"env(object.spec.containers[0], 'A').value\"}}]
        steps: [{{name: a, containers: [{{{rest} overlay: {{env: [{{name: A, value: \"{value}\"}}]}}}}]}}]"
        );
        let problems = read(&spec).err().into_iter().flatten();
        problems.map(|problem| problem.to_string()).collect::<Vec<_>>()
    };
    let text = "the value of A reads the variable that it replaces, and would grow with each call: write \
        appended(env(…).value, SEPARATOR, ADDITION), which has nothing twice";
    let place = "spec.steps[0].containers[0].overlay.env[0].value: line 1, column";
    let own = "x ${env(container, 'A').value}";
    assert_eq!(rule("existing: Replace,", own), [format!("{place} 8: {text}")]);
    assert_eq!(rule("existingEnv: {A: Replace},", own).len(), 1);
    let indirect = rule("existing: Replace,", "x ${variables.own}");
    assert_eq!(indirect, [format!("spec.variables[0].expression: line 1, column 4: {text}")]);
    for (rest, value) in [
        ("", own),
        ("existing: Replace, existingEnv: {A: Keep},", own),
        ("existing: Replace,", "x ${env(container, 'B').value}"),
        ("existing: Replace,", "${appended(env(container, 'A').value, ' ', 'x')}"),
    ] {
        assert_eq!(rule(rest, value), [""; 0], "{rest} {value}");
    }
}

#[test]
fn variables_that_name_each_other_many_times_are_looked_at_once() {
    use crate::{conflicts::conflicts, releases::lacking};

    let mut variables = "- {name: v0, value: {command: [a]}}".to_owned();
    for index in 1..40 {
        let before = format!("'${{variables.v{}}}'", index - 1);
        let value = format!("{{exec: {before}, httpGet: {before}, tcpSocket: {before}}}");
        variables.extend([format!("\n        - {{name: v{index}, value: {value}}}")]);
    }
    let spec = format!(
        "fieldValidation: Warn
        variables:
        {variables}
        {ADDED} a: '${{variables.v39}}', b: '${{variables.v39}}'}}]}}}}"
    );
    let template = read(&spec).expect("a template");
    assert_eq!(advice(&template), []);
    assert!(lacking(&template, 28).unknown.is_empty());
    assert!(conflicts(&[&template, &template]).len() <= 1);
}

#[test]
fn a_rule_that_reads_the_field_that_it_replaces_is_named() {
    let rule = |existing: &str, overlay: &str| {
        format!("steps: [{{name: s, containers: [{{{existing} overlay: {{{overlay}}}}}]}}]")
    };
    for (overlay, name) in [
        ("args: \"${container.?args.orValue([]) + ['--x']}\"", "args"),
        ("image: \"proxy/${container.image}\"", "image"),
        ("image: \"proxy/${object.spec.containers[0].image}\"", "image"),
        ("env: \"${[{'name': 'A', 'value': env(container, 'A').value + 'b'}]}\"", "env"),
        ("workingDir: \"${container.image}\"", ""),
        ("env: [{name: A, value: \"${env(container, 'B').value}\"}]", ""),
    ] {
        let found = of(Topic::ReadsOwn, &rule("existing: Replace,", overlay));
        let expected = format!("the rule replaces {name} with a value that reads {name} ");
        assert_eq!(found.len(), usize::from(!name.is_empty()), "{overlay}: {found:?}");
        assert!(found.iter().all(|text| text.contains(&expected)), "{found:?}");
        assert!(of(Topic::ReadsOwn, &rule("", overlay)).is_empty(), "{overlay}");
    }
}
