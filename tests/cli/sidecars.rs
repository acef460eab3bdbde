//! `--templates`: the commands with sidecar templates in place of a mesh.

use std::fs;

use super::{file, injectd, text};

mod audit;
mod explain;
mod inject;
mod review;
mod uninject;

/// Adds a container, a volume and a mount for pods that ask for it, and a variable that says whose they are.
const AGENT: &str = r#"apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: agent}
spec:
  match: {conditions: [{name: not-batch, expression: "!(owner.kind in ['Job', 'CronJob'])"}]}
  enablement: {key: example.com/agent, in: [PodAnnotation, NamespaceLabel]}
  parameters:
  - {name: level, type: String, enum: [info, debug], default: info, from: [{podAnnotation: example.com/level}]}
  validations:
  - {expression: "object.metadata.namespace != 'vault'", message: no agent beside the vault}
  - {expression: "params.level != 'debug'", action: Warn, message: debug is loud}
  steps:
  - name: agent
    overlay:
      spec:
        containers:
        - {name: agent, image: "registry.example.com/agent:1.20", args: ["--level=${params.level}"]}
        volumes: [{name: run, emptyDir: {}}]
    containers:
    - overlay:
        env:
        - {name: OWNER, value: "${owner.kind}/${owner.name}"}
        - {name: TEAM, value: "${namespaceObject.metadata.?labels['team'].orValue('none')}"}
        volumeMounts: [{name: run, mountPath: /run/agent}]
"#;

/// What a command prints and its exit code.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs a command with the template, and further arguments.
fn with_agent(command: &str, args: &[&str], stdin: &str) -> Ran {
    let template = file("agent", AGENT);
    run(&[&[command, "--templates", template.path()], args].concat(), stdin)
}

fn run(args: &[&str], stdin: &str) -> Ran {
    let output = injectd(args, stdin);
    Ran {
        code: output.status.code(),
        stdout: text(&output.stdout).to_owned(),
        stderr: text(&output.stderr).to_owned(),
    }
}

