//! injectd as its chart installs it: the objects, the permissions and the arguments that
//! `injectd manifest install` prints, for both meshes, with certificates that it manages.

use std::time::Duration;

use injectd_harness::{
    expect::Outcome,
    lab::{Lab, NOT_LOCAL},
    run::{Run, Suite},
};

mod callers;
mod certificates;
mod chart;
mod installed;
mod leaders;
mod lease;
mod left;
mod load;
mod requests;
mod swap;

use installed::Installed;

pub(crate) const NAME: &str = "deploy";
const LIMIT: Duration = Duration::from_mins(15);

pub(crate) async fn run(run: &mut Run, lab: &Lab) -> Outcome {
    let Some(mut suite) = run.suite(NAME, LIMIT) else { return Ok(()) };
    if lab.local.is_none() {
        suite.skip(NOT_LOCAL);
        return Ok(());
    }
    let mut it = Installed::new(lab).await?;
    all(&mut suite, &mut it).await;
    it.explain(&suite);
    it.clean_up().await
}

async fn all(suite: &mut Suite<'_>, it: &mut Installed) {
    let name = "helm template and injectd manifest install print the same objects";
    suite.scenario(name, chart::same_as_helm(it)).await;
    suite.scenario("the API server accepts every object", chart::accepted(it)).await;
    suite.setup("the objects of a release are applied", it.apply()).await;
    let name = "replicas that start at once make one CA, and both meshes are injected";
    suite.setup(name, certificates::first_start(it)).await;
    let name = "certificates rotate whatever the leader's clock is: no review fails";
    suite.scenario(name, certificates::rotations(it)).await;
    let name = "the leader hangs: another one goes on, and the first one gives up";
    suite.scenario(name, leaders::hung(it)).await;
    suite.scenario("the leader is killed: another one goes on", leaders::killed(it)).await;
    let name = "the leader dies between Secret and caBundle: another one completes it";
    suite.scenario(name, leaders::half_way(it)).await;
    let name = "the Leases are deleted: replicas create them again";
    suite.scenario(name, leaders::lost_leases(it)).await;
    let name = "the Secret is deleted, emptied, and replaced by another one: no review fails";
    suite.scenario(name, certificates::lost_secret(it)).await;
    let name = "a caBundle that others write is repaired";
    suite.scenario(name, certificates::overwritten(it)).await;
    let name = "without a permission injectd says which, and keeps serving";
    suite.scenario(name, certificates::forbidden(it)).await;
    let name = "a CA that others write is not used, and a revoked one is replaced";
    suite.scenario(name, certificates::strangers(it)).await;
    let name = "manifest check --live reads the cluster and the served certificate";
    suite.scenario(name, chart::checked(it)).await;
    suite.scenario("beside Linkerd's injector, in its place, and back", swap::all(it)).await;
    let name = "the ServiceAccount writes only what the chart names";
    suite.scenario(name, async { requests::all(it) }).await;
    suite.scenario("every metric of dashboard and alerts exists", requests::metrics(it)).await;
}
