//! A revision of Istio: a configuration that was read and checked.

use std::{collections::BTreeMap, sync::Arc};

use injectd_core::namespace::NamespaceReads;
use injectd_gotemplate::{Functions, ParseError, Refusal, Template, Value};

use crate::{
    advice::KnownAnnotations,
    config::{Config, ConfigError, Policy, Values},
    detect::{Source, detect, last_with_same_markers},
    document::Document,
    native::{Mode, NATIVE_SIDECARS_VARIABLE},
    openshift,
    proto::{
        Message, defaults,
        mesh::{self, MeshError},
    },
    release::{Delta, Release},
    selection,
    taint::TaintedValues,
};

mod names;
mod wrong_case;

/// What a revision is made from: the files of its `ConfigMap`s, and istiod's environment.
#[derive(Debug, Clone, Copy)]
pub struct Files<'f> {
    /// The key `config` of `istio-sidecar-injector`.
    pub config: &'f str,
    /// The key `values` of it.
    pub values: &'f str,
    /// The key `mesh` of `istio`.
    pub mesh: &'f str,
    /// The key `mesh` of the `ConfigMap` that `$SHARED_MESH_CONFIG` names; `mesh` is applied over it.
    pub shared_mesh: &'f str,
    /// The labels of `istio-sidecar-injector`, of which [`detect`] reads some.
    pub labels: &'f BTreeMap<String, String>,
    /// The release; `None` is that of labels, config and values.
    pub release: Option<Release>,
    /// The revision; empty is `default`.
    pub revision: &'f str,
    /// istiod's variables.
    pub environment: &'f BTreeMap<String, String>,
    /// The functions that templates may use although they reach out of the process, such as
    /// `getHostByName`.
    pub allowed_functions: &'f [String],
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `config`.
    #[error(transparent)]
    Config(ConfigError),
    /// `values`.
    #[error(transparent)]
    Values(ConfigError),
    /// `mesh`.
    #[error("{}", .0.plain())]
    Mesh(MeshError),
    /// `mesh` of [`Files::shared_mesh`].
    #[error("{}", .0.plain())]
    SharedMesh(MeshError),
    /// A template does not parse.
    #[error("config.templates.{name} line {}: {}{}", .error.line, .error.message, advice(.error))]
    Template {
        /// The name of the template.
        name: String,
        /// Why.
        error: ParseError,
    },
}

impl StartError {
    /// Whether [`Files::allowed_functions`] could have prevented it.
    #[must_use]
    pub fn is_about_allowed_functions(&self) -> bool {
        matches!(self, Self::Template { error, .. } if error.refusal == Some(Refusal::ReachesOut))
    }
}

/// What to do about a template that does not parse, where it is not to mend the template.
pub(crate) fn advice(error: &ParseError) -> &'static str {
    match error.refusal {
        Some(Refusal::ReachesOut) => "; --allow-functions turns it on",
        Some(Refusal::Secret) | None => "",
    }
}

/// The configuration of one revision.
#[derive(Debug)]
pub struct Revision {
    pub(crate) release: Release,
    /// The release for people: `1.24 or 1.25` where the configuration may be of both.
    pub(crate) shown_release: String,
    pub(crate) config: Config,
    /// A template that pods must ask for may be an error.
    pub(crate) templates: BTreeMap<String, Result<Template, ParseError>>,
    pub(crate) known_annotations: KnownAnnotations,
    pub(crate) values: Values,
    pub(crate) values_data: Value,
    pub(crate) mesh: Arc<Message>,
    /// The name of the revision; empty is `default`.
    pub(crate) name: String,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) mode: Mode,
    pub(crate) namespace_reads: NamespaceReads,
    pub(crate) tainted_values: TaintedValues,
    warnings: Vec<String>,
}

