//! What became of each sidecar template of `--templates` or of a cluster, and who wrote each field.

use std::path::PathBuf;

use injectd_command::{CommandError, config::Purpose, format::Format, print::Printer};
use injectd_explain::{
    Subject,
    later::{self, Objection},
};
use injectd_templates::{Template, object::ParameterSource};
use injectd_templates_tree::{
    Decision, Denied, Explained, Explanation, Injected, State, Write, mesh::Templates,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    API_VERSION, Args, KIND, names,
    pods::RunningPods,
    target::{self, Target, Wanted},
};
use crate::{facts::Facts, sidecars};

mod live;
mod text;

pub(super) use self::{live::Live, text::write};

/// What happens to one pod.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) object: Subject,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    mesh: &'static str,
    pub(super) verdict: &'static str,
    /// Why the webhook is not called.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_asked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    denial: Option<String>,
    warnings: Vec<String>,
    templates: Vec<OfTemplate>,
    /// What objects to the pod afterwards.
    later: Vec<Objection>,
    /// What to do; empty if nothing is to be done.
    pub(super) advice: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    running_pods: Option<RunningPods>,
}

/// What became of a template.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OfTemplate {
    template: String,
    hash: String,
    state: &'static str,
    text: String,
    /// What the mark of a pod of the cluster says.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_pod: Option<InPod>,
    /// The cost of its expressions, in units of cel-go.
    cost: u64,
    parameters: Vec<OfParameter>,
    fields: Vec<OfField>,
}

/// A template in a pod of the cluster.
#[derive(Debug, Serialize)]
struct InPod {
    hash: String,
    /// Whether it is as in a new pod: `present`, `outdated`, `unexpected` or `missing`.
    state: &'static str,
}

/// Where the value of a parameter comes from.
#[derive(Debug, Serialize)]
struct OfParameter {
    name: String,
    from: String,
}

/// Who wrote a field of the pod.
#[derive(Debug, Serialize)]
struct OfField {
    place: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    removed: bool,
    step: String,
    field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expression: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let brief = args.brief.then_some("--brief");
    let all = args.all_settings.then_some("--all-settings");
    let other = args.config.set_for_a_mesh().or(args.cluster.set()).or(brief).or(all);
    sidecars::must_suit(other)?;
    let wanted = Wanted::of(&names::normalized(&args.targets)?)?;
    if let Some(name) = wanted.names.first() {
        let text = format!(
            "explain --templates reads files: write {}/{} to one, such as with kubectl get -o yaml",
            name.resource, name.called
        );
        return Err(CommandError::Usage(text));
    }
    let paths: Vec<PathBuf> = wanted.files;
    let templates = args.templates.read(&paths)?;
    let namespace = args.namespace.as_deref().unwrap_or("default");
    let mut surroundings = sidecars::surroundings(&args.config, Purpose::Inject)?;
    let mut facts = Facts::default();
    for object in args.config.object_values(Purpose::Inject)?.into_iter().flatten() {
        facts.add(&object, "");
    }
    let mut targets = Vec::new();
    for path in &paths {
        let mut add = |object: &Value| sidecars::add(&mut surroundings, object, "", namespace);
        targets.extend(target::read(path, namespace, &mut facts, &mut add)?);
    }
    facts.version = args.kubernetes_version.or(facts.version);
    facts.must_be_readable()?;
    let templates = Templates::new(templates, surroundings);
    let reports = targets.iter().filter_map(|target| report(&templates, &facts, target));
    let reports: Vec<_> = reports.collect();
    if reports.is_empty() {
        let text = "no pod and no workload is in the input; explain needs one".to_owned();
        return Err(CommandError::Incomplete(text));
    }
    let mut out = Printer::stdout();
    let list = || json!({"apiVersion": API_VERSION, "kind": KIND, "items": reports});
    let printed = match args.output {
        Format::Json => out.json(&list()),
        Format::Yaml => out.yaml(&list()),
        Format::Text => write(&mut out, &reports),
    };
    printed.map_err(CommandError::output)
}

/// The report on a target; `None` if it has no pod.
fn report(templates: &Templates, facts: &Facts, target: &Target) -> Option<Report> {
    let pod = target.pod.as_ref()?;
    let namespace = &*target.namespace;
    let (before, explained) = match target.workload() {
        None => (pod.clone(), templates.explain(pod, namespace)),
        Some(workload) => {
            let made = templates.surroundings.made(pod.clone(), workload.object, namespace);
            let explained = templates.explain_made(&made, namespace);
            (made.pod, explained)
        }
    };
    let mut notes = target.notes.clone();
    notes.extend(templates.unknown(pod, namespace).iter().map(|object| {
        format!("{object} is not in the input, and the templates read it: add it, or set --objects")
    }));
    let explained = explained.unwrap_or_else(|text| {
        let denied = Denied { template: String::new(), text, failed_at: None };
        Explained { result: Err(denied), templates: Vec::new() }
    });
    let templates: Vec<_> = templates.templates.iter().collect();
    Some(Evaluated { before, explained, notes }.report(&templates, facts, target))
}

