//! What a namespaced template must not do: each is refused by name, by the API server, by `template check`, or
//! by both `template check` and the condition of the object.

use std::process::Command;

use injectd_harness::{
    api::{collection, path_of},
    expect::{Outcome, about, eventually, expect, expect_contains},
    process::run_with_text,
};
use injectd_templates::schema;
use serde_json::{Value, json};

use super::{condition_of, served::Served};

/// What is tried: the spec, and what names the problem.
fn tried() -> [(&'static str, Value, &'static str); 6] {
    let with = |spec: Value| json!({"steps": [{"name": "add", "overlay": {"spec": spec}}]});
    let container = |context: Value| json!({"containers": [{"name": "side", "image": "a:1", "securityContext": context}]});
    let mut system = with(container(json!({})));
    system["match"] = json!({"systemPods": "Include"});
    [
        ("privileged", with(container(json!({"privileged": true}))), "Privileged Containers"),
        (
            "privileged-by-expression",
            with(container(json!({"privileged": "${object.metadata.name == 'a'}"}))),
            "Privileged Containers",
        ),
        (
            "host-path",
            with(
                json!({"volumes": [{"name": "v", "hostPath": {"path": "${'/' + object.metadata.name}"}}]}),
            ),
            "HostPath Volumes",
        ),
        ("system-pods", system, "pods of the system"),
        (
            "labels",
            json!({"steps": [{"name": "add", "existing": "Replace", "overlay":
                {"metadata": {"labels": {"$patch": "replace", "app": "other"}}}}]}),
            "$patch",
        ),
        (
            "removes",
            json!({"steps": [{"name": "add", "overlay": {"metadata": {"labels": {"injectd.dev/injected": "no"}}}}]}),
            "injectd.dev",
        ),
    ]
}

pub(super) async fn refused(it: &Served<'_>) -> Outcome {
    for (name, spec, problem) in tried() {
        about(name, one(it, name, &spec, problem).await)?;
    }
    another_namespace(it).await
}

async fn one(it: &Served<'_>, name: &str, spec: &Value, problem: &str) -> Outcome {
    let template = template(&it.it.name, name, spec);
    expect_contains("template check", problem, &check(it, &template).await?)?;
    it.it.lab.api.create(Some(&it.it.name), &template).await?.created()?;
    let path = path_of(&template, Some(&it.it.name));
    eventually("the condition", async || {
        let found = it.it.lab.api.get(&path).await?.ok()?;
        let accepted = condition_of(&found, "Accepted").unwrap_or_default();
        expect("Accepted", "False", accepted["status"].as_str().unwrap_or_default())?;
        expect_contains("the message", problem, accepted["message"].as_str().unwrap_or_default())
    })
    .await?;
    it.it.lab.api.delete(&path).await?.ok().map(drop)
}

/// The API server refuses a `namespaceSelector`, and so does the check.
async fn another_namespace(it: &Served<'_>) -> Outcome {
    let mut spec = tried()[0].1.clone();
    spec["match"] = json!({"namespaceSelector": {}});
    let template = template(&it.it.name, "another", &spec);
    expect_contains("template check", "namespaceSelector", &check(it, &template).await?)?;
    let kind = schema::NAMESPACED_KIND;
    let path = collection(schema::API_VERSION, kind, Some(&it.it.name));
    let path = format!("{path}?fieldValidation=Strict");
    let answer = it.it.lab.api.call(hyper::Method::POST, &path, Some(template.to_string())).await?;
    expect("the status", 400, answer.status)?;
    expect_contains("the message", "namespaceSelector", &answer.body.to_string())
}

fn template(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": schema::API_VERSION,
        "kind": schema::NAMESPACED_KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    })
}

/// What `injectd template check` prints, which fails.
async fn check(it: &Served<'_>, template: &Value) -> Outcome<String> {
    let mut command = Command::new(&it.it.lab.binary);
    command.args(["template", "check", "-"]);
    run_with_text(command, &template.to_string()).await?.with_code(3)
}
