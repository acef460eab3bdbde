//! Sidecar templates in a cluster. `injectd manifest crds`: an API server takes the definitions, and refuses
//! exactly the templates that the check without a cluster refuses.

use std::process::Command;

use hyper::Method;
use injectd_harness::{
    api::{Answer, collection, path_of},
    expect::{Outcome, about, eventually, expect, failed},
    namespaced::{Namespaced, with_namespace},
    process::run,
    scenario::{note, step, with_lab_alone},
};
use injectd_templates::schema;
use serde_json::{Value, json};

mod audited;
mod refused;
mod served;

#[path = "../../../crates/templates/testdata/table.rs"]
mod table;

/// Differences that are printed.
const SHOWN: usize = 20;

#[tokio::test]
async fn the_api_server_refuses_the_templates_that_the_check_refuses() -> Outcome {
    with_lab_alone(async |lab| {
        with_namespace(lab, &json!({}), async |namespaced| {
            step("the definitions are established", define(namespaced)).await?;
            step("templates are stored with their defaults", store(namespaced)).await?;
            step("the same verdicts", compare(namespaced)).await
        })
        .await
    })
    .await
}

async fn define(it: &Namespaced<'_>) -> Outcome {
    let mut command = Command::new(&it.lab.binary);
    command.args(["manifest", "crds", "-o", "json"]);
    let list: Value = serde_json::from_str(&run(command).await?.with_code(0)?)?;
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    expect("the definitions", schema::crds().as_slice(), items)?;
    for definition in items {
        // One of another scenario may be on its way out.
        eventually("the definition is made", async || it.create_in_cluster(definition).await)
            .await?;
    }
    for definition in items {
        let path = path_of(definition, None);
        eventually("the definition is established", async || {
            let found = it.lab.api.get(&path).await?.ok()?;
            expect("Established", Some("True"), condition(&found, "Established"))?;
            expect("NamesAccepted", Some("True"), condition(&found, "NamesAccepted"))?;
            expect("NonStructuralSchema", None, condition(&found, "NonStructuralSchema"))
        })
        .await?;
    }
    Ok(())
}

/// The status of a condition.
fn condition<'o>(object: &'o Value, name: &str) -> Option<&'o str> {
    condition_of(object, name)?["status"].as_str()
}

fn condition_of<'o>(object: &'o Value, name: &str) -> Option<&'o Value> {
    let mut conditions = object["status"]["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == name)
}

/// The base of the table as both kinds.
async fn store(it: &Namespaced<'_>) -> Outcome {
    let cases = cases()?;
    let base = cases.first().ok_or_else(|| failed("the table must have a base"))?;
    for kind in [schema::CLUSTER_KIND, schema::NAMESPACED_KIND] {
        let mut template = base.template.clone();
        template["kind"] = kind.into();
        template["metadata"]["name"] = it.name_of("stored").into();
        let expected = schema::filled(&template["spec"]);
        let is_namespaced = kind == schema::NAMESPACED_KIND;
        // A definition is established before its objects can be created.
        let created = eventually("the template is created", async || {
            let namespace = is_namespaced.then_some(&*it.name);
            it.lab.api.create(namespace, &template).await?.created()
        })
        .await?;
        if !is_namespaced {
            it.delete_at_end(path_of(&template, None));
        }
        expect(format!("the stored spec of a {kind}"), &expected, &created["spec"])?;
    }
    Ok(())
}

async fn compare(it: &Namespaced<'_>) -> Outcome {
    let (mut accepted, mut refused, mut different) = (0, 0, Vec::new());
    for case in cases()?.iter().filter(|case| !case.is_offline) {
        let answer = about(&case.title, asked(it, &case.template).await)?;
        let problems = schema::check(&case.template);
        let is_accepted = answer.status == 201;
        accepted += usize::from(is_accepted);
        refused += usize::from(!is_accepted);
        if [problems.is_empty(), case.problem.is_none()] != [is_accepted; 2] {
            let message = &answer.body["message"];
            let status = answer.status;
            different.push(format!("{}: {status} {message}, found {problems:?}", case.title));
        }
    }
    let counts =
        format!("{accepted} templates accepted, {refused} refused, {} different", different.len());
    note(&counts);
    different.truncate(SHOWN);
    let none: Vec<String> = Vec::new();
    expect(counts, none, different)
}

fn cases() -> Outcome<Vec<table::Case>> {
    Ok(table::cases(&serde_saphyr::from_str(table::TEXT)?))
}

/// What the API server says to a template.
async fn asked(it: &Namespaced<'_>, template: &Value) -> Outcome<Answer> {
    let is_namespaced = template["kind"] == schema::NAMESPACED_KIND;
    let kind = template["kind"].as_str().unwrap_or_default();
    let namespace = is_namespaced.then_some(&*it.name);
    let path = collection(schema::API_VERSION, kind, namespace);
    let path = format!("{path}?fieldValidation=Strict&dryRun=All");
    it.lab.api.call(Method::POST, &path, Some(template.to_string())).await
}
