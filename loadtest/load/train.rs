//! Trains an instrumented injectd (`$INJECTD`): its servers, `review` and `inject` do some of their
//! usual work. `deploy/pgo.sh` uses it. It checks the results and measures nothing.

use std::{ffi::OsStr, fs, path::Path, time::Duration};

use injectd_harness::{
    expect::{Outcome, expect, expect_contains},
    istio_files,
    lab::root,
    process::run_within,
};
use injectd_testkit::reviews::{MIX, with_override};

use crate::{
    call,
    client::Client,
    h2load::{Extent, Load, Loaded},
    reviews,
    servers::{INJECTD, Server, injectd, injectd_for_templates, injectd_with, typical},
};

const CONNECTIONS: u32 = 16;
/// Of the webhook over HTTP/1.1, in the shares of the mix.
// The mix of a real cluster decides what the compiler keeps together; fewer of the rarer paths are
// enough to be seen as used.
const REVIEWS: u64 = 40_000;
const REVIEWS_HTTP2: u32 = 4000;
/// Of the gRPC server.
const CALLS: u32 = 4000;
const OVERRIDE: &str = "config.linkerd.io/proxy-outbound-connect-timeout";
/// Sets of overrides, each with its own template, and reviews of each.
const SETS: u64 = 50;
const REVIEWS_OF_SET: u64 = 2;
/// Of the webhooks of Istio and of sidecar templates, each: of one pod over each protocol, and of pods of which no two are alike.
const ISTIO_REVIEWS: u32 = 5000;
const ISTIO_UNLIKE: u32 = 2000;
const ISTIO_OVERRIDE: &str = "sidecar.istio.io/proxyCPU";
const TEMPLATES_OVERRIDE: &str = "agent.example.com/cpu";
// An instrumented build is several times slower.
const LIMIT: Duration = Duration::from_mins(5);

pub(crate) async fn train() -> Outcome {
    let folder = tempfile::tempdir()?;
    reviews::write(folder.path(), &MIX)?;
    let server = injectd(&["--grpc-addr", "127.0.0.1:0"]).await?;
    webhook(&server, folder.path()).await?;
    grpc(&server, &folder.path().join("call")).await?;
    // A killed process does not write its counts.
    server.stop().await?;
    let [_, values, mesh] = istio_files::small();
    let files = [root().join("loadtest/istio/config.yaml"), values, mesh];
    let server = injectd_with::<&str>(&files, &[]).await?;
    istio(&server).await?;
    server.stop().await?;
    let server = injectd_for_templates().await?;
    templates(&server).await?;
    server.stop().await?;
    let files = MIX.map(|sent| folder.path().join(format!("{}.json", sent.name)));
    command("review", &files).await?;
    for example in ["deployment.yaml", "pod.json"] {
        command("inject", &[root().join("examples").join(example)]).await?;
    }
    Ok(())
}

async fn webhook(server: &Server, folder: &Path) -> Outcome {
    for sent in MIX {
        let body = folder.join(format!("{}.json", sent.name));
        http1(server, &body, REVIEWS * sent.percent / 100).await?;
    }
    let review = folder.join("overrides");
    for index in 0..SETS {
        fs::write(&review, with_override(OVERRIDE, &format!("{}ms", 1001 + index)))?;
        http1(server, &review, REVIEWS_OF_SET).await?;
    }
    for verdict in ["injected", "skipped", "annotated", "denied"] {
        let verdict_of = format!(r#""verdict":"{verdict}""#);
        let sent = MIX.iter().filter(|sent| sent.contains.contains(&&*verdict_of));
        let sent: u64 = sent.map(|sent| REVIEWS * sent.percent / 100).sum();
        let more = if verdict == "injected" { SETS * REVIEWS_OF_SET } else { 0 };
        let found = reviewed(server, "webhook", verdict).await?;
        expect(format!("{verdict} reviews"), sent + more, found)?;
    }
    http2(Load::of_reviews(server, &typical(), CONNECTIONS, Extent::Requests(REVIEWS_HTTP2))).await
}

async fn istio(server: &Server) -> Outcome {
    http1(server, &typical(), ISTIO_REVIEWS.into()).await?;
    let extent = Extent::Requests(ISTIO_REVIEWS);
    http2(Load::of_reviews(server, &typical(), CONNECTIONS, extent)).await?;
    let mut client = Client::open(server).await?;
    for index in 0..ISTIO_UNLIKE {
        client.ask(&with_override(ISTIO_OVERRIDE, &format!("{}m", 1001 + index))).await?;
    }
    let sent = u64::from(2 * ISTIO_REVIEWS + ISTIO_UNLIKE);
    expect("reviews of Istio", sent, reviewed(server, "webhook", "injected").await?)
}

async fn templates(server: &Server) -> Outcome {
    http1(server, &typical(), ISTIO_REVIEWS.into()).await?;
    let extent = Extent::Requests(ISTIO_REVIEWS);
    http2(Load::of_reviews(server, &typical(), CONNECTIONS, extent)).await?;
    let mut client = Client::open(server).await?;
    for index in 0..ISTIO_UNLIKE {
        client.ask(&with_override(TEMPLATES_OVERRIDE, &format!("0.1{index:04}"))).await?;
    }
    let sent = u64::from(2 * ISTIO_REVIEWS + ISTIO_UNLIKE);
    expect("reviews of templates", sent, reviewed(server, "webhook", "injected").await?)
}

async fn grpc(server: &Server, body: &Path) -> Outcome {
    fs::write(body, call::body(&typical())?)?;
    http2(Load::of_calls(server, body, CONNECTIONS, Extent::Requests(CALLS))?).await?;
    let found = reviewed(server, "grpc", "injected").await?;
    expect("calls that injected", u64::from(CALLS), found)
}

async fn reviewed(server: &Server, by: &str, verdict: &str) -> Outcome<u64> {
    server.metric("injectd_reviews_total", &[("server", by), ("verdict", verdict)]).await
}

async fn http1(server: &Server, body: &Path, reviews: u64) -> Outcome<Loaded> {
    let reviews = u32::try_from(reviews)?;
    let connections = CONNECTIONS.min(reviews);
    Load::of_reviews(server, body, connections, Extent::Requests(reviews)).run().await
}

async fn http2(load: Load<'_>) -> Outcome {
    let found = Load { flags: &[], ..load }.run().await?;
    expect_contains("the output of h2load", "Application protocol: h2\n", &found.text)
}

async fn command(name: &str, files: &[impl AsRef<OsStr>]) -> Outcome {
    let mut command = INJECTD.command()?;
    command.arg(name).args(files);
    run_within(LIMIT, command).await?.with_code(0).map(drop)
}
