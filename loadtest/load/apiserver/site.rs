//! The cluster with injectd, the policy, all namespaces, and the pods that are created.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use injectd_harness::{
    api::{Api, collection},
    certificates::Certificate,
    client::{patch_of, review_of, wait_until_ready},
    component::Component,
    expect::{Outcome, eventually, expect, expect_same},
    injectd::Injectd,
    lab::{Lab, root, service_ip},
    linkerd::{ACCOUNT, make_account},
    objects::{enabled, namespace, owner, service, service_account, webhook_configuration},
    process::run_with_text,
    sidecar::names,
};
use injectd_testkit::reviews::TYPICAL;
use serde_json::{Value, json};

use super::{
    pods::{TOKEN_PATH, alike, as_created, remove, token_volume, with_sidecar},
    policy::{Policy, Replaced, policy},
    ways::{ALL, Way},
};

const CONTROL_PLANE: &str = "linkerd";
/// The Service of the process that serves the template, and the file of the template.
const TEMPLATES: &str = "templates";
const TEMPLATE: &str = "crates/templates-mesh/benches/ten.yaml";

pub(super) struct Site<'a> {
    api: &'a Api,
    injectd: Injectd,
    /// The process that serves the template.
    templates: Injectd,
    /// Of the API server, injectd, the other injectd and etcd.
    pub(super) pids: [u32; 4],
    /// The pod that each way creates.
    pub(super) pods: BTreeMap<Way, Value>,
    /// The Deployment and the `ReplicaSet` of [`Way::Nothing`].
    owners: Vec<Value>,
}

impl<'a> Site<'a> {
    /// The files of injectd are in this folder.
    pub(super) async fn start(lab: &'a Lab, folder: &Path) -> Outcome<Self> {
        // It would delete pods beyond the replicas of their ReplicaSet, and nothing else needs it.
        Component::beside(&lab.kubeconfig, "kube-controller-manager")?.stop().await?;
        let mut injectd = proxy_injector(lab, folder).await?;
        let pid =
            |name: &str| Component::beside(&lab.kubeconfig, name).map(|component| component.pid());
        let mut templates = serve_template(lab, folder).await?;
        let pids = [pid("kube-apiserver")?, injectd.pid()?, templates.pid()?, pid("etcd")?];
        let (api, owners) = (&lab.api, Vec::new());
        let mut site = Self { api, injectd, templates, pids, pods: BTreeMap::new(), owners };
        let review: Value = serde_json::from_str(TYPICAL)?;
        let pod = as_created(&review["request"]["object"])?;
        for way in ALL {
            site.make_namespace(way, &pod).await?;
        }
        site.make_webhooks().await?;
        let received = site.received().await?;
        let objects = site.write_objects(folder)?;
        let sidecar = answer(lab, &["--objects", &objects], &received).await?;
        let template = root().join(TEMPLATE).display().to_string();
        let flags = ["--objects", &objects, "--templates", &template];
        let of_template = answer(lab, &flags, &received).await?;
        site.make_policies(&sidecar, &of_template, token_volume(&received)?).await?;
        site.pods.insert(Way::Complete, site.complete(&sidecar)?);
        for way in [Way::Policy, Way::Injectd, Way::TemplatePolicy, Way::Template] {
            let what = format!("{} adds the sidecar", way.title());
            eventually(&what, async || site.expect_sidecar(way).await).await?;
        }
        Ok(site)
    }

