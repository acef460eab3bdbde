//! CPU of a pod through a real API server: with injectd as the webhook, with a
//! `MutatingAdmissionPolicy` that adds the same sidecar, and with neither; once for Linkerd's sidecar, and once
//! for a sidecar template. Alone: `just apiserver`.
//!
//! All ways take turns under the same load, on a control plane of their own. The figures that count are
//! CPU per pod and their ratios within a round.

mod pods;
mod policy;
mod posting;
mod site;
mod table;
mod ways;

use std::{array, collections::BTreeMap, process, time::Duration};

use clap::{Args, value_parser};
use injectd_harness::{
    expect::{Outcome, failed},
    lab::{Lab, OwnLab},
    program::cpu_seconds,
};
use tokio::time::{Instant, timeout};

use crate::{
    Run, machine,
    report::{Report, say, write_csv},
    servers::INJECTD,
};
use posting::{Creators, Post};
use site::{Site, pods_of};
use table::{COLUMNS, Cpu, Extent, Row, add_results};
use ways::{ALL, COMPARED, Way};

/// Of kube-lab. Pods are deleted after each run.
const FLAGS: &str = "-memory=2GiB -apiserver-flag=--delete-collection-workers=8";
/// Time limit of a round, which takes 60 to 90 s on two cores: a person who waits wants an error and not a
/// hang.
const MAX_ROUND: Duration = Duration::from_mins(3);
/// Time limit of the start and the end of a cluster.
const MAX_BESIDE: Duration = Duration::from_mins(2);
const MAX_WARM_UP: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rounds, each with every way in another order
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a run
    #[arg(long, value_name = "S", default_value_t = 1.5)]
    seconds: f64,
    /// Pods that are created at a time
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,8,32")]
    #[arg(value_parser = value_parser!(u8).range(1..))]
    creators: Vec<u8>,
}

pub(crate) async fn run(options: &Options, run: &Run, report: &mut Report) -> Outcome {
    say(&machine::before()?);
    let smoke = Options { rounds: 1, seconds: 0.2, creators: vec![8] };
    let options = if run.smoke { &smoke } else { options };
    // Go may build it for minutes, which do not count.
    let own = OwnLab::unaudited(INJECTD.path()?, FLAGS).await?;
    let limit = MAX_BESIDE + MAX_ROUND * options.rounds;
    let measured = timeout(limit, Box::pin(in_lab(&own.lab, options))).await;
    let late = || failed(format!("it took longer than {} s", limit.as_secs()));
    let (rows, extent) = measured.map_err(|_| late())??;
    if let Some(out) = &run.out {
        let cells: Vec<_> = rows.iter().map(Row::cells).collect();
        write_csv(&out.join("apiserver.csv"), &COLUMNS, &cells)?;
    }
    add_results(report, &rows, &extent)
}

async fn in_lab(lab: &Lab, options: &Options) -> Outcome<(Vec<Row>, Extent)> {
    let folder = tempfile::tempdir()?;
    let site = Box::pin(Site::start(lab, folder.path())).await?;
    let extent = Extent { seconds: options.seconds, sizes: site.expect_same_pods().await? };
    let most = options.creators.iter().copied().max().unwrap_or_default();
    let mut runner = Runner::new(&site, Creators::open(&lab.kubeconfig, most).await?);
    let time = Duration::try_from_secs_f64(options.seconds)?;
    for way in ALL {
        runner.run(way, most, time.min(MAX_WARM_UP)).await?;
    }
    let mut rows = Vec::new();
    for number in 0..options.rounds {
        let begin = Instant::now();
        rows.extend(runner.round(number, &options.creators, time).await?);
        say(&format!("round {}: {} s", number + 1, begin.elapsed().as_secs()));
    }
    Ok((rows, extent))
}

/// Runs ways, and deletes their pods.
struct Runner<'a> {
    site: &'a Site<'a>,
    creators: Creators,
    posts: BTreeMap<Way, Post>,
    /// Whose CPU is counted.
    pids: [u32; 5],
}

impl<'a> Runner<'a> {
    fn new(site: &'a Site<'a>, creators: Creators) -> Self {
        let [api_server, injectd, templates, etcd] = site.pids;
        let pids = [api_server, injectd, etcd, process::id(), templates];
        let post = |way| Post { path: pods_of(way), body: site.pods[&way].to_string().into() };
        let posts = ALL.into_iter().map(|way| (way, post(way))).collect();
        Self { site, creators, posts, pids }
    }

    /// Each way with each number of creators; with the middle one all, else those that are compared.
    async fn round(&mut self, number: u32, levels: &[u8], time: Duration) -> Outcome<Vec<Row>> {
        let mut rows = Vec::new();
        for &level in levels {
            let has_all = level == levels[levels.len() / 2];
            let mut ways = if has_all { ALL.to_vec() } else { COMPARED.to_vec() };
            let first = number as usize % ways.len();
            ways.rotate_left(first);
            for way in ways {
                rows.push(Row { round: number + 1, ..self.run(way, level, time).await? });
            }
        }
        Ok(rows)
    }

    async fn run(&mut self, way: Way, creators: u8, time: Duration) -> Outcome<Row> {
        let opened = self.site.connections().await?;
        let (before, begin) = (self.cpu()?, Instant::now());
        let pods = self.creators.run(&self.posts[&way], creators, time).await?;
        let (seconds, after) = (begin.elapsed().as_secs_f64(), self.cpu()?);
        let connections = self.site.connections().await? - opened;
        self.site.clear(way).await?;
        let cpu = array::from_fn(|process| after[process] - before[process]);
        Ok(Row { round: 0, creators, way, pods, seconds, cpu, connections })
    }

    /// User and system time so far.
    fn cpu(&self) -> Outcome<Cpu> {
        let mut cpu = Cpu::default();
        let [.., templates] = self.pids;
        for (time, pid) in cpu.iter_mut().zip(self.pids) {
            *time = cpu_seconds(pid)?;
        }
        // One of both is idle.
        cpu[table::INJECTOR] += cpu_seconds(templates)?;
        Ok(cpu)
    }
}
