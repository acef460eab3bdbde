//! The faults, each made while pods are created.

use std::time::{Duration, Instant};

use injectd_harness::{
    client::review_of,
    expect::{Outcome, expect, failed, soon},
    objects::plain_pod,
    scenario::note,
};
use tokio::time::sleep;

use super::{
    Storm,
    flood::{self, Flood},
};
use crate::replica::Replica;

/// Between two reviews while the API server hangs.
const REVIEW_PAUSE: Duration = Duration::from_millis(100);

/// What happens in a phase.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Fault {
    None,
    ApiServerRestarts,
    ApiServerHangs,
    ValuesChange,
    RootsChange,
    CertificateRotates,
    Overload,
    Terminated,
    Killed,
    NoneAgain,
}

impl Fault {
    pub(super) const ALL: [Self; 10] = [
        Self::None,
        Self::ApiServerRestarts,
        Self::ApiServerHangs,
        Self::ValuesChange,
        Self::RootsChange,
        Self::CertificateRotates,
        Self::Overload,
        Self::Terminated,
        Self::Killed,
        Self::NoneAgain,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "no fault",
            Self::ApiServerRestarts => "API server: stopped and started",
            Self::ApiServerHangs => "API server: hangs and is back",
            Self::ValuesChange => "values change",
            Self::RootsChange => "trust roots change",
            Self::CertificateRotates => "certificate of another CA",
            Self::Overload => "overload of both replicas",
            Self::Terminated => "SIGTERM of a replica",
            Self::Killed => "SIGKILL of a replica",
            Self::NoneAgain => "no fault, at the end",
        }
    }
}

