//! Which annotations, labels, names and texts of the spec of a pod can leave their scalar in a
//! configuration's templates.
//!
//! That is every place without quotes, and with it every place where YAML may read a text as a value of
//! another kind, such as a number.
//!
//! Every template is rendered for pods with one value that is not plain, and with a neutral one in its
//! place; where both documents have another shape, the value *leaks*. Which lines of the template wrote
//! it comes from the engine: each action reports what it has written.
//!
//! Not for the values of one pod: the guard of an injection finds those, whatever is found here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
    slice,
    sync::Arc,
};

use injectd_gotemplate::{Origin, Reads, Step, Template, Value};
use serde_json::{Value as Json, json};

use crate::{
    annotations::{self, PROXY_CONFIG_ANNOTATION},
    budget, image,
    injection::Injection,
    marker,
    path::PathEnvironment,
    proto::layers,
    revision::Revision,
    taint::{NameOf, Source, TaintedValues, neutral::Form, shape},
};

/// A value that can leave its scalar.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leak {
    /// The name of the template.
    pub template: String,
    /// Where a pod has the value.
    pub source: Source,
    /// The lines of the template that paste it, from 1.
    pub lines: BTreeSet<usize>,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, lines) = (&self.template, shown(&self.lines));
        write!(f, "{} reaches YAML unquoted, template {name}, {lines}", self.source)
    }
}

/// `line 1`, or `lines 1, 2`.
fn shown(lines: &BTreeSet<usize>) -> String {
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
    format!("{noun} {}", lines.join(", "))
}

/// Values that break out of plain scalars, of quoted ones, and of flow lists and mappings. They begin as a
/// path, since templates ask for a slash.
const HOSTILE: [&str; 5] = ["a/b\nc: d", "a/b\"c", "a/b'c", "a/b: c", "a/b, c: d"];

/// Values of the other annotations beside the one that is looked at: a template may paste a value only
/// if another is there.
const BESIDE: [Option<&str>; 2] = [None, Some("1")];

/// The fields of a `ProxyConfig` that are texts, and a map of texts.
const TEXT_FIELDS: [&str; 6] = [
    "configPath",
    "binaryPath",
    "serviceCluster",
    "discoveryAddress",
    "statsdUdpAddress",
    "proxyBootstrapTemplatePath",
];

/// All values that can leave their scalar, of all templates that pods may ask for.
#[must_use]
pub fn of(revision: &Revision) -> Vec<Leak> {
    let mut found = BTreeMap::<(String, Source), BTreeSet<usize>>::new();
    for (name, template) in revision.pod_templates() {
        let sources = sources(revision, template);
        for source in &sources {
            let lines = lines_of(revision, template, source, &sources);
            if !lines.is_empty() {
                found.entry((name.to_owned(), source.clone())).or_default().extend(lines);
            }
        }
    }
    let leak = |((template, source), lines)| Leak { template, source, lines };
    found.into_iter().map(leak).collect()
}

/// One line for each template about the annotations that can leave their scalar, without labels and names.
/// None if nobody wants to know of tainted values.
#[must_use]
pub fn of_annotations(revision: &Revision) -> Vec<String> {
    if revision.tainted_values == TaintedValues::Off {
        return Vec::new();
    }
    let mut templates = BTreeMap::<String, Vec<String>>::new();
    for Leak { template, source, lines } in of(revision) {
        let Source::Annotation(key) = source else { continue };
        templates.entry(template).or_default().push(format!("{key} ({})", shown(&lines)));
    }
    let line = |(template, keys): (String, Vec<String>)| {
        format!("annotations reach YAML unquoted, template {template}: {}", keys.join(", "))
    };
    templates.into_iter().map(line).collect()
}

/// What a template may paste: what it reads of some pods, and what is read for it.
fn sources(revision: &Revision, template: &Template) -> BTreeSet<Source> {
    let annotation = |key: &str| Source::Annotation(key.to_owned());
    let names = [NameOf::Pod, NameOf::Namespace, NameOf::Owner, NameOf::Part].map(Source::Name);
    let read_for_it = [PROXY_CONFIG_ANNOTATION, image::IMAGE_TYPE_ANNOTATION].map(annotation);
    let known = revision.known_annotations().map(annotation).collect();
    let mut sources = BTreeSet::from(names);
    sources.extend(read_for_it);
    for value in BESIDE {
        let mut seen = Seen::default();
        let pod = pod_with(&Source::Name(NameOf::Pod), "a", value, &known);
        let _ = injection(revision, pod).neutral_text(template, &[], Form::Text, &mut seen);
        sources.extend(seen.keys);
    }
    sources
}

