//! A compiled patch. The settings decide the fixed segments; the pod fills the slots. There is one
//! template per set of overrides.
//!
//! The operations and their order are `docs/spec/linkerd/template.md` §1. Not for filling:
//! [`super::render`].

use super::{
    annotations::{
        CONTROL_PLANE_NAMESPACE_LABEL, CREATED_BY_ANNOTATION, PROXY_VERSION_ANNOTATION,
        TRUST_ROOT_SHA256_ANNOTATION, WORKLOAD_NAMESPACE_LABEL,
    },
    env_var::EnvVar,
    no_value,
    release::{Delta, Release},
    settings::{Denial, Settings},
    trust_roots::TrustRoots,
    values::{CapabilityLists, Image, Mount, Ports, Resources, Values, if_set},
};
use crate::{
    outcome::Warnings,
    patch::{Part, Writer, write_add_string},
};

mod checks;
mod debug;
mod env;
mod init;
mod proxy;
mod validator;
mod volumes;

/// A slot of the template. A slot writes its own commas, except for value tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Empty metadata and annotations where the pod has none, and annotations before
    /// `linkerd.io/…`; each operation is followed by a comma.
    Head,
    /// The inject annotation, if it is inherited.
    InjectAnnotation,
    /// Empty labels, if the pod has none.
    RootLabels,
    /// The label with the name of the workload.
    WorkloadLabel,
    /// Value token: the namespace of the workload.
    WorkloadNamespace,
    /// Empty volumes and init containers, if the pod has none.
    RootLists,
    /// Value token: capabilities of the init container.
    InitCapabilities,
    /// Member of the proxy's security context.
    ProxyCapabilities,
    /// Item: the mount of the service account's token.
    ServiceAccountMount,
    /// Value token: the pod's ports.
    InboundPorts,
    /// Item: the variable for opaque ports, if there are any.
    OpaquePorts,
    /// Value token: labels of traces.
    TracingLabels,
    /// Items: additional variables.
    AdditionalEnv,
}

/// Values of the slots that the pod does not set.
#[derive(Debug)]
pub struct SlotDefaults {
    /// `proxy.capabilities`.
    pub proxy_capabilities: Option<CapabilityLists>,
    /// `proxyInit.capabilities`.
    pub init_capabilities: CapabilityLists,
    /// `proxy.saMountPath`.
    pub service_account_mount: Option<Mount>,
    /// `proxy.opaquePorts`.
    pub opaque_ports: String,
    /// `proxy.tracing.labels`, sorted by key.
    pub tracing_labels: Vec<(String, String)>,
    /// `proxy.additionalEnv`.
    pub additional_env: Vec<EnvVar>,
}

/// A compiled patch.
#[derive(Debug)]
pub struct Template {
    /// Segments and slots in order.
    pub parts: Vec<Part<Slot>>,
    /// The path of the pod in the object; empty for a pod.
    pub path_prefix: &'static str,
    /// Values of the slots that the pod does not set.
    pub defaults: SlotDefaults,
    /// Bytes of base64 in the fixed segments.
    pub base64_len: usize,
}

/// The result of compiling a set of overrides.
#[derive(Debug)]
pub struct Compiled {
    /// The template, or the reason to deny every pod with these overrides.
    pub template: Result<Template, Denial>,
    /// Warnings about ignored overrides.
    pub warnings: Warnings,
}

/// The input for a template.
#[derive(Debug, Clone, Copy)]
pub struct Source<'s> {
    /// The settings.
    pub settings: &'s Settings,
    /// The release whose patch the template produces.
    pub release: Release,
    /// The trust roots.
    pub trust_roots: &'s TrustRoots,
    /// The namespace of Linkerd's control plane.
    pub control_plane_namespace: &'s str,
}

type Out = Writer<Slot>;

/// The pull policy of an image. One of blanks alone is empty, and becomes null: upstream pastes it
/// unquoted into YAML, which reads blanks as nothing.
fn pull_policy<'v>(values: &'v Values, image: &'v Image) -> &'v str {
    let policy = if_set(&image.pull_policy, &values.image_pull_policy);
    if policy.trim_matches(' ').is_empty() { "" } else { policy }
}

impl Compiled {
    /// Compiles the template for pods at `path_prefix` of their objects.
    #[must_use]
    pub fn new(source: Source<'_>, path_prefix: &'static str) -> Self {
        Self {
            template: Template::compile(source, path_prefix),
            warnings: source.settings.warnings.clone(),
        }
    }

    /// Approximate size in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        // Segments are stored as JSON and as base64, and the allocator rounds up
        // (`docs/performance.md`).
        const FIXED: usize = 2048;
        // JSON is three quarters of its base64: both are 7/4 of it, and 2/4 are for the allocator.
        FIXED + self.template.as_ref().map_or(0, |template| template.base64_len * 9 / 4)
    }
}

impl Template {
    fn compile(source: Source<'_>, path_prefix: &'static str) -> Result<Self, Denial> {
        let proxy_ports = checks::check(source)?;
        let mut out = Out::default();
        out.list(|out| {
            write_metadata(out, source, path_prefix);
            Operations { source, ports: proxy_ports, prefix: path_prefix }.write(out);
        });
        let parts = out.into_parts();
        let segments = parts.iter().map(|part| match part {
            Part::Segment(segment) => segment.base64_len(),
            Part::Slot(_) => 0,
        });
        let values = &source.settings.values;
        Ok(Self {
            base64_len: segments.sum(),
            parts,
            path_prefix,
            defaults: SlotDefaults {
                proxy_capabilities: values.proxy.capabilities.clone(),
                init_capabilities: values.proxy_init.capabilities.clone(),
                service_account_mount: values.proxy.sa_mount_path.clone(),
                opaque_ports: values.proxy.opaque_ports.clone(),
                tracing_labels: values.proxy.tracing.labels.clone(),
                additional_env: values.proxy.additional_env.clone(),
            },
        })
    }
}

