//! The clients: ghz for gRPC, h2load for gRPC and the webhook.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use injectd_harness::{
    expect::{Outcome, failed},
    lab::root,
    process::run_within,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    call,
    h2load::{Extent, Load, end_of},
    report::float,
    servers::Server,
};

// Caches, pools and the CPU's clock are at their usual state then.
const WARM_UP: u32 = 2000;
// The first use builds ghz from its sources.
const LIMIT: Duration = Duration::from_mins(10);
/// Of each connection.
const ONE_AT_A_TIME: [&str; 2] = ["-m", "1"];

/// What is answered, and by which client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// That of the raw data, and of the configuration of ghz.
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    client: Client,
    /// Requests in a call.
    requests: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    /// h2load and the webhook, with these flags.
    Webhook(&'static [&'static str]),
    /// h2load and the gRPC server: the client is the webhook's, so that only the server differs.
    Call,
    /// ghz and the gRPC server.
    Ghz,
}

pub(super) const WEBHOOK: Kind =
    kind("webhook", "webhook, HTTP/1.1", Client::Webhook(&["-m", "1", "--h1"]));
pub(super) const WEBHOOK_HTTP2: Kind =
    kind("webhook_h2", "webhook, HTTP/2", Client::Webhook(&ONE_AT_A_TIME));
const CALL: Kind = kind("call", "call, by h2load", Client::Call);
const UNARY: Kind = kind("unary", "call, by ghz", Client::Ghz);
const STREAM: Kind =
    Kind { requests: 100, ..kind("stream", "stream of 100 requests, by ghz", Client::Ghz) };
pub(super) const KINDS: [Kind; 5] = [WEBHOOK, WEBHOOK_HTTP2, CALL, UNARY, STREAM];

const fn kind(name: &'static str, label: &'static str, client: Client) -> Kind {
    Kind { name, label, client, requests: 1 }
}

/// What clients have got.
pub(super) struct Answers {
    pub(super) count: u32,
    /// Per second.
    pub(super) rate: f64,
}

/// The server, and the files of its clients.
pub(super) struct Bench<'a> {
    pub(super) server: &'a Server,
    review: PathBuf,
    ghz: PathBuf,
    folder: TempDir,
}

impl<'a> Bench<'a> {
    pub(super) async fn new(server: &'a Server, review: PathBuf) -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join(CALL.name), call::body(&review)?)?;
        for kind in [UNARY, STREAM] {
            let data = call::data(&review, kind.requests)?;
            fs::write(folder.path().join(kind.name), data.to_string())?;
        }
        Ok(Self { server, review, ghz: ghz().await?, folder })
    }

    pub(super) async fn warm_up(&self) -> Outcome {
        for kind in [WEBHOOK, CALL, UNARY, STREAM] {
            self.run(kind, 1, Extent::Requests(WARM_UP / kind.requests)).await?;
        }
        Ok(())
    }

    pub(super) async fn run(&self, kind: Kind, callers: u32, extent: Extent) -> Outcome<Answers> {
        match kind.client {
            Client::Webhook(flags) => {
                let load = Load::of_reviews(self.server, &self.review, callers, extent);
                h2load(Load { flags, ..load }).await
            }
            Client::Call => self.call(callers, extent).await,
            Client::Ghz => self.ghz(kind, callers, extent).await,
        }
    }

    async fn call(&self, callers: u32, extent: Extent) -> Outcome<Answers> {
        let before = self.injected().await?;
        let body = self.folder.path().join(CALL.name);
        let load = Load::of_calls(self.server, &body, callers, extent)?;
        let answers = h2load(Load { flags: &ONE_AT_A_TIME, ..load }).await?;
        // The status of a call is in its trailers, which h2load does not check.
        let injected = self.injected().await? - before;
        if injected < answers.count.into() {
            let calls = answers.count;
            return Err(failed(format!("{calls} calls were made, {injected} were injected")));
        }
        Ok(answers)
    }

    async fn ghz(&self, kind: Kind, callers: u32, extent: Extent) -> Outcome<Answers> {
        let before = self.injected().await?;
        let callers = callers.to_string();
        let mut command = Command::new(&self.ghz);
        command.current_dir(root()).arg("--config").arg(format!("loadtest/ghz/{}.json", kind.name));
        command.arg("--data-file").arg(self.folder.path().join(kind.name));
        command.args(["--concurrency", &callers, "--connections", &callers, "--format", "json"]);
        match extent {
            Extent::Requests(calls) => command.args(["--total", &calls.to_string()]),
            Extent::Seconds(seconds) => command.args(["--duration", &format!("{seconds}s")]),
        };
        let address = self.server.grpc.ok_or_else(|| failed("injectd has no gRPC server"))?;
        command.arg(address.to_string());
        let ended = run_within(LIMIT, command).await?;
        if ended.code != Some(0) {
            return Err(failed(format!("ghz: {}", end_of(&ended.stderr))));
        }
        let result: Value = serde_json::from_str(&ended.stdout)?;
        let calls = result["count"].as_u64().unwrap_or(0);
        let good = result["statusCodeDistribution"]["OK"].as_u64().unwrap_or(0);
        let answers = self.injected().await? - before;
        // Every call must be OK, and each of its requests injected.
        if calls == 0 || good < calls || answers != calls * u64::from(kind.requests) {
            let errors = &result["errorDistribution"];
            return Err(failed(format!(
                "{good} of {calls} calls are OK, {answers} requests were injected: {errors}"
            )));
        }
        let total = Duration::from_nanos(result["total"].as_u64().unwrap_or(0));
        Ok(Answers { count: answers.try_into()?, rate: float(answers) / total.as_secs_f64() })
    }

    /// The pods that the gRPC server has injected so far.
    async fn injected(&self) -> Outcome<u64> {
        let labels = [("server", "grpc"), ("verdict", "injected")];
        self.server.metric("injectd_reviews_total", &labels).await
    }
}

async fn h2load(load: Load<'_>) -> Outcome<Answers> {
    let found = load.run().await?;
    Ok(Answers { count: found.done, rate: found.rate })
}

/// ghz, which Go builds if it is missing.
async fn ghz() -> Outcome<PathBuf> {
    let build = Command::new(root().join("loadtest/ghz/build.sh"));
    let printed = run_within(LIMIT, build).await?.with_code(0)?;
    Ok(printed.trim_end().into())
}
