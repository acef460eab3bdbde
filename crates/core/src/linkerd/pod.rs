//! A borrowed view of the object under review: only the fields that rules and slots read.
//!
//! One struct serves pods, workloads with a pod template and services, so that a review is decoded
//! in one pass before its kind is known. `null` reads as absent, unknown fields are skipped, and
//! the last of repeated keys wins.
//!
//! Not for typed Kubernetes objects: unread fields are not validated.

use smallvec::SmallVec;

use crate::{
    json::{self, ReadError},
    object::{Kind, OwnerReference},
    request::View,
    view::{Anything, HasItems, Integer, IntegerOrName, List, Presence, Text, view},
};

mod collections;
mod workload;

pub use collections::{Containers, LINKERD_DOMAIN, ServiceAccountMount, TextMap};
pub use workload::{JobSpec, JobTemplate, ObjectSpec, OtherSpec, Template};

/// Where the kubelet mounts a service account's token.
pub const SERVICE_ACCOUNT_MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

view! {
    /// The object of a review.
    pub struct Object {
        /// The object's own kind; may be empty.
        pub kind: Text<'a> = "kind",
        /// The object's own metadata.
        pub metadata: Metadata<'a> = "metadata",
        /// The spec of any kind.
        pub spec: ObjectSpec<'a> = "spec",
    }
}

view! {
    /// The fields that are read of an object of unknown kind.
    struct Bare {
        /// The object's own kind.
        kind: Text<'a> = "kind",
        /// The object's own metadata.
        metadata: Metadata<'a> = "metadata",
    }
}

view! {
    /// `ObjectMeta`.
    pub struct Metadata {
        /// May be empty: then `generate_name` is set.
        pub name: Text<'a> = "name",
        /// The prefix of a name that the API server will generate.
        pub generate_name: Text<'a> = "generateName",
        /// May be empty in a review; the request has it.
        pub namespace: Text<'a> = "namespace",
        /// Labels.
        pub labels: TextMap<'a> = "labels",
        /// Annotations.
        pub annotations: TextMap<'a> = "annotations",
        /// References to owners.
        pub owner_references: List<OwnerReference<'a>, 1> = "ownerReferences",
        creation_timestamp: Presence = "creationTimestamp",
        deletion_grace_period: Option<Anything> = "deletionGracePeriodSeconds",
        deletion_timestamp: Option<Anything> = "deletionTimestamp",
        finalizers: Presence = "finalizers",
        generation: Presence = "generation",
        managed_fields: Presence = "managedFields",
        resource_version: Presence = "resourceVersion",
        self_link: Presence = "selfLink",
        uid: Presence = "uid",
    }
}

view! {
    /// The fields of a pod spec.
    pub struct Spec {
        /// Whether the pod uses the network of its node.
        pub host_network: Option<bool> = "hostNetwork",
        /// Whether the token of the service account is mounted.
        pub automount_service_account_token: Option<bool> = "automountServiceAccountToken",
        /// Whether there are volumes.
        pub volumes: HasItems = "volumes",
        /// Init containers.
        pub init_containers: List<Container<'a>, 0> = "initContainers",
        /// Regular containers.
        pub containers: Containers<'a> = "containers",
    }
}

view! {
    /// A container.
    pub struct Container {
        /// Its name.
        pub name: Text<'a> = "name",
        /// Its image.
        pub image: Text<'a> = "image",
        /// The ports it declares.
        pub ports: List<ContainerPort<'a>, 2> = "ports",
        /// Its liveness probe.
        pub liveness_probe: Probe<'a> = "livenessProbe",
        /// Its readiness probe.
        pub readiness_probe: Probe<'a> = "readinessProbe",
    }
}

view! {
    /// The fields of the first container that the sidecar copies.
    pub(crate) struct FirstContainer {
        /// Its first mount at [`SERVICE_ACCOUNT_MOUNT_PATH`].
        pub service_account_mount: ServiceAccountMount<'a> = "volumeMounts",
        /// Its security context.
        pub security_context: SecurityContext<'a> = "securityContext",
    }
}

view! {
    /// A port of a container.
    pub struct ContainerPort {
        /// May be empty.
        pub name: Text<'a> = "name",
        /// The port's number.
        pub number: Integer = "containerPort",
    }
}

view! {
    /// A probe.
    pub struct Probe {
        /// Set for probes over HTTP.
        pub http_get: Option<HttpGet<'a>> = "httpGet",
    }
}

view! {
    /// An HTTP probe.
    pub struct HttpGet {
        /// Port number, or name of a port.
        pub port: IntegerOrName<'a> = "port",
    }
}

view! {
    /// A mount of a volume.
    pub struct VolumeMount {
        /// Name of the volume.
        pub name: Text<'a> = "name",
        /// Path in the container.
        pub mount_path: Text<'a> = "mountPath",
        /// Whether the mount is read-only.
        pub read_only: Option<bool> = "readOnly",
    }
}

