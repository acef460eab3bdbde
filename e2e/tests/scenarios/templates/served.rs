//! Two replicas that serve the templates of a cluster, while these are changed, broken, mended and deleted, and
//! while their definitions or the API server are away.

use std::net::IpAddr;

use hyper::Method;
use injectd_harness::{
    api::{WEBHOOK_CONFIGURATIONS, collection, path_of},
    balancer::Balancer,
    certificates::{Ca, Certificate},
    client::{patch_of, wait_until_ready},
    edits::Edits,
    expect::{Outcome, eventually, expect, expect_contains, expect_listed, failed},
    injectd::Injectd,
    lab::service_ip,
    namespaced::{Namespaced, with_namespace},
    objects::{deployment, job, plain_pod, service, webhook_configuration},
    scenario::{note, step, with_lab_alone},
    stream::Stream,
};
use injectd_templates::schema;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{condition, define, refused::refused};
use crate::istio::explain_replicas;

/// How many edits there are, short and at full length.
const EDITS: [usize; 2] = [60, 1_000];
/// One edit in so many is broken.
const BROKEN_EVERY: usize = 10;
/// The second template is deleted, or made again, at one edit in so many.
const DELETED_EVERY: usize = 7;
/// Pods that are created at the same time.
const STREAMED: usize = 4;
/// What the pods of the namespace get, and what they get at times.
pub(super) const SIDE: &str = "side";
pub(super) const EXTRA: &str = "extra";

#[tokio::test]
async fn each_pod_has_what_a_template_in_force_says() -> Outcome {
    with_lab_alone(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| {
            step("the definitions are established", define(namespaced)).await?;
            let mut served = Served::new(namespaced, &[]).await?;
            let outcome = scenario(&mut served).await;
            explain_replicas(&outcome, &served.replicas);
            outcome
        })
        .await
    })
    .await
}

async fn scenario(it: &mut Served<'_>) -> Outcome {
    step("two replicas serve a template", it.serve()).await?;
    step("templates are edited under load", edited(it)).await?;
    step("pods of workloads have it", workloads(it)).await?;
    step("what a namespaced template must not is refused", refused(it)).await?;
    step("the status says what is served", status(it)).await?;
    step("a replica that starts serves the last good revision", started_again(it)).await?;
    step("a replica that hangs holds up nothing", one_hangs(it)).await?;
    step("the API server is away", away(it)).await?;
    step("the definitions are deleted and made again", defined_again(it)).await
}

/// Two replicas, and the Service through which they are called.
pub(super) struct Served<'a> {
    pub(super) it: &'a Namespaced<'a>,
    folder: TempDir,
    control_plane: String,
    certificate: Certificate,
    ip: IpAddr,
    service: Balancer,
    /// Further arguments of the replicas.
    arguments: Vec<String>,
    pub(super) replicas: Vec<Injectd>,
}

impl<'a> Served<'a> {
    pub(super) async fn new(it: &'a Namespaced<'a>, arguments: &[&str]) -> Outcome<Self> {
        let (control_plane, ip) = (Self::control_plane_of(it), service_ip()?);
        it.make(&control_plane, &json!({})).await?;
        Ok(Self {
            it,
            folder: tempfile::tempdir()?,
            certificate: Ca::new()?.issue(&format!("injectd.{control_plane}.svc"), ip)?,
            control_plane,
            ip,
            service: Balancer::new(ip).await?,
            arguments: arguments.iter().copied().map(str::to_owned).collect(),
            replicas: Vec::new(),
        })
    }

    /// injectd's own namespace.
    pub(super) fn control_plane_of(it: &Namespaced<'_>) -> String {
        it.name_of("control-plane")
    }

