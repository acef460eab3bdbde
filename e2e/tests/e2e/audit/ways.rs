//! The ways to injectd that the scenarios take: of which mesh the pods are, and whose webhook
//! configurations lead there.

use std::net::{IpAddr, Ipv4Addr};

use injectd_harness::{
    expect::{Outcome, expect, failed},
    istio::{Revision, of_chart, printed},
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
pub(crate) struct Way {
    /// The name of the suite, and of the namespace of the pods, the webhook and the Lease.
    pub(crate) name: &'static str,
    /// The last number of the address of injectd and its Service. That of an earlier way may be taken
    /// still.
    host: u8,
    /// The mesh whose sidecar the pods ask for.
    pub(super) mesh: Mesh,
    /// The one that is called for the pods, and others.
    configurations: &'static [Configuration],
}

/// Those of a run without `--long`: one for each mesh; the others differ from them in the webhook alone.
pub(crate) const SHORT_WAYS: [&str; 2] = ["audit", "audit-istio-of-both"];

/// All of them. In the last two, the webhooks of both meshes are called or there.
pub(crate) const WAYS: [Way; 6] = [
    Way { name: "audit", host: 17, mesh: Mesh::Linkerd, configurations: &[Configuration::Linkerd] },
    Way {
        name: "audit-istiod",
        host: 31,
        mesh: Mesh::Istio,
        configurations: &[Configuration::Istiod],
    },
    Way { name: "audit-tag", host: 32, mesh: Mesh::Istio, configurations: &[Configuration::Tag] },
    Way {
        name: "audit-redirected",
        host: 33,
        mesh: Mesh::Istio,
        configurations: &[Configuration::Redirected],
    },
    Way {
        name: "audit-istio-of-both",
        host: 34,
        mesh: Mesh::Istio,
        configurations: &[Configuration::Tag, Configuration::Linkerd],
    },
    Way {
        name: "audit-linkerd-of-both",
        host: 35,
        mesh: Mesh::Linkerd,
        configurations: &[Configuration::Linkerd, Configuration::Tag],
    },
];

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
    pub(super) fn ip(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(127, 100, 0, self.host))
    }

    fn has(&self, configuration: Configuration) -> bool {
        self.configurations.contains(&configuration)
    }

    fn meshes(&self) -> Vec<Mesh> {
        let has_linkerd = self.has(Configuration::Linkerd);
        let has_istio = self.configurations.iter().any(|it| *it != Configuration::Linkerd);
        let all = [(Mesh::Linkerd, has_linkerd), (Mesh::Istio, has_istio)];
        all.into_iter().filter(|(_, is_there)| *is_there).map(|(mesh, _)| mesh).collect()
    }

    /// The namespace of the pods that lack nothing.
    pub(super) fn scale(&self) -> String {
        format!("{}-scale", self.name)
    }

    /// The Service that the webhooks lead to.
    pub(super) fn service(&self) -> &'static str {
        if self.has(Configuration::Istiod) { ISTIOD } else { INJECTD }
    }

    /// A namespace whose pods ask for the sidecar.
    pub(super) fn namespace(&self, name: &str) -> Value {
        // Linkerd's webhook selects it, whatever it asks for.
        let mut labels = json!({"audited": self.name});
        let mut annotations = json!({});
        match self.mesh {
            Mesh::Linkerd => annotations = objects::enabled(),
            Mesh::Istio if self.has(Configuration::Tag) => labels["istio.io/rev"] = TAG.into(),
            Mesh::Istio => labels["istio-injection"] = "enabled".into(),
        }
        objects::namespace(name, &annotations, &labels)
    }

    /// The flags of `serve` for the meshes. Those of Linkerd's files are variables.
    pub(super) fn arguments(&self) -> Vec<String> {
        let meshes = self.meshes();
        let names: Vec<_> = meshes.iter().map(|mesh| mesh.name()).collect();
        let mut arguments = vec![format!("--mesh={}", names.join(","))];
        for mesh in meshes {
            arguments.push(format!("--{}-namespace={}", mesh.name(), self.name));
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
        for map in &mut maps {
            map["metadata"]["namespace"] = self.name.into();
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

    /// The webhook configuration that is called for the pods, for this port and CA.
    pub(super) fn configuration(&self, port: u16, ca: &str) -> Outcome<Value> {
        self.made(self.configurations[0], port, ca)
    }

    /// The other webhook configurations.
    pub(super) fn others(&self, port: u16, ca: &str) -> Outcome<Vec<Value>> {
        self.configurations[1..].iter().map(|it| self.made(*it, port, ca)).collect()
    }

    fn made(&self, configuration: Configuration, port: u16, ca: &str) -> Outcome<Value> {
        let labels = json!({"audited": self.name});
        let mut made = match configuration {
            Configuration::Linkerd => {
                objects::webhook_configuration(self.name, json!({"service": {}}), ca, &labels)
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
        // Of the suite: the names of the chart are those of other suites.
        made["metadata"]["name"] = format!("{}-{}", self.name, configuration.name()).into();
        let webhooks = made["webhooks"].as_array_mut().ok_or_else(|| failed("no webhooks"))?;
        for webhook in webhooks {
            webhook["failurePolicy"] = "Ignore".into();
            webhook["clientConfig"] = json!({
                "service": {"name": self.service(), "namespace": self.name, "port": port, "path": path},
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
