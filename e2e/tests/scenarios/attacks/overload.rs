//! More reviews than the server can answer, from the clients of `loadtest/overload.rs`.

use std::{env, fs, path::PathBuf, process::Command, time::Duration};

use injectd_harness::{
    expect::{DEADLINE, Outcome, about, expect, skipped},
    lab::{Bench, root},
    overload::Ends,
    scenario::{note, with_binary_alone},
};

use super::{
    expensive::annotated,
    measure::Others,
    target::{Memory, Mesh, Target},
};

const BEYOND_CAPACITY: u32 = 5;
const OF_CAPACITY: u32 = 2;
const CAPACITY_SECONDS: u32 = 2;
/// A machine that others keep busy may have none while it is measured.
const LEAST_CAPACITY: u32 = 50;
/// The digits in a review that each request replaces by others, so that no two are alike.
const NO_SERIAL: &str = "0000000000";
/// The namespace of the load. Evaluations go round by namespace, so that the client beside it, whose pods
/// are in another one, has its turns.
const NAMESPACE: &str = "flood";

/// A load, and its connections while the capacity is measured and beyond it.
struct Row {
    name: &'static str,
    mesh: Mesh,
    /// With HTTP/2, or with HTTP/1.1.
    is_http2: bool,
    /// The annotation that has the serial number.
    serial: Option<[&'static str; 2]>,
    connections: [u32; 2],
}

const ROWS: [Row; 4] = [
    Row {
        name: "Linkerd, HTTP/1.1",
        mesh: Mesh::Linkerd,
        is_http2: false,
        serial: None,
        connections: [25, 1_000],
    },
    // The server compiles a template for each.
    Row {
        name: "Linkerd, HTTP/2, each review its own overrides",
        mesh: Mesh::Linkerd,
        is_http2: true,
        serial: Some(["config.linkerd.io/proxy-log-level", "warn,linkerd=info,serial="]),
        connections: [1, 100],
    },
    Row {
        name: "Istio, HTTP/1.1",
        mesh: Mesh::Istio,
        is_http2: false,
        serial: None,
        connections: [25, 1_000],
    },
    Row {
        name: "Istio, HTTP/2, no two pods alike",
        mesh: Mesh::Istio,
        is_http2: true,
        serial: Some(["sidecar.istio.io/logLevel", "warning:"]),
        connections: [1, 100],
    },
];

#[tokio::test]
async fn beyond_the_capacity_reviews_are_answered_right_or_refused() -> Outcome {
    with_binary_alone(async |bench| {
        let client = client()?;
        for row in &ROWS {
            about(row.name, overload(bench, &client, row).await)?;
        }
        Ok(())
    })
    .await
}

/// `$OVERLOAD`, else what cargo has built: a debug build would measure itself.
fn client() -> Outcome<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let built = target.join("release/examples/overload");
    let client = env::var_os("OVERLOAD").map_or(built, PathBuf::from);
    let why = "it needs `cargo build --release --example overload`, or $OVERLOAD";
    if client.exists() { Ok(client) } else { Err(skipped(why)) }
}

async fn overload(bench: &Bench, client: &PathBuf, row: &Row) -> Outcome {
    let [key, value] = row.serial.unwrap_or(["example.com/note", ""]);
    let digits = if row.serial.is_some() { NO_SERIAL } else { "" };
    let folder = tempfile::tempdir()?;
    let review = folder.path().join("review.json");
    let mut load = annotated(key, format!("{value}{digits}"));
    load["request"]["namespace"] = NAMESPACE.into();
    load["request"]["object"]["metadata"]["namespace"] = NAMESPACE.into();
    fs::write(&review, load.to_string())?;
    let mut target = Target::start(bench, row.mesh, Memory::Spare, &[]).await?;
    let ask = async |connections: u32, seconds: u32, rate: Option<u32>| -> Outcome<Ends> {
        let mut command = Command::new(client);
        command.arg(target.server.injectd.webhook.to_string()).arg(&review);
        command.args(["--path", target.path, "--seconds", &seconds.to_string()]);
        command.args(["--connections", &connections.to_string()]);
        if !digits.is_empty() {
            command.args(["--serial", digits]);
        }
        if row.is_http2 {
            command.arg("--http2");
        }
        if let Some(rate) = rate {
            command.args(["--rate", &rate.to_string()]);
        }
        Ends::of(command, Duration::from_secs(seconds.into()) + DEADLINE).await
    };
    let [few, many] = row.connections;
    let found = ask(few, CAPACITY_SECONDS, None).await?.count("right") / CAPACITY_SECONDS;
    let capacity = found.max(LEAST_CAPACITY);
    let seconds = if bench.is_long { 20 } else { 3 };
    let mut others = Others::start(&target, bench.is_long).await?;
    others.may_be_refused = row.mesh == Mesh::Istio && row.serial.is_some();
    let found = ask(many, seconds, Some(capacity * BEYOND_CAPACITY / OF_CAPACITY)).await?;
    note(&format!("{}: capacity {capacity} a second, beyond it {found}", row.name));
    others.end(&mut target, row.name, "").await?;
    expect("requests answered otherwise", 0, found.count("otherwise"))?;
    expect("whether requests are answered right", true, found.count("right") > 0)
}