    pub(super) async fn serve(&mut self) -> Outcome {
        // A definition is established before its objects can be created.
        eventually("the template is made", async || self.put(&self.template(SIDE, 0)).await)
            .await?;
        for name in ["one", "two"] {
            let folder = self.folder.path().join(name);
            std::fs::create_dir(&folder)?;
            let arguments = [
                "serve",
                "--mesh=templates",
                "--template-namespace",
                &self.control_plane,
                "--manage-webhook",
                "--template-webhook",
                &self.it.name,
            ];
            let arguments = arguments.map(str::to_owned);
            let arguments = [&arguments[..], &self.arguments].concat();
            let (binary, certificate) = (&self.it.lab.binary, self.certificate.clone());
            let mut replica = Injectd::serve(binary, &folder, self.ip, certificate, &arguments)?;
            replica.set_variable("INJECTD_KUBECONFIG", &self.it.lab.kubeconfig);
            replica.set_variable("POD_NAME", format!("injectd-{name}"));
            replica.start().await?;
            wait_until_ready(replica.admin).await?;
            self.replicas.push(replica);
        }
        self.service.set(self.replicas.iter().map(|replica| replica.webhook).collect());
        let port = self.service.addr.port();
        let service = service("injectd", &self.ip.to_string(), port);
        self.it.lab.api.create(Some(&self.control_plane), &service).await?.created()?;
        let client = json!({"service": {"name": "injectd", "namespace": self.control_plane,
            "path": "/templates", "port": port}});
        let labels = self.it.labels();
        let mut configuration =
            webhook_configuration(&self.it.name, client, &self.certificate.ca, &labels);
        configuration["webhooks"][0]["name"] = json!("templates.injectd.dev");
        configuration["webhooks"][0]["rules"][0]["resources"] = json!(["pods"]);
        self.it.lab.api.create(None, &configuration).await?.created()?;
        self.it.delete_at_end(format!("{WEBHOOK_CONFIGURATIONS}/{}", self.it.name));
        eventually("the webhook takes effect", async || {
            expect("the edit", 0, number_of(&self.pod().await?)?)
        })
        .await
    }

    /// A template that adds a container, and an annotation that says the same.
    pub(super) fn template(&self, container: &str, number: usize) -> Value {
        json!({
            "apiVersion": schema::API_VERSION,
            "kind": schema::CLUSTER_KIND,
            "metadata": {"name": self.it.name_of(container)},
            "spec": {
                "match": {"namespaceSelector": {"matchLabels": self.it.labels()}},
                "steps": [{"name": "add", "overlay": {
                    "metadata": {"annotations": {container: number.to_string()}},
                    "spec": {"containers": [{"name": container, "image": image_of(number)}]},
                }}],
            },
        })
    }

    /// Creates or replaces a template.
    pub(super) async fn put(&self, template: &Value) -> Outcome {
        let path = path_of(template, None);
        let api = &self.it.lab.api;
        if api.get(&path).await?.status == 404 {
            return self.it.create_in_cluster(template).await.map(drop);
        }
        // A status may be written at the same time.
        eventually("the template is written", async || {
            api.update(&path, |object| object["spec"] = template["spec"].clone()).await
        })
        .await
    }

    /// The pod that the API server would create.
    pub(super) async fn pod(&self) -> Outcome<Value> {
        self.it.dry_run(&plain_pod("tried")).await?.created()
    }

    /// Waits until both replicas serve an edit of the first template.
    pub(super) async fn wait_for(&self, number: usize) -> Outcome {
        for replica in &self.replicas {
            eventually("the template takes effect", async || {
                let patch = patch(replica, &self.it.name).await?;
                expect("whether it is served", true, patch.contains(&image_of(number)))
            })
            .await?;
        }
        Ok(())
    }

    async fn rejected(&self) -> Outcome<u64> {
        let labels = self.it.name_of(SIDE);
        let mut sum = 0;
        for replica in &self.replicas {
            sum += replica.metric("injectd_template_rejected", &[("template", &labels)]).await?;
        }
        Ok(sum)
    }
}

fn image_of(number: usize) -> String {
    format!("registry.example.com/side:{number}")
}

/// What a replica answers to the review of a pod.
async fn patch(replica: &Injectd, namespace: &str) -> Outcome<String> {
    let pod = plain_pod("tried");
    let answer = replica.client().review_at("/templates", namespace, &pod, 10).await?;
    Ok(patch_of(&answer.response()?)?.iter().map(Value::to_string).collect())
}

/// The number of the edit that a pod has; what the two templates have added is of one edit each.
pub(super) fn number_of(pod: &Value) -> Outcome<usize> {
    unmixed(pod, EXTRA)?;
    unmixed(pod, SIDE)?.ok_or_else(|| failed("a pod without the sidecar"))
}

/// The number of the edit of a container, in annotation, image and mark.
fn unmixed(pod: &Value, container: &str) -> Outcome<Option<usize>> {
    let annotations = &pod["metadata"]["annotations"];
    let mut containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let found = containers.find(|found| found["name"] == container);
    let image = found.map(|found| found["image"].as_str().unwrap_or_default().to_owned());
    let number = annotations[container].as_str().and_then(|number| number.parse().ok());
    expect(format!("the image of {container}"), number.map(image_of), image)?;
    let mark = annotations["injectd.dev/templates"].as_str().unwrap_or("{}");
    let mark: Value = serde_json::from_str(mark)?;
    let is_marked =
        mark.as_object().into_iter().flatten().any(|(name, _)| name.ends_with(container));
    expect(format!("whether {container} is in the mark"), number.is_some(), is_marked)?;
    Ok(number)
}

