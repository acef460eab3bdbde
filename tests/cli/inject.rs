//! `injectd inject`: edits in place, all or nothing, flags of `linkerd inject`.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::symlink,
    thread,
};

use serde_json::Value;

use super::{example, file, injectd, text};

mod judged;
mod settings;

fn tree(yaml: &[u8]) -> Value {
    serde_saphyr::from_slice(yaml).expect("must be YAML")
}

fn trees(yaml: &[u8]) -> Vec<Value> {
    serde_saphyr::from_multiple(text(yaml)).expect("must be YAML")
}

/// The stdout of a run that must succeed.
fn injected(args: &[&str], stdin: &str) -> String {
    let output = injectd(&[&["inject"], args].concat(), stdin);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

fn uninjected(manifests: &str) -> String {
    let output = injectd(&["uninject"], manifests);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

const POD: &str = "kind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: web\n";

#[test]
fn the_example_is_injected() {
    let output = injectd(&["inject", &example("deployment.yaml")], "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let deployment = tree(&output.stdout);
    let init = &deployment["spec"]["template"]["spec"]["initContainers"];
    assert_eq!(init[0]["name"], "linkerd-init");
    assert_eq!(init[1]["name"], "linkerd-proxy");
    assert_eq!(init[1]["resources"]["requests"]["cpu"], "100m");
    assert!(text(&output.stderr).contains("deployment/web injected"));
}

#[test]
fn the_examples_come_back_byte_for_byte_and_injecting_twice_is_injecting_once() {
    for name in ["deployment.yaml", "pod.json"] {
        let original = fs::read_to_string(example(name)).expect("the example");
        let once = injected(&[], &original);
        assert_eq!(injected(&[], &once), once, "{name}");
        let back = uninjected(&once);
        if name == "pod.json" {
            // It asks for injection, and who wrote that cannot be known.
            let author = ",\n    \"annotations\": { \"linkerd.io/inject\": \"enabled\" }";
            assert_eq!(back, original.replace(author, ""), "{name}");
        } else {
            assert_eq!(back, original, "{name}");
        }
    }
}

#[test]
fn documents_without_pods_are_printed_byte_for_byte() {
    let manifests = "# first\nkind:   ConfigMap\ndata: {a: 'yes', b: \"0777\", c: 0o17} # c\n---\n\
                     # nothing\n--- # next\nkind: List\nitems:\n- {kind: ConfigMap, data: {}}\n---\n\
                     kind: Pod\nmetadata: {name: p, annotations: {linkerd.io/inject: disabled}}\n---\n\
                     apiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: x}\nitems: [1, a]\n---\n\
                     apiVersion: serving.knative.dev/v1\nkind: Service\nspec: {ports: [{port: 3306}]}";
    let output = injectd(&["inject"], manifests);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), manifests));
    assert!(text(&output.stderr).contains("pod/p skipped: pod has the annotation"));
}

#[test]
fn only_the_places_that_injection_changes_are_written() {
    let manifest = "# head\nkind: Pod\nmetadata:\n    # the name\n    name: 'web' # quoted\nspec:\n    \
                    containers:\n      # the app\n      - name: web\n        args: [ \"-v\",'x' ]\n# end\n";
    let found = injected(&[], manifest);
    let mut rest = found.as_str();
    for line in manifest.lines() {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line:?} is missing:\n{found}"));
        rest = &rest[at + line.len()..];
    }
    assert!(found.contains("\n    initContainers:\n      - name: linkerd-init\n"), "{found}");
    assert_eq!(uninjected(&found), manifest);
}

#[test]
fn json_stays_json_unless_a_format_is_forced() {
    let json = "{\n  \"kind\": \"Pod\",\n  \"metadata\": {\n    \"name\": \"web\"\n  },\n  \"spec\": {\n    \"containers\": [\n      {\"name\": \"web\"}\n    ]\n  }\n}\n{\"kind\":\"Secret\"}";
    let found = injected(&[], json);
    assert!(
        found.starts_with("{\n  \"kind\": \"Pod\",\n  \"metadata\": {\n    \"name\": \"web\",\n")
    );
    assert!(found.ends_with("\n}\n{\"kind\":\"Secret\"}"), "{found}");
    assert_eq!(uninjected(&found), json);
    let yaml = injected(&["-o", "yaml"], json);
    assert!(yaml.starts_with("kind: Pod\nmetadata:\n  name: web\n"), "{yaml}");
    assert_eq!(trees(yaml.as_bytes())[1], serde_json::json!({"kind": "Secret"}));
    let back = injected(&["-o", "json"], POD);
    let pod: Value = serde_json::from_str(&back).expect("must be JSON");
    assert_eq!(pod["spec"]["containers"][0]["name"], "web");
}

