//! Pods that are expensive to evaluate, one or some at the same time, and floods of small ones.

use std::time::Duration;

use injectd_harness::{
    expect::{Outcome, about},
    lab::Bench,
    scenario::with_binary_alone,
};
use tokio::time::Instant;

use super::{
    answers::{Tenant, ask_all, text},
    bodies::{
        many_containers, many_keys, many_labels, many_volumes, nested_anchors, pasted_containers,
        quoted_texts, repeated_template, stripped_names,
    },
};
use crate::attacks::{
    crowd::Act,
    target::{Memory, Mesh, Target},
};

const FLOOD_TIME: Duration = Duration::from_secs(5);
const KIB: usize = 1 << 10;

/// A pod of so many parts, so many at the same time.
struct Row {
    name: &'static str,
    make: fn(usize) -> Vec<u8>,
    /// Sizes of the short run, and those of the long run alone.
    short: &'static [usize],
    long: &'static [usize],
    at_once: usize,
    memory: Memory,
}

impl Row {
    const fn new(name: &'static str, make: fn(usize) -> Vec<u8>) -> Self {
        Self { name, make, short: &[], long: &[], at_once: 1, memory: Memory::Spare }
    }

    const fn of(mut self, short: &'static [usize], long: &'static [usize]) -> Self {
        (self.short, self.long) = (short, long);
        self
    }

    const fn at_once(mut self, count: usize) -> Self {
        self.at_once = count;
        self
    }

    const fn in_chart(mut self) -> Self {
        self.memory = Memory::Chart;
        self
    }
}

fn templates(count: usize) -> Vec<u8> {
    repeated_template(count, 0)
}

fn simple(count: usize) -> Vec<u8> {
    many_containers("grpc-simple", count)
}

fn agent(count: usize) -> Vec<u8> {
    many_containers("grpc-agent", count)
}

fn pasted(length: usize) -> Vec<u8> {
    pasted_containers(length, None)
}

fn pasted_with_1000_names(length: usize) -> Vec<u8> {
    pasted_containers(length, Some(1_000))
}

const ROWS: [Row; 24] = [
    Row::new("templates", templates).of(&[40, 1_000], &[2_000, 4_000, 12_500, 50_000]),
    Row::new("templates", templates).of(&[], &[2_000]).at_once(2),
    Row::new("templates", templates).of(&[], &[40]).at_once(60),
    Row::new("templates", templates).of(&[4_000], &[]).in_chart(),
    Row::new("containers of grpc-simple", simple).of(&[1_000], &[240, 480, 2_000, 4_000]),
    Row::new("containers of grpc-simple", simple).of(&[], &[4_000]).at_once(4),
    Row::new("containers of grpc-agent", agent).of(&[1_000], &[240, 480, 2_000, 4_000]),
    Row::new("bytes in 250 anchors of a ProxyConfig", nested_anchors).of(&[], &[256 * KIB]),
    Row::new("bytes in 250 anchors of a ProxyConfig", nested_anchors)
        .of(&[], &[256 * KIB])
        .at_once(4),
    Row::new("bytes in 250 anchors", nested_anchors).of(&[], &[256 * KIB]).at_once(4).in_chart(),
    Row::new("bytes of texts in quotes of a ProxyConfig", quoted_texts).of(&[], &[256 * KIB]),
    Row::new("bytes of texts in quotes", quoted_texts).of(&[], &[256 * KIB]).at_once(4),
    Row::new("bytes of texts in quotes", quoted_texts).of(&[], &[256 * KIB]).at_once(4).in_chart(),
    Row::new("keys of a ProxyConfig", many_keys).of(&[], &[85_000]),
    Row::new("keys of a ProxyConfig", many_keys).of(&[], &[85_000]).at_once(4),
    Row::new("keys of a ProxyConfig", many_keys).of(&[85_000], &[]).at_once(4).in_chart(),
    Row::new("labels", many_labels).of(&[], &[200_000]),
    Row::new("labels", many_labels).of(&[], &[200_000]).at_once(4),
    Row::new("labels", many_labels).of(&[], &[200_000]).at_once(4).in_chart(),
    Row::new("volumes of userVolume", many_volumes).of(&[], &[48_000]),
    Row::new("volumes of userVolume", many_volumes).of(&[], &[48_000]).at_once(4),
    Row::new("volumes of userVolume", many_volumes).of(&[], &[48_000]).at_once(4).in_chart(),
    Row::new("containers with a status", stripped_names).of(&[], &[2_000, 4_000, 8_000, 50_000]),
    Row::new("bytes of pasted containers", pasted)
        .of(&[64 * KIB], &[256 * KIB, KIB * KIB, 3 * KIB * KIB]),
];

/// They repeat the names of the pod's containers.
const REPEATED: Row = Row::new("bytes of pasted containers, 1,000 names", pasted_with_1000_names)
    .of(&[], &[64 * KIB, 256 * KIB, KIB * KIB]);

#[tokio::test]
async fn no_pod_ends_the_process_or_takes_the_known_answers_of_others() -> Outcome {
    with_binary_alone(async |bench| {
        for row in ROWS.iter().chain([&REPEATED]) {
            let long = if bench.is_long { row.long } else { &[] };
            for &size in row.short.iter().chain(long) {
                let what =
                    format!("{size} {}, {} at once, {:?}", row.name, row.at_once, row.memory);
                about(&what, measure(bench, row, size, &what).await)?;
            }
        }
        Ok(())
    })
    .await
}

async fn measure(bench: &Bench, row: &Row, size: usize, what: &str) -> Outcome {
    let mut target = Target::start(bench, Mesh::Istio, row.memory, &[]).await?;
    let body = (row.make)(size);
    let tenant = Tenant::start(&mut target).await?;
    let answers = ask_all(&target.place()?, body, row.at_once).await;
    tenant.end(&mut target, what, &text(&answers)).await
}

#[tokio::test]
async fn floods_of_new_pods_do_not_take_the_known_answers_of_others() -> Outcome {
    with_binary_alone(async |bench| {
        for (name, make, connections) in [
            ("new pods", (|note| repeated_template(1, note)) as fn(usize) -> Vec<u8>, 16),
            ("new pods of 40 templates", |note| repeated_template(40, note), 60),
        ] {
            let mut target = Target::start(bench, Mesh::Istio, Memory::Spare, &[]).await?;
            let tenant = Tenant::start(&mut target).await?;
            let time = if bench.is_long { FLOOD_TIME } else { FLOOD_TIME / 5 };
            let place = target.place()?;
            let counts = Act::NewPods(make).run(place, connections, Instant::now() + time).await;
            about(name, tenant.end(&mut target, name, &counts.text()).await)?;
        }
        Ok(())
    })
    .await
}
