//! The steps of an injection: what happens to a pod from its arrival to the patched pod.
//!
//! Read [`Injection::inject`] first. Not for the envelope: `mesh` has it.

mod compare;
mod data;
mod guard;

use std::{mem, sync::Arc};

pub(crate) use guard::Probed;
use guard::{Setting, Written};
use injectd_core::{causes::with_causes, lookups::Patience};
use injectd_gotemplate::{Context, Reads};
use serde_json::Value as Json;

use crate::{
    advice, annotations,
    budget::{Budget, OverBudget, steps_of},
    decide::{Decision, decide},
    fields::{annotation, label},
    memory::Record,
    message::MessageHooks,
    native::Nodes,
    openshift::{self, ProxyIds},
    owner::Owner,
    path::{NETWORK_LABEL, PathEnvironment},
    process::{self, Facts, native_move::native_move},
    proto::{
        Message, Pointer,
        layers::{self, Resources},
    },
    reapply::{original, reapply},
    render::{self, Named, Source, Texts},
    revision::{Revision, advice},
    selection,
    taint::{Tainted, TaintedValues},
};

const TEMPLATE_ERROR: &str = "failed to run injection template: ";

/// What the pod's cluster has that an injection depends on.
#[derive(Debug, Clone, Copy, Default)]
pub struct PodCluster<'c> {
    /// `ProxyConfig`s, if the cluster has any.
    pub resources: Option<&'c Resources>,
    /// Nodes of the pod's cluster; `None` if they cannot be read.
    pub nodes: Option<&'c Nodes>,
    /// Annotations of the pod's namespace.
    pub namespace_annotations: &'c [(String, String)],
}

/// A pod with its sidecar.
#[derive(Debug, Clone, PartialEq)]
pub struct Injected {
    /// The pod.
    pub pod: Json,
    /// The pod before its injection without what `OpenShift` drops for it; `None` if nothing is. A patch
    /// does not remove what was dropped.
    pub without_dropped: Option<Arc<Json>>,
    /// What the author of the pod should know.
    pub warnings: Vec<String>,
    /// The values of the pod that do not stay within their scalar in what the templates write. There is
    /// a warning about them, too.
    pub tainted: Vec<Tainted>,
}

/// A pod before its injection.
#[derive(Debug)]
pub struct Injection<'i> {
    revision: &'i Revision,
    pod: Arc<Json>,
    namespace: String,
    environment: PathEnvironment,
    /// The pod's owner, if it need not be guessed.
    owner: Option<Owner>,
    /// How long the caller waits; `None` for ever.
    patience: Option<Arc<dyn Patience>>,
    /// What happens to tainted values.
    tainted_values: TaintedValues,
    /// The values that were found to be tainted.
    tainted: Vec<Tainted>,
}

impl<'i> Injection<'i> {
    /// An injection of a pod, which is in the request's namespace if it names none; `environment` has the
    /// variables of the webhook's path. The pod is copied only if there is another reference to it.
    #[must_use]
    pub fn new(
        revision: &'i Revision,
        pod: Arc<Json>,
        request_namespace: &str,
        mut environment: PathEnvironment,
    ) -> Self {
        let namespace = match text(&pod, "/metadata/namespace") {
            "" => request_namespace,
            own => own,
        };
        let namespace = namespace.to_owned();
        environment.add_cluster_and_network(&revision.values, label(&pod, NETWORK_LABEL));
        let (owner, patience, tainted_values) = (None, None, revision.tainted_values);
        let tainted = Vec::new();
        Self { revision, pod, namespace, environment, owner, patience, tainted_values, tainted }
    }

    /// The same with another mode for tainted values than that of the configuration.
    #[must_use]
    pub fn with_tainted_values(self, tainted_values: TaintedValues) -> Self {
        Self { tainted_values, ..self }
    }

