//! `injectd inject --mesh istio`: what `istioctl kube-inject` does from files.
//!
//! The rules are those of the webhook: policy, selectors, labels and annotations decide. The owner of
//! a pod template's pods is the workload, which the webhook has to guess.

use std::sync::Arc;

use injectd_command::{CommandError, config::Purpose};
use injectd_core::{
    lookups::{Lookups as _, Metadata},
    mesh::Mesh as _,
};
use injectd_explain::completion;
use injectd_istio::{injection::Injection, mesh::Istio, owner::Owner, path::PathEnvironment};
use injectd_profiles::{IstioInjector, Profile};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::{Args, kind_of, pods::must_have_spec};
use crate::manifests::{self, Action, Edited, Entry, pod_of, pod_prefix, text};

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let annotate = args.annotate.then_some("--annotate");
    let flag = annotate.or(args.cluster.set()).map(str::to_owned).or_else(|| args.settings.set());
    if let Some(flag) = flag {
        return Err(CommandError::Usage(format!("{flag} does not work with --mesh istio")));
    }
    let injector = Arc::new(args.config.istio_injector(Purpose::Inject)?);
    let mesh = injector.mesh();
    let profile = Profile::Istio(Arc::clone(&injector));
    let path = args.config.path(&profile).map_err(CommandError::Usage)?;
    let runtime = manifests::runtime()?;
    let inputs = args.manifests.read(&runtime);
    let manifests = Manifests { runtime, injector, path, namespace: &args.namespace };
    args.manifests.run(inputs, "injected", |object, kind| Ok(manifests.edit(&mesh, object, kind)))
}

struct Manifests<'a> {
    runtime: Runtime,
    injector: Arc<IstioInjector>,
    path: String,
    /// The namespace of objects that do not set one.
    namespace: &'a str,
}

impl Manifests<'_> {
    /// What injection makes of an object of this kind.
    fn edit(&self, mesh: &Istio, object: &Value, kind: &str) -> Edited {
        let Some(prefix) = pod_prefix(object, kind_of(object, kind), kind) else {
            return Edited { object: None, entry: Entry::of(object, kind, Action::Unchanged) };
        };
        Edited::of_pods(self.inject(mesh, object, kind, prefix), object, kind, prefix)
    }

    fn inject(
        &self,
        mesh: &Istio,
        object: &Value,
        kind: &str,
        prefix: &str,
    ) -> Result<Edited, String> {
        must_have_spec(object, prefix)?;
        let namespace = match text(object, "/metadata/namespace") {
            "" => self.namespace,
            own => own,
        };
        let pod = Arc::new(pod_of(object, prefix));
        let environment = PathEnvironment::parse(&self.path);
        let injection = Injection::new(mesh.revision(), pod, namespace, environment);
        let injection = match prefix {
            "" => injection,
            _ => injection.with_owner(Owner {
                kind: kind.to_owned(),
                api_version: text(object, "/apiVersion").to_owned(),
                name: text(object, "/metadata/name").to_owned(),
                namespace: namespace.to_owned(),
            }),
        };
        injection.check()?;
        let decision = injection.decide();
        if !decision.reason.injects() {
            let reason = decision.reason;
            let entry = Entry::of(object, kind, Action::Skipped).because(reason.text());
            let warnings = decision.warnings;
            let entry = Entry { reasons: vec![reason.as_str()], warnings, ..entry };
            return Ok(Edited { object: None, entry });
        }
        let namespace = self.namespace(injection.namespace())?;
        let cluster = mesh.pod_cluster(injection.cluster(), &namespace.annotations);
        let injected = injection.inject(cluster)?;
        let mut warnings = decision.warnings;
        warnings.extend(injected.warnings);
        let before = object.pointer(prefix).unwrap_or(object);
        warnings.extend(completion::warning(before, &injected.pod, mesh));
        let entry = Entry { warnings, ..Entry::of(object, kind, Action::Injected) };
        Ok(Edited { object: Some(with_pod(object, prefix, injected.pod)), entry })
    }

    fn namespace(&self, name: &str) -> Result<Arc<Metadata>, String> {
        let (mesh, lookups) = (self.injector.mesh(), self.injector.lookups());
        let found = self.runtime.block_on(lookups.namespace(name, mesh.namespace_reads()));
        found.map(|found| found.unwrap_or_else(Metadata::none)).map_err(|error| error.to_string())
    }
}

/// The object with another pod.
pub(crate) fn with_pod(object: &Value, prefix: &str, mut pod: Value) -> Value {
    if prefix.is_empty() {
        return pod;
    }
    let mut object = object.clone();
    if let (Some(template), Some(pod)) = (object.pointer_mut(prefix), pod.as_object_mut()) {
        let has = |key: &str| template.get(key).is_some();
        for key in ["apiVersion", "kind"].into_iter().filter(|key| !has(key)) {
            pod.shift_remove(key);
        }
        *template = Value::Object(std::mem::take(pod));
    }
    object
}
