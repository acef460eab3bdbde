//! The namespaces of the table with their policies: created, and waited for until the API server applies
//! them.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use injectd_harness::{
    expect::{Outcome, eventually, expect},
    scenario::note,
};
use serde_json::{Value, json};

use super::{
    PARALLEL, Verdicts, objects,
    table::{Cell, LIMIT_RANGE, QUOTA, SECURITY},
};

/// The class that quotas and pods of the table name.
const CLASS: &str = "verdicts-high";

/// One cell of each namespace, by the name of the namespace.
fn of_cells(cells: &[Cell]) -> BTreeMap<String, Cell> {
    cells.iter().map(|cell| (cell.namespace(), *cell)).collect()
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
    values.iter().position(|value| value.0 == name).unwrap_or_default()
}

/// Creates the namespaces and their policies.
pub(super) async fn create(it: &Verdicts<'_>) -> Outcome {
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": CLASS}, "value": 1000});
    it.it.create_in_cluster(&it.own(&class)?).await?;
    let mut cells = of_cells(&it.cells);
    cells.retain(|name, _| last().iter().all(|last| last.namespace() != *name));
    create_of(it, &cells).await?;
    create_of(it, &of_cells(&last())).await?;
    for cell in last() {
        let pod = it.own(&objects::pod("last", &cell)?)?;
        let namespace = it.own_names(&cell.namespace());
        eventually("the API server applies the policies", async || {
            let answer = it.it.lab.api.dry_run(&namespace, &pod).await?;
            expect(format!("the status: {}", cell.title()), 403, answer.status)
        })
        .await?;
    }
    note(&format!("{} namespaces", cells.len() + last().len()));
    Ok(())
}

async fn create_of(it: &Verdicts<'_>, cells: &BTreeMap<String, Cell>) -> Outcome {
    let made = stream::iter(cells.values()).map(async |cell| {
        let mut namespace = it.own(&objects::namespace(cell))?;
        namespace["metadata"]["labels"] = it.it.with_labels(&namespace["metadata"]["labels"]);
        it.it.make_object(&namespace).await
    });
    made.buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await?;
    let existing = cells.values().map(objects::existing).collect::<Outcome<Vec<_>>>()?;
    create_all(it, existing.into_iter().flatten().collect()).await?;
    let policies = cells.values().map(objects::policies).collect::<Outcome<Vec<_>>>()?;
    create_all(it, policies.concat()).await?;
    wait_for_quotas(it).await
}

async fn create_all(it: &Verdicts<'_>, objects: Vec<Value>) -> Outcome {
    let created = stream::iter(objects).map(async |object| {
        let object = it.own(&object)?;
        let namespace = object["metadata"]["namespace"].as_str();
        it.it.lab.api.create(namespace, &object).await?.created()
    });
    created.buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await?;
    Ok(())
}

/// Waits until all quotas have what is used, also by the pods that exist.
async fn wait_for_quotas(it: &Verdicts<'_>) -> Outcome {
    let with_pod = it.cells.iter().filter(|cell| objects::has_pod(cell));
    let with_pod: BTreeSet<_> = with_pod.map(|cell| it.own_names(&cell.namespace())).collect();
    eventually("the quotas are counted", async || {
        for quota in quotas(it).await? {
            let (spec, status) = (&quota["spec"]["hard"], &quota["status"]);
            expect("the limits", spec, &status["hard"])?;
            let has_pod =
                with_pod.contains(quota["metadata"]["namespace"].as_str().unwrap_or_default());
            let used = if has_pod { json!("1") } else { json!("0") };
            let counted = status["used"].get("pods");
            expect("the pods that are used", &used, counted.unwrap_or(&used))?;
        }
        Ok(())
    })
    .await
}

async fn quotas(it: &Verdicts<'_>) -> Outcome<Vec<Value>> {
    let list = it.it.lab.api.get("/api/v1/resourcequotas").await?.ok()?;
    let mut quotas = list["items"].as_array().cloned().unwrap_or_default();
    let is_own = |namespace: &str| namespace.starts_with(&it.it.name);
    quotas.retain(|quota| quota["metadata"]["namespace"].as_str().is_some_and(is_own));
    for quota in &mut quotas {
        quota["apiVersion"] = json!("v1");
        quota["kind"] = json!("ResourceQuota");
    }
    Ok(quotas)
}

/// The policies as their author wrote them, and the quotas with what is used.
pub(super) async fn written(it: &Verdicts<'_>) -> Outcome<Vec<Value>> {
    let mut written = Vec::new();
    for cell in of_cells(&it.cells).values() {
        let policies = objects::policies(cell)?;
        let ranges = policies.into_iter().filter(|object| object["kind"] == "LimitRange");
        for object in ranges.chain([objects::namespace(cell)]) {
            written.push(it.own(&object)?);
        }
    }
    written.extend(quotas(it).await?);
    Ok(written)
}
