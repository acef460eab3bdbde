//! The story of an injection: what happens to a pod from its arrival to the patched pod.

#![expect(clippy::disallowed_types, reason = "templates may read and write any field")]

use std::{collections::BTreeMap, sync::Arc};

use injectd_core::causes::with_causes;
use injectd_gotemplate::{Context, Functions, ParseError, Template, Value};
use serde_json::{Map, Value as Json};

use crate::{
    annotations,
    config::{Config, ConfigError, Values},
    data::TemplateData,
    decide::{Decision, decide},
    image::{self, ImageType},
    message::{self, MessageHooks},
    native::{Mode, Nodes},
    openshift::{self, ProxyIds},
    owner::Owner,
    path::PathEnvironment,
    pod,
    process::{self, Facts, native_move::native_move},
    proto::{
        Message, defaults,
        layers::{self, Resources},
        mesh::{self, MeshError},
    },
    reapply::reapply,
    release::Release,
    render::render,
    selection, strip,
};

/// What an injector runs with: the files of its `ConfigMap`s, and its environment.
#[derive(Debug, Clone, Copy)]
pub struct Files<'f> {
    /// The key `config` of `istio-sidecar-injector`.
    pub config: &'f str,
    /// The key `values` of it.
    pub values: &'f str,
    /// The key `mesh` of `istio`.
    pub mesh: &'f str,
    /// The release.
    pub release: Release,
    /// The revision; empty is `default`.
    pub revision: &'f str,
    /// istiod's variables.
    pub environment: &'f BTreeMap<String, String>,
}

/// Why an injector cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `config` or `values`.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `mesh`.
    #[error("mesh: {0}")]
    Mesh(#[from] MeshError),
    /// A template does not parse.
    #[error("templates.{name}: {error}")]
    Template {
        /// The name of the template.
        name: String,
        /// Why.
        error: ParseError,
    },
}

/// The objects of a cluster that injection depends on.
#[derive(Debug, Default)]
pub struct Cluster {
    /// `ProxyConfig`s.
    pub resources: Resources,
    /// Nodes; `None` if they cannot be read.
    pub nodes: Option<Nodes>,
    /// Annotations of namespaces.
    pub namespaces: BTreeMap<String, Map<String, Json>>,
}

/// An injector of one revision.
#[derive(Debug)]
pub struct Injector {
    release: Release,
    config: Config,
    templates: BTreeMap<String, Template>,
    values: Values,
    values_data: Value,
    mesh: Arc<Message>,
    revision: String,
    environment: BTreeMap<String, String>,
    mode: Mode,
}

/// What became of a pod.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The pod stays as it is.
    Skipped(Decision),
    /// The pod with its sidecar.
    Injected(Json),
}

const TEMPLATE_ERROR: &str = "failed to run injection template: ";

impl Injector {
    /// Reads the configuration.
    ///
    /// # Errors
    /// The first document that cannot be used, with the place in it.
    pub fn new(files: Files<'_>) -> Result<Self, StartError> {
        let config = Config::parse(files.config)?;
        let values = Values::parse(files.values)?;
        let base = defaults::mesh_config(files.release);
        let mesh = Arc::new(mesh::apply(&base, files.mesh, files.release)?);
        let functions = functions(files.release);
        let parse = |(name, text): (&String, &String)| {
            let template = Template::parse("inject", text, &functions);
            let failed = |error| StartError::Template { name: name.clone(), error };
            template.map(|template| (name.clone(), template)).map_err(failed)
        };
        let templates = config.templates.iter().map(parse).collect::<Result<_, _>>()?;
        let native = files.environment.get("ENABLE_NATIVE_SIDECARS").map(String::as_str);
        Ok(Self {
            release: files.release,
            templates,
            values_data: Value::from_json(values.tree()),
            values,
            config,
            mesh,
            revision: files.revision.to_owned(),
            environment: files.environment.clone(),
            mode: Mode::read(files.release, native).0,
        })
    }

