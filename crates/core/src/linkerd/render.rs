//! Fills the slots of a template for one pod.
//!
//! A pure function that builds no tree: it writes the pod's values into the patch as bytes.

use std::{borrow::Cow, collections::BTreeMap};

use smallvec::SmallVec;

use super::{
    annotations::{Annotation, RESOURCE_ATTRIBUTE_PREFIX, WORKLOAD_LABEL_PREFIX},
    env_var::{self, EnvVar},
    no_value,
    overrides::Overrides,
    pod::{Capabilities, Metadata, Spec},
    snapshot::Snapshot,
    template::{Slot, SlotDefaults, Template},
    values::{CapabilityLists, Mount},
};
use crate::{
    json,
    object::Kind,
    outcome::{Warning, Warnings, Workload},
    patch::{Part, PatchBuffer, write_add, write_add_string},
};

/// The variable with the opaque ports of a pod.
pub const OPAQUE_PORTS_VARIABLE: &str = "LINKERD2_PROXY_INBOUND_PORTS_DISABLE_PROTOCOL_DETECTION";

/// Room for the slots of a usual pod, as base64.
// Without enough room the whole answer is copied while it is written.
const SLOTS_BASE64_BYTES: usize = 2048;

/// One pod to inject, with its workload.
#[derive(Debug, Clone, Copy)]
pub struct Injection<'i, 'a> {
    /// The configuration.
    pub snapshot: &'i Snapshot,
    /// Kind of the object under review.
    pub kind: Kind,
    /// Metadata of the pod or pod template.
    pub metadata: &'i Metadata<'a>,
    /// Spec of the pod or pod template.
    pub spec: &'i Spec<'a>,
    /// The pod's annotations in layers.
    pub overrides: &'i Overrides<'i>,
    /// The workload for the workload label; `None` for bare pods.
    pub workload: Option<&'i Workload<'a>>,
    /// Namespace of the workload.
    pub namespace: &'i str,
    /// The opaque ports of the pod.
    pub opaque_ports: &'i OpaquePorts<'i>,
}

/// The source of a pod's opaque ports.
#[derive(Debug)]
pub enum OpaquePorts<'a> {
    /// An annotation of the pod or its namespace.
    Annotation(&'a str),
    /// Ports of the pod that are on the default list. They also become an annotation.
    OnDefaultList(String),
    /// No annotation and no port on the default list: the default list applies.
    Default,
}

impl<'a> OpaquePorts<'a> {
    /// Finds the source.
    #[must_use]
    pub fn of(snapshot: &Snapshot, spec: &Spec<'_>, overrides: &Overrides<'a>) -> Self {
        if let Some(value) = overrides.get(Annotation::OpaquePorts) {
            return Self::Annotation(value);
        }
        if overrides.is_own(Annotation::OpaquePorts) {
            return Self::Default;
        }
        match snapshot.default_opaque_ports.of_pod(snapshot.port_rules, spec) {
            ports if ports.is_empty() => Self::Default,
            ports => Self::OnDefaultList(ports),
        }
    }
}

impl Template {
    /// Writes the patch of one pod, and warnings about annotations that were ignored.
    pub fn render(&self, pod: Injection<'_, '_>, patch: &mut PatchBuffer, warnings: &mut Warnings) {
        patch.begin(self.base64_len + SLOTS_BASE64_BYTES);
        let mut filler =
            Filler { pod, defaults: &self.defaults, prefix: self.path_prefix, warnings };
        for part in &self.parts {
            match part {
                Part::Segment(segment) => patch.segment(segment),
                Part::Slot(slot) => filler.fill(*slot, patch.slot()),
            }
        }
        patch.finish();
    }
}

struct Filler<'f, 'a> {
    pod: Injection<'f, 'a>,
    defaults: &'f SlotDefaults,
    prefix: &'static str,
    warnings: &'f mut Warnings,
}

impl Filler<'_, '_> {
    fn fill(&mut self, slot: Slot, out: &mut Vec<u8>) {
        match slot {
            Slot::Head => self.head(out),
            Slot::InjectAnnotation => self.inject_annotation(out),
            Slot::RootLabels => {
                if self.pod.metadata.labels.is_empty() {
                    out.push(b',');
                    write_add(out, self.prefix, "/metadata/labels", b"{}");
                }
            }
            Slot::WorkloadLabel => self.workload_label(out),
            Slot::WorkloadNamespace => json::write_string(out, &no_value(self.pod.namespace)),
            Slot::RootLists => self.root_lists(out),
            Slot::InitCapabilities => self.init_capabilities(out),
            Slot::ProxyCapabilities => self.proxy_capabilities(out),
            Slot::ServiceAccountMount => self.service_account_mount(out),
            Slot::InboundPorts => {
                json::write_string(out, &self.pod.snapshot.port_rules.inbound_ports(self.pod.spec));
            }
            Slot::OpaquePorts => self.opaque_ports(out),
            Slot::TracingLabels => self.tracing_labels(out),
            Slot::AdditionalEnv => self.additional_env(out),
        }
    }

