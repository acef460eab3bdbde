//! `--mesh istio` with wrong files and flags: one clear line that names the flag, and the place.

use injectd_testkit::istio::{CONFIG, MESH, VALUES};
use serde_json::{Value, json};

use super::{File, file, injectd, text};

const EXIT_FAILED: i32 = 1;
const EXIT_USAGE: i32 = 64;

/// A review of a pod that is injected.
const REVIEW: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u1","#,
    r#""kind":{"version":"v1","kind":"Pod"},"namespace":"a","object":{"metadata":{"name":"web"},"#,
    r#""spec":{"containers":[{"name":"web","image":"web"}]}}}}"#,
);

const FLAGS: [&str; 3] = ["--injector-config", "--values", "--mesh-config"];

/// The files of a configuration, in the order of [`FLAGS`].
pub(super) struct Files([File; 3]);

impl Files {
    pub(super) fn valid() -> Self {
        Self::of([CONFIG, VALUES, MESH].map(str::as_bytes))
    }

    fn of(contents: [&[u8]; 3]) -> Self {
        let [config, values, mesh] = contents;
        Self([file("config", config), file("values", values), file("mesh", mesh)])
    }

    /// Valid files but for one.
    fn with(index: usize, content: impl AsRef<[u8]>) -> Self {
        let mut contents = [CONFIG, VALUES, MESH].map(str::as_bytes);
        contents[index] = content.as_ref();
        Self::of(contents)
    }

    pub(super) fn paths(&self) -> [&str; 3] {
        self.0.each_ref().map(File::path)
    }
}

/// The arguments of a command with these paths; an empty path leaves out the flag.
pub(super) fn args<'a>(command: &[&'a str], paths: [&'a str; 3]) -> Vec<&'a str> {
    let flags = FLAGS.into_iter().zip(paths).filter(|(_, path)| !path.is_empty());
    let mesh = ["--mesh", "istio"];
    command.iter().copied().chain(mesh).chain(flags.flat_map(<[_; 2]>::from)).collect()
}

/// An address for any free port.
const ANY: &str = "127.0.0.1:0";

const COMMANDS: [&[&str]; 3] =
    [&["review"], &["inject"], &["serve", "--standalone", "--addr", ANY, "--metrics-addr", ANY]];

/// Runs every command. Each must fail with this line, and print nothing else.
fn must_fail(paths: [&str; 3], code: i32, line: &str) {
    for command in COMMANDS {
        let output = injectd(&args(command, paths), REVIEW);
        let stderr = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(code), ""), "{stderr}");
        assert_eq!(stderr, format!("error: {line}\n"), "{command:?}");
    }
}

#[test]
fn the_valid_files_are_accepted() {
    let files = Files::valid();
    let output = injectd(&args(&["review"], files.paths()), REVIEW);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("must be JSON");
    assert_eq!(answer["response"]["auditAnnotations"]["verdict"], "injected");
}

#[test]
fn a_missing_flag_is_named() {
    let files = Files::valid();
    let [config, values, mesh] = files.paths();
    must_fail(["", values, mesh], EXIT_USAGE, "--mesh istio needs --injector-config");
    must_fail([config, "", mesh], EXIT_USAGE, "--mesh istio needs --values");
    // Istio has defaults for the mesh config.
    let output = injectd(&args(&["review"], [config, values, ""]), REVIEW);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_its_flag() {
    let files = Files::valid();
    for (index, flag) in FLAGS.into_iter().enumerate() {
        let mut paths = files.paths();
        paths[index] = "/no/such/file";
        let problem = "No such file or directory (os error 2)";
        must_fail(paths, EXIT_FAILED, &format!("cannot read {flag} /no/such/file: {problem}"));
        paths[index] = "/";
        for (command, problem) in [
            (COMMANDS[0], "Is a directory (os error 21)"),
            (COMMANDS[1], "Is a directory (os error 21)"),
            (COMMANDS[2], "not a regular file; use a regular file or a symbolic link to one"),
        ] {
            let output = injectd(&args(command, paths), "");
            assert_eq!(output.status.code(), Some(EXIT_FAILED));
            assert_eq!(text(&output.stderr), format!("error: cannot read {flag} /: {problem}\n"));
        }
    }
}

/// A wrong file: the index of its flag, its content, and the error after flag and path.
type Wrong<'a> = (usize, &'a [u8], &'a str);

fn each_must_fail(wrong: &[Wrong<'_>]) {
    for (index, content, problem) in wrong {
        let files = Files::with(*index, content);
        let paths = files.paths();
        let (flag, path) = (FLAGS[*index], paths[*index]);
        must_fail(paths, EXIT_FAILED, &format!("{flag} {path}: {problem}"));
    }
}

/// The document up to the first occurrence of a text.
fn cut<'t>(document: &'t str, text: &str) -> &'t [u8] {
    let at = document.find(text).expect("the document must have the text");
    &document.as_bytes()[..at]
}

