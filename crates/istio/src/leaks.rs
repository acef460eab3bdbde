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

mod pods;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
    slice,
    sync::Arc,
};

use injectd_gotemplate::{Origin, Reads, Step, Template, Value};
use pods::{pod_with, values};
use serde_json::{Value as Json, json};

use crate::{
    annotations::{self, PROXY_CONFIG_ANNOTATION},
    budget::{self, Budget, MAX_CHECK_STEPS},
    image,
    injection::{Injection, Probed},
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
// One for each way out of a scalar: a line break, both quotes, a key, an item of a flow list.
const HOSTILE: [&str; 5] = ["a/b\nc: d", "a/b\"c", "a/b'c", "a/b: c", "a/b, c: d"];

/// Values of the other annotations beside the one that is looked at: a template may paste a value only
/// if another is there.
const BESIDE: [Option<&str>; 2] = [None, Some("1")];

/// What a check of the templates of a configuration has found.
#[derive(Debug)]
pub struct Found {
    /// The values that can leave their scalar, of all templates that pods may ask for.
    pub leaks: Vec<Leak>,
    /// Where the check ended, if not at the end.
    pub unfinished: Option<Unfinished>,
}

/// The check would have taken more than its budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "template {template} and those after it were not checked to their end: the check of all templates \
     takes more than its budget of {limit} steps"
)]
pub struct Unfinished {
    /// The name of the first template that was not checked to its end.
    pub template: String,
    /// The budget.
    pub limit: usize,
}

/// Checks all templates that pods may ask for.
#[must_use]
pub fn of(revision: &Revision) -> Found {
    within(revision, &Budget::of_check(MAX_CHECK_STEPS))
}

/// Checks them with a budget for several configurations.
#[must_use]
pub fn within(revision: &Revision, budget: &Budget<'_>) -> Found {
    let mut found = BTreeMap::<(String, Source), BTreeSet<usize>>::new();
    let mut unfinished = None;
    for (name, template) in revision.pod_templates() {
        let search = Search { revision, template, budget, steps: steps_of_rendering(revision) };
        let sources = search.sources();
        for source in sources.iter().take_while(|_| !budget.is_spent()) {
            let lines = search.lines_of(source, &sources);
            if !lines.is_empty() {
                found.entry((name.to_owned(), source.clone())).or_default().extend(lines);
            }
        }
        if budget.is_spent() {
            unfinished = Some(Unfinished { template: name.to_owned(), limit: budget.limit() });
            break;
        }
    }
    let leak = |((template, source), lines)| Leak { template, source, lines };
    Found { leaks: found.into_iter().map(leak).collect(), unfinished }
}

/// One line for each template about the annotations that can leave their scalar, without labels and names.
/// No line if tainted values are not looked for.
#[must_use]
pub fn of_annotations(revision: &Revision) -> Vec<String> {
    if revision.tainted_values == TaintedValues::Off {
        return Vec::new();
    }
    let Found { leaks, unfinished } = of(revision);
    let mut templates = BTreeMap::<String, Vec<String>>::new();
    for Leak { template, source, lines } in leaks {
        let Source::Annotation(key) = source else { continue };
        templates.entry(template).or_default().push(format!("{key} ({})", shown(&lines)));
    }
    let line = |(template, keys): (String, Vec<String>)| {
        format!("annotations reach YAML unquoted, template {template}: {}", keys.join(", "))
    };
    let unfinished = unfinished.map(|unfinished| unfinished.to_string());
    templates.into_iter().map(line).chain(unfinished).collect()
}

/// The steps of a rendering beside those of the template: the `ProxyConfig` of the mesh is copied.
fn steps_of_rendering(revision: &Revision) -> usize {
    /// A pod, its data and a document of some lines take about 100 µs.
    const EACH: usize = 100;
    let proxy_config = revision.default_config().map_or(0, |config| config.to_json().len());
    EACH + proxy_config / budget::COPIED_BYTES
}

fn injection(revision: &Revision, pod: Json) -> Injection<'_> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    Injection::new(revision, Arc::new(pod), &namespace, PathEnvironment::default())
}

/// The search in one template.
#[derive(Clone, Copy)]
struct Search<'s> {
    revision: &'s Revision,
    template: &'s Template,
    budget: &'s Budget<'s>,
    /// The steps of each rendering.
    steps: usize,
}

