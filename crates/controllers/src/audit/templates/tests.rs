use injectd_core::{objects::Objects, standalone::Standalone};
use injectd_templates::Template;
use injectd_templates_mesh::Templates;
use injectd_webhooks::Configurations;
use serde_json::json;

use super::*;
use crate::audit::{Namespace, Webhooks};

/// Adds a container to pods with the label `agent`, and reads whatever is asked for.
fn template(image: &str, expression: &str) -> Value {
    json!({"apiVersion": "injectd.dev/v1alpha1", "kind": "ClusterSidecarTemplate", "metadata": {"name": "agent"},
        "spec": {"match": {"podSelector": {"matchLabels": {"agent": "on"}},
            "conditions": [{"name": "c", "expression": expression}]},
            "steps": [{"name": "a", "overlay": {"spec": {"containers": [{"name": "agent", "image": image}]}}}]}})
}

fn pod(labels: &Value) -> Value {
    json!({"metadata": {"name": "web-1", "namespace": "shop", "labels": labels,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1",
            "controller": true}]},
        "spec": {"containers": [{"name": "app", "image": "app"}]}})
}

fn asks() -> Value {
    pod(&json!({"agent": "on"}))
}

fn injected(image: &str) -> Value {
    let template = Template::read(&template(image, "true")).expect("right");
    let namespace = json!({"metadata": {"name": "shop"}});
    let pod = asks();
    let request = injectd_templates_tree::Request {
        pod: &pod,
        namespace: &namespace,
        service_account: None,
        owners: &[],
        own_namespace: None,
    };
    injectd_templates_tree::inject(&[template], &request).expect("injected").pod
}

/// The webhook of templates, for pods with a label.
fn webhook(label: &str) -> Value {
    json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "injectd"}, "webhooks": [{
        "name": "templates.injectd.dev", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "injectd", "namespace": "injectd", "path": "/templates"}},
        "objectSelector": {"matchLabels": {label: "on"}},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}]})
}

fn served(templates: &[Value]) -> Served {
    let templates = templates.iter().map(|template| Template::read(template).expect("right"));
    let sources = Standalone::ListedInPart(Arc::new(Objects::default())).into();
    let injector = TemplatesInjector::new(Templates::new(templates, None, 1), sources);
    Served { injector: Arc::new(injector), is_called: false, unknown: BTreeSet::new() }
}

async fn judged(webhooks: &[Value], templates: Option<Served>, pod: &Value) -> Judgement {
    let webhooks = Configurations::read(webhooks).expect("configurations");
    let meshes = Meshes { by_webhook: BTreeMap::new(), templates };
    let auditor = Auditor::new(Webhooks::of_files(webhooks), meshes).await.expect("an auditor");
    let namespace = Namespace::new(json!({"metadata": {"name": "shop"}}));
    auditor.judge(pod, Some(&namespace)).await.expect("a judgement")
}

/// The judgement with the webhook and one revision of the template.
async fn now(image: &str, expression: &str, pod: &Value) -> Judgement {
    judged(&[webhook("agent")], Some(served(&[template(image, expression)])), pod).await
}

fn wrong(judgement: &Judgement) -> (Finding, &str) {
    let Judgement::Wrong(finding, reason) = judgement else { panic!("{judgement:?}") };
    (*finding, reason)
}

#[tokio::test]
async fn a_pod_is_compared_with_the_templates_in_force() {
    assert_eq!(now("a", "true", &injected("a")).await, Judgement::Meshed);
    assert_eq!(now("a", "true", &pod(&json!({}))).await, Judgement::Unmeshed);

    let missing = now("a", "true", &asks()).await;
    let hash = Template::read(&template("a", "true")).expect("right").hash;
    let expected = format!("template agent {hash} is for the pod and not in it");
    assert_eq!(wrong(&missing), (Finding::Missing, &*expected));

    let outdated = now("b", "true", &injected("a")).await;
    let newer = Template::read(&template("b", "true")).expect("right").hash;
    let expected = format!("template agent {hash}, now {newer}");
    assert_eq!(wrong(&outdated), (Finding::Outdated, &*expected));
}

#[tokio::test]
async fn what_a_restart_would_remove_is_unexpected() {
    let unexpected = now("a", "object.metadata.name != 'web-1'", &injected("a")).await;
    let (finding, reason) = wrong(&unexpected);
    assert_eq!(finding, Finding::Unexpected);
    assert!(reason.ends_with("would not be in a new pod: not matched: condition c"), "{reason}");

    let gone = judged(&[webhook("agent")], Some(served(&[])), &injected("a")).await;
    let (finding, reason) = wrong(&gone);
    assert_eq!(finding, Finding::Unexpected);
    assert!(reason.ends_with("no such template is in force"), "{reason}");
}