#[test]
fn an_anchor_in_the_way_leads_to_a_rewritten_document_and_a_note() {
    let manifest = "kind: List\nitems:\n- kind: Pod\n  metadata: &m\n    name: a\n  spec: {}\n\
                    - kind: ConfigMap\n  metadata: *m\n";
    let output = injectd(&["inject"], manifest);
    assert_eq!(output.status.code(), Some(0));
    let note = "note: stdin:1: an anchor or an unusual form is in the way of an edit in place";
    assert!(text(&output.stderr).contains(note), "{}", text(&output.stderr));
    let list = tree(&output.stdout);
    assert_eq!(list["items"][1]["metadata"], serde_json::json!({"name": "a"}));
    assert_eq!(list["items"][0]["spec"]["initContainers"][0]["name"], "linkerd-init");
}

#[test]
fn a_failure_prints_nothing_and_keep_going_prints_the_others() {
    let bad = "kind: Pod\nmetadata: {name: bad}\nspec: {containers: 7}\n---\n";
    let manifests = format!("{bad}{POD}---\nkind: Deployment\nmetadata: {{name: hollow}}\n");
    let output = injectd(&["inject"], &manifests);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("stdin:1: pod/bad rejected: the object cannot be understood"),
        "{stderr}"
    );
    assert!(stderr.contains("pod/web injected"), "{stderr}");
    assert!(
        stderr.contains("deployment/hollow rejected: spec.template.spec is missing"),
        "{stderr}"
    );
    let error = "error: 2 objects could not be injected; nothing is printed without --keep-going\n";
    assert!(stderr.ends_with(error), "{stderr}");

    let output = injectd(&["inject", "--keep-going"], &manifests);
    assert_eq!(output.status.code(), Some(1));
    let found: Vec<Value> =
        trees(&output.stdout).into_iter().filter(|tree| !tree.is_null()).collect();
    assert_eq!(found.len(), 1, "{}", text(&output.stdout));
    assert_eq!(found[0]["metadata"]["name"], "web");

    let list = "kind: List\nitems:\n- kind: Pod\n  metadata: {name: bad}\n  spec: {containers: 7}\n\
                - kind: Secret\n";
    let output = injectd(&["inject", "--keep-going"], list);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "kind: List\nitems:\n- kind: Secret\n");
}

#[test]
fn a_file_that_is_not_valid_is_one_line_and_keep_going_leaves_it_out() {
    let (good, bad) = (file("good", POD), file("bad", "kind: Pod\nmetadata: [\n"));
    let args = ["inject", good.path(), bad.path()];
    let output = injectd(&args, "");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    let expected = format!("error: {}: line 2 column 11: ", bad.path());
    let last = text(&output.stderr).lines().last().expect("an error").to_owned();
    assert!(last.starts_with(&expected), "{last}");
    let output = injectd(&[&args[..], &["--keep-going"]].concat(), "");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(tree(&output.stdout)["metadata"]["name"], "web");
    assert!(text(&output.stderr).contains("; the file is left out"));
    let output = injectd(&["inject", "--keep-going", good.path(), "/nowhere.yaml"], "");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout).matches("- name: linkerd-proxy\n").count(), 1);
    assert!(text(&output.stderr).contains("cannot read /nowhere.yaml"), "{}", text(&output.stderr));
    let half = file("half", format!("{POD}---\na: [\n"));
    let report = file("report", "old");
    let output = injectd(&["inject", "--report", report.path(), half.path()], "");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(!text(&output.stderr).contains("pod/web injected"), "{}", text(&output.stderr));
    let found = fs::read_to_string(report.path()).expect("a report");
    assert!(found.contains("\"line\": 7") && !found.contains("injected"), "{found}");
}

