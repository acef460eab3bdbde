//! The data of a template: `inject.SidecarTemplateData`.

use std::{any::Any, borrow::Cow, sync::Arc};

use injectd_gotemplate::{IntKind, Object, Shape, Value};

use crate::release::{Delta, Release};

/// The fields in Go's order, with the change that brought each, if not all releases have it.
const FIELDS: [(&str, Option<Delta>); 15] = [
    ("TypeMeta", None),
    ("DeploymentMeta", None),
    ("ObjectMeta", None),
    ("Spec", None),
    ("ProxyConfig", None),
    ("MeshConfig", None),
    ("Values", None),
    ("Revision", None),
    ("NativeSidecars", Some(Delta::NativeSidecarsField)),
    ("ProxyImage", None),
    ("ProxyInitImage", Some(Delta::ProxyInitImage)),
    ("ProxyUID", Some(Delta::ProxyIds)),
    ("ProxyGID", Some(Delta::ProxyIds)),
    ("InboundTrafficPolicyMode", Some(Delta::TrafficPolicyMode)),
    ("CompliancePolicy", None),
];

/// What templates see, by Go's names of the fields. All releases have all fields here: a template
/// that uses one was made for a release that has it. Only those of the release are printed.
#[derive(Debug, Clone)]
pub struct TemplateData {
    /// The release that is followed.
    pub release: Release,
    /// `.TypeMeta`: kind and API version of the owner.
    pub type_meta: Value,
    /// `.DeploymentMeta`: name and namespace of the owner.
    pub deployment_meta: Value,
    /// `.ObjectMeta` of the pod without an earlier injection.
    pub object_meta: Value,
    /// `.Spec` of the pod without an earlier injection.
    pub spec: Value,
    /// `.ProxyConfig`, a message.
    pub proxy_config: Value,
    /// `.MeshConfig`, a message.
    pub mesh_config: Value,
    /// `.Values`: the values as a map.
    pub values: Value,
    /// `.Revision`.
    pub revision: String,
    /// `.ProxyImage`.
    pub proxy_image: String,
    /// `.ProxyInitImage`.
    pub proxy_init_image: String,
    /// `.NativeSidecars`.
    pub native_sidecars: bool,
    /// `.InboundTrafficPolicyMode`: `localhost` or `passthrough`.
    pub inbound_traffic_policy_mode: &'static str,
    /// `.ProxyUID`.
    pub proxy_uid: i64,
    /// `.ProxyGID`.
    pub proxy_gid: i64,
    /// `.CompliancePolicy`.
    pub compliance_policy: String,
}

impl From<TemplateData> for Value {
    fn from(data: TemplateData) -> Self {
        Self::Object(Arc::new(data))
    }
}

impl Object for TemplateData {
    fn type_name(&self) -> Cow<'static, str> {
        "*inject.SidecarTemplateData".into()
    }

    fn shape(&self) -> Shape {
        Shape::Pointer
    }

    fn field(&self, name: &str) -> Option<Value> {
        let int64 = |number| Value::Int(number, IntKind::Int64);
        Some(match name {
            "TypeMeta" => self.type_meta.clone(),
            "DeploymentMeta" => self.deployment_meta.clone(),
            "ObjectMeta" => self.object_meta.clone(),
            "Spec" => self.spec.clone(),
            "ProxyConfig" => self.proxy_config.clone(),
            "MeshConfig" => self.mesh_config.clone(),
            "Values" => self.values.clone(),
            "Revision" => self.revision.as_str().into(),
            "ProxyImage" => self.proxy_image.as_str().into(),
            "ProxyInitImage" => self.proxy_init_image.as_str().into(),
            "NativeSidecars" => self.native_sidecars.into(),
            "InboundTrafficPolicyMode" => self.inbound_traffic_policy_mode.into(),
            "ProxyUID" => int64(self.proxy_uid),
            "ProxyGID" => int64(self.proxy_gid),
            "CompliancePolicy" => self.compliance_policy.as_str().into(),
            _ => return None,
        })
    }

    fn fields(&self) -> Vec<(Cow<'static, str>, Value)> {
        let known = |delta: Option<Delta>| delta.is_none_or(|delta| self.release.has(delta));
        let fields = FIELDS.into_iter().filter(|(_, delta)| known(*delta));
        fields.filter_map(|(name, _)| Some((name.into(), self.field(name)?))).collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