async fn edited(it: &mut Served<'_>) -> Outcome {
    let count = EDITS[usize::from(it.it.lab.is_long)];
    let mut edits = Edits::default();
    edits.write(0, async || it.put(&it.template(SIDE, 0)).await).await?;
    let namespaces = [it.it.name.clone()];
    let api = it.it.unaudited(&namespaces).await?;
    let stream = Stream::start(&api, &vec![(&*it.it.name, plain_pod("tried")); STREAMED]);
    let outcome = edit(it, count, &stream, &mut edits).await;
    let seen = stream.stop().await;
    let broken = outcome?;
    let oldest = edits.expect_current(&seen, number_of)?;
    let with_extra = seen.iter().filter_map(|seen| seen.result.as_ref().ok());
    let with_extra =
        with_extra.filter(|pod| unmixed(pod, EXTRA).is_ok_and(|found| found.is_some()));
    note(&format!(
        "{count} edits, {broken} broken, {} pods, {} with the second template: 0 failed, 0 mixed, at most \
         {oldest:.0?} old",
        seen.len(),
        with_extra.count()
    ));
    Ok(())
}

/// Writes all edits; returns how many are broken.
async fn edit(it: &Served<'_>, count: usize, stream: &Stream, edits: &mut Edits) -> Outcome<usize> {
    let extra = it.template(EXTRA, 0);
    let (mut broken, mut is_extra) = (0, false);
    for number in 1..=count {
        if number % BROKEN_EVERY == BROKEN_EVERY / 2 {
            it.put(&broken_template(it, number)).await?;
            broken += 1;
            let wait = async || expect("templates that are rejected", 2, it.rejected().await?);
            eventually("both replicas reject it", wait).await?;
        } else {
            edits.write(number, async || it.put(&it.template(SIDE, number)).await).await?;
        }
        if number % DELETED_EVERY == 0 {
            if is_extra {
                let status = it.it.lab.api.delete(&path_of(&extra, None)).await?.status;
                expect_listed("the status of the deletion", status, &[200, 202])?;
            } else {
                it.put(&it.template(EXTRA, number)).await?;
            }
            is_extra = !is_extra;
        }
        // So that pods meet each of them.
        stream.wait_for(1).await?;
    }
    it.wait_for(edits.last()).await?;
    Ok(broken)
}

/// A template that the schema takes, and that cannot be used.
fn broken_template(it: &Served<'_>, number: usize) -> Value {
    let mut template = it.template(SIDE, number);
    let container = &mut template["spec"]["steps"][0]["overlay"]["spec"]["containers"][0];
    match number / BROKEN_EVERY % 4 {
        0 => container["image"] = json!("${object.spec."),
        1 => container["image"] = json!("${object.spec.noSuchField}"),
        2 => container["noSuchField"] = json!("a"),
        _ => container["ports"] = json!([{"containerPort": "${object.metadata.name}"}]),
    }
    template
}

async fn workloads(it: &mut Served<'_>) -> Outcome {
    let mut set = deployment("stateful", 2, &json!({}));
    set["kind"] = json!("StatefulSet");
    set["spec"]["serviceName"] = json!("stateful");
    for (object, app, count) in [
        (deployment("deployed", 2, &json!({})), "deployed", 2),
        (set, "stateful", 1),
        (job("run", "run"), "run", 1),
    ] {
        it.it.create(&object).await?.created()?;
        eventually("its pods have the sidecar", async || {
            let pods = it.it.of_app("v1", "Pod", app).await?;
            expect(format!("whether there are {count} pods"), true, pods.len() >= count)?;
            pods.iter().try_for_each(|pod| number_of(pod).map(drop))
        })
        .await?;
    }
    Ok(())
}

