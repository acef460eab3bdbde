//! `template check` and `template test`.

use std::{fs, path::Path};

use serde_json::Value;

use super::{injectd, text};

const FOLDER: &str = "tests/cli/template";
const WRONG: &str = "tests/cli/template/wrong.yaml";

/// Copies a folder of the tests: some of its files are written.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("the folder") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a copy");
        }
    }
}

fn run(action: &str, args: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    let output = injectd(&[&["template", action], args].concat(), stdin);
    (output.status.code(), text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
}

#[test]
fn problems_have_the_place_in_the_file_also_behind_other_documents() {
    let (code, alone, stderr) = run("check", &[WRONG], "");
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("in 1 of 1 template"), "{stderr}");
    // A default, an expression in a folded text, one in a quoted text, and a value of a wrong type.
    for place in ["10:42: ", "14:13: ", "22:49: ", "23:38: "] {
        assert!(alone.contains(&format!("{WRONG}:{place}")), "{place}: {alone}");
    }
    let wrong = fs::read_to_string(WRONG).expect("the template");
    let (_, behind, _) = run("check", &["-"], &format!("kind: Pod\n---\n{wrong}"));
    let later = |line: &str| {
        let rest = line.strip_prefix(WRONG).and_then(|rest| rest.strip_prefix(':'));
        let (number, rest) = rest.expect("the file").split_once(':').expect("a line");
        format!("stdin:{}:{rest}\n", number.parse::<usize>().expect("a number") + 2)
    };
    assert_eq!(behind, alone.lines().map(later).collect::<String>());
}

#[test]
fn a_check_has_a_report_for_programs() {
    let template = format!("{FOLDER}/agent/template.yaml");
    let (code, stdout, _) = run("check", &[&template], "");
    assert_eq!((code, &*stdout), (Some(0), "clustersidecartemplate/agent: in order\n"));
    let (code, stdout, _) = run("check", &["-o", "json", WRONG, &template], "");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((code, &report["kind"]), (Some(3), &"TemplateCheck".into()));
    let [wrong, agent] = [&report["templates"][0], &report["templates"][1]];
    assert_eq!(wrong["template"], "sidecartemplate/team-a/agent");
    assert_eq!((&wrong["line"], &wrong["problems"][0]["line"]), (&2.into(), &10.into()));
    assert_eq!(agent["problems"], Value::Array(Vec::new()));
}

#[test]
fn a_key_that_is_written_twice_is_a_problem() {
    let template = fs::read_to_string(format!("{FOLDER}/agent/template.yaml")).expect("a template");
    let (code, stdout, _) = run("check", &["-"], &format!("{template}kind: SidecarTemplate\n"));
    let line = template.lines().count() + 1;
    assert_eq!(code, Some(3), "{stdout}");
    assert!(stdout.contains(&format!("stdin:{line}:1: ")), "{stdout}");
}

#[test]
fn the_examples_pass_their_cases() {
    let examples = fs::read_dir("examples/templates").expect("the examples");
    let folders = examples.map(|entry| entry.expect("an entry").path());
    let folders: Vec<_> = folders.filter(|folder| folder.join("cases").exists()).collect();
    let mut paths: Vec<_> = folders.iter().filter_map(|folder| folder.to_str()).collect();
    let own = format!("{FOLDER}/agent");
    paths.push(&own);
    let (code, stdout, stderr) = run("test", &paths, "");
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
}

#[test]
fn a_case_that_differs_fails_until_it_is_updated() {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&Path::new(FOLDER).join("agent"), folder.path());
    let path = folder.path().to_str().expect("UTF-8");
    let case = folder.path().join("cases/plain");
    let pod = fs::read_to_string(case.join("expected.yaml")).expect("the pod");
    fs::write(case.join("expected.yaml"), pod.replace("agent:1.20", "agent:1.19")).expect("a file");
    fs::write(case.join("warnings.txt"), "a warning\n").expect("a file");
    let (code, stdout, stderr) = run("test", &[path], "");
    assert_eq!(code, Some(3), "{stderr}");
    for line in [
        "/cases/plain: failed\n",
        "  spec.containers[1].image: expected \"registry.example.com/agent:1.19\", found \
         \"registry.example.com/agent:1.20\"\n",
        "  warnings.txt: expected \"a warning\", found nothing\n",
        "4 cases, 3 passed, 1 failed\n",
    ] {
        assert!(stdout.contains(line), "{line}{stdout}");
    }
    let (code, stdout, _) = run("test", &["--update", path], "");
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains("/cases/plain: updated\n"), "{stdout}");
    assert_eq!(fs::read_to_string(case.join("expected.yaml")).expect("the pod"), pod);
    assert!(!case.join("warnings.txt").exists());
}

#[test]
fn a_case_without_an_expectation_names_the_files_it_may_have() {
    let (code, stdout, _) = run("test", &[&format!("{FOLDER}/failing")], "");
    assert_eq!(code, Some(3));
    assert!(stdout.contains("expected one of expected.yaml, denied.txt, skipped.txt"), "{stdout}");
    assert!(stdout.ends_with("1 case, 0 passed, 1 failed\n"), "{stdout}");
}
