//! `deploy/linkerd-swap` on Linkerd's control plane: the swap and the way back.
//!
//! Each manifest is applied as its chart rendered it, except the certificate, which is not recorded.
//! The commands are those of the page `docs/tasks/swap-linkerd.md`. The container runs as a kubelet
//! would run it for the pod that the controllers create, with the token of its `ServiceAccount`.

mod deployment;
mod scheduled;

use std::{collections::BTreeSet, fs, net::SocketAddr, path::Path};

use injectd_harness::{
    api::collection,
    audit_log::events,
    balancer::Balancer,
    client::probe,
    expect::{Outcome, eventually, expect, expect_contains, expect_listed, expect_same, failed},
    isolated::isolated_with_lab,
    lab::Lab,
    metrics::metric,
    objects::{self, enabled, plain_pod, pod},
    scenario::{note, step, with_own_lab},
    sidecar::{names, proxy_variable, without_sidecar},
};
use serde_json::{Value, json};

use crate::{
    container::Container,
    dropin::LOCAL,
    manifest::{CONTAINER, container, paths},
};
use deployment::{IMAGE, Overlay, image_of};

/// The namespace of the control plane, and the Deployment.
const CONTROL_PLANE: &str = "linkerd";
const INJECTOR: &str = "linkerd-proxy-injector";
/// The address of the Service `kubernetes`.
const API_SERVER_IP: &str = "127.100.0.1";
/// The port of all Services.
const PORT: u16 = 443;
const REPLICAS: usize = 3;

