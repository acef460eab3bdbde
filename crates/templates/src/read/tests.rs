use injectd_yaml::Options;
use serde_json::Value;

use crate::{Template, parameters::tests::texts};

const EXAMPLE: &str = include_str!("tests/secret-agent.yaml");

fn yaml(text: &str) -> Value {
    injectd_yaml::parse(text, Options::default()).expect("YAML")
}

/// The problems of the example with one text in the place of another.
fn problems(from: &str, to: &str) -> Vec<String> {
    assert!(EXAMPLE.contains(from), "{from}");
    let found = Template::read(&yaml(&EXAMPLE.replacen(from, to, 1)));
    found.err().into_iter().flatten().map(|problem| problem.to_string()).collect()
}

#[test]
fn the_example_of_the_contract_is_read() {
    let template = Template::read(&yaml(EXAMPLE)).unwrap_or_else(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", problems.join("\n"))
    });
    assert_eq!(template.key(), "secret-agent");
    assert_eq!(template.steps.len(), 1);
    assert_eq!(template.hash.len(), 10);
}

#[test]
fn problems_name_field_line_and_column() {
    for (from, to, expected) in [
        (
            "${params.role}",
            "${params.rule}",
            "spec.variables[0].value.role: line 1, column 9: params has no field \"rule\"",
        ),
        (
            "securityContext: {",
            "securityContexts: {",
            "spec.variables[1].value.securityContexts: Container has no field \
                \"securityContexts\"; did you mean securityContext?",
        ),
        (
            "readOnly: true",
            "readOnly: \"${params.role}\"",
            "spec.steps[0].containers[0].overlay.volumeMounts[0].readOnly: line 1, column 3: \
                expected true or false, found an expression of type string",
        ),
        (
            "{name: secret-init, ",
            "{name: \"${params.role}\", ",
            "spec.steps[0].overlay.spec.initContainers[0].name: the name of a container needs a \
                constant part, such as tail-${index}",
        ),
    ] {
        assert_eq!(problems(from, to), [expected]);
    }
}

#[test]
fn a_word_of_cel_is_no_name_of_a_variable() {
    let text = "found \"namespace\"; CEL keeps this word for itself: use another name";
    let expected = format!("spec.variables[0].name: {text}");
    assert_eq!(problems("name: config", "name: namespace")[0], expected);
}

#[test]
fn a_namespaced_template_has_no_directive_in_a_rule() {
    let namespaced =
        EXAMPLE.replace("kind: ClusterSidecarTemplate", "kind: SidecarTemplate").replace(
            "overlay: {volumeMounts: [{name: secrets, mountPath: /secrets, readOnly: true}]}",
            "existing: Replace\n      overlay: {volumeMounts: [{$patch: delete, mountPath: /secrets}]}",
        );
    let found = Template::read(&yaml(&namespaced)).expect_err("it is refused");
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    let text = "a SidecarTemplate may not use $patch on what it does not add itself";
    assert_eq!(found, [format!("spec.steps[0].containers[0].overlay: {text}")]);
}

/// Broken templates and their problems.
const BROKEN: &str = include_str!("../../testdata/broken.txt");

#[test]
fn each_problem_names_its_place_what_was_found_and_what_was_expected() {
    let lines = BROKEN.lines().filter(|line| !line.starts_with('#'));
    let mut found = String::new();
    for line in lines.clone().filter(|line| line.starts_with('[')) {
        let [from, to]: [String; 2] = serde_json::from_str(line).expect(line);
        let problems = problems(&from, &to);
        assert!(!problems.is_empty(), "{line}");
        found.push_str(line);
        found.extend(problems.iter().map(|problem| format!("\n  {problem}")));
        found.push('\n');
    }
    let expected: Vec<_> = lines.collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{found}");
}

#[test]
fn each_text_of_a_problem_is_in_the_table() {
    let sources = [
        include_str!("../read.rs"),
        include_str!("overlay.rs"),
        include_str!("parts.rs"),
        include_str!("../structure/compile.rs"),
        include_str!("../structure/place.rs"),
        include_str!("../fill.rs"),
        include_str!("../expression.rs"),
    ];
    let all: Vec<_> = sources.into_iter().flat_map(texts).collect();
    assert!(all.len() > 40, "{all:?}");
    // The schema refuses these templates first, or the text has no problem of its own.
    let unseen = [
        " already: use another name",
        " does not hold",
        " selects all pods",
        "Before and After need the name of a container",
        "a ClusterSidecarTemplate without enablement needs a selector or a condition; namespaceSelector: ",
        "a SidecarTemplate is for pods of its own namespace: remove the selector, or write a ClusterSidecarTemplate",
        "a SidecarTemplate may not use $patch on what it does not add itself",
        "a step needs an overlay, or rules for containers",
        "a time, such as 2026-01-31T12:00:00Z",
        "a value",
        "expected First or Last, found a position that needs a container",
        "expected First or Last, found a position that needs a name",
        "expected expression or value, found neither",
        "only Before and After have the name of a container: remove it",
        "there is a variable ",
    ];
    let is_missing =
        |text: &&String| !BROKEN.contains(text.as_str()) && !unseen.contains(&text.as_str());
    let missing: Vec<_> = all.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "testdata/broken.txt has no problem with {missing:#?}");
}
