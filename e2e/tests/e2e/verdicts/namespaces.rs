//! The namespaces of the table with their policies: created, and waited for until the API server applies
//! them.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use injectd_harness::{
    expect::{Outcome, eventually, expect, failed},
    lab::Lab,
};
use serde_json::{Value, json};

use super::{
    PARALLEL, PREFIX, Verdicts, objects,
    table::{Cell, LIMIT_RANGE, QUOTA, SECURITY},
};

const PRIORITY_CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
/// The class that quotas and pods of the table name.
const CLASS: &str = "verdicts-high";

/// One cell of each namespace, by the name of the namespace.
fn of_cells(cells: &[Cell]) -> BTreeMap<String, Cell> {
    cells.iter().map(|cell| (cell.namespace(), *cell)).collect()
}

/// The namespaces of the suite.
pub(super) fn names(cells: &[Cell]) -> Vec<String> {
    of_cells(cells).into_keys().chain(last().map(|it| it.namespace())).collect()
}

/// Cells whose pods each kind of policy refuses. Their namespaces are the last ones: when the API server
/// applies these, it has the others too.
fn last() -> [Cell; 3] {
    let plain = Cell::default();
    [
        Cell { limit_range: named(&LIMIT_RANGE, "pod-max"), ..plain },
        Cell { quota: named(&QUOTA, "pods"), ..plain },
        Cell { security: named(&SECURITY, "restricted"), kind: 1, ..plain },
    ]
}

fn named<T>(values: &[(&str, u32, T)], name: &str) -> usize {
    values.iter().position(|it| it.0 == name).unwrap_or_default()
}

/// Creates the namespaces and their policies.
pub(super) async fn create(it: &Verdicts) -> Outcome<String> {
    let api = &it.lab.api;
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": CLASS}, "value": 1000});
    let answer = api.call(hyper::Method::POST, PRIORITY_CLASSES, Some(class.to_string())).await?;
    answer.created()?;
    let mut cells = of_cells(&it.cells);
    cells.retain(|name, _| last().iter().all(|last| last.namespace() != *name));
    create_of(it, &cells).await?;
    create_of(it, &of_cells(&last())).await?;
    for cell in last() {
        let pod = objects::pod("last", &cell)?;
        eventually("the API server applies the policies", async || {
            let answer = api.dry_run(&cell.namespace(), &pod).await?;
            expect(format!("the status: {}", cell.title()), 403, answer.status)
        })
        .await?;
    }
    Ok(format!("{} namespaces", cells.len() + last().len()))
}

async fn create_of(it: &Verdicts, cells: &BTreeMap<String, Cell>) -> Outcome {
    create_all(it, cells.values().map(objects::namespace).collect()).await?;
    wait_for_accounts(it, &cells.keys().cloned().collect::<Vec<_>>()).await?;
    let existing = cells.values().map(objects::existing).collect::<Outcome<Vec<_>>>()?;
    create_all(it, existing.into_iter().flatten().collect()).await?;
    let policies = cells.values().map(objects::policies).collect::<Outcome<Vec<_>>>()?;
    create_all(it, policies.concat()).await?;
    wait_for_quotas(it).await
}

async fn create_all(it: &Verdicts, objects: Vec<Value>) -> Outcome {
    let api = &it.lab.api;
    let created = stream::iter(objects).map(|object| async move {
        let namespace = object["metadata"]["namespace"].as_str();
        api.create(namespace, &object).await?.created()
    });
    created.buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await?;
    Ok(())
}

/// Waits until pods can be created in namespaces.
pub(super) async fn wait_for_accounts(it: &Verdicts, names: &[String]) -> Outcome {
    eventually("the service accounts are there", async || {
        let list = it.lab.api.get("/api/v1/serviceaccounts").await?.ok()?;
        let accounts = items(&list).iter().map(|it| &it["metadata"]);
        let accounts = accounts.filter(|it| it["name"] == "default");
        let there: BTreeSet<_> = accounts.filter_map(|it| it["namespace"].as_str()).collect();
        let missing = names.iter().find(|name| !there.contains(name.as_str()));
        missing.map_or(Ok(()), |name| Err(failed(format!("none in {name}"))))
    })
    .await
}

/// Waits until all quotas have what is used, also by the pods that exist.
async fn wait_for_quotas(it: &Verdicts) -> Outcome {
    eventually("the quotas are counted", async || {
        for quota in quotas(it).await? {
            let (spec, status) = (&quota["spec"]["hard"], &quota["status"]);
            expect("the limits", spec, &status["hard"])?;
            let has_pod = quota["metadata"]["namespace"].to_string().contains("-used-");
            let used = if has_pod { json!("1") } else { json!("0") };
            let counted = status["used"].get("pods");
            expect("the pods that are used", &used, counted.unwrap_or(&used))?;
        }
        Ok(())
    })
    .await
}

async fn quotas(it: &Verdicts) -> Outcome<Vec<Value>> {
    let list = it.lab.api.get("/api/v1/resourcequotas").await?.ok()?;
    let mut quotas = items(&list).to_vec();
    quotas
        .retain(|it| it["metadata"]["namespace"].as_str().is_some_and(|it| it.starts_with(PREFIX)));
    for quota in &mut quotas {
        quota["apiVersion"] = json!("v1");
        quota["kind"] = json!("ResourceQuota");
    }
    Ok(quotas)
}

/// The policies as their author wrote them, and the quotas with what is used.
pub(super) async fn written(it: &Verdicts) -> Outcome<Vec<Value>> {
    let mut written = Vec::new();
    for cell in of_cells(&it.cells).values() {
        written.push(objects::namespace(cell));
        written
            .extend(objects::policies(cell)?.into_iter().filter(|it| it["kind"] == "LimitRange"));
    }
    written.extend(quotas(it).await?);
    Ok(written)
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Deletes what is in no namespace.
pub(super) async fn delete_class(lab: &Lab) -> Outcome {
    lab.api.delete(&format!("{PRIORITY_CLASSES}/{CLASS}")).await.map(drop)
}
