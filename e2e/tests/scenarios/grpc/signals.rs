//! SIGTERM and SIGINT while a stream is open.

use injectd_api::{
    client::Connect,
    v1::{InjectStreamRequest, InjectStreamResponse, inject_stream_response::Result as Answer},
};
use injectd_harness::{
    expect::{DEADLINE, Outcome, eventually, expect, failed},
    lab::Bench,
    scenario::with_binary,
};
use rustix::process::Signal;
use tokio::{sync::mpsc, time::timeout};
use tonic::{Code, Streaming};

use super::server::{SERVICE, Server, answers_of, expect_injected, health, of_stream, request};

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;

/// A server and a stream to it that has had one answer.
struct Open {
    server: Server,
    requests: mpsc::UnboundedSender<InjectStreamRequest>,
    answers: Streaming<InjectStreamResponse>,
}

impl Open {
    async fn new(bench: &Bench, drain_delay: &str) -> Outcome<Self> {
        let mut server = Server::new(bench, &[])?;
        server.injectd.set_flag("--drain-delay", drain_delay);
        server.start().await?;
        let (requests, queue) = mpsc::unbounded_channel();
        let queue = futures_util::stream::unfold(queue, async |mut queue| {
            queue.recv().await.map(|request| (request, queue))
        });
        let answers = answers_of(&mut server.any_client().await?, queue).await?;
        let mut open = Self { server, requests, answers };
        open.ask("before").await?;
        Ok(open)
    }

    async fn next(&mut self) -> Outcome<Result<Option<InjectStreamResponse>, tonic::Status>> {
        Ok(timeout(DEADLINE, self.answers.message()).await?)
    }

    async fn ask(&mut self, uid: &str) -> Outcome {
        self.requests.send(of_stream(uid, request()))?;
        let answer = self.next().await??.ok_or_else(|| failed("the stream has ended"))?;
        expect("the uid", uid, &*answer.uid)?;
        match answer.result {
            Some(Answer::Response(response)) => expect_injected(&response),
            other => Err(failed(format!("the answer to {uid}: {other:?}"))),
        }
    }

    /// The stream ends with a status, and the process by itself.
    async fn ends(mut self) -> Outcome {
        let Err(status) = self.next().await? else { return Err(failed("one more answer")) };
        expect(format!("the status ({status})"), Code::Unavailable, status.code())?;
        drop(self.requests);
        expect("the exit code", Some(0), self.server.injectd.ends().await?.code())
    }
}

#[tokio::test]
async fn sigterm_ends_an_open_stream_after_the_drain_delay() -> Outcome {
    with_binary(async |bench| {
        // Long enough for the calls below.
        let mut open = Open::new(bench, "5s").await?;
        let channel = open.server.channel().await?;
        expect("the health before", SERVING, health(&channel, SERVICE).await?)?;
        open.server.injectd.signal(Signal::TERM)?;
        eventually("the health changes", async || {
            expect("the health", NOT_SERVING, health(&channel, SERVICE).await?)
        })
        .await?;
        // Other clients may not know it yet.
        open.server.expect_served(&Connect::default(), request()).await?;
        open.ask("after").await?;
        open.ends().await
    })
    .await
}

#[tokio::test]
async fn sigint_ends_an_open_stream_without_the_drain_delay() -> Outcome {
    with_binary(async |bench| {
        // Longer than this test waits.
        let mut open = Open::new(bench, "1m").await?;
        open.server.injectd.signal(Signal::INT)?;
        open.ends().await
    })
    .await
}