    /// Injects a pod. `path` is the webhook's decoded path, `namespace` the request's. The cluster is
    /// that of its name, `None` if it is not known.
    ///
    /// # Errors
    /// The message of the denial.
    pub fn inject<'c>(
        &self,
        original: &Json,
        namespace: &str,
        path: &str,
        cluster: impl Fn(&str) -> Option<&'c Cluster>,
        resources: &Resources,
    ) -> Result<Verdict, String> {
        if !original.is_object() {
            let kind = kind_of_json(original);
            return Err(format!("json: cannot unmarshal {kind} into Go value of type v1.Pod"));
        }
        injectd_merge::check_pod(original).map_err(|error| error.to_string())?;
        let namespace = match text(original, "/metadata/namespace") {
            "" => namespace,
            own => own,
        };
        let decision = decide(&self.config, self.release, original, namespace);
        if !decision.injects() {
            return Ok(Verdict::Skipped(decision));
        }
        let mut environment = PathEnvironment::parse(path);
        environment.add_cluster_and_network(&self.values, original);
        let cluster = cluster(environment.cluster());
        let annotations = original.pointer("/metadata/annotations").and_then(Json::as_object);
        annotations::validate(annotations, self.release, |config| {
            layers::check_annotation(config, self.release).map_err(|error| error.to_string())
        })
        .map_err(|error| format!("{TEMPLATE_ERROR}{error}"))?;

        let mut pod = original.clone();
        let is_openshift = self.environment.get("PLATFORM").is_some_and(|it| it == "openshift");
        if is_openshift {
            openshift::drop_application_user(&mut pod, self.release);
        }
        let annotation = |key: &str| annotation(original, key);
        let label = |key: &str| original.pointer("/metadata/labels")?.get(key)?.as_str();
        let layered = layers::Pod {
            namespace,
            label: &label,
            annotation: annotation(annotations::PROXY_CONFIG_ANNOTATION),
        };
        let proxy = layers::effective(&self.mesh, resources, layered, self.release);
        let status_port = self.default_config().map_or(0, |config| config.integer("status_port"));
        let (native, _) = self.mode.is_native(
            cluster.and_then(|cluster| cluster.nodes.as_ref()),
            text(original, "/spec/nodeName"),
        );
        let stripped = strip::strip(&pod, self.release, status_port)
            .map_err(|error| format!("{TEMPLATE_ERROR}{error}"))?;
        let ids = match cluster.and_then(|cluster| cluster.namespaces.get(namespace)) {
            Some(annotations) if is_openshift => {
                ProxyIds::of(|key| annotations.get(key).and_then(Json::as_str))
            }
            _ => ProxyIds::default(),
        };
        let data = self.data(&stripped, namespace, &proxy, native, ids);
        let facts = Facts {
            release: self.release,
            status_port: i32::try_from(status_port).unwrap_or_default(),
            tproxy: proxy.value("interception_mode").is_some()
                && message_text(&proxy, "InterceptionMode") == "TPROXY",
            hold: self.hold(annotation(annotations::PROXY_CONFIG_ANNOTATION)),
            prometheus_merge: self.mesh.boolean("enable_prometheus_merge").unwrap_or(true),
            rewrite_probes: self.values.flag(&["sidecarInjectorWebhook", "rewriteAppHTTPProbe"]),
            revision: &self.revision,
            environment: &environment.variables,
            injected_annotations: &self.config.injected_annotations,
        };
        let variable = |name: &str| self.environment.get(name).cloned();
        let hooks = MessageHooks { release: self.release };
        let mut context = Context::default();
        context.environment = &variable;
        context.hooks = &hooks;
        let asked = annotation(selection::TEMPLATES_ANNOTATION);
        let mut templates = Vec::new();
        for name in selection::names(&self.config, asked) {
            selection::template(&self.config, name)
                .map_err(|error| format!("{TEMPLATE_ERROR}{error}"))?;
            templates.extend(self.templates.get(name));
        }
        let rendered = render(templates, &data, &pod, &mut context, |rendered, merged| {
            native_move(merged, rendered, native, self.release);
        })
        .map_err(|error| error.to_string())?;
        let mut merged = rendered.merged;
        reapply(&mut merged, &rendered.template, &pod, &facts)
            .map_err(|error| format!("failed to re apply container: {}", with_causes(&error)))?;
        process::process(&mut merged, &rendered.template, &facts)
            .map_err(|error| format!("failed to process pod: {error}"))?;
        Ok(Verdict::Injected(merged))
    }

    fn data(
        &self,
        stripped: &Json,
        namespace: &str,
        proxy: &Message,
        native: bool,
        ids: ProxyIds,
    ) -> Value {
        let mut pod = stripped.clone();
        if let Some(metadata) = pod.get_mut("metadata").and_then(Json::as_object_mut) {
            metadata.shift_remove("managedFields");
            let own = metadata.entry("namespace").or_insert(Json::Null);
            if own.as_str().is_none_or(str::is_empty) {
                *own = namespace.into();
            }
        }
        let owner = Owner::of(&pod, namespace, self.release);
        let image_type = annotation(&pod, image::IMAGE_TYPE_ANNOTATION);
        let types = ImageType {
            annotation: image_type,
            proxy_config: proxy.message("image").map(|image| image.text("image_type")),
        };
        let mode = self.mesh.message("inbound_traffic_policy");
        let mode = mode.map(|policy| message_text(policy, "Mode")).unwrap_or_default();
        let struct_of = |entries: [(&str, &str); 2]| {
            let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value.into()));
            Value::from_json(&Json::Object(entries.collect()))
        };
        TemplateData {
            type_meta: struct_of([("Kind", &owner.kind), ("APIVersion", &owner.api_version)]),
            deployment_meta: struct_of([("Name", &owner.name), ("Namespace", &owner.namespace)]),
            object_meta: pod::object_meta(&pod),
            spec: pod::spec(&pod),
            proxy_config: message::of(Arc::new(proxy.clone())),
            mesh_config: message::of(Arc::clone(&self.mesh)),
            values: self.values_data.clone(),
            revision: self.revision.clone(),
            proxy_image: image::proxy_image(&self.values, self.release, types),
            proxy_init_image: image::proxy_init_image(&self.values, image_type),
            native_sidecars: native,
            inbound_traffic_policy_mode: match mode.as_str() {
                "LOCALHOST" => "localhost".to_owned(),
                _ => "passthrough".to_owned(),
            },
            proxy_uid: ids.uid.into(),
            proxy_gid: ids.gid.into(),
            compliance_policy: self
                .environment
                .get("COMPLIANCE_POLICY")
                .cloned()
                .unwrap_or_default(),
        }
        .into()
    }

    fn default_config(&self) -> Option<&Message> {
        self.mesh.message("default_config")
    }

    /// Whether applications wait for the proxy: by the mesh with the pod's annotation, or the values.
    fn hold(&self, annotation: Option<&str>) -> bool {
        let own = annotation.and_then(|text| layers::read_annotation(text, self.release).ok());
        let key = "hold_application_until_proxy_starts";
        let flag = own
            .as_ref()
            .and_then(|config| config.boolean(key))
            .or_else(|| self.default_config().and_then(|config| config.boolean(key)));
        flag.unwrap_or_default()
            || self.values.flag(&["global", "proxy", "holdApplicationUntilProxyStarts"])
    }
}

/// The functions of a release.
fn functions(release: Release) -> Functions {
    let mut functions = Functions::istio();
    let later: [(&str, &[(u16, u16)]); 4] = [
        ("mergeMaps", &[(21, 0)]),
        ("sha512sum", &[(24, 0)]),
        ("omitNil", &[(28, 6), (29, 1), (30, 0)]),
        ("otelResourceAttributes", &[(30, 0)]),
    ];
    for (name, first) in later {
        if !release.since(first) {
            functions = functions.without(name);
        }
    }
    if !release.since(&[(23, 6), (24, 4), (25, 1)]) {
        functions = functions.with_plain_networks();
    }
    functions
}

fn message_text(message: &Message, go: &str) -> String {
    crate::proto::Pointer { of: message.of(), target: Some(message) }
        .getter(&format!("Get{go}"))
        .map(|view| view.to_string())
        .unwrap_or_default()
}

fn kind_of_json(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn text<'p>(pod: &'p Json, pointer: &str) -> &'p str {
    pod.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

fn annotation<'p>(pod: &'p Json, key: &str) -> Option<&'p str> {
    pod.pointer("/metadata/annotations")?.get(key)?.as_str()
}
