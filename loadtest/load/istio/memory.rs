//! The share of reviews with the answer of an earlier pod, by the kind of the workload.

use injectd_harness::expect::Outcome;
use injectd_testkit::workloads::{KINDS, Kind, Workloads};

use super::configuration;
use crate::{
    Run,
    client::Client,
    report::{Budget, Report, Table, count, float},
    servers::{NO_FLAGS, injectd_for_istio},
};

const SHARE_BUDGET: f64 = 0.95;

/// The pods of workloads, and those that were answered from memory.
#[derive(Clone, Copy, Default)]
struct Pods {
    workloads: usize,
    all: u32,
    known: u32,
}

pub(super) async fn share(run: &Run, report: &mut Report) -> Outcome {
    let reviews = if run.smoke { 200 } else { 3000 };
    let mut kinds = KINDS.map(|(kind, workloads)| (kind, Pods { workloads, ..Pods::default() }));
    let server = injectd_for_istio(&NO_FLAGS).await?;
    let mut client = Client::open(&server).await?;
    let mut before = 0;
    for (kind, review) in Workloads::new(0).take(reviews) {
        client.ask(&review).await?;
        let hits = server.metric("injectd_cache_hits_total", &[("cache", "templates")]).await?;
        for (_, pods) in kinds.iter_mut().filter(|(it, _)| *it == kind) {
            pods.all += 1;
            pods.known += u32::try_from(hits - before)?;
        }
        before = hits;
    }
    let rss = server.rss_mib()?;
    server.stop().await?;
    add_results(report, &kinds, rss);
    Ok(())
}

fn add_results(report: &mut Report, kinds: &[(Kind, Pods)], rss: f64) {
    let mut sum = Pods::default();
    for (_, Pods { workloads, all, known }) in kinds {
        sum = Pods {
            workloads: sum.workloads + workloads,
            all: sum.all + all,
            known: sum.known + known,
        };
    }
    let rows = kinds.iter().map(|(kind, pods)| pods.row(format!("{kind:?}")));
    let columns = ["kind", "workloads", "pods", "with the answer of an earlier one", "share"];
    let title = "Istio: pods of generated workloads, in random order";
    let note = format!("The first pods of each workload are among them. RSS after: {rss:.0} MiB.");
    report.table(Table::new(title, &columns, rows.chain([sum.row("all".to_owned())])).note(note));
    let baseline =
        format!("{} workloads, {} pods; {}", sum.workloads, count(sum.all), configuration());
    let what = "Istio: share of reviews answered from memory";
    report.budget(Budget::least(what, sum.share(), SHARE_BUDGET).baseline(baseline));
}

impl Pods {
    fn share(&self) -> f64 {
        float(self.known) / float(self.all)
    }

    fn row(&self, kind: String) -> Vec<String> {
        let share = format!("{:.1}%", self.share() * 100.0);
        vec![kind, self.workloads.to_string(), count(self.all), count(self.known), share]
    }
}
