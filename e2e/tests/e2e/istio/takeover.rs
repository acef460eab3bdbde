//! The three ways of `deploy/istio-webhook/take-over.sh`, there and back, while pods are created.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use injectd_harness::{
    api::{WEBHOOK_CONFIGURATIONS, collection},
    expect::{Outcome, eventually, expect, expect_contains, failed, skipped},
    objects::plain_pod,
    program::Program,
    run::Suite,
    stream::{Seen, Stream, all_created},
};
use serde_json::{Value, json};

use super::{
    config::{Revision, of_chart},
    deployed::{Deployed, certificate_of},
    istiod::{INJECTOR as ISTIOD, Istiod},
    judged,
    pods::{INJECTOR, annotation, image, labelled},
};

/// A pod for each of the four entries of the default revision, and two of the canary.
const PODS: [(&str, &str); 6] = [
    ("row-5", "{}"),
    ("row-9", r#"{"istio.io/rev":"default"}"#),
    ("row-0", "{}"),
    ("row-9", r#"{"sidecar.istio.io/inject":"true"}"#),
    ("rev-canary", "{}"),
    ("row-9", r#"{"istio.io/rev":"canary"}"#),
];
/// The pods of [`PODS`] that are of the default revision.
const OF_DEFAULT: usize = 4;
/// Release of the webhooks, failure policy, and what is taken over. Short, only the first two run.
const RUNS: [(&str, &str, &str); 4] = [
    ("1.19", "Ignore", "default"),
    ("1.31", "Fail", "all"),
    ("1.19", "Fail", "all"),
    ("1.31", "Ignore", "default"),
];
/// Pods that are created between two steps.
const BETWEEN: usize = 30;
const INJECTD: &str = "injectd";

pub(super) async fn all(suite: &mut Suite<'_>, it: &Deployed) {
    let mut istiods = Vec::new();
    suite.setup("istiod serves both revisions", start(it, &mut istiods)).await;
    for (release, policy, which) in &RUNS[..if it.lab.is_long { RUNS.len() } else { 2 }] {
        let name = format!(
            "take-over of {which}, webhooks of {release} with {policy}: a tag, redirected, back"
        );
        let run = Run { it, istiods: &istiods, release, policy, which, same_ca: false };
        suite.scenario(&name, run.all()).await;
    }
    let name = "with a certificate of istiod's CA, istiod may write its CA all the time";
    let (release, policy) = ("1.31", "Fail");
    let run = Run { it, istiods: &istiods, release, policy, which: "default", same_ca: true };
    suite.scenario(name, run.with_same_ca()).await;
}

async fn start(it: &Deployed, istiods: &mut Vec<Istiod>) -> Outcome {
    for (name, tag) in [("default", "1.30.3"), ("canary", "1.30.4")] {
        let revision = Revision::small(name, tag, ISTIOD);
        istiods.push(Istiod::start(it, &revision).await?);
    }
    it.make_namespace("tagged", &json!({})).await
}

/// One take-over and its way back.
#[derive(Clone, Copy)]
struct Run<'a> {
    it: &'a Deployed,
    istiods: &'a [Istiod],
    release: &'a str,
    policy: &'a str,
    which: &'a str,
    /// Whether the script is to let istiod write its CA.
    same_ca: bool,
}

impl Run<'_> {
    async fn all(self) -> Outcome<String> {
        self.throughout(async |stream| self.steps(stream).await).await
    }

    /// istiod goes on writing its CA, which signed injectd's certificate as well.
    async fn with_same_ca(self) -> Outcome<String> {
        let [istiod, ..] = self.istiods else { return Err(failed("no istiod")) };
        self.it.serve_certificate(&certificate_of(&istiod.ca)?).await?;
        let steps = async |stream: &Stream| {
            self.script(&["redirect", "default"]).await?;
            self.wait_for([INJECTD, ISTIOD]).await?;
            stream.wait_for(BETWEEN).await?;
            self.script(&["back", "default"]).await?;
            self.wait_for([ISTIOD, ISTIOD]).await
        };
        let outcome = self.throughout(steps).await;
        self.it.serve_certificate(&certificate_of(&self.it.ca)?).await?;
        outcome
    }

    /// Creates pods while the steps are taken; fails unless all of them have a proxy.
    async fn throughout(self, steps: impl AsyncFnOnce(&Stream) -> Outcome) -> Outcome<String> {
        self.install().await?;
        self.wait_for([ISTIOD, ISTIOD]).await?;
        let pods: Vec<_> = PODS
            .iter()
            .map(|(namespace, labels)| Ok((*namespace, pod(labels)?)))
            .collect::<Outcome<_>>()?;
        let stream = Stream::start(&self.it.lab.api, &pods);
        let outcome = steps(&stream).await;
        let seen = stream.stop().await;
        outcome?;
        count(&seen)
    }

    /// Makes the webhook configurations as the charts do; istiod writes its CA.
    async fn install(self) -> Outcome {
        for (istiod, revision) in self.istiods.iter().zip(["default", "canary"]) {
            istiod.tell(&self.it.lab.api, false).await?;
            let mut object = of_chart(self.release, revision, istiod.port)?;
            for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
                webhook["failurePolicy"] = json!(self.policy);
            }
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("{WEBHOOK_CONFIGURATIONS}/{name}");
            self.it.lab.api.delete(&path).await?;
            self.it.lab.api.create(None, &object).await?.created()?;
        }
        Ok(())
    }

    async fn steps(self, stream: &Stream) -> Outcome {
        stream.wait_for(BETWEEN).await?;
        judged::agree(self.it).await?;
        self.tag().await?;
        stream.wait_for(BETWEEN).await?;
        let refused = self.script(&["redirect", self.which]).await;
        let why = refused.err().map(|it| it.to_string()).unwrap_or_default();
        expect_contains("why redirect refuses", "INJECTION_WEBHOOK_CONFIG_NAME=", &why)?;
        let (all, api) = (self.which == "all", &self.it.lab.api);
        let told = if all { self.istiods } else { self.istiods.get(..1).unwrap_or_default() };
        for istiod in told {
            istiod.tell(api, true).await?;
        }
        self.script(&["redirect", self.which]).await?;
        self.wait_for([INJECTD, if all { INJECTD } else { ISTIOD }]).await?;
        stream.wait_for(BETWEEN).await?;
        judged::agree(self.it).await?;
        self.script(&["back", self.which]).await?;
        self.wait_for([ISTIOD, ISTIOD]).await?;
        for istiod in told {
            istiod.tell(api, false).await?;
        }
        stream.wait_for(BETWEEN).await
    }

    /// A tag of its own beside istiod: a namespace moves there and back.
    async fn tag(self) -> Outcome {
        let path = format!("{}/before", collection("v1", "Pod", Some("tagged")));
        self.it.lab.api.delete(&path).await?;
        self.it.label("tagged", &json!({})).await?;
        // Tried by dry runs, so that a pod of an attempt that failed is not there in the next one.
        let before = plain_pod("before");
        eventually("the namespace has no label", async || {
            expect("the proxy", None, image(&self.it.pod("tagged", &before).await?))
        })
        .await?;
        let made = self.it.lab.api.create(Some("tagged"), &before).await?.created()?;
        expect("the proxy of a pod from before the tag", None, image(&made))?;
        self.it.label("tagged", &json!({"istio.io/rev": "default"})).await?;
        self.script(&["tag", "fast", "default"]).await?;
        for (label, injector) in [("fast", INJECTD), ("default", ISTIOD)] {
            self.it.label("tagged", &json!({"istio.io/rev": label})).await?;
            self.wait_in("tagged", "{}", injector).await?;
            judged::missing(self.it, "tagged", "before").await?;
        }
        self.it.lab.api.delete(&path).await?;
        self.script(&["untag", "fast"]).await.map(drop)
    }

    /// Waits until these inject the pods of the default revision, and of the canary.
    async fn wait_for(self, [default, canary]: [&str; 2]) -> Outcome {
        for (index, (namespace, labels)) in PODS.iter().enumerate() {
            let injector = if index < OF_DEFAULT { default } else { canary };
            self.wait_in(namespace, labels, injector).await?;
        }
        Ok(())
    }

    async fn wait_in(self, namespace: &str, labels: &str, injector: &str) -> Outcome {
        let pod = pod(labels)?;
        eventually("the webhook takes effect", async || {
            let found = self.it.pod(namespace, &pod).await?;
            expect("the injector", Some(injector), annotation(&found, INJECTOR))
        })
        .await
    }

    /// Runs `take-over.sh`; fails with its text unless its exit code is 0.
    async fn script(self, arguments: &[&str]) -> Outcome<String> {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/istio-webhook/take-over.sh");
        let output = self.it.folder.path().join("take-over.log");
        let log = File::create(&output)?;
        let mut command = Command::new(script);
        command.args(arguments).env("KUBECONFIG", &self.it.lab.kubeconfig);
        command.env("PORT", self.it.service.addr.port().to_string());
        if self.same_ca {
            command.env("SAME_CA", "1");
        }
        let status = Program::start(&mut command, log.try_clone()?, log)?.wait().await?;
        let text = fs::read_to_string(output)?;
        if text.contains("kubectl: not found") {
            return Err(skipped("it needs kubectl"));
        }
        if status.success() { Ok(text) } else { Err(failed(format!("{arguments:?}: {text}"))) }
    }
}

fn pod(labels: &str) -> Outcome<Value> {
    Ok(labelled(&serde_json::from_str(labels)?))
}

/// Fails unless every pod was created and has a proxy; returns how many came from whom.
fn count(seen: &[Seen]) -> Outcome<String> {
    let (mut ours, mut theirs) = (0, 0);
    for (_, pod) in all_created(seen)? {
        expect("whether it has a proxy", true, image(pod).is_some())?;
        match annotation(pod, INJECTOR) {
            Some(INJECTD) => ours += 1,
            Some(ISTIOD) => theirs += 1,
            other => return Err(failed(format!("a pod of the injector {other:?}"))),
        }
    }
    Ok(format!("{theirs} pods from istiod, {ours} from injectd, 0 refused, 0 without a proxy"))
}
