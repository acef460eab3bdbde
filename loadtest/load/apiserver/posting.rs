//! Creators of pods, with a kept-alive connection to the API server each.
//!
//! They check only the status: the less CPU a client takes, the more is left for the servers.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::future::try_join_all;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, StatusCode,
    body::Bytes,
    client::conn::http1::{SendRequest, handshake},
    header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT},
};
use hyper_util::rt::TokioIo;
use injectd_harness::expect::{DEADLINE, Outcome, failed};
use kube::{
    Config,
    client::ConfigExt as _,
    config::{KubeConfigOptions, Kubeconfig},
};
use rustls::pki_types::ServerName;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;

/// The end of an answer that a failure has, in bytes.
const LAST: usize = 500;

/// A pod, and the path of its collection.
pub(super) struct Post {
    pub(super) path: String,
    pub(super) body: Bytes,
}

/// Connections for the largest number of creators.
pub(super) struct Creators(Vec<SendRequest<Full<Bytes>>>);

impl Creators {
    /// Connections by the client certificate of a kubeconfig.
    pub(super) async fn open(kubeconfig: &Path, count: u8) -> Outcome<Self> {
        let (kubeconfig, options) =
            (Kubeconfig::read_from(kubeconfig)?, KubeConfigOptions::default());
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        let tls = TlsConnector::from(Arc::new(config.rustls_client_config()?));
        let (host, port) = (config.cluster_url.host(), config.cluster_url.port_u16());
        let (Some(host), Some(port)) = (host, port) else {
            return Err(failed(format!("no host and port in {}", config.cluster_url)));
        };
        let mut connections = Vec::new();
        for _ in 0..count {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            let stream = tls.connect(ServerName::try_from(host.to_owned())?, stream).await?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            // Its sender has the error.
            tokio::spawn(connection);
            connections.push(sender);
        }
        Ok(Self(connections))
    }

    /// Creates pods with so many creators for so long; returns how many.
    pub(super) async fn run(&mut self, post: &Post, count: u8, time: Duration) -> Outcome<u32> {
        let end = Instant::now() + time;
        let creators = self.0.iter_mut().take(count.into());
        let made = try_join_all(creators.map(async |sender| {
            let mut made = 0;
            while Instant::now() < end {
                create(sender, post).await?;
                made += 1;
            }
            Outcome::Ok(made)
        }));
        Ok(made.await?.iter().sum())
    }
}

async fn create(sender: &mut SendRequest<Full<Bytes>>, post: &Post) -> Outcome {
    let request = Request::post(&post.path)
        .header(HOST, "apiserver")
        .header(USER_AGENT, "loadtest")
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(post.body.clone()))?;
    let exchange = async {
        sender.ready().await?;
        let (head, body) = sender.send_request(request).await?.into_parts();
        Ok::<_, hyper::Error>((head.status, body.collect().await?.to_bytes()))
    };
    let answer = timeout(DEADLINE, exchange).await;
    let (status, body) = answer.map_err(|_| failed("the API server does not answer"))??;
    if status == StatusCode::CREATED {
        return Ok(());
    }
    let end = String::from_utf8_lossy(&body[body.len().saturating_sub(LAST)..]).into_owned();
    Err(failed(format!("a pod was not created: {status}: {end}")))
}
