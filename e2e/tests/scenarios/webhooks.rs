//! Which webhooks the API server calls, against what the package `injectd-webhooks` says: each webhook
//! of a table with each request of another; and which configurations it accepts. Requests are dry runs, so
//! nothing changes.

use hyper::Method;
use injectd_harness::{
    api::NAMESPACES,
    expect::{Outcome, eventually, expect, failed},
    lab::service_ip,
    namespaced::{Namespaced, with_namespace},
    objects,
    scenario::{note, with_lab, with_lab_alone},
};
use injectd_webhooks::{Configurations, Labels, Plugin, Verdict};
use serde_json::{Value, json};

mod checked;
mod expressions;
mod fields;
mod recorder;
mod requests;
mod resources;
mod table;

use recorder::Recorder;
use requests::Sent;

/// Begins the names in the tables, in place of the scenario's own.
const PREFIX: &str = "webhooks-";
/// The namespace of the objects.
const MATCHED: &str = "webhooks-matched";
/// The least number of combinations.
const COMBINATIONS: usize = 200;

struct Webhooks<'a> {
    it: &'a Namespaced<'a>,
    /// The namespace of the objects.
    namespace: String,
    recorder: Recorder,
    /// As the API server has them.
    configurations: Vec<Value>,
    sent: Vec<Sent>,
}

/// It is alone: the webhooks are called for every request of the cluster.
#[tokio::test]
async fn the_api_server_calls_exactly_the_webhooks_that_the_package_names_in_its_order() -> Outcome
{
    with_lab_alone(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| {
            let mut webhooks = Webhooks::new(namespaced).await?;
            webhooks.create_objects().await?;
            webhooks.configure().await?;
            let outcome = webhooks.compare().await;
            let cleaned = webhooks.clean_up().await;
            outcome.and(cleaned)
        })
        .await
    })
    .await
}

#[tokio::test]
async fn a_condition_that_fails_rejects_the_request_under_the_failure_policy_fail() -> Outcome {
    with_lab(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| rejected(namespaced).await).await
    })
    .await
}

#[tokio::test]
async fn manifest_check_finds_an_error_exactly_where_the_api_server_rejects() -> Outcome {
    with_lab(async |lab| {
        lab.local()?;
        checked::all(&lab.api, lab.is_long).await
    })
    .await
}

#[tokio::test]
async fn manifest_check_knows_every_resource_that_the_api_server_serves() -> Outcome {
    with_lab(async |lab| {
        // Other clusters serve more.
        lab.local()?;
        resources::all(&lab.api).await
    })
    .await
}

#[tokio::test]
async fn manifest_check_knows_the_fields_that_objects_lack_or_that_are_null() -> Outcome {
    with_lab(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| {
            fields::all(&lab.api, &namespaced.name).await
        })
        .await
    })
    .await
}

impl<'a> Webhooks<'a> {
    async fn new(it: &'a Namespaced<'a>) -> Outcome<Self> {
        let (namespace, recorder) = (it.own_names(PREFIX, MATCHED), recorder(it).await?);
        let sent = requests::all(&|text| it.own_names(PREFIX, text));
        Ok(Self { it, namespace, recorder, configurations: Vec::new(), sent })
    }

    async fn create_objects(&self) -> Outcome {
        let labels = json!({"team": "shop", "tier": "web"});
        self.it.make_labelled(&self.namespace, &labels).await?;
        for object in requests::existing() {
            self.it.lab.api.create(Some(&self.namespace), &object).await?.created()?;
        }
        Ok(())
    }

    /// Creates the configurations, in the reverse order of their names.
    async fn configure(&mut self) -> Outcome {
        for configuration in table::configurations(&self.recorder) {
            let configuration = self.it.own_object(PREFIX, &configuration)?;
            let created = self.it.create_in_cluster(&configuration).await?;
            self.configurations.insert(0, created);
        }
        let first = self.sent.first().ok_or_else(|| failed("no request"))?;
        eventually("the API server has the configurations", async || {
            let (expected, _) = self.expected(first).await?;
            let found = self.called(first).await?;
            expect("the webhooks", expected.len(), found.len())
        })
        .await
    }

    async fn compare(&self) -> Outcome {
        let (mut combinations, mut called) = (0, 0);
        let mut differences = Vec::new();
        for sent in &self.sent {
            let (expected, count) = self.expected(sent).await?;
            let found = self.called(sent).await?;
            combinations += count;
            called += found.len();
            if ordered(&expected) != ordered(&found) {
                differences.push(format!("{}: expected {expected:?}, found {found:?}", sent.name));
            }
        }
        if !differences.is_empty() {
            return Err(failed(differences.join("\n  ")));
        }
        if combinations < COMBINATIONS {
            return Err(failed(format!("only {combinations} combinations")));
        }
        note(&format!("{combinations} combinations, {called} calls"));
        Ok(())
    }