/// The releases of Linkerd that are recorded, two manifests each.
const RELEASES: [&str; 3] = ["2.16", "2.18", "2.20"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_injector_of_linkerd_2_16_is_swapped_and_back() -> Outcome {
    swap_of("swap::the_injector_of_linkerd_2_16_is_swapped_and_back", RELEASES[0]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_injector_of_linkerd_2_18_is_swapped_and_back() -> Outcome {
    swap_of("swap::the_injector_of_linkerd_2_18_is_swapped_and_back", RELEASES[1]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_injector_of_linkerd_2_20_is_swapped_and_back() -> Outcome {
    swap_of("swap::the_injector_of_linkerd_2_20_is_swapped_and_back", RELEASES[2]).await
}

async fn swap_of(test: &str, release: &str) -> Outcome {
    isolated_with_lab(test, async || {
        let paths = paths()?;
        let is_of =
            |path: &Path, release| path.to_string_lossy().contains(&format!("injector-{release}"));
        for path in &paths {
            let is_known = RELEASES.iter().any(|release| is_of(path, release));
            expect(format!("whether a test has {}", path.display()), true, is_known)?;
        }
        deployment::expect_kubectl()?;
        with_own_lab("", async |lab| {
            eventually("a service account", async || {
                lab.api.dry_run("kube-system", &plain_pod("p")).await?.created().map(drop)
            })
            .await?;
            let kubernetes = service_address(API_SERVER_IP).await?;
            let server = lab.api.server.trim_start_matches("https://");
            kubernetes.set(vec![server.parse()?]);
            for path in paths.iter().filter(|path| is_of(path, &release)) {
                one(lab, path).await?;
            }
            Ok(())
        })
        .await
    })
    .await
}

/// In place of kube-proxy.
async fn service_address(ip: &str) -> Outcome<Balancer> {
    Balancer::at(SocketAddr::new(ip.parse()?, PORT)).await
}

async fn one(lab: &Lab, path: &Path) -> Outcome {
    let folder = tempfile::tempdir()?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    note(&name);
    let mut swap = Swap {
        lab,
        overlay: Overlay::new(lab, folder.path(), path)?,
        folder: folder.path(),
        application: name.replace("proxy-injector-", "app-").replace('.', "-"),
        container: None,
        pod: Value::Null,
        service: None,
    };
    let outcome = step(&name, swap.steps()).await;
    let outcome = match &swap.container {
        Some(container) => container.explained(outcome),
        None => outcome,
    };
    let cleaned = swap.clean_up().await;
    outcome.and(cleaned)
}

/// One manifest.
struct Swap<'a> {
    lab: &'a Lab,
    overlay: Overlay<'a>,
    folder: &'a Path,
    application: String,
    container: Option<Container>,
    /// What the controllers have created for the swapped Deployment.
    pod: Value,
    service: Option<Balancer>,
}

impl Swap<'_> {
    async fn steps(&mut self) -> Outcome {
        step("Linkerd's manifests are applied", self.apply()).await?;
        step("kubectl set image changes nothing else", self.overlay.set_image()).await?;
        step("the overlay changes nothing else", async { self.overlay.build() }).await?;
        step("the post-renderer prints the same", async { self.overlay.post_render() }).await?;
        step("injectd starts as the Deployment's pod", self.start()).await?;
        step("its readiness probe succeeds", self.ready()).await?;
        step("a pod is injected through Linkerd's webhook", self.injected()).await?;
        step("a Deployment's pods in an annotated namespace", self.replicas()).await?;
        step("a pod that does not ask is left alone", self.left_alone()).await?;
        step("Linkerd's ClusterRole is enough", async { self.permissions() }).await?;
        step("swapped back, the Deployment is as before", self.back()).await?;
        step("the metrics that the page names exist", self.metrics()).await?;
        step("SIGTERM ends it with exit code 0", self.terminated()).await
    }

    async fn apply(&mut self) -> Outcome {
        let namespace = objects::namespace(CONTROL_PLANE, &json!({}), &json!({}));
        let status = self.lab.api.create(None, &namespace).await?.status;
        expect_listed("the status of the namespace", status, &[201, 409])?;
        self.overlay.apply().await?;
        let image = image_of(&self.overlay.before)?.to_owned();
        eventually("the controllers make pods", async || self.pod_of(&image).await.map(drop)).await
    }

    /// A pod of the injector with this image.
    async fn pod_of(&self, image: &str) -> Outcome<Value> {
        for pod in self.pods().await? {
            if container(&pod["spec"])?["image"] == image {
                return Ok(pod);
            }
        }
        Err(failed(format!("no pod of {image}")))
    }

    async fn pods(&self) -> Outcome<Vec<Value>> {
        let path = collection("v1", "Pod", Some(CONTROL_PLANE));
        let label = format!("linkerd.io/control-plane-component%3D{CONTAINER}");
        self.list(&format!("{path}?labelSelector={label}")).await
    }

    async fn list(&self, path: &str) -> Outcome<Vec<Value>> {
        let mut list = self.lab.api.get(path).await?.ok()?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Err(failed(format!("{path}: no items"))),
        }
    }

    // === its container ===

    async fn start(&mut self) -> Outcome {
        self.pod =
            eventually("the controllers make pods", async || self.pod_of(IMAGE).await).await?;
        let mounts = scheduled::mounts(&self.lab.api, &self.pod).await?;
        let spec = container(&self.pod["spec"])?;
        let mut container = Container::new(&self.lab.binary, self.folder, spec, &mounts)?;
        container.set_variable("KUBERNETES_SERVICE_HOST", API_SERVER_IP);
        container.set_variable("KUBERNETES_SERVICE_PORT", &PORT.to_string());
        let container = self.container.insert(container);
        container.start().await?;
        let user = [container.uid; 4].map(|id| id.to_string()).join("\t");
        expect("the user", user, container.status("Uid")?)?;
        note(&format!("user {}, {}", container.uid, container.arguments().join(" ")));
        Ok(())
    }

    fn running(&self) -> Outcome<&Container> {
        self.container.as_ref().ok_or_else(|| failed("the container must be started"))
    }

    async fn ready(&mut self) -> Outcome {
        eventually("/ready", async || self.probe("readinessProbe", "ok\n").await).await?;
        self.probe("livenessProbe", "pong\n").await?;
        let spec = self.overlay.find("v1", "Service", INJECTOR).await?["spec"].take();
        let mut ports = spec["ports"].as_array().into_iter().flatten();
        let target = ports.find(|port| port["port"] == PORT).map(|port| &port["targetPort"]);
        let ports = &self.running()?.spec["ports"];
        let named = |port: &&Value| Some(&port["name"]) == target;
        let port = ports.as_array().into_iter().flatten().find(named);
        let port = port.and_then(|port| port["containerPort"].as_u64()).unwrap_or_default();
        let service = service_address(spec["clusterIP"].as_str().unwrap_or_default()).await?;
        service.set(vec![SocketAddr::new(LOCAL, port.try_into()?)]);
        self.service = Some(service);
        Ok(())
    }

    async fn probe(&self, which: &str, expected: &str) -> Outcome {
        let get = &self.running()?.spec[which]["httpGet"];
        let path = get["path"].as_str().unwrap_or_default();
        let port = get["port"].as_u64().unwrap_or_default().try_into()?;
        let found = probe(SocketAddr::new(LOCAL, port), path).await?;
        expect(path, (200, expected.to_owned()), found)
    }

    // === through the API server ===

    async fn injected(&self) -> Outcome {
        let api = &self.lab.api;
        let namespace = objects::namespace(&self.application, &json!({}), &json!({}));
        api.create(None, &namespace).await?.created()?;
        let web = pod("web", &enabled());
        eventually("the webhook injects", async || {
            let made = api.dry_run(&self.application, &web).await?.created()?;
            self.expect_sidecar(&made).await
        })
        .await?;
        let made = api.create(Some(&self.application), &web).await?.created()?;
        self.expect_sidecar(&made).await?;
        // No webhook is called there.
        let plain = api.dry_run("kube-system", &web).await?.created()?;
        expect_same("the rest of the pod", &without_sidecar(&plain), &without_sidecar(&made))
    }

    async fn expect_sidecar(&self, pod: &Value) -> Outcome {
        let mut found = [names(pod, "initContainers"), names(pod, "containers")].concat();
        found.sort_unstable();
        let expected = ["linkerd-init", "linkerd-proxy", "main"];
        expect("its containers", expected.as_slice(), found.as_slice())?;
        let version = &self.overlay.before["metadata"]["labels"]["app.kubernetes.io/version"];
        let version = version.as_str().unwrap_or_default();
        let creator = pod["metadata"]["annotations"]["linkerd.io/created-by"].as_str();
        let expected = format!("linkerd/proxy-injector {version}");
        expect("the creator of the sidecar", Some(&*expected), creator)?;
        let lists = ["initContainers", "containers"].map(|list| pod["spec"][list].as_array());
        let proxy = lists
            .into_iter()
            .flatten()
            .flatten()
            .find(|container| container["name"] == "linkerd-proxy");
        let expected = format!("cr.l5d.io/linkerd/proxy:{version}");
        let image = proxy.and_then(|container| container["image"].as_str());
        expect("the proxy", Some(&*expected), image)?;
        let roots = self.overlay.find("v1", "ConfigMap", "linkerd-identity-trust-roots").await?;
        let roots = roots["data"]["ca-bundle.crt"].as_str().map(str::trim);
        let anchors = proxy_variable(pod, "LINKERD2_PROXY_IDENTITY_TRUST_ANCHORS").map(str::trim);
        expect("the trust roots", roots, anchors)
    }

    async fn replicas(&self) -> Outcome {
        let api = &self.lab.api;
        let annotated = format!("{}-annotated", self.application);
        let namespace = objects::namespace(&annotated, &enabled(), &json!({}));
        api.create(None, &namespace).await?.created()?;
        let workload = objects::deployment("web", REPLICAS, &json!({}));
        api.create(Some(&annotated), &workload).await?.created()?;
        let path = collection("v1", "Pod", Some(&annotated));
        let pods = eventually("the controllers make pods", async || {
            let pods = self.list(&path).await?;
            expect("the number of pods", REPLICAS, pods.len())?;
            Ok(pods)
        })
        .await?;
        for mut pod in pods {
            // Lists leave it out.
            pod["kind"] = json!("Pod");
            self.expect_sidecar(&pod).await?;
            let label = pod["metadata"]["labels"]["linkerd.io/proxy-deployment"].as_str();
            expect("the label", Some("web"), label)?;
        }
        Ok(())
    }

    async fn left_alone(&self) -> Outcome {
        let api = &self.lab.api;
        let made = api.create(Some(&self.application), &plain_pod("plain")).await?.created()?;
        let found = [names(&made, "initContainers"), names(&made, "containers")].concat();
        expect("its containers", ["main"].as_slice(), found.as_slice())
    }

    fn permissions(&self) -> Outcome {
        let user = format!("\"username\":\"system:serviceaccount:{CONTROL_PLANE}:{INJECTOR}\"");
        let found = events(&self.lab.local()?.audit_log, &user)?;
        let mut requests = BTreeSet::new();
        for event in &found {
            let code = event["responseStatus"]["code"].as_u64();
            let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let request =
                format!("{} {}", field(&event["verb"]), field(&event["objectRef"]["resource"]));
            let is_refused = matches!(code, Some(401 | 403));
            expect(format!("whether it is refused to {request}"), false, is_refused)?;
            requests.insert(request);
        }
        let requests: Vec<_> = requests.into_iter().collect();
        note(&requests.join(", "));
        expect_listed("the requests", "watch namespaces".to_owned(), &requests)
    }

    async fn back(&self) -> Outcome {
        self.overlay.back().await?;
        let image = image_of(&self.overlay.before)?;
        eventually("the controllers make pods", async || self.pod_of(image).await.map(drop)).await
    }

    async fn metrics(&self) -> Outcome {
        let port = self.running()?.spec["readinessProbe"]["httpGet"]["port"].as_u64();
        let admin = SocketAddr::new(LOCAL, port.unwrap_or_default().try_into()?);
        let (status, text) = probe(admin, "/metrics").await?;
        expect("the status of /metrics", 200, status)?;
        expect("refused requests", 0, metric(&text, "injectd_requests_rejected_total", &[]))?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let documented = metrics_in(&fs::read_to_string(root.join("docs/operations.md"))?);
        let used = metrics_in(&fs::read_to_string(root.join("docs/tasks/swap-linkerd.md"))?);
        expect("whether the page names metrics", false, used.is_empty())?;
        // The scenarios of the chart check those of alerts and dashboard, which need other flags, too.
        for name in used {
            expect(format!("whether {name} is documented"), true, documented.contains(&name))?;
            expect_contains("the metrics", &format!("# TYPE {name} "), &text)?;
        }
        Ok(())
    }

    async fn terminated(&mut self) -> Outcome {
        let container = self.container.as_mut().ok_or_else(|| failed("no container"))?;
        container.terminate()?;
        container.expect_end().await
    }

    async fn clean_up(&mut self) -> Outcome {
        (self.container, self.service) = (None, None);
        let deleted = self.overlay.delete();
        let gone = eventually("the pods are gone", async || {
            expect("the number of pods", 0, self.pods().await?.len())
        });
        deleted.and(gone.await)
    }
}

/// The names of metrics in a text, without the ends of a histogram's samples.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    let is_metric = |word: &&str| word.starts_with("injectd_") || word.starts_with("proxy_inject_");
    let metric = |name: &str| {
        let ends = ["_bucket", "_sum", "_count"];
        ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
    };
    words.filter(is_metric).map(metric).collect()
}
