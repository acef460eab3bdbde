//! A client that uses up a replica's connections and requests.

use injectd_harness::{
    connection::{Connection, Endpoint},
    expect::{Outcome, expect_listed},
};

use crate::replica::Replica;

/// The flood is complete after this many refused connections.
const BEYOND: u64 = 3;

/// More connections than a replica serves, and as many half reviews as it accepts.
pub(super) struct Flood {
    endpoint: Endpoint,
    request: Vec<u8>,
    connections: Vec<Connection>,
    halves: Vec<Connection>,
}

impl Flood {
    pub(super) fn new(endpoint: Endpoint, body: &[u8]) -> Self {
        let request = endpoint.post(body, 10).to_vec();
        Self { endpoint, request, connections: Vec::new(), halves: Vec::new() }
    }

    /// Uses up connections and requests.
    pub(super) async fn begin(&mut self, replica: &Replica) -> Outcome {
        for _ in 0..super::MAX_REQUESTS {
            let mut connection = self.endpoint.connect().await?;
            connection.send(&self.request[..self.request.len() / 2]).await?;
            self.halves.push(connection);
        }
        let before = refused_connections(replica).await?;
        while refused_connections(replica).await? < before + BEYOND {
            let taken = replica.metric("injectd_connections", &WEBHOOK).await?;
            for _ in 0..super::MAX_CONNECTIONS.saturating_sub(taken) + BEYOND {
                self.connections.push(self.endpoint.connect().await?);
            }
        }
        Ok(())
    }

    /// Sends the other halves; each must be answered, or refused.
    pub(super) async fn end(&mut self) -> Outcome {
        for connection in &mut self.halves {
            connection.send(&self.request[self.request.len() / 2..]).await?;
        }
        for connection in &mut self.halves {
            let status = connection.receive().await?.status;
            expect_listed("the status of a half review", status, &[200, 503])?;
        }
        self.connections.clear();
        self.halves.clear();
        Ok(())
    }
}

const WEBHOOK: [(&str, &str); 1] = [("server", "webhook")];

/// Connections that were refused at the limit.
pub(super) async fn refused_connections(replica: &Replica) -> Outcome<u64> {
    replica.metric("injectd_connections_rejected_total", &WEBHOOK).await
}

/// Requests that were refused at the limit.
pub(super) async fn refused_requests(replica: &Replica) -> Outcome<u64> {
    let labels = [WEBHOOK[0], ("reason", "requests")];
    replica.metric("injectd_requests_rejected_total", &labels).await
}

/// Pods that were injected.
pub(super) async fn answered(replica: &Replica) -> Outcome<u64> {
    let labels = [WEBHOOK[0], ("kind", "pod"), ("verdict", "injected")];
    replica.metric("injectd_reviews_total", &labels).await
}
