//! The ways to injectd that the scenarios take: of which mesh the pods are, and whose webhook
//! configurations lead there.

use injectd_harness::{
    expect::{Outcome, expect, failed},
    istio::{Revision, of_chart, printed},
    namespaced::Namespaced,
    objects,
    sidecar::names,
};
use serde_json::{Value, json};

/// The Service of injectd.
const INJECTD: &str = "injectd";
/// The Service that istiod's webhooks lead to.
const ISTIOD: &str = "istiod";
/// The revision of Istio, and the release whose chart makes its webhooks.
const REVISION: &str = "default";
const RELEASE: &str = "1.31";
/// The tag of the revision.
const TAG: &str = "tagged";
/// The tag of the revision's images, and a later one.
const IMAGES: [&str; 2] = ["1.30.3", "1.30.4"];

/// A mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mesh {
    Linkerd,
    Istio,
}

/// A webhook configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Configuration {
    /// That of Linkerd's injector.
    Linkerd,
    /// That of Istio's chart, which leads to istiod.
    Istiod,
    /// A tag of injectd beside istiod.
    Tag,
    /// That of Istio's chart after `take-over.sh redirect`.
    Redirected,
}

/// A way to injectd.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) name: &'static str,
    /// The mesh whose sidecar the pods ask for.
    pub(super) mesh: Mesh,
    /// The one that is called for the pods, and others.
    configurations: &'static [Configuration],
    /// Whether it is in a run without `--long`.
    pub(super) is_short: bool,
}

/// All of them. In the last two, the webhooks of both meshes are called or there.
pub(super) const WAYS: [Way; 6] = [
    way("Linkerd", Mesh::Linkerd, &[Configuration::Linkerd], true),
    way("istiod", Mesh::Istio, &[Configuration::Istiod], false),
    way("a tag", Mesh::Istio, &[Configuration::Tag], false),
    way("redirected", Mesh::Istio, &[Configuration::Redirected], false),
    way("Istio of both", Mesh::Istio, &[Configuration::Tag, Configuration::Linkerd], true),
    way("Linkerd of both", Mesh::Linkerd, &[Configuration::Linkerd, Configuration::Tag], false),
];

const fn way(
    name: &'static str,
    mesh: Mesh,
    configurations: &'static [Configuration],
    is_short: bool,
) -> Way {
    Way { name, mesh, configurations, is_short }
}

impl Mesh {
    /// The name in metrics and flags.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Linkerd => "linkerd",
            Self::Istio => "istio",
        }
    }

    /// The container of the sidecar.
    fn proxy(self) -> &'static str {
        match self {
            Self::Linkerd => "linkerd-proxy",
            Self::Istio => "istio-proxy",
        }
    }

    /// How the name of the first container begins that injection adds without limits.
    pub(super) fn unlimited(self) -> &'static str {
        match self {
            Self::Linkerd => "linkerd-",
            Self::Istio => "istio-proxy",
        }
    }

    /// Fails unless a pod has the sidecar, or has none.
    pub(super) fn expect_proxy(self, is_there: bool, pod: &Value) -> Outcome {
        let has = ["initContainers", "containers"]
            .iter()
            .any(|list| names(pod, list).contains(&self.proxy()));
        expect("whether the pod has the sidecar", is_there, has)
    }

    /// Lets a pod ask for no sidecar.
    pub(super) fn disable(self, pod: &mut Value) {
        match self {
            Self::Linkerd => pod["metadata"]["annotations"] = objects::disabled(),
            Self::Istio => pod["metadata"]["labels"] = json!({"sidecar.istio.io/inject": "false"}),
        }
    }
}

impl Way {
    fn has(&self, configuration: Configuration) -> bool {
        self.configurations.contains(&configuration)
    }