    /// The same with an owner that is known: the workload with the template of the pod.
    #[must_use]
    pub fn with_owner(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    /// Sets how long the caller waits. After that the injection stops with an error.
    pub(crate) fn set_patience(&mut self, patience: Arc<dyn Patience>) {
        self.patience = Some(patience);
    }

    /// Checks that the caller still waits.
    ///
    /// # Errors
    /// It has left, or its deadline has passed; the message of the denial.
    pub(crate) fn must_be_awaited(&self) -> Result<(), String> {
        match &self.patience {
            Some(patience) if patience.is_over() => Err(OverBudget::Gone.to_string()),
            _ => Ok(()),
        }
    }

    /// Sets the owner, as [`Self::with_owner`].
    pub(crate) fn set_owner(&mut self, owner: Owner) {
        self.owner = Some(owner);
    }

    /// Begins anew with the pod as received: the one before was merged. Its owner is guessed.
    pub(crate) fn begin_anew(&mut self, pod: Arc<Json>) {
        (self.pod, self.owner) = (pod, None);
    }

    /// Checks the types of the pod's values, which all other steps rely on.
    ///
    /// # Errors
    /// The message of the denial.
    pub fn check(&self) -> Result<(), String> {
        if !self.pod.is_object() {
            let kind = injectd_merge::json_type(&self.pod);
            return Err(format!("json: cannot unmarshal {kind} into Go value of type v1.Pod"));
        }
        injectd_merge::check_pod(&self.pod).map_err(|error| error.to_string())
    }

    /// The namespace the pod will be in.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of the pod's cluster.
    #[must_use]
    pub fn cluster(&self) -> &str {
        self.environment.cluster(&self.revision.values)
    }

    /// Whether the pod is injected, and why.
    #[must_use]
    pub fn decide(&self) -> Decision {
        decide(&self.revision.config, self.revision.release, &self.pod, &self.namespace)
    }

    /// The pod with its sidecar.
    ///
    /// # Errors
    /// The message of the denial.
    pub fn inject(mut self, cluster: PodCluster<'_>) -> Result<Injected, String> {
        self.inject_with(cluster, None)
    }

    /// The same; `record` gets what the templates read. The pod is merged, so that another injection
    /// must [begin anew](Self::begin_anew).
    ///
    /// # Errors
    /// The message of the denial.
    pub(crate) fn inject_with(
        &mut self,
        cluster: PodCluster<'_>,
        record: Option<&Record>,
    ) -> Result<Injected, String> {
        let revision = self.revision;
        let release = revision.release;
        // Before anything is rendered: of several errors, Istio reports this one.
        self.validate_annotations()?;
        let without_dropped = self.without_dropped();
        let pod = without_dropped.as_ref().unwrap_or(&self.pod);
        let own = self.own_proxy_config();
        let proxy = Arc::new(self.proxy_config(own.as_ref(), cluster.resources));
        let (native, native_warning) =
            revision.mode.is_native(cluster.nodes, text(&self.pod, "/spec/nodeName"));
        let patience = self.patience.clone();
        let is_over = || patience.as_ref().is_some_and(|patience| patience.is_over());
        let budget = Budget::of(pod, &is_over);
        let setting = Setting { cluster, native, budget: &budget, record };
        let Written { patches, missing, tainted } = self.write(pod, &proxy, setting)?;
        self.tainted = tainted;
        let tainted = self.allowed_taint()?;
        let advice = advice::of_pod(&self.pod, &revision.known_annotations, release);
        // The only copy of the pod is merged, unless somebody compares with it.
        let mut pod = match &without_dropped {
            Some(pod) => Json::clone(pod),
            None => Arc::unwrap_or_clone(mem::take(&mut self.pod)),
        };
        // Before the merge, which changes the containers of the pod.
        let original = original(&pod, &patches.item_names());
        let facts = self.facts(own.as_ref(), &proxy);
        let mut warnings: Vec<String> =
            self.environment.warnings.iter().cloned().chain(native_warning).collect();
        let mut warn = |warning: process::Warning| warnings.push(warning.to_string());
        let template = patches
            .merge_into(&mut pod, &budget, |template, pod| {
                native_move(pod, template, native, release).into_iter().for_each(&mut warn);
            })
            .map_err(|error| error.to_string())?;
        // Errors of the templates before it come first.
        missing.map_or(Ok(()), Err)?;
        reapply(&mut pod, &template, &original, &facts, &budget)
            .map_err(|error| format!("failed to re apply container: {}", with_causes(&error)))?
            .into_iter()
            .for_each(&mut warn);
        // These steps read all of the pod, and so does the patch: much less than a merge does.
        budget.spend(steps_of(&pod) / 4).map_err(|over| format!("{TEMPLATE_ERROR}{over}"))?;
        process::process(&mut pod, &template, &facts)
            .map_err(|error| format!("failed to process pod: {error}"))?
            .into_iter()
            .for_each(&mut warn);
        warnings.extend(tainted.into_iter().chain(advice).chain(advice::of_volumes(&pod)));
        Ok(Injected { pod, without_dropped, warnings, tainted: self.tainted.clone() })
    }

    /// The pod without what `OpenShift` drops for it; `None` if nothing is.
    fn without_dropped(&self) -> Option<Arc<Json>> {
        if !self.revision.is_openshift() {
            return None;
        }
        let mut pod = Json::clone(&self.pod);
        openshift::drop_application_user(&mut pod, self.revision.release).then(|| Arc::new(pod))
    }

    fn validate_annotations(&self) -> Result<(), String> {
        let release = self.revision.release;
        let annotations = self.pod.pointer("/metadata/annotations").and_then(Json::as_object);
        let proxy_config = |config: &str| {
            layers::check_annotation(config, release).map_err(|error| error.to_string())
        };
        annotations::validate(annotations, release, proxy_config)
            .map_err(|error| format!("{TEMPLATE_ERROR}{error}"))
    }

    /// The `ProxyConfig` of the pod's annotation.
    fn own_proxy_config(&self) -> Option<Message> {
        let text = annotation(&self.pod, annotations::PROXY_CONFIG_ANNOTATION)?;
        layers::read_annotation(text, self.revision.release).ok()
    }

    fn proxy_config(&self, own: Option<&Message>, resources: Option<&Resources>) -> Message {
        let label = |key: &str| label(&self.pod, key);
        let pod = layers::Pod { namespace: &self.namespace, label: &label, annotation: own };
        let none = Resources::default();
        let resources = resources.unwrap_or(&none);
        layers::effective(&self.revision.mesh, resources, pod, self.revision.release)
    }

    /// The `ProxyConfig` of the pod with these resources, with or without its annotation.
    pub(crate) fn layered_config(&self, has_annotation: bool, resources: &Resources) -> Message {
        let own = self.own_proxy_config().filter(|_| has_annotation);
        self.proxy_config(own.as_ref(), Some(resources))
    }

    fn proxy_ids(&self, cluster: PodCluster<'_>) -> ProxyIds {
        if !self.revision.is_openshift() {
            return ProxyIds::default();
        }
        ProxyIds::of(|wanted| {
            let found = cluster.namespace_annotations.iter().find(|(key, _)| key == wanted);
            found.map(|(_, value)| value.as_str())
        })
    }

    /// The names of the templates that the pod asks for.
    fn asked_templates(&self) -> Option<&str> {
        annotation(&self.pod, selection::TEMPLATES_ANNOTATION)
    }

    /// What the templates write up to the first that cannot be used, and why it cannot.
    fn render(&self, source: Source<'_>, asked: Option<&str>) -> (Texts<'i>, Option<String>) {
        let revision = self.revision;
        let template = |name: &str| {
            selection::template(&revision.config, name)
                .map_err(|error| format!("{TEMPLATE_ERROR}{error}"))?;
            match revision.templates.get_key_value(name) {
                Some((_, Err(error))) => {
                    Err(format!("{TEMPLATE_ERROR}{name}: {error}{}", advice(error)))
                }
                Some((name, Ok(template))) => Ok(Some(Named { name, template })),
                None => Ok(None),
            }
        };
        let mut missing = None;
        let names = selection::names(&revision.config, asked).unwrap_or_else(|error| {
            missing = Some(format!("{TEMPLATE_ERROR}{error}"));
            Vec::new()
        });
        let templates: Vec<_> = names
            .into_iter()
            .map(template)
            // Those before it are still executed: Istio reports the first error in the order of the
            // templates.
            .map_while(|found| found.map_err(|error| missing = Some(error)).ok())
            .flatten()
            .collect();
        let mut record = source.record;
        let reads = record.as_mut().map(|record| record as &mut dyn Reads);
        self.with_context(reads, source.budget.is_over(), |context| {
            (render::write(&templates, source, context), missing)
        })
    }

    /// Runs `work` with what templates may use.
    fn with_context<T>(
        &self,
        reads: Option<&mut dyn Reads>,
        is_over: &dyn Fn() -> bool,
        work: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        let variable = |name: &str| self.revision.environment.get(name).cloned();
        let hooks = MessageHooks { release: self.revision.release };
        let mut context = Context::default();
        context.is_over = is_over;
        context.environment = &variable;
        context.hooks = &hooks;
        if let Some(reads) = reads {
            context.reads = Some(reads);
        }
        work(&mut context)
    }

    fn facts<'f>(&'f self, own: Option<&Message>, proxy: &Message) -> Facts<'f> {
        let revision = self.revision;
        Facts {
            release: revision.release,
            status_port: i32::try_from(self.status_port()).unwrap_or_default(),
            tproxy: proxy.value("interception_mode").is_some()
                && enum_text(proxy, "InterceptionMode") == "TPROXY",
            hold: self.hold(own),
            // On by default, also for a mesh config that does not name it.
            prometheus_merge: revision.mesh.boolean("enable_prometheus_merge").unwrap_or(true),
            rewrite_probes: revision
                .values
                .flag(&["sidecarInjectorWebhook", "rewriteAppHTTPProbe"]),
            revision: &revision.name,
            environment: &self.environment.variables,
            injected_annotations: &revision.config.injected_annotations,
        }
    }

    fn status_port(&self) -> i64 {
        self.revision.default_config().map_or(0, |config| config.integer("status_port"))
    }

    /// Whether applications wait for the proxy: by the mesh with the pod's annotation, or the values.
    fn hold(&self, own: Option<&Message>) -> bool {
        let revision = self.revision;
        let key = "hold_application_until_proxy_starts";
        let flag = own
            .and_then(|config| config.boolean(key))
            .or_else(|| revision.default_config().and_then(|config| config.boolean(key)));
        flag.unwrap_or_default()
            || revision.values.flag(&["global", "proxy", "holdApplicationUntilProxyStarts"])
    }
}