/// A pod with the explanation of its injection.
struct Evaluated {
    before: Value,
    explained: Explained,
    notes: Vec<String>,
}

impl Report {
    /// Adds what is known of running pods.
    pub(super) fn with_running(mut self, running: Option<RunningPods>) -> Self {
        if let Some(running) = &running {
            running.add_to(&mut self.notes, &mut self.advice);
        }
        self.running_pods = running;
        self
    }

    /// The reason in a row: the templates that a new pod gets, or why it gets none.
    pub(super) fn why(&self) -> String {
        if let Some(text) = self.not_asked.as_ref().or(self.denial.as_ref()) {
            return text.clone();
        }
        let applied = self.templates.iter().filter(|one| one.state == "applied");
        let names: Vec<_> = applied.map(|one| &*one.template).collect();
        if names.is_empty() { "-".to_owned() } else { format!("templates {}", names.join(", ")) }
    }

    /// The number of running pods; 0 if it is not known.
    pub(super) fn pods(&self) -> u64 {
        let of_pod = u64::from(self.object.kind == "Pod");
        self.running_pods.as_ref().map_or(of_pod, RunningPods::total)
    }
}

impl Evaluated {
    fn report(self, templates: &[&Template], facts: &Facts, target: &Target) -> Report {
        let Self { before, explained: Explained { result, templates: all }, notes } = self;
        let after = result.as_ref().map_or(&before, |injected| &injected.pod);
        let checking = facts.checking(&target.namespace);
        let later = target.placed(later::objections(checking.checks(), &before, after));
        let is_changed = *after != before;
        let (verdict, denial, warnings) = match result {
            Err(Denied { template, text, .. }) if template.is_empty() => {
                ("denied", Some(text), Vec::new())
            }
            Err(denied) => ("denied", Some(denied.to_string()), Vec::new()),
            Ok(Injected { warnings, .. }) if is_changed => ("injected", None, warnings),
            Ok(Injected { warnings, .. }) => ("skipped", None, warnings),
        };
        let advice = advice(templates, &all, denial.as_deref());
        Report {
            object: target.subject.clone(),
            notes,
            mesh: "templates",
            verdict,
            not_asked: None,
            denial,
            warnings,
            templates: all.into_iter().map(of_template).collect(),
            later,
            advice,
            running_pods: None,
        }
    }
}

fn of_template(explanation: Explanation) -> OfTemplate {
    let Explanation { template, hash, decision, parameters, writes } = explanation;
    let (state, text, cost) = match decision {
        None => ("denied", "denies the pod".to_owned(), 0),
        Some(Decision { state, cost, .. }) => (state.as_str(), state.to_string(), cost),
    };
    let parameter = |(name, from)| OfParameter { name, from };
    let field = |write: Write| {
        let Write { place, is_removed, step, field, expression } = write;
        OfField { place, removed: is_removed, step, field, expression }
    };
    let parameters = parameters.into_iter().map(parameter).collect();
    let fields = writes.into_iter().map(field).collect();
    OfTemplate { template, hash, state, text, in_pod: None, cost, parameters, fields }
}

/// What to do about the templates that the pod does not have as they are now.
fn advice(templates: &[&Template], all: &[Explanation], denial: Option<&str>) -> String {
    if denial.is_some() {
        return "Change what the message names, in the pod or in the template.".to_owned();
    }
    let of = |explanation: &Explanation| {
        let template = templates.iter().find(|one| one.key() == explanation.template)?;
        let key = &explanation.template;
        match &explanation.decision.as_ref()?.state {
            State::Disabled => {
                let enablement = template.spec.enablement.as_ref()?;
                let source =
                    ParameterSource::of_place(*enablement.r#in.first()?, enablement.key.clone());
                Some(format!("To switch template {key} on, set {source} to enabled."))
            }
            State::Present { is_outdated: true } => {
                Some(format!("To get template {key} as it is now, create the pod anew."))
            }
            _ => None,
        }
    };
    all.iter().filter_map(of).collect::<Vec<_>>().join(" ")
}
