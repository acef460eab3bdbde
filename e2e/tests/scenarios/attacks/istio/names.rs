//! Names that pods choose: they do not displace the answers of others from memory.

use std::time::Duration;

use injectd_harness::{
    connection::Connection,
    expect::{Outcome, about, expect},
    scenario::{note, with_binary_alone},
};
use injectd_testkit::reviews::TYPICAL;
use tokio::time::{Instant, sleep_until};

use super::{answers::Tenant, bodies::volumes_in};
use crate::attacks::target::{Memory, Mesh, Place, Target};

const WORKLOADS: usize = 50;
const ROUNDS: usize = 20;
/// The names that fill what the answer memory once held in all.
const PODS: usize = 33;
const NAMES: usize = 58;

/// Reviews over one connection, all of which are answered with status 200.
struct Asker {
    place: Place,
    connection: Connection,
}

impl Asker {
    async fn of(target: &Target) -> Outcome<Self> {
        let place = target.place()?;
        Ok(Self { connection: place.endpoint.connect().await?, place })
    }

    async fn ask(&mut self, body: &[u8]) -> Outcome {
        self.connection.send(&self.place.request(body)).await?;
        expect("the status of a review", 200, self.connection.receive().await?.status)
    }

    async fn ask_each(&mut self, bodies: &[Vec<u8>]) -> Outcome {
        for body in bodies {
            self.ask(body).await?;
        }
        Ok(())
    }
}

fn new_volume(name: String) -> Vec<u8> {
    volumes_in("attacker", [name].into_iter())
}

#[tokio::test]
async fn a_new_name_before_each_round_leaves_the_answers_of_other_workloads() -> Outcome {
    with_binary_alone(async |bench| {
        let target = Target::start(bench, Mesh::Istio, Memory::Spare, &[]).await?;
        let of_tenant = |index| {
            let namespace = format!(r#""namespace":"tenant-{index}""#);
            TYPICAL.replace(r#""namespace":"fulfilment""#, &namespace).into_bytes()
        };
        let known: Vec<_> = (0..WORKLOADS).map(of_tenant).collect();
        let mut asker = Asker::of(&target).await?;
        asker.ask_each(&known).await?;
        let before = target.hits().await?;
        for round in 0..ROUNDS {
            asker.ask(&new_volume(format!("new-{round}"))).await?;
            asker.ask_each(&known).await?;
        }
        expect_hits(&target, before, ROUNDS * WORKLOADS).await
    })
    .await
}

#[tokio::test]
async fn pods_with_many_names_leave_room_for_the_answers_of_others() -> Outcome {
    with_binary_alone(async |bench| {
        let target = Target::start(bench, Mesh::Istio, Memory::Spare, &[]).await?;
        let mut asker = Asker::of(&target).await?;
        for pod in 0..PODS {
            let names = (0..NAMES).map(|index| format!("fill-{pod}-{index}"));
            asker.ask(&volumes_in("attacker", names)).await?;
        }
        // Until not one more name fits.
        for index in 0..2 * NAMES {
            asker.ask(&new_volume(format!("last-{index}"))).await?;
        }
        let of_tenant =
            |index| volumes_in(&format!("tenant-{index}"), ["cache".to_owned()].into_iter());
        let known: Vec<_> = (0..WORKLOADS).map(of_tenant).collect();
        asker.ask_each(&known).await?;
        let before = target.hits().await?;
        for _ in 0..2 {
            asker.ask_each(&known).await?;
        }
        expect_hits(&target, before, 2 * WORKLOADS).await
    })
    .await
}

async fn expect_hits(target: &Target, before: u64, count: usize) -> Outcome {
    let hits = target.hits().await? - before;
    note(&format!("{hits} of {count} answers from memory"));
    expect("answers from memory", u64::try_from(count)?, hits)
}

#[tokio::test]
async fn new_names_each_second_leave_the_answers_of_others() -> Outcome {
    with_binary_alone(async |bench| {
        let seconds = if bench.is_long { 5 } else { 1 };
        for per_second in [0, 1, 33] {
            let mut target = Target::start(bench, Mesh::Istio, Memory::Spare, &[]).await?;
            let tenant = Tenant::start(&mut target).await?;
            let mut asker = Asker::of(&target).await?;
            let begin = Instant::now();
            for number in 0..per_second * seconds {
                sleep_until(begin + Duration::from_secs(1) * number / per_second).await;
                asker.ask(&new_volume(format!("n-{number}"))).await?;
            }
            sleep_until(begin + Duration::from_secs(1) * seconds).await;
            let what = format!("{per_second} new names a second");
            about(&what, tenant.end(&mut target, &what, "").await)?;
        }
        Ok(())
    })
    .await
}