view! {
    /// A container's security context.
    pub struct SecurityContext {
        /// Capabilities; `{}` is present, `null` is absent.
        pub capabilities: Option<Capabilities<'a>> = "capabilities",
    }
}

view! {
    /// Linux capabilities.
    pub struct Capabilities {
        /// Added.
        pub add: List<Text<'a>, 0> = "add",
        /// Dropped.
        pub drop: List<Text<'a>, 0> = "drop",
    }
}

view! {
    /// A port of a service.
    pub struct ServicePort {
        /// The service's port.
        pub port: Integer = "port",
        /// Number or name of the pod's port; 0 if unset.
        pub target_port: IntegerOrName<'a> = "targetPort",
    }
}

// === impl Object ===

impl<'a> Object<'a> {
    /// The metadata and spec of the pod: the object's own, or its template's.
    ///
    /// `None` for kinds without pods.
    #[must_use]
    pub fn pod(&self, kind: Kind) -> Option<(&Metadata<'a>, &Spec<'a>)> {
        let template = match kind {
            Kind::Pod => return Some((&self.metadata, &self.spec.pod)),
            Kind::Workload(_) => self.spec.other.template.as_deref()?,
            Kind::CronJob => self.spec.other.job_template.as_deref()?.spec.template.as_deref()?,
            Kind::Service | Kind::Namespace | Kind::Other => return None,
        };
        Some((&template.metadata, &template.spec))
    }
}

impl<'a> View<'a> for Object<'a> {
    fn read_bare(json: &'a str) -> Result<Self, ReadError> {
        let Bare { kind, metadata, .. } = json::read(json)?;
        Ok(Self { kind, metadata, ..Self::default() })
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    fn name(&self) -> &Text<'a> {
        self.metadata.name_or_prefix()
    }

    fn owner_kind(&self) -> Option<&str> {
        self.metadata.owner().map(|owner| &*owner.kind.0)
    }

    /// Gives a workload without its template an empty one, as Go's decoder does.
    fn complete(&mut self, kind: Kind) {
        let template = match kind {
            Kind::Workload(_) => &mut self.spec.other.template,
            Kind::CronJob => {
                &mut self.spec.other.job_template.get_or_insert_default().spec.template
            }
            Kind::Pod | Kind::Service | Kind::Namespace | Kind::Other => return,
        };
        template.get_or_insert_default();
    }
}

// === impl Metadata ===

impl<'a> Metadata<'a> {
    /// Whether this is Go's zero `ObjectMeta`. A list or map that is present but empty is not zero,
    /// except for annotations (`inject.go`, `injectPodAnnotations`).
    #[must_use]
    pub fn is_zero(&self) -> bool {
        let texts = [&self.name, &self.generate_name, &self.namespace];
        let others = [
            self.creation_timestamp,
            self.finalizers,
            self.generation,
            self.managed_fields,
            self.resource_version,
            self.self_link,
            self.uid,
        ];
        texts.into_iter().all(|text| text.is_empty())
            && !self.labels.is_present()
            && self.annotations.is_empty()
            && !self.owner_references.is_present()
            && self.deletion_grace_period.is_none()
            && self.deletion_timestamp.is_none()
            && others.iter().all(|field| !field.0)
    }

    /// The name, or the prefix of the name that the API server will generate.
    #[must_use]
    pub fn name_or_prefix(&self) -> &Text<'a> {
        if self.name.is_empty() { &self.generate_name } else { &self.name }
    }

    /// The owner, if there is exactly one reference; a pod with more counts as bare
    /// (`metadata_api.go`).
    #[must_use]
    pub fn owner(&self) -> Option<&OwnerReference<'a>> {
        match self.owner_references.as_slice() {
            [owner] => Some(owner),
            _ => None,
        }
    }
}

// === impl Spec ===

impl<'a> Spec<'a> {
    /// The token mount of the first container.
    #[must_use]
    pub fn service_account_mount(&self) -> Option<&VolumeMount<'a>> {
        self.containers.first.service_account_mount.0.as_ref()
    }

    /// The capabilities of the first container.
    #[must_use]
    pub fn capabilities(&self) -> Option<&Capabilities<'a>> {
        self.containers.first.security_context.capabilities.as_ref()
    }
}

// === impl Container ===

impl Container<'_> {
    /// The numbered ports of its HTTP liveness and readiness probes.
    #[must_use]
    pub fn probe_ports(&self) -> SmallVec<[i32; 2]> {
        [&self.liveness_probe, &self.readiness_probe]
            .into_iter()
            .filter_map(|probe| match probe.http_get.as_ref()?.port {
                IntegerOrName::Integer(port) => Some(port),
                IntegerOrName::Name(_) => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
