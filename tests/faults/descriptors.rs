//! File descriptors run out.

use super::{
    client::{Connection, tcp},
    process::Process,
};

/// Room for the process itself and a few connections.
const DESCRIPTORS: u32 = 40;

#[tokio::test]
async fn without_descriptors_a_process_waits_for_some() {
    let process = Process::serve_with_descriptors(DESCRIPTORS, &[]).await;
    let mut kept = Connection::open(process.webhook).await;
    kept.must_inject().await;
    let mut silent = Vec::new();
    for _ in 0..DESCRIPTORS {
        silent.push(tcp(process.webhook).await);
    }
    process.logs("cannot accept a connection").await;
    kept.must_inject().await;
    drop(silent);
    process.must_still_serve().await;
    kept.must_inject().await;
    drop(kept);
    process.has_connections(0).await;
}
