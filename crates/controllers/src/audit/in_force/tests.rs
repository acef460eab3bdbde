use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use serde_json::json;

use super::*;

/// A cluster that answers with these objects, or with a status.
struct Simulation {
    cluster: Result<Vec<Value>, u16>,
    namespaced: Vec<Value>,
    revisions: Result<Vec<Value>, u16>,
}

impl Rim for Simulation {
    fn pages<'a>(&'a self, path: String, _: &'a str) -> BoxStream<'a, kube::Result<Vec<Value>>> {
        let found = match &*path {
            "/apis/injectd.dev/v1alpha1/clustersidecartemplates" => self.cluster.clone(),
            "/apis/injectd.dev/v1alpha1/sidecartemplates" => Ok(self.namespaced.clone()),
            "/apis/apps/v1/namespaces/injectd/controllerrevisions" => self.revisions.clone(),
            _ => panic!("{path}"),
        };
        let found = found.map_err(|code| {
            let status = kube::core::Status { code, message: "no".into(), ..Default::default() };
            kube::Error::Api(status.into())
        });
        stream::iter([found]).boxed()
    }
}

fn template(name: &str, image: &str) -> Value {
    json!({"metadata": {"name": name, "uid": "u"}, "spec": {"match": {"namespaceSelector": {}},
        "steps": [{"name": "a", "overlay": {"spec": {"containers": [{"name": "a", "image": image}]}}}]}})
}

/// A revision of a template; its data is right if it has an image.
fn revision(number: i64, uid: &str, image: &str) -> Value {
    let mut data = template("broken", image);
    data["apiVersion"] = "injectd.dev/v1alpha1".into();
    data["kind"] = "ClusterSidecarTemplate".into();
    if image.is_empty() {
        data["spec"]["steps"] = json!([{"name": "a"}]);
    }
    let hash = Template::read(&data).map(|template| template.hash).unwrap_or_default();
    let labels = json!({UID_LABEL: uid, HASH_LABEL: hash});
    json!({"metadata": {"labels": labels}, "revision": number, "data": data})
}

fn broken() -> Value {
    let mut broken = template("broken", "x");
    broken["spec"]["steps"][0]["when"] = "nothing.of.that".into();
    broken
}

fn simulation(cluster: Vec<Value>, revisions: Result<Vec<Value>, u16>) -> Simulation {
    Simulation { cluster: Ok(cluster), namespaced: Vec::new(), revisions }
}

/// Names with images, names that are not known, and the number of notes.
async fn found(simulation: &Simulation) -> (Vec<String>, Vec<String>, usize) {
    let found = in_force(simulation, Some("injectd")).await.expect("templates");
    let names = found.templates.iter().map(Template::key).collect();
    (names, found.unknown.into_iter().collect(), found.notes.len())
}

#[tokio::test]
async fn both_kinds_are_in_force() {
    let mut of_team = template("proxy", "b");
    of_team["metadata"]["namespace"] = "team-a".into();
    of_team["spec"]["match"] = json!({});
    let simulation = Simulation {
        namespaced: vec![of_team],
        ..simulation(vec![template("agent", "a")], Ok(vec![]))
    };
    let expected = ["agent", "team-a/proxy"].map(str::to_owned).to_vec();
    assert_eq!(found(&simulation).await, (expected, vec![], 0));
}

#[tokio::test]
async fn a_cluster_without_the_kinds_has_no_templates() {
    let simulation = Simulation { cluster: Err(404), ..simulation(vec![], Ok(vec![])) };
    assert_eq!(found(&simulation).await, (vec![], vec![], 0));
    let refused = Simulation { cluster: Err(403), ..simulation };
    let error = in_force(&refused, None).await.expect_err("refused");
    assert_eq!(error.to_string(), "cannot list clustersidecartemplates: no");
}

#[tokio::test]
async fn of_a_template_that_is_not_in_order_the_last_good_revision_is_in_force() {
    // The newest is of another object with the name, and the next one is not in order.
    let revisions = vec![
        revision(1, "u", "old"),
        revision(2, "u", "good"),
        revision(3, "u", ""),
        revision(4, "other", "new"),
    ];
    let in_force = in_force(&simulation(vec![broken()], Ok(revisions)), Some("injectd")).await;
    let found = in_force.expect("templates");
    let [template] = &found.templates[..] else { panic!("{:?}", found.notes) };
    let good = Template::read(&revision(2, "u", "good")["data"]).expect("it is right");
    assert_eq!((&template.hash, found.notes.len()), (&good.hash, 0));
}

#[tokio::test]
async fn a_template_that_injectd_refuses_is_not_in_force() {
    let refused = |generation: u64| {
        let mut refused = template("broken", "x");
        refused["metadata"]["generation"] = 2.into();
        refused["status"]["conditions"] = json!([{"type": "Accepted", "status": "False",
            "observedGeneration": generation, "message": "over the ceiling"}]);
        refused
    };
    // The newest was accepted below another ceiling.
    let revisions = || Ok(vec![revision(1, "u", "good"), revision(2, "u", "x")]);
    let good = Template::read(&revision(1, "u", "good")["data"]).expect("it is right");
    for (generation, is_good) in [(2, true), (1, false)] {
        let simulation = simulation(vec![refused(generation)], revisions());
        let found = in_force(&simulation, Some("injectd")).await.expect("templates");
        let [template] = &found.templates[..] else { panic!("{:?}", found.notes) };
        assert_eq!(template.hash == good.hash, is_good);
    }
}

#[tokio::test]
async fn a_template_without_a_known_revision_is_noted() {
    for revisions in [Ok(vec![]), Err(403)] {
        let simulation = simulation(vec![broken()], revisions);
        assert_eq!(found(&simulation).await, (vec![], vec!["broken".to_owned()], 1));
    }
}
