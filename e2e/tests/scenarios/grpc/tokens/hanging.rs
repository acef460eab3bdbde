//! Callers while the API server hangs, so that new tokens and namespaces cannot be looked up.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use injectd_api::v1::InjectRequest;
use injectd_harness::{
    expect::{DEADLINE, Outcome, eventually, expect, failed},
    http2::{connection::Connection, message},
    program::resident_kib,
    scenario::{note, with_lab_alone},
};
use prost::Message as _;
use tokio::time::timeout;
use tonic::Code;

use crate::grpc::server::{INJECT, of_stream, with_object};

use super::{AUDIENCE, CALLER, Tokens, bearer, with_tokens};

/// Streams, and messages of each, whose answers wait for the cluster.
const STREAMS: usize = 4;
const LARGE: usize = 12;
const LARGE_BYTES: usize = 9 << 20;
/// `--max-body-memory`, and as much again for data read from sockets.
const MAX_KIB: u64 = (2 * 64) << 10;
const REJECTED: &str = "injectd_requests_rejected_total";

#[tokio::test]
async fn known_tokens_are_served_and_others_refused_while_the_api_server_hangs() -> Outcome {
    with_lab_alone(async |lab| {
        let local = lab.local()?;
        with_tokens(lab, async |tokens| {
            let mut unseen = Vec::new();
            for _ in 0..4 {
                unseen.push(tokens.token(CALLER, AUDIENCE).await?);
            }
            tokens.expect_served(&tokens.known).await?;
            let hanging = local.hang().await?;
            only_known_tokens_are_served(tokens, &unseen[0]).await?;
            a_refusal_is_counted(tokens, &unseen[1]).await?;
            the_callers_own_deadline_counts(tokens, &unseen[2]).await?;
            large_messages_wait_in_bounded_memory(tokens).await?;
            drop(hanging);
            eventually("the API server", async || tokens.expect_served(&unseen[0]).await).await?;
            tokens.expect_served(&unseen[3]).await?;
            tokens.expect_refused(Code::Unauthenticated, "", "garbage").await?;
            tokens.expect_ready().await?;
            tokens.server.injectd.terminate().await
        })
        .await
    })
    .await
}

/// A token that cannot be reviewed is refused in time; known ones are served before that.
async fn only_known_tokens_are_served(it: &Tokens<'_>, unseen: &str) -> Outcome {
    let known = async {
        for _ in 0..20 {
            it.expect_served(&it.known).await?;
        }
        Outcome::Ok(())
    };
    let mut known = std::pin::pin!(known);
    let mut refused = std::pin::pin!(it.expect_refused(Code::Unavailable, "token", unseen));
    tokio::select! {
        served = &mut known => served?,
        _ = &mut refused => return Err(failed("known tokens waited for one that is unknown")),
    }
    refused.await
}

async fn rejected(it: &Tokens<'_>) -> Outcome<[u64; 3]> {
    let mut found = [0; 3];
    for (found, reason) in found.iter_mut().zip(["cluster", "deadline", "caller"]) {
        *found = it.server.metric(REJECTED, &[("reason", reason), ("server", "grpc")]).await?;
    }
    Ok(found)
}

/// Comes before a caller gives up: whether the server then counts its own deadline or the caller's
/// reset is a race.
async fn a_refusal_is_counted(it: &Tokens<'_>, unseen: &str) -> Outcome {
    let [cluster, others @ ..] = rejected(it).await?;
    it.expect_refused(Code::Unavailable, "", unseen).await?;
    let [now, others_now @ ..] = rejected(it).await?;
    expect("refusals because of the cluster", cluster + 1, now)?;
    expect("other refusals", others, others_now)
}

/// The server ends a call at the caller's deadline, without the caller, and before it gives up to
/// review the token.
async fn the_callers_own_deadline_counts(it: &Tokens<'_>, unseen: &str) -> Outcome {
    let before = rejected(it).await?;
    let mut connection = Connection::open(&it.server.raw()?).await?;
    let authorization = format!("Bearer {unseen}");
    let headers = [("grpc-timeout", "1S"), ("authorization", &*authorization)];
    connection.call(1, INJECT, &headers).await;
    let request = message(&it.request().encode_to_vec(), false);
    connection.write(1, &request, DEADLINE).await;
    connection.end(1).await;
    eventually("the call ends", async || {
        connection.read(Duration::from_millis(10)).await;
        expect("whether it has ended", true, connection.has_ended(1))
    })
    .await?;
    let [cluster, deadline, caller] = before;
    expect("the refusals by reason", [cluster, deadline + 1, caller], rejected(it).await?)
}

/// Each message names a namespace that must be looked up in the API server.
async fn large_messages_wait_in_bounded_memory(it: &mut Tokens<'_>) -> Outcome {
    let before = it.server.injectd.resident_kib()?;
    let pid = it.server.injectd.pid()?;
    let calls = (0..STREAMS).map(|number| answers(it, number));
    let mut calls = Box::pin(futures_util::future::join_all(calls));
    let mut most = 0;
    let found = loop {
        let ended = timeout(Duration::from_millis(20), &mut calls).await;
        most = resident_kib(pid)?.saturating_sub(before).max(most);
        if let Ok(found) = ended {
            break found;
        }
    };
    drop(calls);
    for count in found {
        note(&format!("a stream has {:?}", count?));
    }
    note(&format!("{STREAMS} streams that wait: {} MiB more", most >> 10));
    it.server.injectd.expect_running()?;
    expect(format!("whether {most} KiB are at most {MAX_KIB}"), true, most <= MAX_KIB)
}

/// How many answers a stream of large messages gets, and the code it ends with.
async fn answers(it: &Tokens<'_>, number: usize) -> Outcome<(usize, Option<Code>)> {
    let requests = stream::iter(0..LARGE).map(move |index| {
        let mut object = vec![b' '; LARGE_BYTES];
        object.extend(br#"{"kind":"Pod","metadata":{},"spec":{}}"#);
        let namespace = format!("unknown-{number}-{index}");
        of_stream(&index.to_string(), InjectRequest { namespace, ..with_object(object) })
    });
    let mut client = it.server.client(&bearer(&it.known)).await?;
    let mut answers = match client.inject_stream(requests).await {
        Ok(answers) => answers.into_inner(),
        Err(status) => return Ok((0, Some(status.code()))),
    };
    let mut count = 0;
    loop {
        match answers.message().await {
            Ok(Some(_)) => count += 1,
            Ok(None) => return Ok((count, None)),
            Err(status) => return Ok((count, Some(status.code()))),
        }
    }
}
