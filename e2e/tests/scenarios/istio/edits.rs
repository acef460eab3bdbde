//! A `ConfigMap` edited under load: each pod has a configuration that was valid and current.

use std::time::Duration;

use injectd_harness::{
    expect::{Outcome, expect, failed},
    istio::Revision,
    scenario::note,
    stream::{Seen, Stream, all_created},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    deployed::Istio,
    pods::{INJECTOR, annotation, image, labelled},
    replicas::{restore, wait_for_patch},
    with_istio,
};

/// How many edits there are, short and at full length.
const EDITS: [usize; 2] = [100, 1_000];
/// One edit in so many is broken.
const BROKEN_EVERY: usize = 10;
/// A pod may have a configuration that another replaced at most so long ago.
const STALE: Duration = Duration::from_secs(3);
const REPLICAS_STREAMED: usize = 4;

#[tokio::test]
async fn while_a_config_map_is_edited_under_load_no_pod_fails_and_none_is_wrong() -> Outcome {
    with_istio(async |istio| edited(istio).await).await
}

/// A valid edit: its number, and when it was written and replaced.
struct Edit {
    number: usize,
    written: Instant,
    /// When the API server had answered the write of the next valid one.
    replaced: Option<Instant>,
}

async fn edited(it: &Istio<'_>) -> Outcome {
    let count = EDITS[usize::from(it.lab.is_long)];
    let before = rejected(it).await?;
    let mut edits = vec![Edit { number: 0, written: Instant::now(), replaced: None }];
    write(it, &valid(0)).await?;
    wait_for(it, 0).await?;
    let pods = vec![("enabled", labelled(&json!({}))); REPLICAS_STREAMED];
    let stream = it.stream(&pods).await?;
    let outcome = edit(it, count, &stream, &mut edits).await;
    let seen = stream.stop().await;
    restore(it).await?;
    let broken = outcome?;
    let oldest = expect_current(&seen, &edits)?;
    let rejected = rejected(it).await? - before;
    let pods = seen.len();
    note(&format!(
        "{count} edits, {broken} broken ({rejected} rejected by two replicas), {pods} pods: 0 \
         failed, 0 wrong, at most {oldest:.0?} old"
    ));
    Ok(())
}

/// How many configurations the replicas rejected.
async fn rejected(it: &Istio<'_>) -> Outcome<u64> {
    let mut sum = 0;
    for replica in &it.replicas {
        sum += replica.metric("injectd_reloads_total", &[("result", "rejected")]).await?;
    }
    Ok(sum)
}

/// Writes all edits; returns how many are broken.
async fn edit(
    it: &Istio<'_>,
    count: usize,
    stream: &Stream,
    edits: &mut Vec<Edit>,
) -> Outcome<usize> {
    let mut broken = 0;
    for number in 1..=count {
        // The last one is valid: a broken one right behind it could hide it.
        if number % BROKEN_EVERY == BROKEN_EVERY / 2 {
            write(it, &broken_data(number)).await?;
            broken += 1;
        } else {
            let written = Instant::now();
            write(it, &valid(number)).await?;
            if let Some(last) = edits.last_mut() {
                last.replaced = Some(Instant::now());
            }
            edits.push(Edit { number, written, replaced: None });
        }
        // So that pods meet each of them.
        stream.wait_for(1).await?;
    }
    let last = edits.last().map_or(0, |edit| edit.number);
    wait_for(it, last).await?;
    Ok(broken)
}

/// The keys of the `ConfigMap`; a number is in both.
fn valid(number: usize) -> Value {
    let Revision { config, values, .. } =
        Revision::small("default", &tag(number), &number.to_string());
    json!({"config": config, "values": values})
}

/// Keys of which one or both cannot be used.
fn broken_data(number: usize) -> Value {
    let mut data = valid(number);
    match number / BROKEN_EVERY % 6 {
        0 => data["config"] = json!("policy: [enabled"),
        1 => data["config"] = json!(text(&data["config"]).replace("| quote }}", "| quote")),
        2 => data["config"] = json!(text(&data["config"]).replace("protoToJSON", "noFunction")),
        3 => data["values"] = json!("{\"global\":"),
        4 => data["values"] = json!(text(&data["values"]).replace("\"docker.io/istio\"", "5")),
        _ => data = json!({"other": "no key of these"}),
    }
    data
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn tag(number: usize) -> String {
    format!("1.30.{}", 1000 + number)
}

async fn write(it: &Istio<'_>, data: &Value) -> Outcome {
    let [config_map, _] = it.revision("default")?.config_maps();
    it.lab.api.update(&it.path(&config_map), |object| object["data"] = data.clone()).await
}

/// Waits until both replicas have this configuration.
async fn wait_for(it: &Istio<'_>, number: usize) -> Outcome {
    let (pod, text) = (labelled(&json!({})), format!("\"{number}\""));
    wait_for_patch(it, "default", &pod, &text, true).await
}

/// Fails unless each pod has a valid edit, unmixed, that was current not long before; returns how
/// long ago the oldest was replaced when its pod was requested.
fn expect_current(seen: &[Seen], edits: &[Edit]) -> Outcome<Duration> {
    let mut oldest = Duration::ZERO;
    for (seen, pod) in all_created(seen)? {
        let number = annotation(pod, INJECTOR).and_then(|number| number.parse::<usize>().ok());
        let edit = number.and_then(|number| edits.iter().find(|edit| edit.number == number));
        let edit = edit.ok_or_else(|| failed(format!("a pod of no valid edit: {number:?}")))?;
        let expected = format!("docker.io/istio/proxyv2:{}", tag(edit.number));
        expect("the image, of the same edit", Some(&*expected), image(pod))?;
        expect("whether its edit was written", true, edit.written <= seen.end)?;
        let age =
            edit.replaced.map_or(Duration::ZERO, |replaced| seen.begin.duration_since(replaced));
        if age > STALE {
            return Err(failed(format!("a pod of edit {}, {age:.1?} too late", edit.number)));
        }
        oldest = oldest.max(age);
    }
    Ok(oldest)
}