impl Revision {
    /// Reads the configuration.
    ///
    /// # Errors
    /// The first document that cannot be used, with the place in it.
    pub fn new(files: Files<'_>) -> Result<Self, StartError> {
        let config = Config::parse(files.config).map_err(StartError::Config)?;
        // A file of another kind reads as such a configuration: it would switch the injection off
        // without a word.
        if config.policy == Policy::default() && config.templates.is_empty() {
            return Err(StartError::Config(ConfigError::Empty(Document::Config)));
        }
        let values = Values::parse(files.values).map_err(StartError::Values)?;
        let label = |name: &str| files.labels.get(name).map(String::as_str);
        let (release, source) = files.release.map_or_else(
            || {
                let (release, source) = detect(label, &config, &values);
                (release, Some(source))
            },
            |release| (release, None),
        );
        let mesh = mesh::apply(&defaults::mesh_config(release), files.shared_mesh, release)
            .map_err(StartError::SharedMesh)?;
        let mesh = mesh::apply(&mesh, files.mesh, release).map_err(StartError::Mesh)?;
        let mesh = Arc::new(mesh);
        let allowed = files.allowed_functions.iter();
        let functions = allowed.fold(functions(release), |all, name| all.with_outside(name));
        let by_default = selection::names(&config, None).unwrap_or_default();
        let parse = |(name, text): (&String, &String)| {
            let template = Template::parse("inject", text, &functions);
            // Other pods keep their sidecars.
            let denies_pods = |error: &ParseError| {
                is_of_gateways(name) || error.refusal.is_some() && !by_default.contains(&&**name)
            };
            match template {
                Err(error) if !denies_pods(&error) => {
                    Err(StartError::Template { name: name.clone(), error })
                }
                template => Ok((name.clone(), template)),
            }
        };
        let templates = config.templates.iter().map(parse).collect::<Result<_, _>>()?;
        let native = files.environment.get(NATIVE_SIDECARS_VARIABLE).map(String::as_str);
        let (mode, mode_warning) = Mode::read(release, native);
        let (shown_release, of_release) = shown(release, source);
        let wrong_case = config.templates.iter();
        let wrong_case = wrong_case.filter_map(|(name, text)| wrong_case::warning(name, text));
        let warnings = mode_warning.into_iter().chain(of_release).chain(wrong_case).collect();
        Ok(Self {
            release,
            templates,
            known_annotations: KnownAnnotations::of(&config),
            values_data: Value::from_json(values.tree()),
            values,
            config,
            mesh,
            name: files.revision.to_owned(),
            environment: files.environment.clone(),
            mode,
            namespace_reads: if openshift::is_platform(files.environment) {
                openshift::namespace_reads()
            } else {
                NamespaceReads::default()
            },
            shown_release,
            tainted_values: TaintedValues::default(),
            warnings,
        })
    }

    /// The same revision, with what happens to pods whose values do not stay within their scalar.
    #[must_use]
    pub fn with_tainted_values(self, tainted_values: TaintedValues) -> Self {
        Self { tainted_values, ..self }
    }

    /// Whether a template may read the name of a pod, or of its node.
    #[must_use]
    pub fn reads_names(&self) -> bool {
        self.config.templates.values().any(|template| names::are_read(template))
    }

    /// The release whose rules apply.
    #[must_use]
    pub fn release(&self) -> Release {
        self.release
    }

    /// What is wrong with the configuration, although it can be used, such as a template for Gateways
    /// that does not parse (istiod renders it itself, and no pod asks for it), or one that no pod gets by
    /// default and that calls a function which is not available.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let templates = self.templates.iter().filter_map(|(name, template)| {
            let error = template.as_ref().err()?.clone();
            let error = StartError::Template { name: name.clone(), error };
            Some(format!("{error}; pods that ask for it are denied"))
        });
        self.warnings.iter().cloned().chain(templates)
    }

    /// The names of the templates that a pod may ask for.
    pub fn template_names(&self) -> impl Iterator<Item = &str> {
        self.templates.keys().map(String::as_str)
    }

    /// The templates of pods, by their names: not those that istiod itself renders for Gateways.
    pub(crate) fn pod_templates(&self) -> impl Iterator<Item = (&str, &Template)> {
        let templates = self.templates.iter().filter(|(name, _)| !is_of_gateways(name));
        templates.filter_map(|(name, template)| Some((&**name, template.as_ref().ok()?)))
    }

    /// The annotations of Istio that the injector, the templates or the proxy read.
    pub fn known_annotations(&self) -> impl Iterator<Item = &str> {
        self.known_annotations.iter()
    }

    /// Whether the nodes decide about native sidecars.
    #[must_use]
    pub fn asks_nodes(&self) -> bool {
        self.mode == Mode::Auto
    }

    /// Whether the proxy's user comes from the namespace: on `OpenShift`.
    #[must_use]
    pub fn is_openshift(&self) -> bool {
        openshift::is_platform(&self.environment)
    }

    pub(crate) fn default_config(&self) -> Option<&Message> {
        self.mesh.message("default_config")
    }
}

/// The release for people, and a warning if it is not known for sure.
fn shown(release: Release, source: Option<Source>) -> (String, Option<String>) {
    let last = (source == Some(Source::Markers)).then(|| last_with_same_markers(release)).flatten();
    if let Some(last) = last {
        let either = format!("1.{} or {last}", release.minor());
        let warning = format!(
            "the configuration is of Istio {either}, and neither a label nor global.tag says which: \
             the rules are those of {release}; set --istio-release"
        );
        return (either, Some(warning));
    }
    let newest = Release::NEWEST;
    let warning = match source {
        Some(Source::Assumed) => {
            Some(format!("the release of Istio is unknown: the rules are those of {release}"))
        }
        _ if release.minor() > newest.minor() => {
            Some(format!("Istio {release} is newer than {newest}, whose rules are used for it"))
        }
        _ => None,
    };
    (release.to_string(), warning)
}

