//! `injectd inject --templates`: what the webhook does with sidecar templates, in manifests.

use injectd_command::{CommandError, config::Purpose};
use injectd_core::mesh::Mesh as _;
use injectd_explain::completion;
use injectd_templates_tree::{
    Injected, State,
    mesh::{Templates, skip_reasons},
    surroundings::unmade,
};
use serde_json::Value;

use super::{
    Args,
    istio::with_pod,
    kind_of,
    pods::{must_be_readable, must_have_spec, template_of},
};
use crate::{
    manifests::{self, Action, Edited, Entry, group, pod_of, pod_prefix, text},
    sidecars,
};

/// The API group of sidecar templates.
const TEMPLATES_GROUP: &str = "injectd.dev";
/// What makes a container of a pod that ends a native sidecar.
const NATIVE: &str = "its template has to add it to initContainers, with restartPolicy: Always";

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let annotate = args.annotate.then_some("--annotate");
    let of_mesh = args.config.set_for_a_mesh().or(annotate).or(args.cluster.set());
    let of_mesh = of_mesh.map(str::to_owned).or_else(|| args.settings.set());
    sidecars::must_suit(of_mesh.as_deref())?;
    let templates = args.templates.read(&args.manifests.paths())?;
    let mut surroundings = sidecars::surroundings(&args.config, Purpose::Inject)?;
    let inputs = args.manifests.read(&manifests::runtime()?);
    sidecars::add_inputs(&mut surroundings, &inputs, &args.namespace);
    let templates = Templates::new(templates, surroundings);
    let manifests = Manifests { templates, namespace: &args.namespace };
    args.manifests.run(inputs, "injected", |object, kind| Ok(manifests.edit(object, kind)))
}

struct Manifests<'a> {
    templates: Templates,
    /// The namespace of objects that do not set one.
    namespace: &'a str,
}

impl Manifests<'_> {
    /// What injection makes of an object of this kind.
    fn edit(&self, object: &Value, kind: &str) -> Edited {
        let Some(prefix) = pod_prefix(object, kind_of(object, kind), kind) else {
            return Edited { object: None, entry: without_pods(object, kind) };
        };
        Edited::of_pods(self.inject(object, kind, prefix), object, kind, prefix)
    }

    /// What is not known, and may be why a template adds nothing.
    fn unknown(&self, object: &Value, prefix: &str, namespace: &str) -> Option<String> {
        let pod = object.pointer(prefix)?;
        let unknown = self.templates.unknown(pod, namespace);
        (!unknown.is_empty())
            .then(|| format!("not known: {}; add it to the input or --objects", unknown.join(", ")))
    }

    fn inject(&self, object: &Value, kind: &str, prefix: &str) -> Result<Edited, String> {
        must_have_spec(object, prefix)?;
        let namespace = match text(object, "/metadata/namespace") {
            "" => self.namespace,
            own => own,
        };
        let pod = pod_of(object, prefix);
        let (before, injected) = if prefix.is_empty() {
            let injected = self.templates.inject(&pod, namespace)?;
            (pod, injected)
        } else {
            let mut workload = object.clone();
            workload["kind"] = kind.into();
            let made = self.templates.surroundings.made(pod, &workload, namespace);
            let injected = self.templates.inject_made(&made, namespace)?;
            (made.pod, injected)
        };
        let Injected { pod: after, mut warnings, decisions } = injected;
        let is_in = |state: &State| matches!(state, State::Applied | State::Present { .. });
        if after == before {
            let entry = Entry::of(object, kind, Action::Skipped);
            let mut reasons: Vec<String> = decisions.iter().map(ToString::to_string).collect();
            if decisions.iter().any(|decision| !is_in(&decision.state)) {
                reasons.extend(self.unknown(object, prefix, namespace));
            }
            let codes = skip_reasons(&decisions);
            let codes = codes.iter().map(|reason| Templates::SKIP_REASONS[*reason].code).collect();
            let entry = Entry { reasons: codes, warnings, ..entry }.because(reasons.join("; "));
            return Ok(Edited { object: None, entry });
        }
        let template = object.pointer(prefix).unwrap_or(object);
        warnings.extend(completion::warning_about(&before, &after, NATIVE));
        let names = decisions.iter().filter(|decision| is_in(&decision.state));
        let names: Vec<_> = names.map(|decision| decision.template.as_str()).collect();
        let entry = Entry::of(object, kind, Action::Injected).because(names.join(", "));
        let object = with_pod(object, prefix, unmade(after, template));
        Ok(Edited { object: Some(object), entry: Entry { warnings, ..entry } })
    }
}

/// The entry of an object without a pod that is changed.
fn without_pods(object: &Value, kind: &str) -> Entry {
    let entry = |action| Entry::of(object, kind, action);
    if let Err(problem) = must_be_readable(object) {
        return entry(Action::Rejected).because(problem);
    }
    if group(object) == TEMPLATES_GROUP {
        let message =
            "a sidecar template in the input is printed as it is; --templates FILE uses it";
        return entry(Action::Unchanged).because(message);
    }
    if template_of(object).is_none() {
        return entry(Action::Unchanged);
    }
    let group = group(object);
    let of_group = if group.is_empty() { String::new() } else { format!(" of {group}") };
    let message = format!(
        "the kind {kind}{of_group} is not known, so its pod template stays; the webhook injects its pods"
    );
    let entry = Entry { has_pods: true, ..entry(Action::Skipped).because(message) };
    Entry { reasons: vec!["unsupported_resource"], ..entry }
}