    /// Creates a namespace, and the Deployment and `ReplicaSet` that own its pods.
    async fn make_namespace(&mut self, way: Way, pod: &Value) -> Outcome {
        let name = Some(way.namespace());
        let object = namespace(way.namespace(), &way.annotations(), &way.labels());
        self.api.create(None, &object).await?.created()?;
        self.api.create(name, &service_account("default")).await?.created()?;
        let labels = &pod["metadata"]["labels"];
        let template = json!({"metadata": {"labels": labels}, "spec": pod["spec"]});
        let spec =
            json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": template});
        let prefix = pod["metadata"]["generateName"].as_str().unwrap_or_default();
        let replica_set = prefix.trim_end_matches('-');
        let deployment = replica_set.rsplit_once('-').map_or(replica_set, |(it, _)| it);
        let mut owners = json!([]);
        for (kind, owned) in [("Deployment", deployment), ("ReplicaSet", replica_set)] {
            let metadata = json!({"name": owned, "ownerReferences": owners});
            let object =
                json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec});
            let made = self.api.create(name, &object).await?.created()?;
            owners = json!([owner(&made)]);
            if way == Way::Nothing {
                self.owners.push(made);
            }
        }
        let mut pod = pod.clone();
        pod["metadata"]["ownerReferences"] = owners;
        self.pods.insert(way, pod);
        Ok(())
    }

    async fn make_webhooks(&self) -> Outcome {
        for (name, injectd, way, path) in [
            (ACCOUNT, &self.injectd, Way::Injectd, "/"),
            (TEMPLATES, &self.templates, Way::Template, "/templates"),
        ] {
            let (ip, port) = (injectd.webhook.ip().to_string(), injectd.webhook.port());
            self.api.create(Some(CONTROL_PLANE), &service(name, &ip, port)).await?.created()?;
            let client = json!({"service":
                {"name": name, "namespace": CONTROL_PLANE, "port": port, "path": path}});
            let webhook = webhook_configuration(name, client, injectd.ca(), &way.labels());
            self.api.create(None, &webhook).await?.created()?;
        }
        Ok(())
    }

    /// The pod as a webhook receives it.
    async fn received(&self) -> Outcome<Value> {
        let pod = &self.pods[&Way::Nothing];
        let mut pod = self.api.dry_run(Way::Nothing.namespace(), pod).await?.created()?;
        remove(&mut pod["metadata"], &["managedFields"]);
        Ok(pod)
    }

    /// Writes what injectd reads of the cluster.
    fn write_objects(&self, folder: &Path) -> Outcome<String> {
        let mut items = self.owners.clone();
        items.push(namespace(Way::Nothing.namespace(), &enabled(), &json!({})));
        let objects = folder.join("objects.json");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        fs::write(&objects, list.to_string())?;
        Ok(objects.display().to_string())
    }

    async fn make_policies(
        &self,
        sidecar: &[Value],
        of_template: &[Value],
        token_volume: String,
    ) -> Outcome {
        let token = format!(
            "object.spec.containers[0].volumeMounts\
             .filter(it, it.mountPath == \"{TOKEN_PATH}\")[0].name"
        );
        let namespace = (Way::Nothing.namespace().to_owned(), "request.namespace".to_owned());
        let replaced = Replaced::from([(token_volume, token), namespace]);
        let linkerd = Policy {
            name: "same-sidecar.injectd.example",
            operations: sidecar,
            is_injected: "object.spec.?initContainers.orValue([])\
                          .exists(it, it.name == \"linkerd-proxy\")",
            labels: Way::Policy.labels(),
            replaced: &replaced,
        };
        let template = Policy {
            name: "same-template.injectd.example",
            operations: of_template,
            is_injected: "\"injectd.dev/templates\" in \
                          object.metadata.?annotations.orValue({})",
            labels: Way::TemplatePolicy.labels(),
            replaced: &replaced,
        };
        for object in [policy(&linkerd)?, policy(&template)?].into_iter().flatten() {
            self.api.create(None, &object).await?.created()?;
        }
        Ok(())
    }

    /// The pod whose request has the sidecar.
    fn complete(&self, sidecar: &[Value]) -> Outcome<Value> {
        let [from, to] =
            [Way::Nothing, Way::Complete].map(|way| format!("\"{}\"", way.namespace()));
        let pod = with_sidecar(&self.pods[&Way::Complete], sidecar)?;
        Ok(serde_json::from_str(&pod.to_string().replace(&from, &to))?)
    }

    async fn expect_sidecar(&self, way: Way) -> Outcome {
        let made = self.api.dry_run(way.namespace(), &self.pods[&way]).await?.created()?;
        if matches!(way, Way::Template | Way::TemplatePolicy) {
            let mark = &made["metadata"]["annotations"]["injectd.dev/templates"];
            return expect("whether there is a mark", true, mark.is_string());
        }
        let expected = ["linkerd-init", "linkerd-proxy", "schema"].as_slice();
        expect("the init containers", expected, names(&made, "initContainers"))
    }

    /// Fails unless the stored pods are equal, with the sidecar from either way. The sizes in bytes of a
    /// pod without and with sidecar.
    pub(super) async fn expect_same_pods(&self) -> Outcome<[usize; 2]> {
        let mut stored = BTreeMap::new();
        for way in ALL {
            stored.insert(way, self.stored(way).await?);
        }
        let sizes = [Way::Nothing, Way::Injectd].map(|way| stored[&way].to_string().len());
        let expect_same = |stored: &BTreeMap<_, _>, one, other: Way| {
            expect_same(&format!("{}: the pod", other.title()), &stored[&one], &stored[&other])
        };
        expect_same(&stored, Way::Injectd, Way::Policy)?;
        expect_same(&stored, Way::Template, Way::TemplatePolicy)?;
        expect_same(&stored, Way::Nothing, Way::Again)?;
        expect_same(&stored, Way::Nothing, Way::Allowed)?;
        // A field of the request has a manager, a field that admission adds has not.
        for pod in stored.values_mut() {
            remove(&mut pod["metadata"], &["managedFields"]);
        }
        expect_same(&stored, Way::Injectd, Way::Complete)?;
        Ok(sizes)
    }

    async fn stored(&self, way: Way) -> Outcome<Value> {
        let made = self.api.create(Some(way.namespace()), &self.pods[&way]).await?.created()?;
        let name = made["metadata"]["name"].as_str().unwrap_or_default();
        alike(self.api.get(&format!("{}/{name}", pods_of(way))).await?.ok()?)
    }

    /// Deletes the pods of a namespace, and makes the API server collect its garbage.
    pub(super) async fn clear(&self, way: Way) -> Outcome {
        self.api.delete(&format!("{}?gracePeriodSeconds=0", pods_of(way))).await?.ok()?;
        self.api.get("/debug/pprof/heap?gc=1&debug=1").await?.ok().map(drop)
    }

    /// Connections that the API server has opened to the webhooks so far.
    pub(super) async fn connections(&self) -> Outcome<u64> {
        let labels = [("server", "webhook")];
        let mut sum = 0;
        for injectd in [&self.injectd, &self.templates] {
            sum += injectd.metric("injectd_connections_total", &labels).await?;
        }
        Ok(sum)
    }
}

