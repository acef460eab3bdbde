//! Compares expressions in templates with what real injectors of Istio made of them
//! (`$INJECTD_CORPUS`, the folder above that of Istio's releases).
//!
//! Templates that need messages of protobuf or types of Kubernetes that the tests do not have are
//! skipped, and counted by what they need.

#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]
#![expect(clippy::disallowed_types, reason = "recorded requests are trees")]

mod data;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::{Path, PathBuf},
};

use injectd_gotemplate::{Context, Functions, Refusal, Template};
use serde_json::Value as Json;

/// What the data of the tests does not have, by the text that asks for it.
const NEEDS: &[(&str, &[&str])] = &[
    ("mesh and proxy configuration", &["ProxyConfig", "MeshConfig"]),
    ("the workload", &["DeploymentMeta", "TypeMeta", "OwnerReferences"]),
    (
        "other fields of the pod",
        &[
            ".CreationTimestamp",
            ".DeletionTimestamp",
            ".DNSPolicy",
            ".Env",
            ".HTTPGet",
            ".HostNetwork",
            ".ImagePullPolicy",
            ".NodeSelector",
            ".NotAField",
            ".ReadinessProbe",
            ".Resources",
            ".RestartPolicy",
            ".SecurityContext",
            ".ServiceAccountName",
            ".TerminationGracePeriodSeconds",
            ".Tolerations",
            ".UID",
            ".Volumes",
            ".ObjectMeta.GetName",
            "structToJSON (index",
            "toYaml .Spec",
            "(index .Spec.Containers 0).Ports }",
        ],
    ),
    ("all of the data", &["{{ . }}", "typeOf .Spec", ".NotFunc"]),
    (
        "the state of the injector",
        &[
            ".NativeSidecars",
            ".ProxyImage",
            ".ProxyInitImage",
            ".ProxyUID",
            ".InboundTrafficPolicyMode",
            ".CompliancePolicy",
        ],
    ),
];

/// What a template needs that is not there.
fn need(template: &str) -> Option<&'static str> {
    let is_needed = |texts: &[&str]| texts.iter().any(|text| template.contains(text));
    NEEDS.iter().find(|(_, texts)| is_needed(texts)).map(|(need, _)| *need)
}

fn json(path: &Path) -> Json {
    let text = std::fs::read_to_string(path).expect("a file of the corpus must be there");
    serde_json::from_str(&text).expect("it must be JSON")
}

/// What was compared, and how it went.
#[derive(Default)]
struct Counts {
    parsed: usize,
    rendered: usize,
    denied: usize,
    different: usize,
    skipped: BTreeMap<&'static str, usize>,
}

impl Counts {
    fn differ(&mut self, what: &str, ours: &str, theirs: &str) {
        self.different += 1;
        println!("{what}\n  ours:  {ours}\n  istio: {theirs}");
    }
}

/// A release: its templates by name, and the values they saw.
struct Release {
    folder: PathBuf,
    functions: Functions,
    templates: BTreeMap<String, String>,
    values: Json,
    revision: String,
}

impl Release {
    fn load(folder: PathBuf, counts: &mut Counts) -> Self {
        let functions = functions_of(&folder);
        let mut templates = BTreeMap::new();
        let battery = json(&folder.join("battery.json"));
        for entry in battery.as_array().expect("the battery must be a list") {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            let parsed = Template::parse("inject", &text("template"), &functions);
            let is_refused =
                parsed.as_ref().is_err_and(|error| error.refusal == Some(Refusal::Secret));
            let error = parsed.err().map_or_else(String::new, |problem| problem.to_string());
            if is_refused {
                *counts.skipped.entry("functions of secrets").or_default() += 1;
            } else if error == text("error") {
                counts.parsed += 1;
            } else {
                counts.differ(&text("template"), &error, &text("error"));
            }
            templates.insert(text("name"), text("template"));
        }
        let mut configs = json(&folder.join("configs.json"));
        counts.parsed += shipped(&folder, &configs, &functions);
        let config = configs["battery"].take();
        let file = config["values"].as_str().expect("the set must have values");
        let values = json(&folder.join(file));
        let revision = config["revision"].as_str().unwrap_or_default().to_owned();
        Self { folder, functions, templates, values, revision }
    }