#[test]
fn a_file_that_was_cut_is_named_with_the_place() {
    each_must_fail(&[
        (0, cut(CONFIG, "| default"), "config.templates.sidecar line 6: unclosed action"),
        (
            0,
            cut(CONFIG, "atch"),
            "config.neverInjectSelector[0] must be a mapping, but is a string",
        ),
        (
            0,
            cut(CONFIG, "true\"}"),
            "config cannot be parsed as YAML: line 4 column 24: this quoted text does not end, or \
             its next line is not indented",
        ),
        (
            1,
            cut(VALUES, "\"proxy_init\""),
            "values cannot be parsed as YAML: line 2 column 13: unclosed bracket '{'",
        ),
        (
            2,
            cut(MESH, "onfig:"),
            "mesh cannot be parsed as YAML: line 4 column 1: expected a colon after this key",
        ),
        (
            2,
            cut(MESH, ": hello"),
            "mesh.defaultConfig.proxyMetadata: expected a mapping, found string",
        ),
        (
            0,
            b"",
            "config is empty; expected the key config of the ConfigMap istio-sidecar-injector",
        ),
        (
            1,
            b"",
            "values is empty; expected the key values of the ConfigMap istio-sidecar-injector",
        ),
    ]);
}

#[test]
fn a_file_in_place_of_another_is_named() {
    const CONFIG_KEY: &str = "the key config of the ConfigMap istio-sidecar-injector";
    const VALUES_KEY: &str = "the key values of the ConfigMap istio-sidecar-injector";
    const MESH_KEY: &str = "the key mesh of the ConfigMap istio";
    let documents = [(CONFIG, CONFIG_KEY), (VALUES, VALUES_KEY), (MESH, MESH_KEY)];
    for (index, (_, expected)) in documents.into_iter().enumerate() {
        for (other, (content, found)) in documents.into_iter().enumerate() {
            if other != index {
                let problem = format!("expected {expected}, found {found}");
                each_must_fail(&[(index, content.as_bytes(), &problem)]);
            }
        }
        let problem = format!(
            "expected {expected}, found a whole ConfigMap; write only the text of the key into \
             the file"
        );
        each_must_fail(&[(index, b"kind: ConfigMap\ndata: {config: ''}\n", &problem)]);
    }
}

#[test]
fn a_template_that_does_not_parse_is_named_with_its_line() {
    let config = |template: &str| {
        let templates = json!({"gateway": "spec: {}\n", "sidecar": format!("a: b\n{template}\n")});
        json!({"policy": "enabled", "templates": templates}).to_string()
    };
    for (template, problem) in [
        ("{{ if }}", "missing value for if"),
        ("{{ nofunc 1 }}", "function \"nofunc\" not defined"),
        (
            "{{ getHostByName \"a\" }}",
            "function \"getHostByName\" is off, since it reaches out of the process; \
             --allow-functions turns it on",
        ),
        (
            "{{ if false }}{{ (genCA \"a\" 1).Cert }}{{ end }}",
            "function \"genCA\" is not available: no key, certificate or password is made for \
             each pod; read it from a Secret",
        ),
        ("{{ $x }}", "undefined variable \"$x\""),
        ("{{ end }}", "unexpected {{end}}"),
        ("{{ `", "unterminated raw quoted string"),
    ] {
        let problem = format!("config.templates.sidecar line 2: {problem}");
        each_must_fail(&[(0, config(template).as_bytes(), &problem)]);
    }
}