/// A manifest of a kind with a pod that asks for the agent.
fn manifest(kind: &str, path: &str) -> String {
    let pod = "metadata: {annotations: {example.com/agent: enabled}}\nspec: {containers: [{name: app}]}\n";
    let mut indent = String::new();
    let mut out = format!("kind: {kind}\nmetadata: {{name: web}}\n");
    for key in path.split('.').filter(|key| !key.is_empty()) {
        out.extend([&*indent, key, ":\n"]);
        indent.push_str("  ");
    }
    let pod = pod.lines().map(|line| format!("{indent}{line}\n"));
    if path.is_empty() {
        return "kind: Pod\n".to_owned()
            + &pod.collect::<String>().replace("annotations", "name: web, annotations");
    }
    out + &pod.collect::<String>()
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

/// What every command says of templates that it cannot use, and of flags beside them.
#[test]
fn every_command_names_what_is_wrong_with_its_templates() {
    let empty = folder(&[]);
    let empty = empty.path().to_str().expect("UTF-8");
    let none = file("none", "kind: Pod\n");
    let not_yaml = file("not-yaml", "kind: [\n");
    let twice = file("twice", format!("{AGENT}---\n{AGENT}"));
    let wrong = file("wrong", AGENT.replace("params.level}", "params.lvl}"));
    let fine = file("fine", AGENT);
    let second = AGENT.lines().count() + 2;
    let commands: [(&str, &[&str]); 5] = [
        ("inject", &[]),
        ("uninject", &[]),
        ("review", &[]),
        ("explain", &["examples/deployment.yaml"]),
        ("compare", &["--answers", "/dev/null", "/dev/null"]),
    ];
    for (command, args) in commands {
        let with = |templates: &str, further: &[&str]| {
            run(&[&[command, "--templates", templates], args, further].concat(), "kind: Pod\n")
        };
        let place = format!("{}:17:91: ", wrong.path());
        for (templates, code, message) in [
            ("/nowhere", 1, "cannot read /nowhere".to_owned()),
            (empty, 1, "no SidecarTemplate and no ClusterSidecarTemplate".to_owned()),
            (none.path(), 1, "no SidecarTemplate and no ClusterSidecarTemplate".to_owned()),
            (not_yaml.path(), 1, format!("{}: ", not_yaml.path())),
            (
                twice.path(),
                3,
                format!(
                    "{}:{}:18: metadata.name: clustersidecartemplate/agent is at",
                    twice.path(),
                    second + 2
                ),
            ),
            (
                wrong.path(),
                3,
                place + "spec.steps[0].overlay.spec.containers[0].args[0]: params has",
            ),
        ] {
            let ran = with(templates, &[]);
            assert_eq!((ran.code, &*ran.stdout), (Some(code), ""), "{command}: {}", ran.stderr);
            assert!(ran.stderr.contains(&message), "{command}: {message}: {}", ran.stderr);
        }
        if args.is_empty() {
            let ran = with("-", &[]);
            assert_eq!(ran.code, Some(64), "{}", ran.stderr);
            assert!(ran.stderr.contains("--templates -: "), "{}", ran.stderr);
        }
        for (flag, value) in [("--mesh", "istio"), ("--values", "/nowhere")] {
            if (command, flag) == ("uninject", "--mesh") {
                continue;
            }
            let ran = with(fine.path(), &[flag, value]);
            assert_eq!(ran.code, Some(64), "{}", ran.stderr);
            let said =
                ran.stderr.contains(flag) && ran.stderr.contains("does not work with --templates");
            assert!(said, "{}", ran.stderr);
        }
    }
}

/// Above level baseline in two places; the first problem is not the first text.
const PRIVILEGED: &str = r#"apiVersion: injectd.dev/v1alpha1
kind: SidecarTemplate
metadata: {name: node, namespace: shop}
spec:
  steps:
  - name: node
    overlay:
      spec:
        hostNetwork: true
        initContainers:
        - {name: node, image: "registry.example.com/node:1", securityContext: {privileged: true}}
"#;

/// The rules are those of the webhook, which serves no SidecarTemplate above its ceiling.
#[test]
fn commands_that_inject_hold_templates_below_the_ceiling() {
    let template = file("privileged", PRIVILEGED);
    let dir = folder(&[("template.yaml", PRIVILEGED)]);
    let dir = dir.path().to_str().expect("UTF-8");
    let pod =
        "kind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: app}]}\n";
    let path = template.path();
    let commands: [&[&str]; 5] = [
        &["inject", "--templates", path],
        &["review", "--templates", path],
        &["explain", "-", "--templates", path],
        &["compare", "--answers", "/dev/null", "/dev/null", "--templates", path],
        &["template", "test", dir],
    ];
    for command in commands {
        let with = |level: &[&str]| run(&[command, level].concat(), pod);
        for level in [&[][..], &["--namespaced-templates", "baseline"]] {
            let ran = with(level);
            let (file, code) = if command[0] == "template" {
                (format!("{dir}/template.yaml"), 1)
            } else {
                (path.to_owned(), 3)
            };
            assert_eq!(ran.code, Some(code), "{command:?}: {}", ran.stderr);
            let places = ["9:22: spec.steps", "11:92: spec.steps"];
            let places = places.map(|place| ran.stderr.find(&format!("{file}:{place}")));
            assert!(places[0].is_some() && places[0] < places[1], "{command:?}: {}", ran.stderr);
            assert!(
                ran.stderr.contains("Pod Security Standards, level baseline"),
                "{}",
                ran.stderr
            );
        }
        let privileged = with(&["--namespaced-templates", "privileged"]);
        assert!(!privileged.stderr.contains("Pod Security"), "{command:?}: {}", privileged.stderr);
        assert_ne!(privileged.code, Some(3), "{command:?}: {}", privileged.stderr);
        let off = with(&["--namespaced-templates", "off"]);
        assert!(off.stderr.contains("switched off"), "{command:?}: {}", off.stderr);
    }
    let privileged = ["--templates", path, "--namespaced-templates", "privileged"];
    let injected = run(&[&["inject"], &privileged[..]].concat(), pod);
    assert_eq!(injected.code, Some(0), "{}", injected.stderr);
    assert!(injected.stdout.contains("hostNetwork: true"), "{}", injected.stdout);
    // What a template added is removed, whatever the level is now.
    let removed = run(&["uninject", "--templates", path], &injected.stdout);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert!(!removed.stdout.contains("hostNetwork"), "{}", removed.stdout);
    // Without templates of files, the level would be without effect.
    for command in ["inject", "review", "compare"] {
        let ran = run(&[command, "--namespaced-templates", "off"], pod);
        assert_eq!(ran.code, Some(64), "{command}: {}", ran.stderr);
    }
}

/// As `template check` does.
#[test]
fn problems_of_templates_are_in_the_order_of_their_lines() {
    let wrong = AGENT.replace("params.level}", "params.lvl}");
    let wrong = wrong.replace("params.level != ", "params.lvl != ");
    let ran = run(&["inject", "--templates", file("wrong", wrong).path()], "kind: Pod\n");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let place = |text: &str| ran.stderr.find(text).expect("the problem");
    assert!(
        place(":11:25: spec.validations[1]") < place(":17:91: spec.steps[0]"),
        "{}",
        ran.stderr
    );
}
