//! What a decision costs that is explained.

use std::time::Duration;

use injectd_api::v1::ExplainRequest;
use injectd_harness::{
    expect::{Outcome, expect},
    scenario::{note, with_binary_alone},
};
use prost::Message;
use serde_json::{Value, json};
use tonic::{Code, Request, Response, Status};

use super::bodies::{proxy_config, unknown_annotations};
use crate::attacks::{
    expensive::request,
    target::{Memory, Mesh, Target},
};

/// Explain does what Inject does, and says why.
const MAX_TIMES: f64 = 5.0;
/// What a clock of 10 ms, and the first call of a process, may add.
const NOISE_SECONDS: f64 = 0.2;

/// The longest deadline that injectd takes. CPU is measured: a machine with other work may take long.
const DEADLINE: Duration = Duration::from_secs(30);

fn patient<M>(message: M) -> Request<M> {
    let mut request = Request::new(message);
    request.set_timeout(DEADLINE);
    request
}

struct Row(&'static str, Mesh, fn() -> Value);

/// Annotations of 44 bytes each that no release reads, and a large one that is read.
const ROWS: [Row; 3] = [
    Row("unknown annotations of Istio", Mesh::Istio, || {
        unknown_annotations("sidecar.istio.io/nothingReads", 25_000)
    }),
    Row("keys of proxy.istio.io/config", Mesh::Istio, || proxy_config(80_000)),
    Row("unknown annotations of Linkerd", Mesh::Linkerd, || {
        unknown_annotations("config.linkerd.io/nothing-reads-", 25_000)
    }),
];

/// The length of an answer; 0 for a pod beyond the evaluation budget: what that costs is bounded, too.
fn length(answer: Result<Response<impl Message>, Status>) -> Outcome<usize> {
    match answer {
        Err(refused)
            if refused.code() == Code::FailedPrecondition
                && refused.message().contains("evaluation budget") =>
        {
            Ok(0)
        }
        answer => Ok(answer?.into_inner().encoded_len()),
    }
}

#[tokio::test]
async fn to_explain_a_large_pod_costs_a_few_times_what_its_injection_costs() -> Outcome {
    with_binary_alone(async |bench| {
        for Row(name, mesh, pod) in ROWS {
            let mut target = Target::start(bench, mesh, Memory::Spare, &[]).await?;
            let request = request(&json!({"request": {"object": pod()}}));
            let mut client =
                target.server.any_client().await?.max_decoding_message_size(usize::MAX);
            let begin = target.cpu_seconds()?;
            let injected = length(client.inject(patient(request.clone())).await)?;
            let middle = target.cpu_seconds()?;
            let explain = ExplainRequest { request: Some(request) };
            let explained = length(client.explain(patient(explain)).await)?;
            let (inject, explain) = (middle - begin, target.cpu_seconds()? - middle);
            let found = format!(
                "{name}: Inject {inject:.2} s of CPU, {injected} bytes; Explain {explain:.2} s, \
                 {explained} bytes"
            );
            note(&found);
            expect(found, true, explain <= MAX_TIMES * inject + NOISE_SECONDS)?;
        }
        Ok(())
    })
    .await
}