/// Operations 1 to 7: annotations and labels.
fn write_metadata(out: &mut Out, source: Source<'_>, prefix: &str) {
    let values = &source.settings.values;
    let version = if_set(&values.proxy.image.version, &values.linkerd_version);
    let created_by = format!("linkerd/proxy-injector {}", values.linkerd_version);
    let annotation = |key, value: &str| add_string(prefix, "/metadata/annotations", key, value);
    let label = |key, value: &str| add_string(prefix, "/metadata/labels", key, value);

    out.slot(Slot::Head);
    // Each operation of the head has its comma already.
    out.punctuation(b"");
    out.raw(&annotation(CREATED_BY_ANNOTATION, &created_by));
    out.slot(Slot::InjectAnnotation);
    out.raw(&annotation(PROXY_VERSION_ANNOTATION, version));
    out.raw(&annotation(TRUST_ROOT_SHA256_ANNOTATION, &source.trust_roots.sha256));
    out.slot(Slot::RootLabels);
    out.raw(&label(CONTROL_PLANE_NAMESPACE_LABEL, source.control_plane_namespace));
    out.slot(Slot::WorkloadLabel);
    let key = WORKLOAD_NAMESPACE_LABEL.replace('/', "~1");
    operation(out, prefix, &format!("/metadata/labels/{key}"), |out| {
        out.slot(Slot::WorkloadNamespace);
    });
    out.slot(Slot::RootLists);
}

fn add_string(prefix: &str, parent: &str, key: &str, value: &str) -> Vec<u8> {
    let mut operation = Vec::new();
    write_add_string(&mut operation, prefix, parent, key, &no_value(value));
    operation
}

fn operation(out: &mut Out, prefix: &str, path: &str, value: impl FnOnce(&mut Out)) {
    out.object(|out| {
        out.key("op").string("add");
        out.key("path").string(&format!("{prefix}{path}"));
        out.key("value");
        value(out);
    });
}

/// Operations 8 to 14: volumes and containers.
struct Operations<'s> {
    source: Source<'s>,
    ports: Ports,
    prefix: &'static str,
}

impl Operations<'_> {
    fn write(&self, out: &mut Out) {
        let Self { source, ports, .. } = *self;
        let values = &source.settings.values;
        let native = source.is_native();
        // A native sidecar starts before the pod's own init containers, and linkerd-init before it.
        // Any other proxy starts after all init containers: they must run before their traffic is
        // redirected.
        let first = if native { "/spec/initContainers/0" } else { "/spec/initContainers/-" };
        if values.cni_enabled {
            self.add(out, first, |out| validator::write(out, source));
        } else {
            self.add(out, "/spec/volumes/-", volumes::write_xtables);
            self.add(out, first, |out| init::write(out, source, ports));
        }
        if source.settings.debug_sidecar {
            self.add(out, "/spec/containers/-", |out| debug::write(out, source));
        }
        self.add(out, "/spec/volumes/-", volumes::write_identity);
        if source.has_podinfo() {
            self.add(out, "/spec/volumes/-", volumes::write_podinfo);
        }
        if values.token_projection == Some(true) {
            self.add(out, "/spec/volumes/-", volumes::write_token);
        }
        let last = match (native, values.proxy.r#await) {
            (true, _) => "/spec/initContainers/1",
            // A kubelet starts containers in their order, and waits for the hook of each: only the
            // first one can hold back the others.
            (false, true) => "/spec/containers/0",
            (false, false) => "/spec/containers/-",
        };
        self.add(out, last, |out| proxy::write(out, source, ports));
    }

    fn add(&self, out: &mut Out, path: &str, value: impl FnOnce(&mut Out)) {
        operation(out, self.prefix, path, value);
    }
}

impl Source<'_> {
    /// Whether the proxy runs as a native sidecar: an init container that restarts.
    fn is_native(self) -> bool {
        self.settings.values.proxy.native_sidecar && self.release.has(Delta::NativeSidecar)
    }

    /// Whether the patch has the volume with the pod's labels. Linkerd 2.19 omits it by mistake.
    fn has_podinfo(self) -> bool {
        let is_omitted =
            self.release.has(Delta::TracingEnabled) && !self.release.has(Delta::PodinfoVolume);
        self.settings.values.proxy.tracing.enabled && !is_omitted
    }

    /// The image and pull policy of the proxy.
    fn proxy_image(self) -> (String, String) {
        let values = &self.settings.values;
        let policy = pull_policy(values, &values.proxy.image);
        (values.proxy.image.reference(&values.linkerd_version), policy.to_owned())
    }

    /// The resources of init container and validator: the proxy's since 24.6.4.
    fn init_resources(&self) -> &Resources {
        let values = &self.settings.values;
        if self.release.has(Delta::SharedResources) {
            &values.proxy.resources
        } else {
            &values.proxy_init.resources
        }
    }
}