fn injection(revision: &Revision, pod: Json) -> Injection<'_> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    Injection::new(revision, Arc::new(pod), &namespace, PathEnvironment::default())
}

/// The lines of a template that paste a value where it can leave its scalar.
fn lines_of(
    revision: &Revision,
    template: &Template,
    source: &Source,
    others: &BTreeSet<Source>,
) -> BTreeSet<usize> {
    let mut lines = BTreeSet::new();
    for kind in 0..values(source, "").len() {
        for beside in BESIDE {
            for hostile in HOSTILE {
                let (value, form) = values(source, hostile).swap_remove(kind);
                if !is_valid(revision, source, &value) {
                    continue;
                }
                let injection = injection(revision, pod_with(source, &value, beside, others));
                let probe = Probe { injection, template, source, form };
                let (pasted, leaking) = probe.pastes();
                lines.extend(leaking.iter().map(|at| template.line(*at)));
                if pasted.len() == leaking.len() {
                    // It is not pasted at all, or leaks everywhere.
                    break;
                }
            }
        }
    }
    lines
}

/// A template and a pod with a value that is not plain.
struct Probe<'p> {
    injection: Injection<'p>,
    template: &'p Template,
    source: &'p Source,
    form: Form,
}

impl Probe<'_> {
    fn text(&self, sources: &[Source], seen: &mut Seen) -> Option<String> {
        self.injection.neutral_text(self.template, sources, self.form, seen)
    }

    /// The actions that write the value, by their place in the template; and those of them from which it
    /// leaves its scalar.
    fn pastes(&self) -> (Vec<usize>, Vec<usize>) {
        let none = (Vec::new(), Vec::new());
        let mut seen = Seen::default();
        let Some(text) = self.text(slice::from_ref(self.source), &mut seen) else { return none };
        let is_marked = |bytes: &Range<usize>| text[bytes.clone()].contains(marker::in_value());
        let pasted =
            seen.written.iter().enumerate().filter(|(_, written)| is_marked(&written.bytes));
        let pasted: Vec<_> = pasted.collect();
        let ats: Vec<_> = pasted.iter().map(|(_, written)| written.at).collect();
        let Some(document) = read(&text).filter(|_| !pasted.is_empty()) else { return none };
        let mut own_seen = Seen::default();
        let Some(own) = self.text(&[], &mut own_seen) else { return (ats, Vec::new()) };
        if !own_seen.is_of_same_actions(&seen) {
            let is_same = read(&own).is_some_and(|own| shape::is_same(&own, &document));
            return if is_same { (ats, Vec::new()) } else { (ats.clone(), ats) };
        }
        let leaks = |(index, written): &(usize, &Written)| {
            let own = &own[own_seen.written[*index].bytes.clone()];
            let mixed = [&text[..written.bytes.start], own, &text[written.bytes.end..]].concat();
            read(&mixed).is_none_or(|mixed| !shape::is_same(&mixed, &document))
        };
        let leaking = pasted.into_iter().filter(leaks).map(|(_, written)| written.at).collect();
        (ats, leaking)
    }
}

fn read(text: &str) -> Option<Json> {
    injectd_yaml::parse(text, budget::YAML).ok()
}

/// Values with a hostile text: alone, and in what a template may read it from.
fn values(source: &Source, hostile: &str) -> Vec<(String, Form)> {
    let alone = (hostile.to_owned(), Form::Text);
    match source {
        Source::Annotation(key) if key == PROXY_CONFIG_ANNOTATION => {
            let fields = TEXT_FIELDS.iter().map(|field| json!({*field: hostile}).to_string());
            let metadata = [json!({"A": hostile}), json!({hostile: "a"})]
                .map(|map| json!({"proxyMetadata": map}).to_string());
            fields.chain(metadata).map(|text| (text, Form::Text)).chain([alone]).collect()
        }
        Source::Annotation(_) => {
            let json = [
                json!({hostile: {"a": hostile}}),
                json!({"a": hostile}),
                json!([{"name": hostile}]),
            ];
            json.iter().map(|json| (json.to_string(), Form::Json)).chain([alone]).collect()
        }
        _ => vec![alone],
    }
}