    /// The webhooks that the package names for a request, and how many it judged.
    async fn expected(&self, sent: &Sent) -> Outcome<(Vec<String>, usize)> {
        let configurations = Configurations::read(&self.configurations)
            .map_err(|error| failed(error.to_string()))?;
        let path = format!("{NAMESPACES}/{}", self.namespace);
        let namespace = self.it.lab.api.get(&path).await?.ok()?;
        let labels = namespace["metadata"]["labels"].as_object().into_iter().flatten();
        let labels: Labels = labels
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        let (old, new) = self.objects(sent).await?;
        let request = sent.request(new.as_ref(), old.as_ref());
        let steps = configurations.walk(&request, Some(&labels));
        let mut called = Vec::new();
        for step in &steps {
            match step.verdict {
                Verdict::Called => called.push(step.webhook.path.clone()),
                Verdict::NotCalled => {}
                Verdict::Rejected | Verdict::Unknown => {
                    let text = format!("{}: {}: {}", sent.name, step.webhook.name, step.reason);
                    return Err(failed(text));
                }
            }
        }
        Ok((called, steps.len()))
    }

    /// The object before the request, and the one that it sends.
    async fn objects(&self, sent: &Sent) -> Outcome<(Option<Value>, Option<Value>)> {
        let old = match sent.method {
            Method::POST => None,
            _ => Some(self.it.lab.api.get(&sent.path).await?.ok()?),
        };
        let new = sent.body(old.clone()).map(|new| self.it.own_object(PREFIX, &new)).transpose()?;
        Ok((old, new))
    }

    /// The webhooks that the API server calls for a request, in their order.
    async fn called(&self, sent: &Sent) -> Outcome<Vec<String>> {
        let (_, new) = self.objects(sent).await?;
        self.recorder.forget();
        let path = format!("{}?dryRun=All", sent.path);
        let body = new.map(|new| new.to_string());
        let answer = self.it.lab.api.call(sent.method.clone(), &path, body).await?;
        if answer.status >= 300 {
            return Err(failed(format!("{}: {} {}", sent.name, answer.status, answer.body)));
        }
        Ok(self.recorder.recorded())
    }

    /// Deletes the configurations, and waits until the API server knows.
    async fn clean_up(&self) -> Outcome {
        self.it.delete_in_cluster().await?;
        let first = self.sent.first().ok_or_else(|| failed("no request"))?;
        eventually("the API server has no configuration", async || {
            expect("the webhooks", Vec::<String>::new(), self.called(first).await?)
        })
        .await
    }
}

/// A recorder, and its Service in the namespace of the scenario.
async fn recorder(it: &Namespaced<'_>) -> Outcome<Recorder> {
    let ip = service_ip()?;
    let recorder = Recorder::start(ip, &it.name).await?;
    let service = objects::service(recorder::SERVICE, &ip.to_string(), recorder.port);
    it.create(&service).await?.created()?;
    Ok(recorder)
}

/// The webhook selects an object by a label that no other scenario has.
async fn rejected(it: &Namespaced<'_>) -> Outcome {
    let labels = it.labels();
    let failing = json!({
        "name": "rejects.example.com",
        "path": "/m-rejects",
        "failurePolicy": "Fail",
        "matchConditions": [
            {"name": "fails", "expression": "object.metadata.annotations.absent == 'a'"},
        ],
        "objectSelector": {"matchLabels": labels},
    });
    let recorder = recorder(it).await?;
    let name = it.name_of("rejects");
    let configuration = table::configuration(Plugin::Mutating, &name, &[failing], &recorder);
    let configuration = it.create_in_cluster(&configuration).await?;
    let mut pod = objects::plain_pod("rejected");
    pod["metadata"]["labels"] = labels;
    eventually("the request is rejected", async || {
        expect("the status", 403, it.dry_run(&pod).await?.status)
    })
    .await?;
    let read = Configurations::read([&configuration]);
    let read = read.map_err(|error| failed(error.to_string()))?;
    let request = injectd_webhooks::Request::creates_pod(&pod, &it.name);
    let verdict = read.walk(&request, None)[0].verdict;
    expect("the verdict", Verdict::Rejected, verdict)
}

/// A configuration with this rule, of which `manifest check` has nothing else to say.
fn with_rule(rule: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "checked"},
        "webhooks": [{
            "name": "checked.example.com",
            "clientConfig": {"url": "https://checked.example.com/"},
            "rules": [rule],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    })
}

/// Mutating webhooks in their order, and validating ones, which are called together.
fn ordered(called: &[String]) -> (Vec<&String>, Vec<&String>) {
    let (mutating, mut validating): (Vec<_>, Vec<_>) =
        called.iter().partition(|path| path.starts_with("/m-"));
    validating.sort();
    (mutating, validating)
}