#[tokio::test]
async fn what_is_not_known_makes_a_pod_unknown() {
    let account = "serviceAccount.?metadata.?labels['a'].orValue('') != 'x'";
    for (expression, expected) in [
        (account, "template agent: ServiceAccount shop/default is not known"),
        ("owner.kind == 'Deployment'", "template agent: ReplicaSet shop/web is not known"),
        ("int(object.metadata.name) > 0", "the pod would be denied now: template agent: "),
    ] {
        let Judgement::Unknown(reason) = now("a", expression, &asks()).await else {
            panic!("{expression}")
        };
        assert!(reason.starts_with(expected), "{reason}");
        // Pods that the selectors leave out need nothing of it.
        assert_eq!(now("a", expression, &pod(&json!({}))).await, Judgement::Unmeshed);
    }
    let mut served = served(&[]);
    served.unknown.insert("agent".to_owned());
    let unknown = judged(&[webhook("agent")], Some(served), &injected("a")).await;
    let expected = "template agent: the revision in force is not known".to_owned();
    assert_eq!(unknown, Judgement::Unknown(expected));
}

/// Only pods for which the webhook is called count.
#[tokio::test]
async fn a_pod_without_a_call_lacks_nothing() {
    let served = || Some(served(&[template("a", "true")]));
    let other = [webhook("other")];
    assert_eq!(judged(&other, served(), &asks()).await, Judgement::Unmeshed);
    assert_eq!(judged(&[], served(), &asks()).await, Judgement::Unmeshed);
    for (webhooks, has_webhook) in [(&other[..], true), (&[], false)] {
        let expected = Judgement::Unserved { product: Product::Templates, has_webhook };
        assert_eq!(judged(webhooks, served(), &injected("a")).await, expected);
        assert_eq!(judged(webhooks, None, &injected("a")).await, expected);
    }
    // A template that is gone is no reason for a call.
    let gone = judged(&other, Some(super::tests::served(&[])), &injected("a")).await;
    assert_eq!(wrong(&gone).0, Finding::Unexpected);
    // Without any webhook, templates of files are for all pods.
    let all = Served { is_called: true, ..super::tests::served(&[template("a", "true")]) };
    assert_eq!(wrong(&judged(&[], Some(all), &asks()).await).0, Finding::Missing);
}

#[tokio::test]
async fn without_the_templates_a_pod_with_a_mark_is_not_compared() {
    let webhooks = [webhook("agent")];
    assert_eq!(judged(&webhooks, None, &injected("a")).await, Judgement::NotCompared);
    let Judgement::Unknown(reason) = judged(&webhooks, None, &asks()).await else { panic!("it") };
    assert_eq!(reason, "the configuration of sidecar templates is not known");
}

/// A restart renews what a mesh and what templates have put into a pod.
#[test]
fn what_keeps_a_pod_from_a_restart_counts_most() {
    use Judgement::{Meshed, Uncalled, Unknown, Unmeshed, Unserved, Wrong};

    let wrong = |finding, text: &str| Wrong(finding, text.to_owned());
    let unknown = |text: &str| Unknown(text.to_owned());
    let product = Product::Linkerd;
    let uncalled = |reason: &str| {
        let reason = reason.to_owned();
        Uncalled { product, reason, has_webhook: true }
    };
    let unserved = Unserved { product, has_webhook: true };
    let loses = "t; no webhook of Linkerd would be called for a new pod";
    for (of_mesh, of_templates, expected) in [
        (Unmeshed, Meshed, Meshed),
        (Meshed, wrong(Finding::Missing, "t"), wrong(Finding::Missing, "t")),
        (wrong(Finding::Missing, "m"), Meshed, wrong(Finding::Missing, "m")),
        (
            wrong(Finding::Outdated, "m"),
            wrong(Finding::Missing, "t"),
            wrong(Finding::Missing, "m; t"),
        ),
        (
            wrong(Finding::Missing, "m"),
            wrong(Finding::Unexpected, "t"),
            wrong(Finding::Unexpected, "m; t"),
        ),
        (unknown("m"), wrong(Finding::Missing, "t"), unknown("m; t")),
        (wrong(Finding::Missing, "m"), unknown("t"), unknown("t; m")),
        (unserved.clone(), wrong(Finding::Outdated, "t"), uncalled(loses)),
        (unserved.clone(), Meshed, unserved),
        (uncalled("m"), wrong(Finding::Outdated, "t"), wrong(Finding::Outdated, "t; m")),
        (uncalled("m"), Meshed, uncalled("m")),
    ] {
        assert_eq!(combined(of_mesh.clone(), Some(of_templates)), expected, "{of_mesh:?}");
        assert_eq!(combined(of_mesh.clone(), None), of_mesh);
    }
}

#[tokio::test]
async fn a_new_revision_is_another_environment() {
    let revisions = |image: &str| served(&[template(image, "true")]).revisions();
    assert_ne!(revisions("a"), revisions("b"));
    assert_eq!(revisions("a"), revisions("a"));
}
