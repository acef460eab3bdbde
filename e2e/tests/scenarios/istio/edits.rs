//! A `ConfigMap` edited under load: each pod has a configuration that was valid and current.

use injectd_harness::{
    edits::Edits,
    expect::{Outcome, expect, failed},
    istio::Revision,
    scenario::note,
    stream::Stream,
};
use serde_json::{Value, json};

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
const REPLICAS_STREAMED: usize = 4;

#[tokio::test]
async fn while_a_config_map_is_edited_under_load_no_pod_fails_and_none_is_wrong() -> Outcome {
    with_istio(async |istio| edited(istio).await).await
}

async fn edited(it: &Istio<'_>) -> Outcome {
    let count = EDITS[usize::from(it.lab.is_long)];
    let before = rejected(it).await?;
    let mut edits = Edits::default();
    edits.write(0, async || write(it, &valid(0)).await).await?;
    wait_for(it, 0).await?;
    let pods = vec![("enabled", labelled(&json!({}))); REPLICAS_STREAMED];
    let stream = it.stream(&pods).await?;
    let outcome = edit(it, count, &stream, &mut edits).await;
    let seen = stream.stop().await;
    restore(it).await?;
    let broken = outcome?;
    let oldest = edits.expect_current(&seen, number_of)?;
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
async fn edit(it: &Istio<'_>, count: usize, stream: &Stream, edits: &mut Edits) -> Outcome<usize> {
    let mut broken = 0;
    for number in 1..=count {
        // The last one is valid: a broken one right behind it could hide it.
        if number % BROKEN_EVERY == BROKEN_EVERY / 2 {
            write(it, &broken_data(number)).await?;
            broken += 1;
        } else {
            edits.write(number, async || write(it, &valid(number)).await).await?;
        }
        // So that pods meet each of them.
        stream.wait_for(1).await?;
    }
    wait_for(it, edits.last()).await?;
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

/// The number of the edit that a pod has, of which nothing is mixed with another.
fn number_of(pod: &Value) -> Outcome<usize> {
    let number = annotation(pod, INJECTOR).and_then(|number| number.parse().ok());
    let number = number.ok_or_else(|| failed("a pod of no edit"))?;
    let expected = format!("docker.io/istio/proxyv2:{}", tag(number));
    expect("the image, of the same edit", Some(&*expected), image(pod))?;
    Ok(number)
}
