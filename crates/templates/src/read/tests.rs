use injectd_yaml::Options;
use serde_json::Value;

use crate::{Template, parameters::tests::texts, tests::SECRET_AGENT as EXAMPLE};

fn yaml(text: &str) -> Value {
    injectd_yaml::parse(text, Options::default()).expect("YAML")
}

/// The problems of the example with texts in the place of others: what is there, and what it becomes.
fn problems(changes: &[String]) -> Vec<String> {
    let mut text = EXAMPLE.to_owned();
    for change in changes.chunks(2) {
        let [from, to] = change else { panic!("{changes:?}") };
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let found = Template::read(&yaml(&text)).err().into_iter().flatten();
    let with_place = found.inspect(|problem| {
        // A path that is read has a line and a column in the file.
        assert!(
            injectd_yaml::steps(&problem.field).is_some_and(|steps| !steps.is_empty()),
            "{problem}"
        );
    });
    with_place.map(|problem| problem.to_string()).collect()
}

#[test]
fn the_example_of_the_contract_is_read() {
    let template = crate::tests::read(EXAMPLE);
    assert_eq!(template.key(), "secret-agent");
    assert_eq!(template.steps.len(), 1);
    assert_eq!(template.hash.len(), 10);
}

#[test]
fn a_base_may_be_a_variable_with_an_expression() {
    let variable = "- name: base\n    expression: \"object.spec.containers[0]\"\n  - name: config";
    let text = EXAMPLE.replacen("- name: config", variable, 1);
    let text = text.replacen("${variables.agent}", "${variables.base}", 1);
    Template::read(&yaml(&text)).expect("it is read");
}

/// Broken templates and their problems.
const BROKEN: &str = include_str!("../../testdata/broken.txt");

#[test]
fn each_problem_names_its_place_what_was_found_and_what_was_expected() {
    let lines = BROKEN.lines().filter(|line| !line.starts_with('#'));
    let mut found = String::new();
    for line in lines.clone().filter(|line| line.starts_with('[')) {
        let changes: Vec<String> = serde_json::from_str(line).expect(line);
        let problems = problems(&changes);
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
        include_str!("agreed.rs"),
        include_str!("overlay.rs"),
        include_str!("parts.rs"),
        include_str!("../structure/compile.rs"),
        include_str!("../structure/place.rs"),
        include_str!("../fill.rs"),
        include_str!("../expression.rs"),
        include_str!("../own_entry.rs"),
        include_str!("../permitted.rs"),
    ];
    let all: Vec<_> = sources.into_iter().flat_map(texts).collect();
    assert!(all.len() > 40, "{all:?}");
    let is_missing = |text: &&String| !BROKEN.contains(text.as_str());
    let missing: Vec<_> = all.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "testdata/broken.txt has no problem with {missing:#?}");
}
