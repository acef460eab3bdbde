//! Which webhooks the API server calls, against what the package `injectd-webhooks` says: each webhook
//! of a table with each request of another; and which configurations it accepts. Requests are dry runs, so
//! nothing changes.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use hyper::Method;
use injectd_harness::{
    api::{NAMESPACES, WEBHOOK_CONFIGURATIONS},
    expect::{Outcome, eventually, expect, failed},
    lab::{Lab, NOT_LOCAL},
    objects,
    run::{Run, Suite},
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

pub(crate) const NAME: &str = "webhooks";
const LIMIT: Duration = Duration::from_mins(2);
const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 100, 0, 18));
const NAMESPACE: &str = "webhooks-matched";
/// The least number of combinations.
const COMBINATIONS: usize = 200;
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

struct Webhooks {
    lab: Lab,
    recorder: Recorder,
    /// As the API server has them.
    configurations: Vec<Value>,
    sent: Vec<Sent>,
}

pub(crate) async fn run(run: &mut Run, lab: &Lab) -> Outcome {
    let Some(mut suite) = run.suite(NAME, LIMIT) else { return Ok(()) };
    if lab.local.is_none() {
        suite.skip(NOT_LOCAL);
        return Ok(());
    }
    let recorder = Recorder::start(IP, &format!("recorder.{NAMESPACE}.svc")).await?;
    let mut it =
        Webhooks { lab: lab.clone(), recorder, configurations: Vec::new(), sent: Vec::new() };
    all(&mut suite, &mut it).await;
    it.clean_up().await
}

async fn all(suite: &mut Suite<'_>, it: &mut Webhooks) {
    suite.setup("objects are created", it.create_objects()).await;
    suite.setup("the API server calls the webhooks", it.configure()).await;
    let name = "the API server calls exactly the webhooks that the package names, in its order";
    suite.scenario(name, it.compare()).await;
    let name = "a condition that fails rejects the request under the failure policy Fail";
    suite.scenario(name, it.rejected()).await;
    let name = "manifest check finds an error exactly where the API server rejects";
    suite.scenario(name, checked::all(&it.lab.api, it.lab.is_long)).await;
    let name = "manifest check knows every resource that the API server serves";
    suite.scenario(name, resources::all(&it.lab.api)).await;
    let name = "manifest check knows the fields that objects lack, or that are null";
    suite.scenario(name, fields::all(&it.lab.api)).await;
}

impl Webhooks {
    async fn create_objects(&mut self) -> Outcome {
        let labels = json!({"team": "shop", "tier": "web"});
        let namespace = objects::namespace(NAMESPACE, &json!({}), &labels);
        self.lab.api.create(None, &namespace).await?.created()?;
        eventually("the service account is there", async || {
            let account = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default");
            self.lab.api.get(&account).await?.ok().map(drop)
        })
        .await?;
        let port = self.recorder.port;
        let service = objects::service("recorder", &IP.to_string(), port);
        self.lab.api.create(Some(NAMESPACE), &service).await?.created()?;
        for object in requests::existing() {
            self.lab.api.create(Some(NAMESPACE), &object).await?.created()?;
        }
        self.sent = requests::all();
        Ok(())
    }

    /// Creates the configurations, in the reverse order of their names.
    async fn configure(&mut self) -> Outcome {
        for configuration in table::configurations(&self.recorder) {
            let created = self.lab.api.create(None, &configuration).await?.created()?;
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

    async fn compare(&self) -> Outcome<String> {
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
        Ok(format!("{combinations} combinations, {called} calls"))
    }

    /// The webhooks that the package names for a request, and how many it judged.
    async fn expected(&self, sent: &Sent) -> Outcome<(Vec<String>, usize)> {
        let configurations = Configurations::read(&self.configurations)
            .map_err(|error| failed(error.to_string()))?;
        let path = format!("{NAMESPACES}/{NAMESPACE}");
        let namespace = self.lab.api.get(&path).await?.ok()?;
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
            _ => Some(self.lab.api.get(sent.path).await?.ok()?),
        };
        Ok((old.clone(), sent.body(old)))
    }

    /// The webhooks that the API server calls for a request, in their order.
    async fn called(&self, sent: &Sent) -> Outcome<Vec<String>> {
        let (_, new) = self.objects(sent).await?;
        self.recorder.forget();
        let path = format!("{}?dryRun=All", sent.path);
        let body = new.map(|new| new.to_string());
        let answer = self.lab.api.call(sent.method.clone(), &path, body).await?;
        if answer.status >= 300 {
            return Err(failed(format!("{}: {} {}", sent.name, answer.status, answer.body)));
        }
        Ok(self.recorder.recorded())
    }

    async fn rejected(&self) -> Outcome {
        let failing = json!({
            "name": "rejects.example.com",
            "path": "/m-rejects",
            "failurePolicy": "Fail",
            "matchConditions": [
                {"name": "fails", "expression": "object.metadata.annotations.absent == 'a'"},
            ],
            "objectSelector": {"matchLabels": {"rejected": "yes"}},
        });
        let configuration =
            table::configuration(Plugin::Mutating, "webhooks-rejects", &[failing], &self.recorder);
        let configuration = self.lab.api.create(None, &configuration).await?.created()?;
        let mut pod = objects::plain_pod("rejected");
        pod["metadata"]["labels"] = json!({"rejected": "yes"});
        eventually("the request is rejected", async || {
            let answer = self.lab.api.dry_run(NAMESPACE, &pod).await?;
            expect("the status", 403, answer.status)
        })
        .await?;
        let read = Configurations::read([&configuration]);
        let read = read.map_err(|error| failed(error.to_string()))?;
        let request = injectd_webhooks::Request::creates_pod(&pod, NAMESPACE);
        let verdict = read.walk(&request, None)[0].verdict;
        expect("the verdict", Verdict::Rejected, verdict)
    }

    async fn clean_up(self) -> Outcome {
        for name in table::NAMES.iter().chain(&["webhooks-rejects"]) {
            for collection in [WEBHOOK_CONFIGURATIONS, VALIDATING] {
                self.lab.api.delete(&format!("{collection}/{name}")).await?;
            }
        }
        self.lab.api.delete(&format!("{NAMESPACES}/{NAMESPACE}")).await?;
        Ok(())
    }
}

/// Mutating webhooks in their order, and validating ones, which are called together.
fn ordered(called: &[String]) -> (Vec<&String>, Vec<&String>) {
    let (mutating, mut validating): (Vec<_>, Vec<_>) =
        called.iter().partition(|path| path.starts_with("/m-"));
    validating.sort();
    (mutating, validating)
}
