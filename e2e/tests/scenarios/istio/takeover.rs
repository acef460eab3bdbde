//! The three ways of `deploy/istio-webhook/take-over.sh`, there and back, while pods are created.

use std::{fs, path::Path, process::Command};

use injectd_harness::{
    api::WEBHOOK_CONFIGURATIONS,
    expect::{Outcome, eventually, expect, expect_contains, failed, skipped},
    istio::{Revision, of_chart},
    objects::plain_pod,
    program::Program,
    scenario::{note, with_lab_alone},
    stream::{Seen, Stream, all_created},
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{
    deployed::Istio,
    istiod::{INJECTOR as ISTIOD, Istiod},
    judged,
    pods::{INJECTOR, annotation, image, labelled},
    revisions::make_rows,
    with_replicas,
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
/// Pods that are created between two steps.
const BETWEEN: usize = 30;
const INJECTD: &str = "injectd";

#[tokio::test]
async fn default_is_taken_over_from_webhooks_of_1_19_with_ignore_by_a_tag_and_by_redirect()
-> Outcome {
    take_over(Way { release: "1.19", policy: "Ignore", which: "default" }, Length::Short).await
}

#[tokio::test]
async fn all_is_taken_over_from_webhooks_of_1_31_with_fail_by_a_tag_and_by_redirect() -> Outcome {
    take_over(Way { release: "1.31", policy: "Fail", which: "all" }, Length::Short).await
}

#[tokio::test]
async fn all_is_taken_over_from_webhooks_of_1_19_with_fail_by_a_tag_and_by_redirect() -> Outcome {
    take_over(Way { release: "1.19", policy: "Fail", which: "all" }, Length::Full).await
}

#[tokio::test]
async fn default_is_taken_over_from_webhooks_of_1_31_with_ignore_by_a_tag_and_by_redirect()
-> Outcome {
    take_over(Way { release: "1.31", policy: "Ignore", which: "default" }, Length::Full).await
}

/// istiod goes on writing its CA, which signed injectd's certificate as well.
#[tokio::test]
async fn with_a_certificate_of_istiods_ca_istiod_may_write_its_ca_all_the_time() -> Outcome {
    with_istiods(Length::Short, async |it, istiods| {
        let [istiod, ..] = istiods else { return Err(failed("no istiod")) };
        it.serve_certificate(&it.certificate_of(&istiod.ca)?).await?;
        let way = Way { release: "1.31", policy: "Fail", which: "default" };
        let run = Run { it, istiods, way, same_ca: true };
        run.throughout(async |stream| {
            run.script(&["redirect", "default"]).await?;
            run.wait_for([INJECTD, ISTIOD]).await?;
            stream.wait_for(BETWEEN).await?;
            run.script(&["back", "default"]).await?;
            run.wait_for([ISTIOD, ISTIOD]).await
        })
        .await
    })
    .await
}

/// Takes over and gives back; in a short run only what belongs to one.
async fn take_over(way: Way, length: Length) -> Outcome {
    with_istiods(length, async |it, istiods| {
        let run = Run { it, istiods, way, same_ca: false };
        run.throughout(async |stream| run.steps(stream).await).await
    })
    .await
}

/// Runs a scenario beside istiod of both revisions. It is alone: the script changes all webhook
/// configurations of a revision, or of Istio, in the whole cluster.
async fn with_istiods(
    length: Length,
    scenario: impl AsyncFnOnce(&Istio<'_>, &[Istiod]) -> Outcome,
) -> Outcome {
    with_lab_alone(async |lab| {
        if length == Length::Full && !lab.is_long {
            return Err(skipped("it runs at full length (--long)"));
        }
        with_replicas(lab, async |istio| {
            // Those that the script makes.
            for tag in [&*istio.it.name, "injectd-check"] {
                istio.it.delete_at_end(format!("{WEBHOOK_CONFIGURATIONS}/injectd-tag-{tag}"));
            }
            let istiods = start(istio).await?;
            scenario(istio, &istiods).await
        })
        .await
    })
    .await
}

async fn start(it: &Istio<'_>) -> Outcome<Vec<Istiod>> {
    make_rows(it).await?;
    it.make_namespace("tagged", &json!({})).await?;
    let mut istiods = Vec::new();
    for (name, tag) in [("default", "1.30.3"), ("canary", "1.30.4")] {
        istiods.push(Istiod::start(it, &Revision::small(name, tag, ISTIOD)).await?);
    }
    Ok(istiods)
}

/// Whether a scenario belongs to short runs too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Short,
    Full,
}

/// What is taken over.
#[derive(Clone, Copy)]
struct Way {
    /// Whose chart makes the webhooks.
    release: &'static str,
    /// The failure policy of the webhooks.
    policy: &'static str,
    /// A revision, or `all`.
    which: &'static str,
}

/// One take-over and its way back.
#[derive(Clone, Copy)]
struct Run<'a> {
    it: &'a Istio<'a>,
    istiods: &'a [Istiod],
    way: Way,
    /// Whether the script is to let istiod write its CA.
    same_ca: bool,
}

impl Run<'_> {
    /// Creates pods while the steps are taken; fails unless all of them have a proxy.
    async fn throughout(self, steps: impl AsyncFnOnce(&Stream) -> Outcome) -> Outcome {
        self.install().await?;
        self.wait_for([ISTIOD, ISTIOD]).await?;
        let pods: Vec<_> = PODS
            .iter()
            .map(|(namespace, labels)| Ok((*namespace, pod(labels)?)))
            .collect::<Outcome<_>>()?;
        let stream = self.it.stream(&pods).await?;
        let outcome = steps(&stream).await;
        let seen = stream.stop().await;
        outcome?;
        count(&seen)
    }

    /// Makes the webhook configurations as the charts do; istiod writes its CA.
    async fn install(self) -> Outcome {
        for (istiod, revision) in self.istiods.iter().zip(["default", "canary"]) {
            istiod.tell(&self.it.lab.api, false).await?;
            let Way { release, policy, .. } = self.way;
            let mut object = of_chart(release, revision, istiod.port)?;
            for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
                webhook["failurePolicy"] = json!(policy);
                webhook["clientConfig"]["service"]["namespace"] = json!(self.it.control_plane);
            }
            self.it.confine(&mut object, revision);
            // In the place of injectd's own.
            let path = format!("{WEBHOOK_CONFIGURATIONS}/{}", self.it.it.name_of(revision));
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
        let refused = self.script(&["redirect", self.way.which]).await;
        let why = refused.err().map(|error| error.to_string()).unwrap_or_default();
        expect_contains("why redirect refuses", "INJECTION_WEBHOOK_CONFIG_NAME=", &why)?;
        let (all, api) = (self.way.which == "all", &self.it.lab.api);
        let configured = if all { self.istiods } else { self.istiods.get(..1).unwrap_or_default() };
        for istiod in configured {
            istiod.tell(api, true).await?;
        }
        self.script(&["redirect", self.way.which]).await?;
        self.wait_for([INJECTD, if all { INJECTD } else { ISTIOD }]).await?;
        stream.wait_for(BETWEEN).await?;
        judged::agree(self.it).await?;
        self.script(&["back", self.way.which]).await?;
        self.wait_for([ISTIOD, ISTIOD]).await?;
        for istiod in configured {
            istiod.tell(api, false).await?;
        }
        stream.wait_for(BETWEEN).await
    }

    /// A tag, that of the scenario, beside istiod: a namespace moves there and back.
    async fn tag(self) -> Outcome {
        let (tag, tagged) = (&*self.it.it.name, self.it.it.name_of("tagged"));
        // Tried by dry runs, so that a pod of an attempt that failed is not there in the next one.
        let before = plain_pod("before");
        eventually("the namespace has no label", async || {
            expect("the proxy", None, image(&self.it.pod("tagged", &before).await?))
        })
        .await?;
        let made = self.it.lab.api.create(Some(&tagged), &before).await?.created()?;
        expect("the proxy of a pod from before the tag", None, image(&made))?;
        self.it.label("tagged", &json!({"istio.io/rev": "default"})).await?;
        self.script(&["tag", tag, "default"]).await?;
        for (label, injector) in [(tag, INJECTD), ("default", ISTIOD)] {
            self.it.label("tagged", &json!({"istio.io/rev": label})).await?;
            self.wait_in("tagged", "{}", injector).await?;
            judged::missing(self.it, &tagged, "before").await?;
        }
        self.script(&["untag", tag]).await.map(drop)
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

    async fn script(self, arguments: &[&str]) -> Outcome<String> {
        let port = self.it.service.addr.port().to_string();
        let mut variables = vec![("NAMESPACE", &*self.it.control_plane), ("PORT", &port)];
        if self.same_ca {
            variables.push(("SAME_CA", "1"));
        }
        script(&self.it.lab.kubeconfig, arguments, &variables).await
    }
}

/// Runs `take-over.sh`; fails with its text unless its exit code is 0.
pub(crate) async fn script(
    kubeconfig: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Outcome<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/istio-webhook/take-over.sh");
    let output = NamedTempFile::new()?;
    let log = output.reopen()?;
    let mut command = Command::new(script);
    command.args(arguments).env("KUBECONFIG", kubeconfig).envs(variables.iter().copied());
    let status = Program::start(&mut command, log.try_clone()?, log)?.wait().await?;
    let text = fs::read_to_string(output.path())?;
    if text.contains("kubectl: not found") {
        return Err(skipped("it needs kubectl"));
    }
    if status.success() { Ok(text) } else { Err(failed(format!("{arguments:?}: {text}"))) }
}

fn pod(labels: &str) -> Outcome<Value> {
    Ok(labelled(&serde_json::from_str(labels)?))
}

/// Fails unless every pod was created and has a proxy; prints how many came from whom.
fn count(seen: &[Seen]) -> Outcome {
    let (mut ours, mut theirs) = (0, 0);
    for (_, pod) in all_created(seen)? {
        expect("whether it has a proxy", true, image(pod).is_some())?;
        match annotation(pod, INJECTOR) {
            Some(INJECTD) => ours += 1,
            Some(ISTIOD) => theirs += 1,
            other => return Err(failed(format!("a pod of the injector {other:?}"))),
        }
    }
    note(&format!("{theirs} pods from istiod, {ours} from injectd, 0 refused, 0 without a proxy"));
    Ok(())
}