/// The conditions, the revisions and the webhook agree with what is served.
async fn status(it: &mut Served<'_>) -> Outcome {
    let path = path_of(&it.template(SIDE, 0), None);
    let found = eventually("the status", async || {
        let found = it.it.lab.api.get(&path).await?.ok()?;
        let generation = &found["metadata"]["generation"];
        expect("the generation", generation, &found["status"]["observedGeneration"])?;
        for (name, status) in [("Accepted", "True"), ("Programmed", "True"), ("Degraded", "False")]
        {
            expect(name, Some(status), condition(&found, name))?;
        }
        Ok(found)
    })
    .await?;
    let hash = &found["status"]["currentRevision"];
    expect("the newest revision", hash, &found["status"]["updateRevision"])?;
    let mark = it.pod().await?["metadata"]["annotations"]["injectd.dev/templates"].clone();
    expect_contains(
        "the mark",
        hash.as_str().unwrap_or("none"),
        mark.as_str().unwrap_or_default(),
    )?;
    let path = collection("apps/v1", "ControllerRevision", Some(&it.control_plane));
    // Far more are kept while a replica has not said what it serves.
    eventually("only the newest revisions are kept", async || {
        let kept = it.it.lab.api.get(&path).await?.ok()?;
        let of_side = kept["items"].as_array().into_iter().flatten().filter(|revision| {
            revision["metadata"]["labels"]["injectd.dev/template-name"] == it.it.name_of(SIDE)
        });
        let hashes: Vec<_> = of_side
            .map(|revision| &revision["metadata"]["labels"]["injectd.dev/template-hash"])
            .collect();
        expect("whether the served revision is kept", true, hashes.contains(&hash))?;
        // The default limit, the served one and the accepted one.
        expect("whether old ones are removed", true, hashes.len() <= 7)
    })
    .await?;
    let webhook = format!("{WEBHOOK_CONFIGURATIONS}/{}", it.it.name);
    let webhook = it.it.lab.api.get(&webhook).await?.ok()?;
    let selector = &webhook["webhooks"][0]["namespaceSelector"].to_string();
    expect_contains("the selector of the webhook", &it.it.name, selector)
}

/// A broken template, and replicas that have not seen it before.
async fn started_again(it: &mut Served<'_>) -> Outcome {
    let last = number_of(&it.pod().await?)?;
    it.put(&broken_template(it, 10)).await?;
    let path = path_of(&it.template(SIDE, 0), None);
    eventually("the condition", async || {
        let found = it.it.lab.api.get(&path).await?.ok()?;
        expect("Accepted", Some("False"), condition(&found, "Accepted"))
    })
    .await?;
    for index in 0..it.replicas.len() {
        let replica = &mut it.replicas[index];
        replica.kill().await?;
        replica.start().await?;
        wait_until_ready(replica.admin).await?;
    }
    it.wait_for(last).await?;
    it.put(&it.template(SIDE, last + 1)).await?;
    it.wait_for(last + 1).await
}

/// The other one becomes the leader.
async fn one_hangs(it: &mut Served<'_>) -> Outcome {
    for index in 0..it.replicas.len() {
        let last = number_of(&it.pod().await?)?;
        it.service.set(vec![it.replicas[1 - index].webhook]);
        it.service.cut();
        it.replicas[index].hang().await?;
        it.put(&it.template(SIDE, last + 1)).await?;
        let other = &it.replicas[1 - index];
        eventually("the other replica leads", async || {
            expect("the gauge", 1, other.metric("injectd_template_keeper_leader", &[]).await?)
        })
        .await?;
        let path = path_of(&it.template(SIDE, 0), None);
        eventually("the other replica writes the status", async || {
            let found = it.it.lab.api.get(&path).await?.ok()?;
            let generation = &found["metadata"]["generation"];
            expect("the generation", generation, &found["status"]["observedGeneration"])?;
            expect("the edit", last + 1, number_of(&it.pod().await?)?)
        })
        .await?;
        it.replicas[index].resume()?;
        it.wait_for(last + 1).await?;
        it.service.set(it.replicas.iter().map(|replica| replica.webhook).collect());
    }
    Ok(())
}

async fn away(it: &mut Served<'_>) -> Outcome {
    let hanging = it.it.lab.local()?.hang().await?;
    for replica in &it.replicas {
        let patch = patch(replica, &it.it.name).await?;
        expect(
            "whether the template is served",
            true,
            patch.contains("registry.example.com/side:"),
        )?;
    }
    drop(hanging);
    eventually("the API server is there again", async || it.pod().await.map(drop)).await
}

async fn defined_again(it: &mut Served<'_>) -> Outcome {
    let last = number_of(&it.pod().await?)?;
    for definition in schema::crds() {
        let path = path_of(&definition, None);
        it.it.lab.api.call(Method::DELETE, &path, None).await?;
        eventually("the definition is gone", async || {
            expect("the status", 404, it.it.lab.api.get(&path).await?.status)
        })
        .await?;
    }
    let logs = "was deleted with its CustomResourceDefinition, and stays served";
    for replica in &it.replicas {
        replica.logs(logs).await?;
    }
    expect("the edit that is served", last, number_of(&it.pod().await?)?)?;
    define(it.it).await?;
    let path = collection(schema::API_VERSION, schema::CLUSTER_KIND, None);
    eventually("the kind is there", async || it.it.lab.api.get(&path).await?.ok()).await?;
    expect("the edit that is served", last, number_of(&it.pod().await?)?)?;
    eventually("the template is made again", async || {
        it.put(&it.template(SIDE, last + 1)).await?;
        Ok(())
    })
    .await?;
    it.wait_for(last + 1).await?;
    expect("the edit that is served", last + 1, number_of(&it.pod().await?)?)
}