/// Whether istiod makes the workloads of Gateways from a template of this name
/// (`pilot/pkg/config/kube/gateway/deploymentcontroller.go`).
fn is_of_gateways(name: &str) -> bool {
    matches!(name, "waypoint" | "kube-gateway") || name.starts_with("agentgateway")
}

/// The functions of a release.
fn functions(release: Release) -> Functions {
    let mut functions = Functions::istio();
    let later = [
        ("mergeMaps", Delta::MergeMaps),
        ("sha512sum", Delta::Sha512),
        ("omitNil", Delta::OmitNil),
        ("otelResourceAttributes", Delta::OtelAttributes),
    ];
    for (name, delta) in later {
        if !release.has(delta) {
            functions = functions.without(name);
        }
    }
    if !release.has(Delta::QualifiedNetworks) {
        functions = functions.with_plain_networks();
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "policy: enabled\ntemplates:\n  sidecar: ''\n  waypoint: '{{ nofunc }}'\n";

    fn files(config: &str) -> Files<'_> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        Files {
            config,
            values: "{}",
            mesh: "",
            shared_mesh: "",
            labels: &NONE,
            release: Some(Release::NEWEST),
            revision: "",
            environment: &NONE,
            allowed_functions: &[],
        }
    }

    #[test]
    fn a_refused_function_rejects_the_template_of_every_pod_and_denies_pods_that_ask() {
        for (call, problem) in [
            ("derivePassword 1 `long` `p` `u` `e`", "function \"derivePassword\" is not available"),
            ("expandenv `$A`", "function \"expandenv\" is off"),
            ("getHostByName `a`", "function \"getHostByName\" is off"),
        ] {
            let config = |by_default: &str| {
                let all = format!("sidecar: 'x', own: '{{{{ {call} }}}}'");
                Revision::new(files(&format!("{by_default}\ntemplates: {{{all}}}\n")))
            };
            let problem = format!("config.templates.own line 1: {problem}");
            let asked = config("defaultTemplates: [sidecar]").expect("must be usable");
            let warnings: Vec<_> = asked.warnings().collect();
            assert!(warnings[0].starts_with(&problem), "{warnings:?}");
            assert!(warnings[0].ends_with("pods that ask for it are denied"), "{warnings:?}");
            let alias = "defaultTemplates: [a]\naliases: {a: [own]}";
            for by_default in ["defaultTemplates: [own]", alias] {
                let error = config(by_default).err().map(|error| error.to_string());
                assert!(error.is_some_and(|error| error.starts_with(&problem)), "{by_default}");
            }
        }
    }

    fn warnings(values: &str, release: Option<Release>, native: Option<&str>) -> Vec<String> {
        let native = native.map(|text| (NATIVE_SIDECARS_VARIABLE.to_owned(), text.to_owned()));
        let environment = native.into_iter().collect();
        let files = Files { values, release, environment: &environment, ..files(CONFIG) };
        Revision::new(files).expect("must be usable").warnings().collect()
    }

    #[test]
    fn what_is_wrong_with_a_usable_configuration_is_named() {
        let gateway = "config.templates.waypoint line 1: function \"nofunc\" not defined; pods that \
                       ask for it are denied";
        let known = Some(Release::new(30, 0));
        assert_eq!(warnings("{}", known, None), [gateway]);
        for (release, native, start) in [
            (None, None, "the release of Istio is unknown: the rules are those of 1.31"),
            (known, Some("maybe"), "ENABLE_NATIVE_SIDECARS must be true, false or auto"),
            (Some(Release::new(99, 0)), None, "Istio 1.99.0 is newer than 1.31"),
        ] {
            let found = warnings("{}", release, native);
            assert!(found[0].starts_with(start), "{found:?}");
            assert_eq!(found[1..], [gateway]);
        }
        let unclear = "{global: {tag: my-build, waypoint: {}}}";
        let begin =
            "the configuration is of Istio 1.24 or 1.25, and neither a label nor global.tag";
        let found = warnings(unclear, None, None);
        assert!(
            found[0].starts_with(begin) && found[0].ends_with("set --istio-release"),
            "{found:?}"
        );
        assert_eq!(warnings(unclear, known, None), [gateway]);
        assert_eq!(warnings("{pilot: {env: {}, cni: {}}}", None, None), [gateway]);
    }

    #[test]
    fn a_template_for_gateways_is_missing_only_to_pods_that_ask_for_it() {
        assert!(is_of_gateways("waypoint"));
        assert!(is_of_gateways("kube-gateway"));
        assert!(is_of_gateways("agentgateway-waypoint"));
        assert!(!is_of_gateways("sidecar"));
        assert!(!is_of_gateways("gateway"));
    }
}