impl Search<'_> {
    /// What the template writes for a pod with neutral values at these sources.
    fn text(
        &self,
        injection: &Injection<'_>,
        form: Form,
        sources: &[Source],
        seen: &mut Seen,
    ) -> Option<String> {
        self.budget.spend(self.steps).ok()?;
        let probed = Probed { template: self.template, form, budget: self.budget };
        injection.neutral_text(probed, sources, seen)
    }

    /// The document of a text; `None` if it is none.
    fn read(&self, text: &str) -> Option<Json> {
        self.budget.spend_text(text).ok()?;
        injectd_yaml::parse(text, budget::YAML).ok()
    }

    /// What the template may paste: what it reads of some pods, and what is read for it.
    fn sources(&self) -> BTreeSet<Source> {
        let annotation = |key: &str| Source::Annotation(key.to_owned());
        let names = [NameOf::Pod, NameOf::Namespace, NameOf::Owner, NameOf::Part].map(Source::Name);
        let read_for_it = [PROXY_CONFIG_ANNOTATION, image::IMAGE_TYPE_ANNOTATION].map(annotation);
        let known = self.revision.known_annotations().map(annotation).collect();
        // Names reach templates by many ways, so they are tried without a record that they are
        // read.
        let mut sources = BTreeSet::from(names);
        sources.extend(read_for_it);
        // A template may look at another key first: each one is tried with the others absent and
        // present.
        for value in BESIDE {
            let mut seen = Seen::default();
            let pod = pod_with(&Source::Name(NameOf::Pod), "a", value, &known);
            let _ = self.text(&injection(self.revision, pod), Form::Text, &[], &mut seen);
            sources.extend(seen.keys);
        }
        sources
    }

    /// The lines of the template that paste a value where it can leave its scalar.
    fn lines_of(&self, source: &Source, others: &BTreeSet<Source>) -> BTreeSet<usize> {
        let mut lines = BTreeSet::new();
        for kind in 0..values(source, "").len() {
            for beside in BESIDE {
                for hostile in HOSTILE {
                    if self.budget.is_spent() {
                        return lines;
                    }
                    let (value, form) = values(source, hostile).swap_remove(kind);
                    if !is_valid(self.revision, source, &value) {
                        continue;
                    }
                    let pod = pod_with(source, &value, beside, others);
                    let injection = injection(self.revision, pod);
                    let probe = Probe { search: *self, injection, source, form };
                    let (pasted, leaking) = probe.pastes();
                    lines.extend(leaking.iter().map(|at| self.template.line(*at)));
                    if pasted.len() == leaking.len() {
                        // It is not pasted at all, or leaks everywhere.
                        break;
                    }
                }
            }
        }
        lines
    }
}

/// A template and a pod with a value that is not plain.
struct Probe<'p> {
    search: Search<'p>,
    injection: Injection<'p>,
    source: &'p Source,
    form: Form,
}

impl Probe<'_> {
    fn text(&self, sources: &[Source], seen: &mut Seen) -> Option<String> {
        self.search.text(&self.injection, self.form, sources, seen)
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
        let read = |text: &str| self.search.read(text);
        let Some(document) = read(&text).filter(|_| !pasted.is_empty()) else { return none };
        let mut own_seen = Seen::default();
        let Some(own) = self.text(&[], &mut own_seen) else { return (ats, Vec::new()) };
        // The value has chosen another branch: what each action wrote cannot be exchanged one by
        // one.
        if !own_seen.is_of_same_actions(&seen) {
            let is_same = read(&own).is_some_and(|own| shape::is_same(&own, &document));
            return if is_same { (ats, Vec::new()) } else { (ats.clone(), ats) };
        }
        let leaks = |(index, written): &(usize, &Written)| {
            let own = &own[own_seen.written[*index].bytes.clone()];
            // One action at a time has the hostile value: so the line that leaks is known.
            let mixed = [&text[..written.bytes.start], own, &text[written.bytes.end..]].concat();
            read(&mixed).is_none_or(|mixed| !shape::is_same(&mixed, &document))
        };
        let leaking = pasted.into_iter().filter(leaks).map(|(_, written)| written.at).collect();
        (ats, leaking)
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
