//! `template check` and `template test`.

use std::{fs, path::Path};

use injectd::yaml;
use serde_json::Value;

use super::{injectd, text};

const FOLDER: &str = "tests/cli/template";
const WRONG: &str = "tests/cli/template/wrong.yaml";
const TOGETHER: &str = "tests/cli/template/together.yaml";
const AGENT: &str = "tests/cli/template/agent/template.yaml";

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
    let (code, stdout, _) = run("check", &[AGENT], "");
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.starts_with("clustersidecartemplate/agent: in order\n"), "{stdout}");
    let (code, stdout, _) = run("check", &["-o", "json", WRONG, AGENT], "");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((code, &report["kind"]), (Some(3), &"TemplateCheck".into()));
    let [wrong, agent] = [&report["templates"][0], &report["templates"][1]];
    assert_eq!(wrong["template"], "sidecartemplate/team-a/agent");
    assert_eq!((&wrong["line"], &wrong["problems"][0]["line"]), (&2.into(), &10.into()));
    assert_eq!(agent["problems"], Value::Array(Vec::new()));
}

/// The lines of findings: place, and the text up to a length that shows which one it is.
fn findings(args: &[&str]) -> (Option<i32>, Vec<String>) {
    let (code, stdout, stderr) = run("check", args, "");
    let lines = stdout.lines().filter_map(|line| line.strip_prefix(TOGETHER)?.strip_prefix(':'));
    let lines: Vec<_> = lines.map(str::to_owned).collect();
    assert!(!lines.is_empty(), "{stdout}{stderr}");
    (code, lines)
}

fn has(lines: &[String], place: &str, text: &str) -> bool {
    lines.iter().any(|line| line.starts_with(place) && line.contains(text))
}

#[test]
fn templates_are_held_against_a_ceiling_a_release_and_each_other() {
    let (code, lines) = findings(&[TOGETHER]);
    assert_eq!(code, Some(3), "{lines:#?}");
    for (place, text) in [
        (
            "32:41: ",
            "found the boolean true: Privileged Containers of the Pod Security Standards, level baseline",
        ),
        ("31:28: warning: ", "parameter mode has no pattern and is joined to text in args"),
        ("31:64: warning: ", "write object.spec.?nodeName"),
        ("29:11: warning: ", "leave Jobs out"),
        ("34:11: warning: ", "template cache adds volume \"data\" as well"),
    ] {
        assert!(has(&lines, place, text), "{place}{text}: {lines:#?}");
    }
    assert_eq!(lines.len(), 5, "{lines:#?}");
    let (code, lines) = findings(&[TOGETHER, "--namespaced-templates", "privileged"]);
    assert_eq!((code, lines.len()), (Some(0), 4), "{lines:#?}");
    let (_, lines) = findings(&[TOGETHER, "--namespaced-templates", "restricted"]);
    assert!(has(&lines, "32:58: ", "expected a constant, found an expression"), "{lines:#?}");
    let (_, lines) = findings(&[TOGETHER, "--namespaced-templates", "off"]);
    assert!(has(&lines, "19:7: ", "switched off"), "{lines:#?}");
}

#[test]
fn a_release_lacks_fields_and_a_finding_fails_if_it_is_asked_for() {
    let privileged = [TOGETHER, "--namespaced-templates", "privileged"];
    let with = |args: &[&str]| findings(&[&privileged, args].concat());
    let (code, lines) = with(&["--kubernetes", "v1.28.4"]);
    assert_eq!(code, Some(3), "{lines:#?}");
    assert!(
        has(&lines, "15:26: warning: ", "only with its feature gate SidecarContainers"),
        "{lines:#?}"
    );
    assert!(has(&lines, "34:31: ", "Kubernetes 1.28 has no field image here"), "{lines:#?}");
    let (code, lines) = with(&["--kubernetes", "1.36"]);
    assert_eq!((code, lines.len()), (Some(0), 4), "{lines:#?}");
    assert_eq!(with(&["--fail-on", "warning"]).0, Some(3));
    assert_eq!(with(&["--kubernetes", "1.28", "--fail-on", "none"]).0, Some(0));
    let (code, _, stderr) = run("check", &[TOGETHER, "--kubernetes", "1.20"], "");
    assert_eq!(code, Some(64));
    assert!(stderr.contains("expected a release from 1.28 to 1.37"), "{stderr}");
}