    fn head(&self, out: &mut Vec<u8>) {
        // A pod's metadata always has a namespace; a pod template may have no metadata.
        if self.pod.kind != Kind::Pod && self.pod.metadata.is_zero() {
            write_add(out, self.prefix, "/metadata", b"{}");
            out.push(b',');
        }
        if self.pod.metadata.annotations.is_empty() {
            write_add(out, self.prefix, "/metadata/annotations", b"{}");
            out.push(b',');
        }
        let mut pending = match self.pod.opaque_ports {
            OpaquePorts::OnDefaultList(ports) => Some(ports.as_str()),
            _ => None,
        };
        for (annotation, value) in self.pod.overrides.inherited() {
            // Linkerd writes annotations in the order of their keys: the ports stand among the
            // inherited ones.
            if annotation as u8 > Annotation::OpaquePorts as u8
                && let Some(ports) = pending.take()
            {
                self.annotation(out, Annotation::OpaquePorts, ports);
            }
            // Its key stands between keys of fixed annotations: it has a slot of its own.
            if annotation != Annotation::Inject {
                self.annotation(out, annotation, value);
            }
        }
        if let Some(ports) = pending {
            self.annotation(out, Annotation::OpaquePorts, ports);
        }
    }

    /// Writes an annotation of the head, followed by a comma.
    fn annotation(&self, out: &mut Vec<u8>, annotation: Annotation, value: &str) {
        let value = no_value(value);
        write_add_string(out, self.prefix, "/metadata/annotations", annotation.key(), &value);
        out.push(b',');
    }

    fn inject_annotation(&self, out: &mut Vec<u8>) {
        let inherited = self.pod.overrides.inherited().find(|(key, _)| *key == Annotation::Inject);
        if let Some((annotation, value)) = inherited {
            out.push(b',');
            // Only a valid value leads to an injection: it has no `<no value>` to be removed.
            write_add_string(out, self.prefix, "/metadata/annotations", annotation.key(), value);
        }
    }

    /// Pods of other workloads, such as a `CronJob`, get no label (`inject.go`).
    fn workload_label(&self, out: &mut Vec<u8>) {
        let Some(Workload { kind, name, .. }) = self.pod.workload else {
            return;
        };
        if self.pod.kind != Kind::Pod || matches!(Kind::of(kind), Kind::Workload(_)) {
            let key = [WORKLOAD_LABEL_PREFIX, kind].concat();
            out.push(b',');
            write_add_string(out, self.prefix, "/metadata/labels", &key, &no_value(name));
        }
    }

    fn root_lists(&self, out: &mut Vec<u8>) {
        let spec = self.pod.spec;
        for (is_empty, path) in [
            (!spec.volumes.0, "/spec/volumes"),
            (spec.init_containers.is_empty(), "/spec/initContainers"),
        ] {
            if is_empty {
                out.push(b',');
                write_add(out, self.prefix, path, b"[]");
            }
        }
    }

