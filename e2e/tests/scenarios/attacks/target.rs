//! The server under attack.

use std::{fs, net::SocketAddr};

use injectd_harness::{
    client::Webhook,
    connection::Endpoint,
    expect::{Outcome, failed},
    istio_files,
    lab::{Bench, root},
    program::{cpu_seconds, memory_kib},
};

use crate::grpc::server::Server;

/// What the machine can spare.
const SPARE_KIB: u64 = 4 << 20;

/// The webhook that is attacked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mesh {
    Linkerd,
    Istio,
}

/// How much memory the process may have for its data.
#[derive(Clone, Copy, Debug)]
pub(super) enum Memory {
    /// The limit of the chart.
    Chart,
    Spare,
}

/// A server with a gRPC server, its limits the default ones.
pub(super) struct Target {
    pub(super) server: Server,
    /// The path of its webhook.
    pub(super) path: &'static str,
}

/// A server as clients know it, in any thread.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) addr: SocketAddr,
    pub(super) path: &'static str,
    pub(super) endpoint: Endpoint,
    server_name: String,
    ca: String,
}

impl Target {
    pub(super) async fn start(
        bench: &Bench,
        mesh: Mesh,
        memory: Memory,
        flags: &[(&str, &str)],
    ) -> Outcome<Self> {
        let (path, more) = match mesh {
            Mesh::Linkerd => ("/", Vec::new()),
            Mesh::Istio => ("/inject", istio_files::flags(&istio_files::recorded_or_small())),
        };
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let mut server = Server::new(bench, &more)?;
        for (flag, value) in flags {
            server.injectd.set_flag(flag, *value);
        }
        let kib = match memory {
            Memory::Chart => chart_kib()?,
            Memory::Spare => SPARE_KIB,
        };
        server.injectd.set_limits(format!("-d {kib}"));
        server.start().await?;
        Ok(Self { server, path })
    }

    /// The webhook server.
    pub(super) fn place(&self) -> Outcome<Place> {
        Place::of(self.server.injectd.client(), self.path)
    }

    /// The gRPC server.
    pub(super) fn grpc(&self) -> Outcome<Place> {
        Place::of(self.server.raw()?, self.path)
    }

    pub(super) fn admin(&self) -> SocketAddr {
        self.server.injectd.admin
    }

    /// The CPU that the process has used, in seconds.
    pub(super) fn cpu_seconds(&mut self) -> Outcome<f64> {
        cpu_seconds(self.server.injectd.pid()?)
    }

    /// The most memory that the process had in use, in MiB.
    pub(super) fn peak_mib(&mut self) -> Outcome<u64> {
        Ok(memory_kib(self.server.injectd.pid()?, "VmHWM")? >> 10)
    }

    /// Answers from memory so far.
    pub(super) async fn hits(&self) -> Outcome<u64> {
        self.server.metric("injectd_cache_hits_total", &[("cache", "templates")]).await
    }
}

impl Place {
    fn of(server: Webhook<'_>, path: &'static str) -> Outcome<Self> {
        let Webhook { addr, server_name, ca } = server;
        let endpoint = Endpoint::new(server)?;
        Ok(Self { addr, path, endpoint, server_name: server_name.to_owned(), ca: ca.to_owned() })
    }

    /// For clients that verify it themselves.
    pub(super) fn webhook(&self) -> Webhook<'_> {
        Webhook { addr: self.addr, server_name: &self.server_name, ca: &self.ca }
    }

    /// The request of a review, as an API server with the default timeout sends it.
    pub(super) fn request(&self, body: &[u8]) -> Vec<u8> {
        self.endpoint.post_to(self.path, body, 10).into()
    }
}

/// The memory limit of the chart.
fn chart_kib() -> Outcome<u64> {
    let values = fs::read_to_string(root().join("deploy/helm/injectd/values.yaml"))?;
    let mebibytes = values.split_once("limits: {memory: ").and_then(|(_, it)| it.split_once("Mi}"));
    let (mebibytes, _) = mebibytes.ok_or_else(|| failed("values.yaml has no limit of memory"))?;
    Ok(mebibytes.parse::<u64>()? << 10)
}