    fn compare(&self, counts: &mut Counts) {
        let bytes = std::fs::read(self.folder.join("cases.jsonl.gz")).expect("cases must be there");
        let mut lines = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut lines).expect("gzip");
        for line in lines.lines().filter(|line| line.contains("\"battery:")) {
            let case: Json = serde_json::from_str(line).expect("a case must be JSON");
            let is_battery =
                case["family"].as_str().is_some_and(|family| family.starts_with("battery:"));
            if is_battery && case["unstable"].is_null() {
                self.case(&case, counts);
            }
        }
    }

    fn case(&self, case: &Json, counts: &mut Counts) {
        let request = case["request"].as_str().expect("a case must have a request");
        let review: Json = serde_json::from_str(request).expect("a request must be JSON");
        let pod = &review["request"]["object"];
        let names = &pod["metadata"]["annotations"]["inject.istio.io/templates"];
        let names = names.as_str().unwrap_or_default();
        let message = case["response"]["response"]["status"]["message"].as_str();
        let data = data::root(pod, &self.values, &self.revision);
        for name in names.split(',') {
            let Some(text) = self.templates.get(name) else { continue };
            if let Some(need) = need(text) {
                *counts.skipped.entry(need).or_default() += 1;
                continue;
            }
            let Ok(template) = Template::parse("inject", text, &self.functions) else { continue };
            let ours = template.execute(&data, &mut Context::default());
            let what = format!("{} {name}: {text}", case["id"]);
            match (ours, message) {
                (Ok(output), None) => {
                    let ours = annotation(&output, name);
                    let theirs = patched(&case["patch"], name);
                    if ours == theirs {
                        counts.rendered += 1;
                    } else {
                        counts.differ(&what, &format!("{ours:?}"), &format!("{theirs:?}"));
                    }
                }
                (Err(problem), Some(message)) => {
                    let problem = problem.to_string();
                    if message.ends_with(&problem) || same_but_for_words(&problem, message) {
                        counts.denied += 1;
                    } else {
                        counts.differ(&what, &problem, message);
                    }
                }
                // What was rendered is no YAML, or what was put into the pod is no pod.
                (Ok(output), Some(message)) if !message.contains(": executing ") => {
                    let _ = output;
                    *counts.skipped.entry("reading the output as YAML").or_default() += 1;
                }
                (Ok(output), Some(message)) => counts.differ(&what, &output, message),
                (Err(problem), None) => counts.differ(&what, &problem.to_string(), "no error"),
            }
        }
    }
}

/// Parses all templates of all sets that the release loads; the answer is how many.
fn shipped(folder: &Path, configs: &Json, functions: &Functions) -> usize {
    let sets = configs.as_object().expect("the sets must have names");
    let loaded = sets.values().filter(|set| set["startError"].is_null());
    let files: BTreeSet<_> = loaded.filter_map(|set| set["config"].as_str()).collect();
    let mut parsed = 0;
    for file in files {
        let text = std::fs::read_to_string(folder.join(file)).expect("a file must be there");
        let tree = injectd_yaml::parse(&text, injectd_yaml::Options::default()).expect("YAML");
        for (name, text) in tree["templates"].as_object().into_iter().flatten() {
            let Some(text) = text.as_str() else { continue };
            let problem = Template::parse(name, text, functions).err();
            if let Some(problem) = problem.filter(|error| error.refusal != Some(Refusal::Secret)) {
                panic!("{}: {name}: {problem}", folder.join(file).display());
            }
            parsed += 1;
        }
    }
    parsed
}

/// Errors of regular expressions have our own words; those of versions those of the newest release.
fn same_but_for_words(ours: &str, theirs: &str) -> bool {
    if ours.contains("improper constraint") {
        return theirs.ends_with(&ours.replace("constraint: \"bogus\"", "constraint: bogus"));
    }
    let place = |text: &str| {
        let end = text.find("error parsing regexp").unwrap_or(text.len());
        let start = text.find("template: inject").unwrap_or(0);
        text[start..end].to_owned()
    };
    ours.contains("error parsing regexp") && place(ours) == place(theirs)
}

/// The functions of a release: later ones are not defined.
fn functions_of(folder: &Path) -> Functions {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let minor: u32 = name.split('.').nth(1).and_then(|part| part.parse().ok()).unwrap_or(u32::MAX);
    let mut functions = Functions::istio();
    for (function, since) in
        [("mergeMaps", 21), ("sha512sum", 24), ("omitNil", 28), ("otelResourceAttributes", 30)]
    {
        if minor < since {
            functions = functions.without(function);
        }
    }
    if minor < 24 { functions.with_plain_networks() } else { functions }
}

/// The annotation of a template in its output.
fn annotation(output: &str, name: &str) -> Option<String> {
    let tree = injectd_yaml::parse(output, injectd_yaml::Options::default()).ok()?;
    tree["metadata"]["annotations"][format!("battery/{name}")].as_str().map(ToOwned::to_owned)
}

/// The annotation that a patch adds.
fn patched(patch: &Json, name: &str) -> Option<String> {
    let key = format!("battery/{name}");
    let pointer = format!("/metadata/annotations/battery~1{name}");
    patch.as_array()?.iter().find_map(|operation| {
        let value = match operation["path"].as_str()? {
            "/metadata/annotations" => &operation["value"][&key],
            place if place == pointer => &operation["value"],
            _ => return None,
        };
        value.as_str().map(ToOwned::to_owned)
    })
}

#[test]
fn recorded_injectors() {
    let Some(corpora) = std::env::var_os("INJECTD_CORPUS").filter(|path| !path.is_empty()) else {
        println!("skipped: INJECTD_CORPUS is not set");
        return;
    };
    let folder = Path::new(&corpora).join("istio");
    let mut releases: Vec<_> = std::fs::read_dir(&folder)
        .expect("the corpus must be readable")
        .map(|entry| entry.expect("the corpus must be readable").path())
        .filter(|path| path.is_dir())
        .collect();
    releases.sort();
    let mut different = 0;
    for folder in releases {
        let name = folder.display().to_string();
        let mut counts = Counts::default();
        Release::load(folder, &mut counts).compare(&mut counts);
        let Counts { parsed, rendered, denied, skipped, .. } = &counts;
        println!(
            "{name}: {parsed} templates parsed alike, {rendered} equal outputs, {denied} equal \
             errors, {} different; skipped for {skipped:?}",
            counts.different
        );
        different += counts.different;
    }
    assert_eq!(different, 0);
}