#[test]
fn fail_on_ends_with_3_and_prints_nothing() {
    let host = POD.replace("spec:\n", "spec:\n  hostNetwork: true\n");
    let output = injectd(&["inject"], &host);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), host.as_str()));
    let output = injectd(&["inject", "--fail-on", "skipped"], &host);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), ""));
    assert!(text(&output.stderr).contains("pod/web skipped: hostNetwork is enabled"));
    assert!(text(&output.stderr).contains("error: --fail-on skipped: 1 skipped object"));
    let udp = format!("{POD}    ports: [{{containerPort: 53, protocol: UDP}}]\n");
    let output = injectd(&["inject", "--fail-on", "skipped,warning"], &udp);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), ""));
    let warning = "warning: port 53 of container \"web\" uses UDP; the proxy handles TCP only";
    assert!(text(&output.stderr).contains(warning), "{}", text(&output.stderr));
    assert_eq!(injectd(&["inject"], &udp).status.code(), Some(0));
}

#[test]
fn items_of_lists_are_objects_and_failures_name_the_item() {
    let list =
        "kind: List\nmetadata: {name: x}\nitems:\n- kind: Pod\n  spec: {containers: []}\n- null\n";
    let output = injectd(&["inject"], list);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    let place = "stdin:1: item 2: (no kind)/(no name) rejected: not an object";
    assert!(text(&output.stderr).contains(place), "{}", text(&output.stderr));
    let found = injected(&[], &list.replace("- null\n", ""));
    assert!(found.contains("linkerd-proxy"), "{found}");
    assert_eq!(injected(&[], "kind: List\nitems:\n"), "kind: List\nitems:\n");
    let output = injectd(&["inject"], "just text\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn json_in_a_stream_of_yaml_stays_json() {
    let json = "{\"kind\":\"Pod\",\"spec\":{\"containers\":[]}}";
    let found = injected(&["--annotate"], &format!("kind: Secret\n---\n{json}\n"));
    let pod = found.split("---\n").nth(1).expect("two documents");
    serde_json::from_str::<Value>(pod).expect("must be JSON");
    let found = injected(&["--annotate"], &format!("\u{feff}{json}"));
    serde_json::from_str::<Value>(found.trim_start_matches('\u{feff}')).expect("must be JSON");
    let comments = injected(&["-o", "json"], "---\n# Source: x\n---\nkind: Secret\n");
    assert_eq!(comments, "{\n  \"kind\": \"Secret\"\n}\n");
}

#[test]
fn a_report_lists_each_object() {
    let report = file("report", "");
    let manifests = format!("{POD}---\nkind: Secret\nmetadata: {{name: s}}\n");
    injected(&["--report", report.path()], &manifests);
    let found: Value =
        serde_json::from_str(&fs::read_to_string(report.path()).expect("a report")).expect("JSON");
    assert_eq!(found[0]["result"], "injected");
    assert_eq!((&found[1]["kind"], &found[1]["line"]), (&"Secret".into(), &7.into()));
    assert_eq!(found.as_array().map(Vec::len), Some(2));
}

#[test]
fn input_without_pods_is_a_warning() {
    let output = injectd(&["inject"], "kind: Secret\n");
    assert!(text(&output.stderr).contains("warning: no supported objects found"));
    let output = injectd(&["inject", "--fail-on", "warning"], "kind: Secret\n");
    assert_eq!(output.status.code(), Some(3));
    let output = injectd(&["inject"], "# nothing\n");
    assert!(text(&output.stderr).contains("note: the input contains no objects"));
}

#[test]
fn directories_are_read_without_hidden_entries_and_each_file_once() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name);
    let pod = |name: &str| POD.replace("web}", &format!("{name}}}"));
    fs::create_dir_all(path("..2024/x")).expect("a directory");
    fs::create_dir_all(path("sub")).expect("a directory");
    fs::write(path("..2024/a.yaml"), pod("a")).expect("a file");
    fs::write(path("sub/b.yml"), pod("b")).expect("a file");
    fs::write(path("c.json"), r#"{"kind":"Pod","metadata":{"name":"c"},"spec":{"containers":[]}}"#)
        .expect("a file");
    fs::write(path("README.md"), "not: [yaml").expect("a file");
    symlink("..2024", path("..data")).expect("a link");
    symlink("..data/a.yaml", path("a.yaml")).expect("a link");
    symlink("..", path("sub/up")).expect("a link");
    symlink("../a.yaml", path("sub/again.yaml")).expect("a link");
    let folder_name = folder.path().to_str().expect("UTF-8");
    let found = injected(&["-f", folder_name], "");
    let names: Vec<Value> =
        trees(found.as_bytes()).iter().map(|pod| pod["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["a", "c", "b"]);
    symlink("nowhere", path("dangling.yaml")).expect("a link");
    assert_eq!(injectd(&["inject", folder_name], "").status.code(), Some(1));
    let output = injectd(&["inject", "--keep-going", folder_name], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("dangling.yaml"), "{}", text(&output.stderr));
    assert_eq!(trees(&output.stdout).len(), 3);
}

#[test]
fn several_files_are_one_stream_that_can_be_read() {
    let first = file("first", "\u{feff}kind: Secret\n# no line break at the end");
    let second = file(
        "second",
        "{\"kind\":\"Pod\",\"spec\":{\"containers\":[]}}\n{\n\t\"kind\": \"Secret\",\n\t\"a\": \"\\/\"\n}",
    );
    let third = file("third", "---\nkind: Secret\n");
    let found = injected(&[first.path(), second.path(), third.path()], "");
    let trees = trees(found.as_bytes());
    assert_eq!(trees.len(), 4, "{found}");
    assert_eq!(trees[1]["spec"]["initContainers"][0]["name"], "linkerd-init");
    assert_eq!(trees[2], serde_json::json!({"kind": "Secret", "a": "/"}));
}

#[test]
fn lines_that_would_read_the_same_name_their_place() {
    let twice = format!("{POD}---\n{POD}");
    let output = injectd(&["inject"], &twice);
    let lines = ["stdin:1: pod/web injected", "stdin:7: pod/web injected"];
    let printed: Vec<_> = text(&output.stderr).lines().skip(1).collect();
    assert_eq!(printed, lines);
    let (first, second) = (file("first", POD), file("second", "kind: Secret\n"));
    let output = injectd(&["inject", "--verbose", first.path(), second.path()], "");
    let printed: Vec<_> = text(&output.stderr).lines().skip(1).collect();
    let (first, second) = (first.path(), second.path());
    let lines =
        [format!("{first}:1: pod/web injected"), format!("{second}:1: secret/(no name) unchanged")];
    assert_eq!(printed, lines);
}

#[test]
fn annotate_asks_the_injector_in_the_cluster() {
    let manifests = format!(
        "{POD}---\nkind: Namespace\nmetadata:\n  name: a\n---\nkind: Namespace\nmetadata:\n  name: b\n  \
         annotations:\n    linkerd.io/inject: disabled\n---\nkind: Service\nspec: {{ports: [{{port: 1}}]}}\n"
    );
    let output = injectd(&["inject", "--annotate", "--admin-port=1234"], &manifests);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = trees(&output.stdout);
    let annotations = serde_json::json!({
        "linkerd.io/inject": "enabled",
        "config.linkerd.io/admin-port": "1234",
    });
    assert_eq!(found[0]["metadata"]["annotations"], annotations);
    assert_eq!(found[0]["spec"], serde_json::json!({"containers": [{"name": "web"}]}));
    assert_eq!(found[1]["metadata"]["annotations"], annotations);
    assert_eq!(found[2]["metadata"]["annotations"]["linkerd.io/inject"], "disabled");
    assert!(found[3].get("metadata").is_none());
    let output = injectd(&["inject", "--annotate", "--opaque-ports", "1,mysql"], &manifests);
    let found = trees(&output.stdout);
    let ports = &found[3]["metadata"]["annotations"]["config.linkerd.io/opaque-ports"];
    assert_eq!(ports, "1,mysql");
    assert_eq!(injectd(&["inject", "--annotate", "--manual"], "").status.code(), Some(64));
}

#[test]
fn a_component_of_the_control_plane_needs_manual() {
    let manifest =
        POD.replace("{name: web}", "{name: web, labels: {linkerd.io/control-plane-component: x}}");
    let output = injectd(&["inject", "--annotate"], &manifest);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(text(&output.stderr).contains("inject it with --manual"), "{}", text(&output.stderr));
    assert!(injected(&["--manual"], &manifest).contains("linkerd-proxy"));
}

#[test]
fn namespaces_of_the_input_count() {
    let namespace = |annotations: &str| {
        format!(
            "kind: Namespace\nmetadata:\n  name: default\n  annotations: {annotations}\n---\n{POD}"
        )
    };
    let found = injected(&[], &namespace("{config.linkerd.io/proxy-cpu-request: 7m}"));
    assert!(found.contains("cpu: 7m"), "{found}");
    let disabled = namespace("{linkerd.io/inject: disabled}");
    assert_eq!(injected(&[], &disabled), disabled);
    let objects = file("objects", "kind: Namespace\nmetadata: {name: other}\n");
    let enabled = namespace("{linkerd.io/inject: enabled}") + "---\nkind: ClusterRole\n";
    assert!(injected(&["--objects", objects.path()], &enabled).contains("linkerd-proxy"));
    let output = injectd(&["inject", "--objects", objects.path()], POD);
    assert!(text(&output.stderr).contains("namespaces \"default\" not found"));
}

#[test]
fn a_template_wins_over_its_namespace() {
    let manifests = "kind: Namespace\nmetadata:\n  name: default\n  annotations:\n    \
                     config.linkerd.io/proxy-cpu-request: 7m\n    linkerd.io/inject: disabled\n---\n\
                     kind: Deployment\nspec:\n  template:\n    metadata:\n      annotations:\n        \
                     linkerd.io/inject: enabled\n        config.linkerd.io/proxy-cpu-request: 8m\n    \
                     spec:\n      containers: []\n";
    let found = injected(&[], manifests);
    assert!(found.contains("cpu: 8m") && !found.contains("cpu: 7m"), "{found}");
    let disabled = manifests.replace("linkerd.io/inject: enabled", "example.com/x: y");
    assert_eq!(injected(&[], &disabled), disabled);
    assert!(injected(&["--annotate"], &disabled).contains("linkerd.io/inject: enabled"));
}

#[test]
fn kinds_that_linkerds_injector_does_not_know_are_named() {
    let rollout = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec:\n  \
                   template:\n    spec:\n      containers: []\n";
    let output = injectd(&["inject"], rollout);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), rollout));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("rollout/web skipped: Linkerd's injector does not know"), "{stderr}");
    assert!(stderr.contains("spec.template.metadata.annotations"), "{stderr}");
}