#[test]
fn one_kind_and_name_is_given_once() {
    let (code, stdout, _) = run("check", &[AGENT, AGENT], "");
    assert_eq!(code, Some(3), "{stdout}");
    let text = format!("clustersidecartemplate/agent is at {AGENT}:2 as well: use another name");
    assert!(stdout.contains(&text), "{stdout}");
}

#[test]
fn a_check_says_what_becomes_of_the_pods_of_manifests() {
    let pods = format!("{FOLDER}/pods.yaml");
    let (code, stdout, _) = run("check", &[AGENT, "--manifests", &pods], "");
    assert_eq!(code, Some(0), "{stdout}");
    for line in [
        "deployment/shop/web: template agent: applied\n",
        "pod/shop/loud: denied: template agent: ",
        "job/shop/report: template agent: skipped: a Job would never end\n",
        "pod/bank/other: template agent: disabled\n",
    ] {
        assert!(stdout.contains(&format!("{pods}: {line}")), "{line}{stdout}");
    }
    let (_, stdout, _) = run("check", &[AGENT, "--manifests", &pods, "-o", "json"], "");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["pods"][0]["templates"][0]["result"], "applied");
    let (code, _, stderr) = run("check", &[AGENT, "--manifests", AGENT], "");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no pods"), "{stderr}");
}

