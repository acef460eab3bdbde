//! What the templates of a pod read.

use std::sync::Arc;

use injectd_gotemplate::Value;
use serde_json::Value as Json;

use super::{Injection, TEMPLATE_ERROR, enum_text};
use crate::{
    data::TemplateData,
    fields::annotation,
    image::{self, ImageType},
    message,
    openshift::ProxyIds,
    owner::Owner,
    pod,
    proto::Message,
    strip,
};

/// A pod as received, and as templates read it.
#[derive(Debug)]
pub(super) struct Forms {
    pub(super) original: Arc<Json>,
    pub(super) stripped: Arc<Json>,
}

impl Forms {
    /// Both changed in the same way.
    pub(super) fn map(&self, change: impl Fn(&Json) -> Json) -> Self {
        let original = Arc::new(change(&self.original));
        let stripped = if Arc::ptr_eq(&self.original, &self.stripped) {
            Arc::clone(&original)
        } else {
            Arc::new(change(&self.stripped))
        };
        Self { original, stripped }
    }
}

impl Injection<'_> {
    /// The data of the templates: of the pod, and its `ProxyConfig`.
    pub(super) fn data(
        &self,
        Forms { original, stripped: pod }: &Forms,
        proxy: &Arc<Message>,
        native: bool,
        ids: ProxyIds,
    ) -> Value {
        let revision = self.revision;
        let release = revision.release;
        let guess = || Owner::of(pod, &self.namespace, release);
        let owner = self.owner.clone().unwrap_or_else(guess);
        let image_type = annotation(pod, image::IMAGE_TYPE_ANNOTATION);
        let types = ImageType {
            annotation: image_type,
            proxy_config: proxy.message("image").map(|image| image.text("image_type")),
        };
        let mode = revision.mesh.message("inbound_traffic_policy");
        let is_localhost = mode.is_some_and(|policy| enum_text(policy, "Mode") == "LOCALHOST");
        let compliance_policy = revision.environment.get("COMPLIANCE_POLICY").cloned();
        let data = TemplateData {
            release,
            type_meta: pod::type_meta(&owner, release),
            deployment_meta: pod::deployment_meta(&owner, original, release),
            object_meta: pod::object_meta(pod, release),
            spec: pod::spec(pod, release),
            proxy_config: message::of(Arc::clone(proxy)),
            mesh_config: message::of(Arc::clone(&revision.mesh)),
            values: revision.values_data.clone(),
            revision: revision.name.clone(),
            proxy_image: image::proxy_image(&revision.values, release, types),
            proxy_init_image: image::proxy_init_image(&revision.values, image_type),
            native_sidecars: native,
            inbound_traffic_policy_mode: if is_localhost { "localhost" } else { "passthrough" },
            proxy_uid: ids.uid.into(),
            proxy_gid: ids.gid.into(),
            compliance_policy: compliance_policy.unwrap_or_default(),
        };
        data.into()
    }

    /// Both forms of a pod.
    ///
    /// # Errors
    /// The message of the denial.
    pub(super) fn forms(&self, pod: &Arc<Json>) -> Result<Forms, String> {
        Ok(Forms { original: Arc::clone(pod), stripped: self.stripped(pod)? })
    }

    /// The pod that templates read: without an earlier injection, and with its namespace.
    fn stripped(&self, pod: &Arc<Json>) -> Result<Arc<Json>, String> {
        let metadata = pod.get("metadata").and_then(Json::as_object);
        let is_complete = metadata.is_none_or(|metadata| {
            let namespace = metadata.get("namespace").and_then(Json::as_str);
            namespace == Some(&*self.namespace) && !metadata.contains_key("managedFields")
        });
        if is_complete && strip::is_clean(pod) {
            return Ok(Arc::clone(pod));
        }
        let mut pod = strip::strip(pod, self.revision.release, self.status_port())
            .map_err(|error| format!("{TEMPLATE_ERROR}{error}"))?;
        if let Some(metadata) = pod.get_mut("metadata").and_then(Json::as_object_mut) {
            metadata.shift_remove("managedFields");
            metadata.insert("namespace".to_owned(), self.namespace.as_str().into());
        }
        Ok(Arc::new(pod))
    }
}
