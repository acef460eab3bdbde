//! File descriptors run out.

use super::{
    client::{Connection, tcp},
    process::Process,
};

/// Enough descriptors for the process and a few connections.
const DESCRIPTORS: u32 = 40;

#[tokio::test]
async fn a_process_without_free_descriptors_waits_for_one() {
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
