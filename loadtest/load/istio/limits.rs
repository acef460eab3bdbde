//! What must not make reviews by Istio's injector slow: long lists, and nodes.

use std::{ffi::OsStr, fs, iter, path::Path};

use injectd_harness::expect::Outcome;
use injectd_testkit::reviews::{encode, typical};
use serde_json::json;

use super::Pods;
use crate::{
    Run,
    beside::cpu_of,
    client::{Client, expect_injected},
    report::{Budget, Report, Table, count, float, median, micros, percentile},
    servers::{Server, injectd_for_istio},
};

/// Variables of the container istio-proxy that a pod brings with it.
// The last is four times the first, for LINEAR_BUDGET.
const VARIABLES: [u32; 3] = [5000, 10_000, 20_000];
const VARIABLES_BUDGET_MS: f64 = 50.0;
/// Such a pod alone takes more than a quarter of the memory limit that the chart has by default.
const VARIABLES_MEMORY: &str = "256Mi";
/// Time of four times the variables, if it is linear; the rest is noise.
const LINEAR_BUDGET: f64 = 6.0;
// As many as Kubernetes supports in a cluster.
const NODES: u32 = 5000;
// Nodes are read when they change and not at reviews: the rest is noise.
const NODES_BUDGET: f64 = 1.1;

/// The time of a review of a pod with many variables, evaluated each time.
pub(super) async fn variables(run: &Run, report: &mut Report) -> Outcome {
    let reviews = if run.smoke { 2 } else { 9 };
    let server = injectd_for_istio(&["--max-evaluation-memory", VARIABLES_MEMORY]).await?;
    let mut client = Client::open(&server).await?;
    let (mut rows, mut times) = (Vec::new(), Vec::new());
    for variables in VARIABLES {
        let (mut cpu, mut whole) = (Vec::new(), Vec::new());
        let mut bytes = [0; 2];
        for index in 0..reviews {
            let review = with_variables(variables, index);
            let before = server.cpu_seconds()?;
            let answer = client.ask(&review).await?;
            cpu.push(server.cpu_seconds()? - before);
            whole.push(answer.seconds);
            expect_injected(&answer)?;
            bytes = [review.len(), answer.body.len()];
        }
        let cpu = median(cpu)?;
        let each = format!("{:.2} µs", cpu / float(variables) * 1e6);
        let [review, answer] = bytes.map(count);
        let p50 = micros(percentile(&whole, 0.5)?);
        rows.push(vec![count(variables), review, answer, micros(cpu), each, p50]);
        times.push(cpu);
    }
    server.stop().await?;
    let columns =
        ["variables", "bytes", "bytes of the answer", "CPU", "for each", "time of the client, p50"];
    let title = "Istio: variables of the container istio-proxy in a pod's manifest";
    let note = "Each review has another annotation, so that the templates are evaluated.";
    report.table(Table::new(title, &columns, rows).note(note));
    add_budgets(report, &times);
    Ok(())
}

/// The times are those of [`VARIABLES`].
fn add_budgets(report: &mut Report, times: &[f64]) {
    let ([few, .., many], [short, .., long]) = (VARIABLES, times) else { return };
    let what = format!("Istio: CPU of a review with {} variables of the sidecar (ms)", count(many));
    let baseline = format!("{:.1} with {}", short * 1e3, count(few));
    let budget = Budget::most(what, long * 1e3, VARIABLES_BUDGET_MS);
    report.budget(budget.decimals(1).baseline(baseline));
    let what = "the same ÷ a quarter of the variables (linear: 4)";
    let baseline = format!("{} variables = 1", count(few));
    report.budget(Budget::most(what, long / short, LINEAR_BUDGET).decimals(1).baseline(baseline));
}

fn with_variables(count: u32, index: u32) -> Vec<u8> {
    let mut review = typical();
    let pod = &mut review["request"]["object"];
    pod["metadata"]["annotations"]["sidecar.istio.io/proxyCPU"] =
        format!("{}m", 1000 + index).into();
    let variable = |number| json!({"name": format!("VARIABLE_{number:05}"), "value": format!("value-{number}")});
    let env: Vec<_> = (0..count).map(variable).collect();
    let containers = pod["spec"]["containers"].as_array_mut();
    let containers = containers.expect("the typical pod must have containers");
    containers.push(json!({"name": "istio-proxy", "image": "auto", "env": env}));
    encode(&review).into_bytes()
}

/// CPU of a review in a cluster without nodes and with many, in turn.
pub(super) async fn nodes(run: &Run, report: &mut Report, pods: &Pods) -> Outcome {
    let (rounds, seconds) = if run.smoke { (1, 1) } else { (5, 2) };
    let folder = tempfile::tempdir()?;
    let servers = [
        in_cluster(&folder.path().join("without"), 0).await?,
        in_cluster(&folder.path().join("with"), NODES).await?,
    ];
    let (mut rows, nodes) = (Vec::new(), count(NODES));
    for (what, asked) in [("warm", &pods.warm), ("cold", &pods.cold)] {
        let [mut without, mut with, mut ratios] = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            let few = cpu_of(&servers[0], asked, seconds).await?.cpu;
            let many = cpu_of(&servers[1], asked, seconds).await?.cpu;
            without.push(few);
            with.push(many);
            ratios.push(many / few);
        }
        let ratio = median(ratios)?;
        let (without, with) = (micros(median(without)?), micros(median(with)?));
        rows.push(vec![what.to_owned(), without, with, format!("{ratio:.2}")]);
        let what = format!("Istio: CPU of a {what} review with {nodes} nodes ÷ without");
        report.budget(Budget::most(what, ratio, NODES_BUDGET).baseline("without nodes = 1"));
    }
    for server in servers {
        server.stop().await?;
    }
    let with = format!("with {nodes}");
    let columns = ["reviews of 12 KB", "CPU without nodes", with.as_str(), "ratio"];
    let note = format!("Medians of {rounds} rounds. All kubelets support native sidecars.");
    report.table(Table::new("Istio: nodes of the cluster", &columns, rows).note(note));
    Ok(())
}

/// A server whose objects are the namespace of the reviews and this many Nodes.
async fn in_cluster(file: &Path, nodes: u32) -> Outcome<Server> {
    let namespace = &typical()["request"]["namespace"];
    let node = |index| {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": format!("node-{index}.example")},
            "status": {"nodeInfo": {"kubeletVersion": "v1.35.2"}},
        })
    };
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let items: Vec<_> = iter::once(namespace).chain((0..nodes).map(node)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    fs::write(file, list.to_string())?;
    injectd_for_istio(&[OsStr::new("--objects"), file.as_os_str()]).await
}