/// The name of an enum's value.
fn enum_text(message: &Message, go_field: &str) -> String {
    let pointer = Pointer { of: message.of(), target: Some(message) };
    pointer.getter(&format!("Get{go_field}")).map(|view| view.to_string()).unwrap_or_default()
}

fn text<'p>(pod: &'p Json, pointer: &str) -> &'p str {
    pod.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::{release::Release, revision::Files};

    const CONFIG: &str = "
policy: enabled
templates:
  sidecar: ''
  bad: '{{ fail \"boom\" }}'
  waypoint: '{{ nofunc }}'
";

    fn denial(templates: &str) -> String {
        let files = Files {
            config: CONFIG,
            values: "{}",
            mesh: "",
            shared_mesh: "",
            labels: &BTreeMap::new(),
            release: Some(Release::NEWEST),
            revision: "",
            environment: &BTreeMap::new(),
            allowed_functions: &[],
        };
        let revision = Revision::new(files).expect("must be usable");
        let annotations = json!({"inject.istio.io/templates": templates});
        let pod = json!({"metadata": {"annotations": annotations}, "spec": {"containers": []}});
        let injection =
            Injection::new(&revision, Arc::new(pod), "default", PathEnvironment::default());
        injection.inject(PodCluster::default()).expect_err("must be denied")
    }

    #[test]
    fn errors_of_templates_come_in_their_order() {
        assert!(
            denial("bad, nope").ends_with("error calling fail: boom"),
            "{}",
            denial("bad, nope")
        );
        assert!(denial("sidecar, nope, bad").contains("requested template \"nope\" not found"));
    }

    #[test]
    fn a_template_for_gateways_that_does_not_parse_denies_the_pod() {
        let expected = "waypoint: template: inject:1: function \"nofunc\" not defined";
        assert_eq!(denial("sidecar, waypoint"), format!("{TEMPLATE_ERROR}{expected}"));
    }
}