/// Whether a pod with this value is not denied before its templates are rendered.
fn is_valid(revision: &Revision, source: &Source, value: &str) -> bool {
    let Source::Annotation(key) = source else { return true };
    let annotations = json!({key: value});
    let proxy_config = |config: &str| {
        layers::check_annotation(config, revision.release()).map_err(|error| error.to_string())
    };
    annotations::validate(annotations.as_object(), revision.release(), proxy_config).is_ok()
}

/// A pod with a value at a source, and with another value of all other annotations and labels.
fn pod_with(source: &Source, value: &str, beside: Option<&str>, others: &BTreeSet<Source>) -> Json {
    let mut pod = json!({
        "metadata": {"name": "web", "namespace": "default", "labels": {}, "annotations": {}},
        "spec": {"containers": [{"name": "web", "image": "web", "ports": [{"containerPort": 80}]}]},
    });
    let mut set = |source: &Source, value: &str| match source {
        Source::Annotation(key) => pod["metadata"]["annotations"][key] = value.into(),
        Source::Label(key) => pod["metadata"]["labels"][key] = value.into(),
        Source::Name(NameOf::Namespace) => pod["metadata"]["namespace"] = value.into(),
        Source::Name(NameOf::Pod | NameOf::Owner) => pod["metadata"]["name"] = value.into(),
        Source::Name(NameOf::Part) => pod["spec"] = spec_of(value),
    };
    for other in others.iter().filter(|other| !matches!(other, Source::Name(_))) {
        if let Some(value) = beside {
            set(other, value);
        }
    }
    set(source, value);
    pod
}

/// A spec of which every text is this value.
fn spec_of(text: &str) -> Json {
    let container = json!({
        "name": text, "image": text, "imagePullPolicy": text, "command": [text], "args": [text],
        "workingDir": text, "env": [{"name": text, "value": text}],
        "ports": [{"name": text, "protocol": text, "containerPort": 80}],
        "resources": {"limits": {text: "1"}, "requests": {text: "1"}},
        "volumeMounts": [{"name": text, "mountPath": text, "subPath": text}],
    });
    json!({
        "containers": [container], "initContainers": [container],
        "volumes": [{"name": text, "hostPath": {"path": text}}],
        "serviceAccountName": text, "hostname": text, "subdomain": text, "nodeName": text,
        "schedulerName": text, "priorityClassName": text, "runtimeClassName": text,
        "dnsPolicy": text, "restartPolicy": text, "nodeSelector": {text: text},
        "imagePullSecrets": [{"name": text}],
        "tolerations": [{"key": text, "operator": text, "value": text, "effect": text}],
        "hostAliases": [{"ip": text, "hostnames": [text]}],
        "dnsConfig": {"nameservers": [text], "searches": [text]},
        "securityContext": {"sysctls": [{"name": text, "value": text}]},
    })
}

/// What a template reads of annotations and labels, and what each of its actions has written.
#[derive(Debug, Default)]
struct Seen {
    keys: BTreeSet<Source>,
    written: Vec<Written>,
}

/// Where in the template an action is, and what it has written.
#[derive(Debug)]
struct Written {
    at: usize,
    bytes: Range<usize>,
}

impl Seen {
    fn is_of_same_actions(&self, other: &Self) -> bool {
        let ats = |seen: &Self| seen.written.iter().map(|written| written.at).collect::<Vec<_>>();
        ats(self) == ats(other)
    }
}

const METADATA: Origin = Origin(Origin::ROOT.0 + 1);
const ANNOTATIONS: Origin = Origin(Origin::ROOT.0 + 2);
const LABELS: Origin = Origin(Origin::ROOT.0 + 3);

impl Reads for Seen {
    fn step(&mut self, from: Origin, step: Step<'_>, _: Option<&Value>) -> Origin {
        let key = match step {
            Step::Field(name) => name.to_owned(),
            Step::Key(key) => String::from_utf8_lossy(key).into_owned(),
            Step::Method(_) | Step::Item(_) => return Origin::NONE,
        };
        match (from, &*key) {
            (Origin::ROOT, "ObjectMeta" | "DeploymentMeta") => METADATA,
            (METADATA, "Annotations") => ANNOTATIONS,
            (METADATA, "Labels") => LABELS,
            (ANNOTATIONS, _) => {
                self.keys.insert(Source::Annotation(key));
                Origin::NONE
            }
            (LABELS, _) => {
                self.keys.insert(Source::Label(key));
                Origin::NONE
            }
            _ => Origin::NONE,
        }
    }

    fn wrote(&mut self, at: usize, bytes: Range<usize>) {
        self.written.push(Written { at, bytes });
    }
}
