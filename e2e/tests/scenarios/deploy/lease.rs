//! The Lease: which replica leads, and by which clock.

use injectd_harness::{
    expect::{Outcome, eventually, expect, failed},
    scenario::say_skipped,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::installed::{Installed, REPLICAS};

const LEADER: &str = "injectd_managed_certificate_leader";

impl Installed<'_> {
    /// The index of the replica that manages the certificates.
    pub(super) async fn leader(&self) -> Outcome<usize> {
        self.leader_but(None).await
    }

    /// As [`Installed::leader`], without one that does not answer.
    pub(super) async fn leader_but(&self, without: Option<usize>) -> Outcome<usize> {
        eventually("one replica leads", async || {
            let mut leaders = Vec::new();
            for (index, replica) in self.replicas.iter().enumerate() {
                if Some(index) != without
                    && replica.metric(LEADER, &[]).await.is_ok_and(|value| value == 1)
                {
                    leaders.push(index);
                }
            }
            match *leaders {
                [leader] => Ok(leader),
                _ => Err(failed(format!("leaders: {leaders:?}"))),
            }
        })
        .await
    }

    /// Names a replica as the holder of the Lease. Until the leader before it has seen that, both lead.
    pub(super) async fn hand_over(&mut self, index: usize) -> Outcome {
        let identity = format!("{}_{}", REPLICAS[index].0, self.replicas[index].pid()?);
        eventually("the Lease is written", async || {
            let change = |lease: &mut Value| lease["spec"]["holderIdentity"] = json!(identity);
            self.api().update(&self.lease_path(&self.release.certificates()), change).await
        })
        .await
    }

    /// Makes a replica the leader.
    pub(super) async fn lead(&mut self, index: usize) -> Outcome {
        self.hand_over(index).await?;
        eventually("the holder of the Lease leads", async || {
            expect("the leader", index, self.leader().await?)
        })
        .await?;
        if self.faketime.is_none() {
            return Ok(());
        }
        eventually("the Lease has the time of its holder's clock", async || {
            let lease =
                self.api().get(&self.lease_path(&self.release.certificates())).await?.ok()?;
            let renewed = lease["spec"]["renewTime"].as_str().unwrap_or_default();
            let ahead = renewed.parse::<Timestamp>()?.duration_since(Timestamp::now());
            // It was written up to two seconds ago.
            let off = (ahead - SignedDuration::from_secs(REPLICAS[index].1)).as_secs_f64();
            expect(format!("whether {off} s are little"), true, (-4.0..1.0).contains(&off))
        })
        .await
    }

    /// What the clocks of the replicas are.
    pub(super) fn clocks(&self) -> String {
        let seconds: Vec<_> = REPLICAS.iter().map(|(_, ahead)| format!("{ahead:+}")).collect();
        if self.faketime.is_none() {
            say_skipped("clocks that are wrong, since libfaketime is not installed");
            return "clocks all right".to_owned();
        }
        format!("clocks at {} s", seconds.join(", "))
    }

    /// Waits until a Lease has a holder.
    pub(super) async fn held(&self, name: &str) -> Outcome {
        eventually("the Lease has a holder", async || {
            let lease = self.api().get(&self.lease_path(name)).await?.ok()?;
            let holder = lease["spec"]["holderIdentity"].as_str();
            expect("whether there is one", true, holder.is_some_and(|holder| !holder.is_empty()))
        })
        .await
    }

    /// The path of a Lease of the release.
    pub(super) fn lease_path(&self, name: &str) -> String {
        self.it.path("coordination.k8s.io/v1", "Lease", name)
    }
}