#[test]
fn values_of_the_wrong_type_are_named_by_their_path() {
    each_must_fail(&[
        (1, b"[1, 2]", "values must be a mapping, but is a list"),
        (1, b"just text", "values must be a mapping, but is a string"),
        (
            1,
            b"{\"global\": [",
            "values cannot be parsed as YAML: line 1 column 12: unclosed bracket '['",
        ),
        (1, b"\xff\xfe", "not UTF-8 at byte 0; save it as UTF-8"),
        (1, b"{\"global\":{\"hub\":5}}", "values.global.hub must be a string, but is a number"),
        (
            1,
            b"global: {proxy: {resources: {limits: {cpu: 2}}}}",
            "values.global.proxy.resources.limits.cpu must be a string, but is a number",
        ),
        (0, b"[]", "config must be a mapping, but is a list"),
        (0, b"templates: [a]", "config.templates must be a mapping, but is a list"),
        (0, b"\xff", "not UTF-8 at byte 0; save it as UTF-8"),
        (2, b"[]", "mesh: expected a mapping, found array"),
        (2, b"\xff", "not UTF-8 at byte 0; save it as UTF-8"),
        (
            2,
            b"enablePrometheusMerge: x",
            "mesh.enablePrometheusMerge: expected a boolean, found string",
        ),
        (
            2,
            b"defaultConfig: {concurrency: many}",
            "mesh.defaultConfig.concurrency: expected a number: invalid character 'm' looking for \
             beginning of value",
        ),
        (
            2,
            b"extensionProviders: [{name: a}, {name: 5}]",
            "mesh.extensionProviders[1].name: expected a string, found number",
        ),
        (
            2,
            b"defaultConfig: {interceptionMode: X}",
            "mesh.defaultConfig.interceptionMode: unknown value \"X\"",
        ),
        (
            2,
            b"defaultConfig: {statusPort: 70000, discoveryAddress: x}",
            "mesh.defaultConfig: invalid discovery address: unable to split \"x\": address x: \
             missing port in address; invalid status port: port number 70000 must be in the range \
             1..65535",
        ),
    ]);
}

/// Runs a command on valid files with more arguments, which it must refuse.
fn must_refuse(command: &[&str], more: &[&str], line: &str) {
    let files = Files::valid();
    let output = injectd(&[&args(command, files.paths()), more].concat(), REVIEW);
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(EXIT_USAGE), ""), "{stderr}");
    assert_eq!(stderr, format!("error: {line}\n"), "{command:?} {more:?}");
}

#[test]
fn an_unknown_release_is_named() {
    for command in COMMANDS {
        for release in ["1.18.9", "2.0", "latest", "1.x", "edge-26.8.3"] {
            let line = format!(
                "--istio-release {release}: unknown release; expected one from 1.19.0 on, such as \
                 1.24.6"
            );
            must_refuse(command, &["--istio-release", release], &line);
        }
    }
}

#[test]
fn flags_of_the_other_mesh_are_refused_by_name() {
    for command in COMMANDS {
        for (flag, variable) in [
            ("--trust-roots", " (or its variable INJECTD_TRUST_ROOTS)"),
            ("--linkerd-namespace", ""),
            ("--unknown-release", " (or its variable INJECTD_UNKNOWN_RELEASE)"),
        ] {
            let line = format!("{flag}{variable} needs --mesh linkerd");
            must_refuse(command, &[flag, "warn"], &line);
        }
        for flag in [
            "--injector-config",
            "--injector-values",
            "--mesh-config",
            "--revision",
            "--istio-release",
            "--cluster",
            "--clusters",
            "--path",
        ] {
            for mesh in [&[][..], &["--mesh", "linkerd"]] {
                let output = injectd(&[command, mesh, &[flag, "x"]].concat(), REVIEW);
                assert_eq!(output.status.code(), Some(EXIT_USAGE), "{command:?} {flag}");
                assert_eq!(text(&output.stderr), format!("error: {flag} needs --mesh istio\n"));
            }
        }
    }
    must_refuse(&["review"], &["--events"], "--events does not work with --mesh istio");
    for flag in ["--annotate", "--ingress"] {
        must_refuse(&["inject"], &[flag], &format!("{flag} does not work with --mesh istio"));
    }
    for flag in ["--kubeconfig", "--proxy-cpu-request"] {
        let line = format!("{flag} does not work with --mesh istio");
        must_refuse(&["inject"], &[flag, "1"], &line);
    }
    must_refuse(
        &["compare"],
        &[],
        "compare --mesh istio needs --url or --answers: an audit log does not have what the \
         patches of Istio replaced",
    );
}