/// injectd's patch for this pod, with these flags.
async fn answer(lab: &Lab, flags: &[&str], pod: &Value) -> Outcome<Vec<Value>> {
    let mut command = Command::new(&lab.binary);
    command.arg("review").args(flags);
    let review = review_of(Way::Nothing.namespace(), pod);
    let answer = run_with_text(command, str::from_utf8(&review)?).await?.with_code(0)?;
    let answer: Value = serde_json::from_str(&answer)?;
    patch_of(&answer["response"])
}

/// A process that serves the template in the cluster.
async fn serve_template(lab: &Lab, folder: &Path) -> Outcome<Injectd> {
    let ip = service_ip()?;
    let certificate = Certificate::new(&format!("{TEMPLATES}.{CONTROL_PLANE}.svc"), ip)?;
    let template = root().join(TEMPLATE).display().to_string();
    let arguments = ["serve", "--mesh=templates", "--templates", &template].map(str::to_owned);
    let folder = folder.join(TEMPLATES);
    fs::create_dir(&folder)?;
    let mut injectd = Injectd::serve(&lab.binary, &folder, ip, certificate, &arguments)?;
    injectd.set_variable("INJECTD_KUBECONFIG", &lab.kubeconfig);
    injectd.discard_log()?;
    injectd.start().await?;
    wait_until_ready(injectd.admin).await?;
    Ok(injectd)
}

async fn proxy_injector(lab: &Lab, folder: &Path) -> Outcome<Injectd> {
    let kubeconfig = make_account(&lab.api, CONTROL_PLANE, folder).await?;
    let (ip, host) = (service_ip()?, format!("{ACCOUNT}.{CONTROL_PLANE}.svc"));
    let mut injectd = Injectd::proxy_injector(&lab.binary, folder, &host, ip, &kubeconfig)?;
    injectd.discard_log()?;
    injectd.start().await?;
    wait_until_ready(injectd.admin).await?;
    Ok(injectd)
}

/// The collection of the pods of a way.
pub(super) fn pods_of(way: Way) -> String {
    collection("v1", "Pod", Some(way.namespace()))
}