impl Storm<'_> {
    pub(super) async fn make(&mut self, fault: Fault) -> Outcome {
        match fault {
            Fault::None | Fault::NoneAgain => Ok(()),
            Fault::ApiServerRestarts => self.api_server_restarts().await,
            Fault::ApiServerHangs => self.api_server_hangs().await,
            Fault::ValuesChange => self.pair.change_values().await,
            Fault::RootsChange => self.pair.change_roots().await,
            Fault::CertificateRotates => self.certificate_rotates().await,
            Fault::Overload => self.overload().await,
            Fault::Terminated => self.terminated().await,
            Fault::Killed => self.killed().await,
        }
    }

    async fn api_server_restarts(&mut self) -> Outcome {
        let begin = Instant::now();
        self.pair.api_server.stop().await?;
        let stopped = begin.elapsed();
        let begin_again = Instant::now();
        self.pair.api_server.start()?;
        self.pair.wait_for_api_server().await?;
        for replica in &self.pair.replicas {
            replica.expect_ready().await?;
        }
        let (ended, back) = (stopped.as_secs_f64(), begin_again.elapsed().as_secs_f64());
        note(&format!("ended after {ended:.1} s, back {back:.1} s later"));
        Ok(())
    }

    async fn api_server_hangs(&mut self) -> Outcome {
        self.pair.api_server.hang().await?;
        let asked = self.ask_while_it_hangs().await;
        self.pair.api_server.resume()?;
        self.pair.wait_for_api_server().await?;
        let seconds = self.extent.hung.as_secs_f64();
        note(&format!("for {seconds} s; {} reviews meanwhile, all injected", asked?));
        Ok(())
    }

    async fn ask_while_it_hangs(&self) -> Outcome<u32> {
        let known = review_of(self.pair.namespace(), &plain_pod("known"));
        let (begin, mut asked) = (Instant::now(), 0);
        while begin.elapsed() < self.extent.hung {
            for replica in &self.pair.replicas {
                let answer = replica.endpoint(self.pair.newest_ca())?.ask(&known).await?;
                let verdict = answer.response["auditAnnotations"]["verdict"].as_str();
                expect("the verdict while it hangs", Some("injected"), verdict)?;
                asked += 1;
            }
            sleep(REVIEW_PAUSE).await;
        }
        Ok(asked)
    }

    async fn certificate_rotates(&mut self) -> Outcome {
        self.pair.rotate_certificate().await?;
        let new = review_of(self.pair.namespace(), &plain_pod("new"));
        for replica in &self.pair.replicas {
            replica.endpoint(self.pair.newest_ca())?.ask(&new).await?;
        }
        Ok(())
    }

    /// A flood uses up connections and requests: reviews of other clients are answered.
    async fn overload(&mut self) -> Outcome {
        let half = review_of(self.pair.namespace(), &plain_pod("half"));
        let replicas = &self.pair.replicas;
        let mut floods = Vec::new();
        for replica in replicas {
            floods.push(Flood::new(replica.endpoint(self.pair.newest_ca())?, &half));
        }
        let before = total(replicas, flood::refused_requests).await?;
        for _ in 0..self.extent.floods {
            for (flood, replica) in floods.iter_mut().zip(replicas) {
                flood.begin(replica).await?;
            }
            let answered = total(replicas, flood::answered).await?;
            let enough = answered + self.creators.tasks() as u64;
            soon("reviews answered", async || {
                let answered = total(replicas, flood::answered).await?;
                expect("whether there are enough", true, answered >= enough)
            })
            .await?;
            for flood in &mut floods {
                flood.end().await?;
            }
            self.creators.finish().await?;
        }
        let refused = total(replicas, flood::refused_requests).await? - before;
        expect("requests refused beside a flood", 0, refused)?;
        let connections = total(replicas, flood::refused_connections).await?;
        note(&format!(
            "floods: {}; all reviews of other connections answered, {connections} connections \
             answered 503 or closed",
            self.extent.floods
        ));
        Ok(())
    }

    async fn terminated(&mut self) -> Outcome {
        let before = self.creators.hurry(self.extent.short_pause).await?;
        let index = self.busiest().await?;
        let begin = Instant::now();
        self.pair.replicas[index].injectd.terminate().await?;
        let ended = begin.elapsed().as_secs_f64();
        self.pair.rotation.wait_for(index, false).await?;
        self.creators.set_pause(before);
        let ready = self.pair.replicas[index].start().await?;
        self.pair.rotation.wait_for(index, true).await?;
        note(&format!("ended after {ended:.1} s, ready again after {ready:.2} s"));
        Ok(())
    }

    async fn killed(&mut self) -> Outcome {
        let before = self.creators.hurry(self.extent.short_pause).await?;
        let index = self.busiest().await?;
        let in_progress = self.creators.in_progress();
        let begin = Instant::now();
        self.pair.replicas[index].injectd.kill().await?;
        self.pair.rotation.wait_for(index, false).await?;
        let end = Instant::now();
        self.creators.set_pause(before);
        self.pair.replicas[index].start().await?;
        self.pair.rotation.wait_for(index, true).await?;
        self.count_replicas().await?;
        let phase = self.creators.phase();
        let is_late = |pod: &&super::phase::Uninjected| pod.begin.is_some_and(|begin| begin > end);
        let late: Vec<_> = phase.uninjected.iter().filter(is_late).collect();
        let what = format!("pods without sidecar after it was out of rotation ({late:?})");
        expect(what, 0, late.len())?;
        let count = phase.begins.iter().filter(|at| (begin..=end).contains(*at)).count();
        note(&format!(
            "out of rotation after {:.1} s; {in_progress} creations in progress at the kill, {count} \
             begun until then; without sidecar {}, refused {}",
            (end - begin).as_secs_f64(),
            phase.uninjected.len(),
            phase.refused,
        ));
        Ok(())
    }

    /// The replica that gets most reviews, because connections stay where they are.
    async fn busiest(&self) -> Outcome<usize> {
        let reviews = async || -> Outcome<Vec<u64>> {
            let mut counts = Vec::new();
            for replica in &self.pair.replicas {
                counts.push(replica.metric("injectd_reviews_total", &[]).await?);
            }
            Ok(counts)
        };
        let before = reviews().await?;
        let created = self.creators.phase().created;
        self.creators.wait_for(created + 2 * self.creators.tasks()).await?;
        let after = reviews().await?;
        let more = after.iter().zip(before).map(|(after, then)| after.saturating_sub(then));
        let most = more.enumerate().max_by_key(|(_, count)| *count);
        most.map(|(index, _)| index).ok_or_else(|| failed("no replicas"))
    }
}

async fn total(replicas: &[Replica], of: impl AsyncFn(&Replica) -> Outcome<u64>) -> Outcome<u64> {
    let mut total = 0;
    for replica in replicas {
        total += of(replica).await?;
    }
    Ok(total)
}