/// The lines that `review` prints for an input, and its exit code and stderr.
fn reviewed(input: &str, more: &[&str]) -> (Vec<Value>, Option<i32>, String) {
    let files = Files::valid();
    let output = injectd(&[&args(&["review"], files.paths()), more].concat(), input);
    let lines = text(&output.stdout).lines();
    let lines = lines.map(|line| serde_json::from_str(line).expect("a line must be JSON"));
    (lines.collect(), output.status.code(), text(&output.stderr).to_owned())
}

#[test]
fn each_line_gets_one_answer_whatever_it_is() {
    let bodies = ["null", "[]", "5", "\"text\"", "true", "{}", "x", "{\"request\":", REVIEW];
    let (answers, code, stderr) = reviewed(&bodies.join("\n"), &[]);
    assert_eq!((answers.len(), code, &*stderr), (bodies.len(), Some(0), ""));
    for (body, answer) in bodies.into_iter().zip(&answers) {
        let response = &answer["response"];
        assert_eq!(answer["kind"], "AdmissionReview", "{body}");
        assert_eq!(response["allowed"], json!(body == REVIEW), "{body}");
        if body != REVIEW {
            let message = response["status"]["message"].as_str().expect("a denial has a text");
            assert!(!message.contains('\n'), "{body}: {message}");
        }
    }
    assert_eq!(answers[0]["response"]["status"]["message"], "Object 'Kind' is missing in 'null'");
}

#[test]
fn a_review_without_a_request_is_an_error_line_and_not_the_end() {
    let review = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}"#;
    let (lines, code, stderr) = reviewed(&format!("{review}\n{REVIEW}\n"), &[]);
    assert_eq!((lines.len(), code), (2, Some(EXIT_FAILED)));
    assert_eq!(lines[0]["error"], "the AdmissionReview has no request with a uid");
    assert_eq!((&lines[0]["file"], &lines[0]["line"]), (&json!("stdin"), &json!(1)));
    assert_eq!(lines[1]["response"]["uid"], "u1");
    assert_eq!(stderr, "error: 1 review could not be read\n");
}

#[test]
fn a_path_without_the_webhook_gives_an_error_line_for_each_review() {
    for (path, error) in [
        ("/injected", "HTTP 404, the webhook is at /inject"),
        ("//inject", "HTTP 307, the webhook is at /inject"),
        (
            "/inject/%zz",
            "HTTP 400, the target of the request is invalid; the webhook is at /inject",
        ),
        ("inject", "HTTP 400, the target of the request is invalid; the webhook is at /inject"),
        ("", "HTTP 400, the target of the request is invalid; the webhook is at /inject"),
    ] {
        let (lines, code, stderr) = reviewed(&format!("{REVIEW}\nnull\n"), &["--path", path]);
        assert_eq!((lines.len(), code), (2, Some(EXIT_FAILED)), "{path}");
        for (line, number) in lines.iter().zip([1, 2]) {
            assert_eq!(line["error"], format!("--path {path}: {error}"));
            assert_eq!((&line["file"], &line["line"]), (&json!("stdin"), &json!(number)));
        }
        assert_eq!(stderr, "error: 2 reviews could not be read\n");
    }
    must_refuse(
        &["inject"],
        &["--path", "/injected"],
        "--path /injected: HTTP 404, the webhook is at /inject",
    );
    let (lines, code, _) = reviewed(REVIEW, &["--path", "/inject/net/n1"]);
    assert_eq!((lines.len(), code), (1, Some(0)));
    assert_eq!(lines[0]["response"]["allowed"], true);
}

