//! The table of attacks on a server for Linkerd.

use injectd_harness::{
    expect::{Outcome, about},
    scenario::with_binary_alone,
};

use super::{
    crowd::Act,
    expensive::{
        many_commas, many_namespace_annotations, many_port_names, many_variables,
        many_variables_message,
    },
    measure::measure,
};

/// An attack over these numbers of connections, and over the one of the short run, if any.
struct Row(&'static str, Act, &'static [usize], Option<usize>);

const CONNECTIONS: [Row; 10] = [
    Row("streams without end, no body", Act::EndlessStreams(0), &[1, 8, 100], Some(8)),
    Row("streams without end, 200 bytes of each", Act::EndlessStreams(200), &[1, 8, 100], None),
    Row("stalled bodies: 1 of 3 MiB, HTTP/1.1", Act::StalledBodies, &[1, 8, 100], Some(8)),
    Row("answers not taken: a window of 0", Act::UntakenAnswers, &[1, 8, 100], Some(8)),
    Row("refusals: requests beyond their share", Act::Refusals, &[50], Some(50)),
    Row("rapid reset", Act::RapidReset, &[1, 20], Some(1)),
    Row("CONTINUATION without end", Act::Continuations, &[1, 20], None),
    Row("flood of SETTINGS", Act::Settings, &[1, 20], None),
    Row("flood of PING", Act::Pings, &[1, 20], Some(1)),
    Row("half handshakes, 1 byte/s", Act::HalfHandshakes, &[500], None),
];

const EXPENSIVE: [Row; 5] = [
    Row("60,000 additional variables, 1.3 MB", Act::Reviews(many_variables), &[2, 8], Some(2)),
    Row(
        "60,000 port names, 100,000 ports, 2.4 MB",
        Act::Reviews(many_port_names),
        &[2, 8],
        Some(2),
    ),
    Row("2,900,000 empty opaque ports, 2.9 MB", Act::Reviews(many_commas), &[2, 8], Some(2)),
    Row(
        "gRPC: 20,000 namespace annotations",
        Act::Calls(many_namespace_annotations),
        &[2, 8],
        None,
    ),
    Row("gRPC: 60,000 additional variables", Act::Calls(many_variables_message), &[2, 8], Some(2)),
];

#[tokio::test]
async fn reviews_and_probes_are_answered_beside_attacks_on_connections() -> Outcome {
    each(&CONNECTIONS).await
}

#[tokio::test]
async fn reviews_and_probes_are_answered_beside_reviews_that_are_expensive() -> Outcome {
    each(&EXPENSIVE).await
}

async fn each(rows: &[Row]) -> Outcome {
    with_binary_alone(async |bench| {
        for Row(name, act, all, short) in rows {
            let counts = if bench.is_long { *all } else { short.as_slice() };
            for &connections in counts {
                let measured = measure(bench, name, *act, connections).await;
                about(format!("{name}, {connections}"), measured)?;
            }
        }
        Ok(())
    })
    .await
}