    /// `docs/spec/linkerd/template.md` §3: the proxy's lists, else the init container's own.
    fn init_capabilities(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"add":["NET_ADMIN","NET_RAW""#);
        let lists = match (self.pod.spec.capabilities(), &self.defaults.proxy_capabilities) {
            (Some(pod), _) => Lists::Pod(pod),
            (None, Some(lists)) => Lists::Values(lists),
            (None, None) => {
                let own = Lists::Values(&self.defaults.init_capabilities);
                return own.write_init(out, |_| true);
            }
        };
        lists.write_init(out, |dropped| !matches!(dropped, "NET_RAW" | "NET_ADMIN"));
    }

    /// `docs/spec/linkerd/template.md` §2.5.
    fn proxy_capabilities(&self, out: &mut Vec<u8>) {
        let lists = match (self.pod.spec.capabilities(), &self.defaults.proxy_capabilities) {
            (Some(pod), _) => Lists::Pod(pod),
            (None, Some(lists)) => Lists::Values(lists),
            (None, None) => return,
        };
        out.extend_from_slice(br#","capabilities":"#);
        lists.write(out);
    }

    fn service_account_mount(&self, out: &mut Vec<u8>) {
        let (path, name, read_only): (&str, &str, bool) =
            match (self.pod.spec.service_account_mount(), &self.defaults.service_account_mount) {
                (Some(mount), _) => {
                    (&mount.mount_path, &mount.name, mount.read_only.unwrap_or_default())
                }
                (None, Some(Mount { name, mount_path, read_only })) => {
                    (mount_path, name, *read_only)
                }
                (None, None) => return,
            };
        out.extend_from_slice(br#",{"mountPath":"#);
        write_string_or_null(out, path);
        out.extend_from_slice(br#","name":"#);
        write_string_or_null(out, name);
        out.extend_from_slice(if read_only {
            br#","readOnly":true}"#
        } else {
            br#","readOnly":false}"#
        });
    }

    fn opaque_ports(&mut self, out: &mut Vec<u8>) {
        let rules = self.pod.snapshot.port_rules;
        let ports = match self.pod.opaque_ports {
            OpaquePorts::Annotation(value) => {
                Cow::Owned(rules.resolve(value, self.pod.spec, self.warnings))
            }
            OpaquePorts::OnDefaultList(value) => {
                Cow::Owned(rules.resolve(value, self.pod.spec, self.warnings))
            }
            OpaquePorts::Default => Cow::Borrowed(self.defaults.opaque_ports.as_str()),
        };
        if !ports.is_empty() {
            out.extend_from_slice(br#",{"name":""#);
            out.extend_from_slice(OPAQUE_PORTS_VARIABLE.as_bytes());
            out.extend_from_slice(br#"","value":"#);
            json::write_string(out, &ports);
            out.push(b'}');
        }
    }

    /// `docs/spec/linkerd/template.md` §7: the values' labels, then the service's name, then
    /// annotations.
    fn tracing_labels(&self, out: &mut Vec<u8>) {
        let values = &self.defaults.tracing_labels;
        // A Go template ranges over a map in the order of its keys.
        let mut labels: BTreeMap<&str, &str> =
            values.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let Metadata { labels: pod_labels, annotations, .. } = self.pod.metadata;
        let service = pod_labels
            .get("app.kubernetes.io/instance")
            .or_else(|| pod_labels.get("app.kubernetes.io/name"));
        labels.extend(service.map(|service| ("service.name", service)));
        let annotations = annotations.iter();
        labels.extend(annotations.filter_map(|(key, value)| {
            Some((key.strip_prefix(RESOURCE_ATTRIBUTE_PREFIX)?, value))
        }));
        let lines = labels.iter().flat_map(|(key, value)| [key, "=", value, "\n"]);
        json::write_string(out, &lines.collect::<String>());
    }

    /// `docs/spec/linkerd/injection.md` §2.8: values, namespace and pod, merged by name.
    fn additional_env(&mut self, out: &mut Vec<u8>) {
        let annotation = Annotation::AdditionalEnv;
        let overrides = self.pod.overrides;
        let layers = [overrides.of_namespace(annotation), overrides.of_pod(annotation)];
        let known = self.pod.snapshot.supports(annotation);
        let mut added = SmallVec::<[Vec<EnvVar>; 2]>::new();
        for value in layers.into_iter().flatten().filter(|_| known) {
            match env_var::read_json(value, self.pod.snapshot.release_choice.release) {
                Ok(layer) => added.push(layer),
                Err(problem) => {
                    // Values of variables may be secrets, so the warning does not quote the text.
                    self.warnings.push(|| Warning {
                        annotation: annotation.key(),
                        problem: format!("{problem}; the whole list is ignored"),
                    });
                }
            }
        }
        let mut write = |var: &EnvVar| {
            out.push(b',');
            out.extend_from_slice(var.json());
        };
        let values = &self.defaults.additional_env;
        if added.is_empty() {
            return values.iter().for_each(write);
        }
        env_var::merged(values, added.iter().flatten()).into_iter().for_each(&mut write);
    }
}

fn write_string_or_null(out: &mut Vec<u8>, text: &str) {
    if text.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        json::write_string(out, text);
    }
}

/// Capabilities, from a pod or from the values.
enum Lists<'l, 'a> {
    Pod(&'l Capabilities<'a>),
    Values(&'l CapabilityLists),
}

impl<'l> Lists<'l, '_> {
    fn add(&self) -> Vec<&'l str> {
        match *self {
            Self::Pod(pod) => pod.add.iter().map(|text| &**text).collect(),
            Self::Values(lists) => lists.add.iter().map(String::as_str).collect(),
        }
    }

    fn drop(&self) -> Vec<&'l str> {
        match *self {
            Self::Pod(pod) => pod.drop.iter().map(|text| &**text).collect(),
            Self::Values(lists) => lists.drop.iter().map(String::as_str).collect(),
        }
    }

    /// Writes `{add, drop}` without empty lists; `null` if both are empty.
    fn write(&self, out: &mut Vec<u8>) {
        let lists = [("add", self.add()), ("drop", self.drop())];
        let mut lists = lists.into_iter().filter(|(_, list)| !list.is_empty()).peekable();
        if lists.peek().is_none() {
            return out.extend_from_slice(b"null");
        }
        for (index, (key, list)) in lists.enumerate() {
            out.push(if index == 0 { b'{' } else { b',' });
            json::write_string(out, key);
            out.push(b':');
            write_strings(out, &list);
        }
        out.push(b'}');
    }

    /// Writes the remaining capabilities of an init container, after those it always has.
    fn write_init(&self, out: &mut Vec<u8>, keep: impl Fn(&str) -> bool) {
        for added in self.add() {
            out.push(b',');
            json::write_string(out, added);
        }
        out.push(b']');
        let mut dropped = self.drop();
        dropped.retain(|capability| keep(capability));
        if !dropped.is_empty() {
            out.extend_from_slice(br#","drop":"#);
            write_strings(out, &dropped);
        }
        out.push(b'}');
    }
}

fn write_strings(out: &mut Vec<u8>, list: &[&str]) {
    for (index, item) in list.iter().enumerate() {
        out.push(if index == 0 { b'[' } else { b',' });
        json::write_string(out, item);
    }
    out.push(b']');
}
