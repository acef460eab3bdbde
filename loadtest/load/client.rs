//! A client of the webhook, which asks one review after the other and times each.

use std::time::Instant;

use hyper::body::Bytes;
use injectd_harness::{
    client::Webhook,
    connection::{Connection, Endpoint},
    expect::{Outcome, expect, failed},
};
use injectd_tls::AnyCertificate;
use rustls::client::Resumption;

use crate::servers::{Server, TIMEOUT_SECONDS};

/// An answer with status 200.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) seconds: f64,
    pub(crate) body: Bytes,
}

/// Where connections are opened: each with a full handshake, or each but the first with the ticket of
/// the last. The server makes its certificate at start.
pub(crate) fn endpoint(server: &Server, with_tickets: bool) -> Outcome<Endpoint> {
    let mut config = AnyCertificate::client_config();
    if !with_tickets {
        config.resumption = Resumption::disabled();
    }
    let webhook = Webhook { addr: server.address, server_name: "localhost", ca: "" };
    Endpoint::with_tls(webhook, config)
}

/// One connection, over which one review after the other is sent.
pub(crate) struct Client {
    endpoint: Endpoint,
    path: &'static str,
    connection: Connection,
}

impl Client {
    pub(crate) async fn open(server: &Server) -> Outcome<Self> {
        let endpoint = endpoint(server, false)?;
        Ok(Self { connection: endpoint.connect().await?, endpoint, path: server.path })
    }

    /// Sends a review, and reads its answer.
    pub(crate) async fn ask(&mut self, review: &[u8]) -> Outcome<Answer> {
        let request = self.endpoint.post_to(self.path, review, TIMEOUT_SECONDS);
        ask(&mut self.connection, &request).await
    }
}

/// Sends a request, and reads its answer.
pub(crate) async fn ask(connection: &mut Connection, request: &[u8]) -> Outcome<Answer> {
    let begin = Instant::now();
    connection.send(request).await?;
    let answer = connection.receive().await?;
    let seconds = begin.elapsed().as_secs_f64();
    expect("the status of a review", 200, answer.status)?;
    Ok(Answer { seconds, body: answer.body })
}

/// Fails unless the pod of an answer is injected.
pub(crate) fn expect_injected(answer: &Answer) -> Outcome {
    const PATCH: &[u8] = br#""patch":""#;
    if answer.body.windows(PATCH.len()).any(|window| window == PATCH) {
        return Ok(());
    }
    let begin: String = String::from_utf8_lossy(&answer.body).chars().take(300).collect();
    Err(failed(format!("the pod was not injected: {begin}")))
}
