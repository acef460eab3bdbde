//! Values of a pod that do not stay within their scalar, and what each mode does about them.

use std::sync::Arc;

use injectd_core::{
    explain::{Tainted, TaintedMode, TaintedValue},
    lookups::Metadata,
    mesh::Reviewed,
    outcome::Outcome,
};
use serde_json::Value;

use crate::{
    injection::Injection,
    mesh::Istio,
    object::Object,
    path::PathEnvironment,
    taint::{TaintedValues, problem},
};

impl Istio {
    /// What the guard finds in a pod, whatever the mode of the configuration; `None` if that is nothing.
    pub(super) fn tainted<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        pod: &Value,
        namespace: &Metadata,
        outcome: &Outcome<'a>,
    ) -> Option<Tainted> {
        let used = self.revision().tainted_values;
        let is_guarded = used != TaintedValues::Off && outcome.denial.is_none();
        if is_guarded && outcome.tainted == 0 {
            return None;
        }
        let injection = |mode| {
            let environment = PathEnvironment::parse(reviewed.path);
            let pod = Arc::new(pod.clone());
            let namespace = &reviewed.request.namespace;
            Injection::new(self.revision(), pod, namespace, environment).with_tainted_values(mode)
        };
        let mut denied = injection(TaintedValues::Deny);
        let cluster = self.pod_cluster(denied.cluster(), &namespace.annotations);
        let _ = denied.inject_with(cluster, None);
        let found = denied.tainted();
        if found.is_empty() {
            return None;
        }
        // Without the guard the pod may be denied as well, since it is no YAML or no valid pod.
        let denial = injection(TaintedValues::Off).inject(cluster).err();
        let outcome = |mode| match (mode, &denial) {
            (TaintedValues::Deny, _) => format!("denied: {}", problem(found)),
            (_, Some(denial)) => format!("denied, as by Istio: {denial}"),
            (TaintedValues::Warn, None) => "injected as by Istio, with a warning".to_owned(),
            (TaintedValues::Off, None) => "injected as by Istio".to_owned(),
        };
        let mode = |mode: TaintedValues| TaintedMode {
            mode: mode.as_str(),
            is_in_use: mode == used,
            outcome: outcome(mode),
        };
        let values = found.iter().map(|value| TaintedValue {
            value: value.source.to_string(),
            templates: value.templates.clone(),
        });
        Some(Tainted { values: values.collect(), modes: TaintedValues::ALL.map(mode).into() })
    }
}
