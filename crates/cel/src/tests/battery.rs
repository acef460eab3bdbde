//! Compares expressions with Kubernetes' own CEL: types, values, errors and costs.
//!
//! Recorded answers are compared always. `INJECTD_ASK_GO=10000` also asks Go for that many random
//! expressions (`go` must be on the path; `INJECTD_ASK_GO_FROM` is the first seed), and
//! `INJECTD_ASK_GO_LINES=FILE` for each line of a file. `just record-cel` records anew.

#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]

mod differences;
mod generator;
mod oracle;
mod show;

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::Value;

use super::{Data, Datum, Environment, Fault, Program};
use oracle::{Answer, Question};
use show::show;

static PODS: LazyLock<Environment> = LazyLock::new(Environment::pods);

const RECORDED_SEEDS: u64 = 6000;
const POLICIES: &str = include_str!("../../testdata/policies.txt");
const EXPRESSIONS: &str = include_str!("../../testdata/expressions.txt");
const DATA: &str = include_str!("../../testdata/data.json");

/// What is asked: the written expressions for all data, the shapes of public policies for all data
/// and both types of objects, and random ones.
fn questions(data: usize) -> Vec<Question> {
    let lines = |text: &'static str| text.lines().filter(|line| !line.starts_with('#'));
    let mut all: Vec<_> =
        lines(EXPRESSIONS).map(|line| Question::new(line.to_owned(), false, 0)).collect();
    for line in lines(POLICIES) {
        for data in 0..data {
            all.push(Question::new(line.to_owned(), false, data));
            all.push(Question::new(line.to_owned(), true, data));
        }
    }
    all.extend((0..RECORDED_SEEDS).map(|seed| generator::question(seed, data)));
    all
}

/// What is here for a question, as an answer.
fn answer(question: &Question, data: &Value) -> Answer {
    let mut found = Answer { question: question.clone(), ..Answer::default() };
    let environment = if question.is_typed() { &PODS } else { Environment::conditions() };
    let compiled = Program::compile_at(environment, &question.expression);
    let program = match compiled {
        Ok(program) => program,
        Err(problem) => {
            (found.line, found.column) = problem.place.unwrap_or_default();
            found.problem = problem.text;
            return found;
        }
    };
    let data = Data {
        object: Datum::from(&data["object"]),
        old_object: Datum::from(&data["oldObject"]),
        request: Datum::from(&data["request"]),
        namespace_object: Datum::from(&data["namespaceObject"]),
    };
    found.r#type = program.of.to_string();
    let mut evaluator = program.evaluator(&data);
    let value = evaluator.eval(program.root);
    found.cost = evaluator.work.cost();
    match value.and_then(|value| show(&value)) {
        Ok(text) => found.value = text,
        Err(Fault::Error(problem)) => found.error = problem.to_string(),
        Err(Fault::Cost) => found.error = "operation cancelled: actual cost limit exceeded".into(),
        Err(other) => found.error = format!("{other:?}"),
    }
    found
}

/// Prints the differences that no kind explains and counts the others; the answer is how many are
/// unexplained.
fn compare(name: &str, answers: &[Answer], data: &[Value]) -> usize {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unexplained = 0;
    for go in answers {
        *counts.entry(go.outcome()).or_default() += 1;
        let ours = answer(&go.question, &data[go.question.data]);
        let Some(part) = differences::part(&ours, go) else { continue };
        if let Some(kind) = differences::explained(&ours, go) {
            *kinds.entry(kind).or_default() += 1;
            if std::env::var_os("SHOW").is_none_or(|shown| shown != *kind) {
                continue;
            }
        } else {
            unexplained += 1;
        }
        println!("{part}: {}\n  ours: {}\n  go:   {}", go.question.text(), ours.text(), go.text());
    }
    println!("{name}: {} expressions, {unexplained} different", answers.len());
    for (outcome, count) in counts {
        println!("  {count}: {outcome}");
    }
    for (kind, count) in kinds {
        println!("  {count} explained: {kind}");
    }
    unexplained
}

fn data() -> Vec<Value> {
    serde_json::from_str(DATA).expect("the data must be JSON")
}

#[test]
fn recorded_answers() {
    let data = data();
    if std::env::var_os("RECORD").is_some() {
        oracle::record(&oracle::ask(&questions(data.len())).expect("go must be on the path"));
    }
    let answers = oracle::recorded();
    assert!(answers.len() > 3000, "{} answers are recorded", answers.len());
    assert_eq!(compare("recorded", &answers, &data), 0);
}

#[test]
fn answers_of_go_now() {
    let number = |name: &str| {
        let text = std::env::var_os(name)?;
        Some(text.to_str().and_then(|text| text.parse().ok()).expect("it must be a number"))
    };
    let data = data();
    let from: u64 = number("INJECTD_ASK_GO_FROM").unwrap_or(1_000_000);
    let count = number("INJECTD_ASK_GO").unwrap_or(0);
    let mut questions: Vec<_> =
        (from..from + count).map(|seed| generator::question(seed, data.len())).collect();
    if let Some(path) = std::env::var_os("INJECTD_ASK_GO_LINES") {
        let lines = std::fs::read_to_string(path).expect("the file must be readable");
        questions.extend(lines.lines().flat_map(|line| {
            (0..data.len()).map(|data| Question::new(line.to_owned(), false, data))
        }));
    }
    if questions.is_empty() {
        println!("skipped: neither INJECTD_ASK_GO nor INJECTD_ASK_GO_LINES is set");
        return;
    }
    let Some(answers) = oracle::ask(&questions) else {
        println!("skipped: go is not on the path");
        return;
    };
    assert_eq!(compare("asked now", &answers, &data), 0);
}
