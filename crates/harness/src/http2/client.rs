//! A client by a library: any path and any body, over one connection.

use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Request,
    body::Bytes,
    client::conn::http2::{self, SendRequest},
    http::header,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::timeout;

use crate::{
    client::Webhook,
    expect::{DEADLINE, Outcome},
};

/// One connection.
#[derive(Debug)]
pub struct Client(SendRequest<Full<Bytes>>);

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers, and the trailers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The status of gRPC, in whichever part of the answer it is.
    #[must_use]
    pub fn grpc_status(&self) -> Option<i32> {
        self.headers.get("grpc-status")?.to_str().ok()?.parse().ok()
    }
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    ///
    /// Fails if the server does not speak HTTP/2.
    pub async fn open(server: &Webhook<'_>) -> Outcome<Self> {
        let stream = timeout(DEADLINE, Box::pin(server.connect(&["h2"]))).await??;
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// Posts a body of this media type.
    ///
    /// # Errors
    ///
    /// Fails if there is no whole answer in time.
    pub async fn post(
        &mut self,
        path: &str,
        media_type: &str,
        body: impl Into<Bytes>,
    ) -> Outcome<Answer> {
        let request = Request::post(format!("https://localhost{path}"))
            .header(header::CONTENT_TYPE, media_type)
            .header(header::TE, "trailers")
            .body(Full::new(body.into()))?;
        let exchange = async {
            self.0.ready().await?;
            let (head, body) = self.0.send_request(request).await?.into_parts();
            let body = body.collect().await?;
            let mut headers = head.headers;
            headers.extend(body.trailers().cloned().unwrap_or_default());
            Ok(Answer { status: head.status.as_u16(), headers, body: body.to_bytes() })
        };
        timeout(DEADLINE, exchange).await?
    }
}
