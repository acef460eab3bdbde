//! What the replicas are given: revisions, webhook configurations, and the manifests of
//! `deploy/istio-webhook`.

use std::{fs, path::Path};

use injectd_harness::{
    expect::{Outcome, failed},
    istio::{Revision, printed},
    manifests::arguments,
    namespaced::OF_SCENARIO,
    objects::base64,
};
use serde_json::{Value, json};

use super::deployed::Istio;

/// The namespace that the manifests are for.
const NAMESPACE: &str = "istio-system";
/// Flags of the manifests that have other values here, or none.
const REPLACED: [&str; 5] =
    ["--addr=", "--metrics-addr=", "--grpc-addr=", "--tls-cert=", "--tls-key="];

impl Istio<'_> {
    pub(super) fn revision(&self, name: &str) -> Outcome<&Revision> {
        self.revisions.get(name).ok_or_else(|| failed(format!("no revision {name}")))
    }

    pub(super) async fn install(&self, revision: &Revision) -> Outcome {
        for config_map in revision.config_maps() {
            self.create(&config_map).await?;
        }
        Ok(())
    }

    pub(super) async fn uninstall(&self, revision: &Revision) -> Outcome {
        for config_map in revision.config_maps() {
            self.lab.api.delete(&self.path(&config_map)).await?.ok()?;
        }
        Ok(())
    }

    /// Replaces both `ConfigMaps` of a revision.
    pub(super) async fn configure(&self, revision: &Revision) -> Outcome {
        for config_map in revision.config_maps() {
            let change = |object: &mut Value| object["data"] = config_map["data"].clone();
            self.lab.api.update(&self.path(&config_map), change).await?;
        }
        Ok(())
    }

    /// A webhook configuration of `deploy/istio-webhook` for injectd's Service.
    pub(super) fn configuration(&self, file: &str, revision: &str, tag: &str) -> Outcome<Value> {
        let (namespace, port) = (&*self.control_plane, self.service.addr.port());
        let words = [("REVISION", revision), ("TAG", tag), ("NAMESPACE", namespace), ("PORT", "0")];
        let mut object = printed(file, &words)?;
        for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["clientConfig"]["service"]["port"] = json!(port);
            webhook["clientConfig"]["caBundle"] = json!(base64(&self.certificate.ca));
        }
        self.confine(&mut object, revision);
        Ok(object)
    }

    /// Limits a webhook configuration to the namespaces of the scenario. Its name ends in `name`.
    pub(super) fn confine(&self, object: &mut Value, name: &str) {
        object["metadata"]["name"] = json!(self.it.name_of(name));
        self.own(object);
        self.it.confine(object);
    }

    /// Labels an object, so that it is removed at the end.
    pub(super) fn own(&self, object: &mut Value) {
        object["metadata"]["labels"][OF_SCENARIO] = json!(self.it.name);
    }

    /// The objects of the base, in its order, for the namespace of the control plane.
    pub(super) fn manifests(&self) -> Outcome<Vec<Value>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/istio-webhook/base");
        let mut objects = Vec::new();
        for file in ["rbac.yaml", "deployment.yaml", "service.yaml"] {
            let text = fs::read_to_string(folder.join(file))?;
            let text = text.replace(NAMESPACE, &self.control_plane);
            objects.extend(serde_saphyr::from_multiple::<Value>(&text)?);
        }
        Ok(objects)
    }

    /// The arguments of the Deployment's container, but for addresses and certificates.
    pub(super) fn arguments(&self) -> Outcome<Vec<String>> {
        arguments(&self.manifests()?, &REPLACED)
    }
}