    fn meshes(&self) -> Vec<Mesh> {
        let has_linkerd = self.has(Configuration::Linkerd);
        let has_istio = self
            .configurations
            .iter()
            .any(|configuration| *configuration != Configuration::Linkerd);
        let all = [(Mesh::Linkerd, has_linkerd), (Mesh::Istio, has_istio)];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(mesh, _)| mesh).collect()
    }

    /// The Service that the webhooks lead to.
    pub(super) fn service(&self) -> &'static str {
        if self.has(Configuration::Istiod) { ISTIOD } else { INJECTD }
    }

    /// A namespace whose pods ask for the sidecar.
    pub(super) fn namespace(&self, name: &str, it: &Namespaced<'_>) -> Value {
        // Linkerd's webhook selects it, whatever it asks for.
        let mut labels = it.labels();
        let mut annotations = json!({});
        match self.mesh {
            Mesh::Linkerd => annotations = objects::enabled(),
            Mesh::Istio if self.has(Configuration::Tag) => labels["istio.io/rev"] = TAG.into(),
            Mesh::Istio => labels["istio-injection"] = "enabled".into(),
        }
        objects::namespace(name, &annotations, &labels)
    }

    /// The flags of `serve` for the meshes. Those of Linkerd's files are variables.
    pub(super) fn arguments(&self, namespace: &str) -> Vec<String> {
        let meshes = self.meshes();
        let names: Vec<_> = meshes.iter().map(|mesh| mesh.name()).collect();
        let mut arguments = vec![format!("--mesh={}", names.join(","))];
        for mesh in meshes {
            arguments.push(format!("--{}-namespace={namespace}", mesh.name()));
        }
        arguments
    }

    /// Whether Linkerd's files are needed.
    pub(super) fn has_linkerd(&self) -> bool {
        self.has(Configuration::Linkerd)
    }

    /// The `ConfigMaps` of the meshes, from the contents of Linkerd's files.
    pub(super) fn config_maps(&self, values: &str, roots: &str) -> Vec<Value> {
        let mut maps = Vec::new();
        if self.has_linkerd() {
            for (name, key, value) in [
                ("linkerd-config", "values", values),
                ("linkerd-identity-trust-roots", "ca-bundle.crt", roots),
            ] {
                maps.push(json!({"kind": "ConfigMap", "apiVersion": "v1",
                    "metadata": {"name": name}, "data": {key: value}}));
            }
        }
        if self.meshes().contains(&Mesh::Istio) {
            maps.extend(revision(IMAGES[0]).config_maps());
        }
        maps
    }

    /// The `ConfigMap` whose change makes sidecars outdated: its name, its key, the text as it was
    /// made from this one of Linkerd's, and a newer one; and the releases of both.
    pub(super) fn newer(&self, values: &str) -> Newer {
        match self.mesh {
            Mesh::Linkerd => Newer {
                config_map: "linkerd-config",
                texts: [
                    values.to_owned(),
                    values.replace("linkerdVersion: edge-26.8.3", "linkerdVersion: edge-26.6.3"),
                ],
                reason: "edge-26.8.3, now edge-26.6.3",
            },
            Mesh::Istio => Newer {
                config_map: "istio-sidecar-injector",
                texts: IMAGES.map(|tag| revision(tag).values),
                reason: "proxyv2:1.30.4",
            },
        }
    }

    /// The name of the webhook configuration that is called for the pods.
    pub(super) fn name_of_configuration(&self, it: &Namespaced<'_>) -> String {
        it.name_of(self.configurations[0].name())
    }

    /// The webhook configurations, for this port and CA; the first one is called for the pods.
    pub(super) fn configurations(
        &self,
        it: &Namespaced<'_>,
        port: u16,
        ca: &str,
    ) -> Outcome<Vec<Value>> {
        self.configurations
            .iter()
            .map(|configuration| self.made(*configuration, it, port, ca))
            .collect()
    }

    fn made(
        &self,
        configuration: Configuration,
        it: &Namespaced<'_>,
        port: u16,
        ca: &str,
    ) -> Outcome<Value> {
        let name = it.name_of(configuration.name());
        let mut made = match configuration {
            Configuration::Linkerd => {
                objects::webhook_configuration(&name, json!({"service": {}}), ca, &it.labels())
            }
            Configuration::Istiod | Configuration::Redirected => of_chart(RELEASE, REVISION, port)?,
            Configuration::Tag => {
                let words =
                    [("REVISION", REVISION), ("TAG", TAG), ("NAMESPACE", ""), ("PORT", "0")];
                printed("tag.yaml", &words)?
            }
        };
        let path = match configuration {
            Configuration::Linkerd => "/",
            Configuration::Istiod => "/inject",
            Configuration::Tag | Configuration::Redirected => "/istio/default/inject",
        };
        made["metadata"]["name"] = name.into();
        it.confine(&mut made);
        let webhooks = made["webhooks"].as_array_mut().ok_or_else(|| failed("no webhooks"))?;
        for webhook in webhooks {
            webhook["failurePolicy"] = "Ignore".into();
            webhook["clientConfig"] = json!({
                "service": {"name": self.service(), "namespace": it.name, "port": port, "path": path},
                "caBundle": objects::base64(ca),
            });
        }
        Ok(made)
    }
}

impl Configuration {
    fn name(self) -> &'static str {
        match self {
            Self::Linkerd => "linkerd",
            Self::Istiod => "istiod",
            Self::Tag => "tag",
            Self::Redirected => "redirected",
        }
    }
}

/// A change of a mesh's configuration.
pub(super) struct Newer {
    pub(super) config_map: &'static str,
    /// The key `values`: as it was, and newer.
    pub(super) texts: [String; 2],
    /// What `audit` says of sidecars with the old one.
    pub(super) reason: &'static str,
}

fn revision(tag: &str) -> Revision {
    Revision::small(REVISION, tag, INJECTD)
}