/// `serve` in a cluster with these flags must fail with this line, without a look at a cluster.
fn serve_must_refuse(flags: &[&str], line: &str) {
    let output = injectd(&[&["serve"], flags].concat(), "");
    assert_eq!(text(&output.stderr), format!("error: {line}\n"), "{flags:?}");
    assert_eq!(output.status.code(), Some(EXIT_USAGE), "{flags:?}");
}

#[test]
fn only_serve_takes_both_meshes() {
    for mesh in ["linkerd,istio", "istio,linkerd"] {
        for command in ["review", "inject"] {
            let output = injectd(&[command, "--mesh", mesh], REVIEW);
            let line = "error: --mesh: only serve takes several meshes; choose linkerd or istio\n";
            assert_eq!(text(&output.stderr), line, "{command}");
            assert_eq!(output.status.code(), Some(EXIT_USAGE), "{command}");
        }
    }
    let twice = "--mesh names a mesh twice; expected linkerd, istio, templates, or several with commas between";
    serve_must_refuse(&["--mesh", "istio,istio"], twice);
    let both = ["--standalone", "--mesh", "linkerd,istio"];
    serve_must_refuse(
        &[&both[..], &["--addr", ANY, "--metrics-addr", ANY]].concat(),
        "--mesh istio needs --injector-config",
    );
}

#[test]
fn both_flags_for_the_values_of_istio_are_refused() {
    let text = "--injector-values and --values (or its variable INJECTD_VALUES) are the same with \
                --mesh istio: set one of them";
    for command in COMMANDS {
        must_refuse(command, &["--injector-values", "x"], text);
    }
}

#[test]
fn the_values_of_istio_have_a_flag_of_their_own() {
    let files = Files::valid();
    let [config, values, mesh] = files.paths();
    let flags = ["review", "--mesh", "istio", "--injector-config", config, "--mesh-config", mesh];
    let output = injectd(&[&flags[..], &["--injector-values", values]].concat(), REVIEW);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let wrong = file("values", b"{\"global\":{\"hub\":5}}");
    let output = injectd(&[&flags[..], &["--injector-values", wrong.path()]].concat(), REVIEW);
    let expected = format!(
        "error: --injector-values {}: values.global.hub must be a string, but is a number\n",
        wrong.path()
    );
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn flags_that_do_not_suit_a_cluster_are_refused() {
    let istio = ["--mesh", "istio"];
    let refused = |flags: &[&str], line: &str| serve_must_refuse(&[&istio, flags].concat(), line);
    let files = "needs --injector-config: the configuration of Istio is in files, or in the \
                 ConfigMaps of the cluster";
    for (flag, named) in [
        ("--values", "--values (or its variable INJECTD_VALUES)"),
        ("--injector-values", "--injector-values"),
        ("--mesh-config", "--mesh-config"),
    ] {
        refused(&[flag, "x"], &format!("{named} {files}"));
    }
    refused(
        &["--revision", "a,B"],
        "--revision: \"B\" is no revision; expected names such as default or 1-24-6, with commas \
         between",
    );
    refused(
        &["--revision", "a,b", "--injector-config", "x", "--values", "x"],
        "--revision a,b: only serve in a cluster, without --injector-config, takes several revisions",
    );
    refused(
        &["--istio-namespace", "a/b"],
        "--istio-namespace (or the variable POD_NAMESPACE) is not the name of a namespace",
    );
    refused(
        &["--istio-namespace", "a", "--standalone"],
        "--istio-namespace names ConfigMaps of a cluster: remove --standalone",
    );
    refused(
        &["--istio-release", "1.18"],
        "--istio-release 1.18: unknown release; expected one from 1.19.0 on, such as 1.24.6",
    );
    serve_must_refuse(&["--istio-namespace", "a"], "--istio-namespace needs --mesh istio");
    for command in COMMANDS {
        let line = "--revision a,b: only serve in a cluster, without --injector-config, takes \
                    several revisions";
        must_refuse(command, &["--revision", "a,b"], line);
    }
}
