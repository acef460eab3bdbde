//! The container of Linkerd's proxy-injector under load, while its files are swapped and at its end.
//!
//! Every request that was sent completely must have the answer of one configuration or the other.

mod clients;
pub(crate) mod crowd;
mod swaps;

use std::time::Instant;

use injectd_harness::{
    certificates::KeyForm,
    client::patch_of,
    connection::{Asked, Endpoint},
    expect::{Outcome, expect, failed, skipped, soon},
    isolated::isolated_alone,
    lab::is_long,
    metrics::metric,
    scenario::{note, step},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use crate::{
    dropin::Dropin,
    manifest::{Manifest, paths},
};
use clients::{Client, Clients, Good, LOAD_CONNECTIONS, Until};

/// A review of 12 KB, of a pod that is injected.
pub(crate) const REVIEW: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../loadtest/review-12k.json"));

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_swapped_under_load_never_give_a_mixed_answer() -> Outcome {
    isolated_alone(
        "endurance::files_that_are_swapped_under_load_never_give_a_mixed_answer",
        async || with_server(swaps::all).await,
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_connections_are_served_and_leave_nothing_behind() -> Outcome {
    isolated_alone(
        "endurance::thousands_of_connections_are_served_and_leave_nothing_behind",
        async || with_server(crowd::all).await,
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_answers_all_that_kept_alive_connections_have_sent() -> Outcome {
    isolated_alone(
        "endurance::sigterm_answers_all_that_kept_alive_connections_have_sent",
        async || {
            with_server(async |server| terminated_under_load(server, Until::Closed).await).await
        },
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_answers_all_that_new_connections_have_sent() -> Outcome {
    isolated_alone("endurance::sigterm_answers_all_that_new_connections_have_sent", async || {
        with_server(async |server| terminated_under_load(server, Until::Refused).await).await
    })
    .await
}

/// Numbers of the swaps of a mount, and of connections.
struct Extent {
    swaps: usize,
    idle: usize,
    busy: usize,
    load_seconds: u64,
}

impl Extent {
    /// The short one has a crowd that any limit of descriptors allows; the long one is five times the
    /// default of `--max-connections`.
    fn get() -> Self {
        if is_long() {
            Self { swaps: 1000, idle: 10_000, busy: 1000, load_seconds: 5 }
        } else {
            Self { swaps: 20, idle: 500, busy: 50, load_seconds: 1 }
        }
    }

    fn connections(&self) -> usize {
        self.idle + self.busy
    }
}

/// The container of the newest manifest.
struct Server {
    dropin: Dropin,
    extent: Extent,
    _folder: TempDir,
}

async fn with_server(scenario: impl AsyncFnOnce(&mut Server) -> Outcome) -> Outcome {
    let extent = Extent::get();
    raise_limits(extent.connections() + 200)?;
    let manifests = paths()?;
    let is_plain = |path: &&std::path::PathBuf| !path.to_string_lossy().ends_with("-ha.yaml");
    let newest =
        manifests.iter().rfind(is_plain).ok_or_else(|| failed("no manifest without HA"))?;
    let folder = tempfile::tempdir()?;
    let mut dropin = Dropin::new(Manifest::read(newest)?, folder.path(), KeyForm::Pkcs8Ec)?;
    dropin.container.set_variable("INJECTD_RELOAD_INTERVAL", "10ms");
    let most = extent.connections() + 1000;
    dropin.container.set_variable("INJECTD_MAX_CONNECTIONS", &most.to_string());
    dropin.container.start().await?;
    dropin.ready().await?;
    let mut server = Server { dropin, extent, _folder: folder };
    let outcome = scenario(&mut server).await;
    server.dropin.container.explained(outcome)
}

/// The clients need many descriptors and ports.
fn raise_limits(descriptors: usize) -> Outcome {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if maximum.is_some_and(|maximum| maximum < descriptors as u64) {
        return Err(skipped(format!(
            "it needs {descriptors} descriptors, the limit is {maximum:?}"
        )));
    }
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "1024 65000")?)
}

impl Server {
    fn endpoint(&self) -> Outcome<Endpoint> {
        Endpoint::new(self.dropin.webhook(&self.dropin.ca.pem()))
    }

    fn client(&self) -> Outcome<Client> {
        let endpoint = self.endpoint()?;
        let request = endpoint.post(REVIEW, 10);
        Ok(Client::new(endpoint, request))
    }

    /// The current answer and its certificate.
    async fn answer(&self) -> Outcome<Good> {
        let Asked { response, body, certificate } = self.endpoint()?.ask(REVIEW).await?;
        patch_of(&response)?;
        Ok(Good { body, certificate })
    }

    async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Outcome<u64> {
        Ok(metric(&self.dropin.exposition().await?, name, labels))
    }

    async fn reviews(&self) -> Outcome<u64> {
        self.metric("injectd_reviews_total", &[]).await
    }
}

/// SIGTERM under load: every review that was sent must be answered.
async fn terminated_under_load(server: &mut Server, until: Until) -> Outcome {
    let good = server.answer().await?;
    let mut clients = Clients::default();
    for _ in 0..2 {
        let client = server.client()?;
        clients.spawn(client.load_until(until, LOAD_CONNECTIONS / 2));
    }
    let begun = server.reviews().await?;
    let before = soon("reviews", async || {
        let reviews = server.reviews().await?;
        let enough = begun + 20 * LOAD_CONNECTIONS as u64;
        expect("whether there are enough", true, reviews > enough)?;
        Ok(reviews)
    })
    .await?;
    let terminated = Instant::now();
    server.dropin.container.terminate()?;
    step("the container ends", server.dropin.container.expect_end()).await?;
    let seconds = terminated.elapsed().as_secs_f64();
    let tally = clients.join().await?;
    tally.expect_good(&[good])?;
    if tally.answered as u64 + begun <= before {
        return Err(failed("no review was answered after SIGTERM"));
    }
    note(&format!(
        "exit code 0 after {seconds:.1} s; {} reviews answered, about {} of them before, over {} \
         connections; 0 failed, 0 wrong; {} connections refused, or closed before a request was sent",
        tally.answered,
        before - begun,
        tally.opened,
        tally.unsent,
    ));
    Ok(())
}