#[test]
fn findings_are_results_of_sarif() {
    let (code, stdout, _) = run("check", &[TOGETHER, WRONG, "-o", "sarif"], "");
    assert_eq!(code, Some(3));
    let log: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let results = run["results"].as_array().expect("results");
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    for result in results {
        let index = result["ruleIndex"].as_u64().and_then(|index| usize::try_from(index).ok());
        assert_eq!(rules[index.expect("an index")]["id"], result["ruleId"]);
    }
    let ceiling = results.iter().find(|result| result["ruleId"] == "ceiling").expect("one");
    let place = &ceiling["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], TOGETHER);
    assert_eq!(place["region"]["startLine"], 32);
    assert_eq!(results.iter().filter(|result| result["level"] == "error").count(), 5);
}

#[test]
fn cases_are_xml_of_junit() {
    let folders = [format!("{FOLDER}/agent"), format!("{FOLDER}/failing")];
    let (code, stdout, _) = run("test", &[&folders[0], &folders[1], "-o", "junit"], "");
    assert_eq!(code, Some(3), "{stdout}");
    assert!(
        stdout.contains(r#"<testsuite name="injectd template test" tests="5" failures="1">"#),
        "{stdout}"
    );
    let case = format!(r#"<testcase classname="{FOLDER}/agent" name="plain"/>"#);
    assert!(stdout.contains(&case), "{stdout}");
    assert!(stdout.contains(r#"<failure type="difference" message="#), "{stdout}");
}

#[test]
fn a_key_that_is_written_twice_is_a_problem() {
    let template = fs::read_to_string(format!("{FOLDER}/agent/template.yaml")).expect("a template");
    let (code, stdout, _) = run("check", &["-"], &format!("{template}kind: SidecarTemplate\n"));
    let line = template.lines().count() + 1;
    assert_eq!(code, Some(3), "{stdout}");
    assert!(stdout.contains(&format!("stdin:{line}:1: ")), "{stdout}");
}

/// The folders of the examples.
fn examples() -> Vec<String> {
    let entries = fs::read_dir("examples/templates").expect("the examples");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let folders = paths.filter(|path| path.is_dir());
    let mut names: Vec<_> = folders.map(|path| path.to_str().expect("UTF-8").to_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_examples_pass_their_cases() {
    let examples = examples();
    assert!(examples.len() >= 18, "{examples:?}");
    let list = fs::read_to_string("examples/templates/README.md").expect("the list");
    for folder in &examples {
        let name = folder.rsplit('/').next().unwrap_or_default();
        assert!(list.contains(&format!("| [{name}]({name}/template.yaml) |")), "{folder}: no row");
        // One case at least shows a pod that is changed, and one a pod that is not, or is denied.
        let cases = fs::read_dir(format!("{folder}/cases")).expect(folder);
        let cases: Vec<_> = cases.map(|case| case.expect("an entry").path()).collect();
        let has = |names: &[&str]| {
            cases.iter().any(|case| names.iter().any(|name| case.join(name).exists()))
        };
        assert!(has(&["expected.yaml"]), "{folder}: no case has expected.yaml");
        let others = ["denied.txt", "skipped.txt"];
        assert!(has(&others), "{folder}: no case has one of {others:?}");
    }
    let own = format!("{FOLDER}/agent");
    let paths: Vec<&str> = examples.iter().map(String::as_str).chain([&*own]).collect();
    let (code, stdout, stderr) = run("test", &paths, "");
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
}

/// Warnings that are meant are in the file `warnings.txt` of an example: field and text, one a line.
#[test]
fn the_examples_have_no_warnings_but_those_that_are_meant() {
    let mut kinds = Vec::new();
    for folder in examples() {
        let (code, stdout, _) =
            run("check", &["-o", "json", &format!("{folder}/template.yaml")], "");
        assert_eq!(code, Some(0), "{stdout}");
        let report: Value = serde_json::from_str(&stdout).expect("JSON");
        let mut warnings = String::new();
        for template in report["templates"].as_array().expect("templates") {
            let name = template["template"].as_str().expect("a name");
            kinds.extend(name.split_once('/').map(|(kind, _)| kind.to_owned()));
            for warning in template["warnings"].as_array().expect("warnings") {
                let text = |field: &str| warning[field].as_str().unwrap_or_default();
                warnings.extend([text("field"), ": ", text("text"), "\n"]);
            }
        }
        let meant = fs::read_to_string(format!("{folder}/warnings.txt")).unwrap_or_default();
        assert_eq!(warnings, meant, "{folder}");
    }
    let namespaced = kinds.iter().filter(|kind| *kind == "sidecartemplate").count();
    assert!(namespaced >= 2, "{namespaced} examples are of the namespaced kind");
}

/// The containers that the result of a case has and its pod lacks.
fn added(case: &Path) -> Vec<Value> {
    let read = |name: &str| {
        let text = fs::read_to_string(case.join(name)).ok()?;
        Some(yaml::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", case.display())))
    };
    let containers = |pod: Value| {
        let lists = ["initContainers", "containers"].map(|list| pod["spec"][list].clone());
        let lists = lists.into_iter().filter_map(|list| list.as_array().cloned());
        lists.flatten().collect::<Vec<_>>()
    };
    let before = read("pod.yaml").map(containers).unwrap_or_default();
    let after = read("expected.yaml").map(containers).unwrap_or_default();
    let is_new = |container: &Value| before.iter().all(|known| known["name"] != container["name"]);
    after.into_iter().filter(is_new).collect()
}

/// Examples that stand for a webhook have its containers; the others have those that a platform runs.
#[test]
fn examples_of_our_own_add_restricted_containers_with_requests() {
    let mut count = 0;
    for folder in examples() {
        let text = fs::read_to_string(format!("{folder}/template.yaml")).expect(&folder);
        if text.contains("\n# Original: ") {
            continue;
        }
        for case in fs::read_dir(format!("{folder}/cases")).expect(&folder) {
            for container in added(&case.expect("an entry").path()) {
                let [name, image] = ["name", "image"].map(|field| container[field].to_string());
                let at = format!("{folder}: container {name}");
                let tag = image.rsplit_once(':').map_or("latest", |(_, tag)| tag);
                assert!(!tag.starts_with("latest") && !tag.contains('/'), "{at}: {image}");
                for request in ["cpu", "memory"] {
                    assert!(
                        container["resources"]["requests"][request].is_string(),
                        "{at}: {request}"
                    );
                }
                let security = &container["securityContext"];
                // The level "restricted" of Pod Security; rules of iptables need root.
                let is_root = name == "\"envoy-redirect\"";
                assert_eq!(security["runAsNonRoot"], !is_root, "{at}");
                assert_eq!(security["allowPrivilegeEscalation"], false, "{at}");
                assert_eq!(security["capabilities"]["drop"][0], "ALL", "{at}");
                assert_eq!(security["capabilities"]["add"].is_null(), !is_root, "{at}");
                assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault", "{at}");
                count += 1;
            }
        }
    }
    assert!(count > 10, "{count} containers");
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