#[test]
fn metadata_may_be_null() {
    let found = injected(&[], "kind: Pod\nmetadata:\nspec:\n  containers: []\n");
    assert!(tree(found.as_bytes())["metadata"]["annotations"].is_object(), "{found}");
}

#[test]
fn objects_that_are_injected_already_are_injected_anew() {
    let old = injected(&["--proxy-version", "old"], POD);
    let new = injected(&["--proxy-version", "new"], &old);
    assert!(!new.contains("proxy:old") && new.contains("proxy:new"), "{new}");
    let names = new.matches("- name: linkerd-proxy\n").count();
    assert_eq!(names, 1, "{new}");
}

#[test]
fn a_manifest_may_be_at_a_url() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = thread::spawn(move || {
        for answer in [
            "HTTP/1.1 302 Found\r\nlocation: /pod\r\ncontent-length: 0\r\n".to_owned(),
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", POD.len()),
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n".to_owned(),
        ] {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = [0; 4096];
            let read = stream.read(&mut request).expect("a request");
            let body = if text(&request[..read]).starts_with("GET /pod ") { POD } else { "" };
            let answer = format!("{answer}connection: close\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).expect("must be read");
        }
    });
    let found = injected(&[&format!("http://127.0.0.1:{port}/x")], "");
    assert!(found.contains("linkerd-proxy"));
    let output = injectd(&["inject", &format!("http://127.0.0.1:{port}/y")], "");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(text(&output.stderr).contains("HTTP status 404"), "{}", text(&output.stderr));
    server.join().expect("must end");
}
