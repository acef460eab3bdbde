//! Bodies of 10 MiB under the memory limit of the chart: the process stays, for both meshes. And its end
//! while pods are evaluated.

use std::time::Duration;

use injectd_harness::{
    expect::{Outcome, about, expect},
    lab::Bench,
    scenario::{note, with_binary_alone},
};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    answers::{Tenant, ask_all, text},
    bodies::{
        annotated, many_containers, many_keys, many_labels, many_volumes, pasted_containers, pod,
        repeated_template, review, stripped_names,
    },
};
use crate::attacks::target::{Memory, Mesh, Target};

/// injectd reads no longer body.
const MAX_BODY_BYTES: usize = 10 << 20;
// The rest is for the review around it.
const ROOM: usize = MAX_BODY_BYTES - (4 << 10);
const AT_ONCE: usize = 64;

/// A body, for one mesh or for both; whether it is in the short run.
struct Row(&'static str, fn() -> Vec<u8>, &'static [Mesh], bool);

const BOTH: &[Mesh] = &[Mesh::Istio, Mesh::Linkerd];
const ISTIO: &[Mesh] = &[Mesh::Istio];
const LINKERD: &[Mesh] = &[Mesh::Linkerd];

/// Those of the short run take the most memory before and during their evaluation.
const ROWS: [Row; 15] = [
    Row("spaces", || [review(&pod(&[], 1)), vec![b' '; ROOM]].concat(), BOTH, false),
    Row("brackets", || vec![b'['; MAX_BODY_BYTES], BOTH, false),
    Row("one string", || annotated("a", "v".repeat(ROOM - (4 << 10))), BOTH, false),
    Row("labels", || many_labels(ROOM / 16), BOTH, false),
    Row("empty objects", empty_objects, BOTH, true),
    Row("containers", || review(&pod(&[], ROOM / 32)), BOTH, false),
    Row("variables", variables, BOTH, false),
    Row("opaque ports", opaque_ports, LINKERD, false),
    Row("additional variables", additional_variables, LINKERD, true),
    Row("templates", || repeated_template((ROOM - (4 << 10)) / 8, 0), ISTIO, false),
    Row("keys of proxy.istio.io/config", || many_keys(ROOM / 19), ISTIO, false),
    Row("userVolume", || many_volumes(ROOM / 36), ISTIO, false),
    Row("status", || stripped_names(ROOM / 46), ISTIO, false),
    Row("pasted containers", || pasted_containers(ROOM - (4 << 10), None), ISTIO, false),
    Row("grpc-agent", || many_containers("grpc-agent", ROOM / 33), ISTIO, false),
];

fn empty_objects() -> Vec<u8> {
    let mut pod = pod(&[], 1);
    pod["status"] = vec![json!({}); ROOM / 3].into();
    review(&pod)
}

fn variables() -> Vec<u8> {
    let mut pod = pod(&[], 1);
    let variable = |index| json!({"name": format!("V{index:06}"), "value": "x"});
    pod["spec"]["containers"][0]["env"] = (0..MAX_BODY_BYTES / 32).map(variable).collect();
    review(&pod)
}

fn opaque_ports() -> Vec<u8> {
    annotated("config.linkerd.io/opaque-ports", ",".repeat(ROOM - (4 << 10)))
}

fn additional_variables() -> Vec<u8> {
    let names: Vec<_> =
        (0..ROOM / 22).map(|index| json!({"name": format!("{index:06}")})).collect();
    let names = serde_json::Value::from(names).to_string();
    annotated("config.linkerd.io/proxy-additional-env", names)
}

#[tokio::test]
async fn bodies_of_ten_mebibytes_do_not_exceed_the_charts_memory() -> Outcome {
    with_binary_alone(async |bench| {
        for Row(name, make, meshes, in_short) in &ROWS {
            let meshes = if bench.is_long {
                *meshes
            } else if *in_short {
                &meshes[..1]
            } else {
                &[]
            };
            for &mesh in meshes {
                let what = format!("{mesh:?}, 10 MiB of {name}");
                about(&what, measure(bench, mesh, make(), &what).await)?;
            }
        }
        Ok(())
    })
    .await
}

/// The body alone, then many at once.
async fn measure(bench: &Bench, mesh: Mesh, body: Vec<u8>, what: &str) -> Outcome {
    let mut target = Target::start(bench, mesh, Memory::Chart, &[]).await?;
    let place = target.place()?;
    let tenant = Tenant::start(&mut target).await?;
    let alone = ask_all(&place, body.clone(), 1).await;
    target.server.injectd.expect_running()?;
    note(&format!("{what}, alone: {}", text(&alone)));
    let many = ask_all(&place, body, AT_ONCE).await;
    tenant.end(&mut target, &format!("{what}, {AT_ONCE} at once"), &text(&many)).await
}

#[tokio::test]
async fn an_evaluation_does_not_keep_the_process_beyond_its_grace() -> Outcome {
    const GRACE: [(&str, &str); 2] = [("--drain-delay", "1s"), ("--drain-timeout", "5s")];
    with_binary_alone(async |bench| {
        for (name, body, count) in [
            ("12,000 templates", repeated_template(12_000, 0), 2),
            (
                "1 MiB of pasted containers with 1,000 names",
                pasted_containers(1 << 20, Some(1_000)),
                1,
            ),
        ] {
            let mut target = Target::start(bench, Mesh::Istio, Memory::Spare, &GRACE).await?;
            let place = target.place()?;
            let asking = tokio::spawn(async move { ask_all(&place, body, count).await });
            // Evaluations have begun.
            sleep(Duration::from_millis(500)).await;
            let begin = Instant::now();
            target.server.injectd.signal(Signal::TERM)?;
            let status = about(name, target.server.injectd.ends().await)?;
            note(&format!("{name}: {status} {:.1} s after SIGTERM", begin.elapsed().as_secs_f64()));
            asking.abort();
            expect(format!("{name}: the exit code"), Some(0), status.code())?;
        }
        Ok(())
    })
    .await
}
