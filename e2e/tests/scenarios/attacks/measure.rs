//! One attack: the well-behaved client before, during and after it, and the server's memory.

use std::time::Duration;

use injectd_harness::{
    expect::{Outcome, eventually, expect, failed},
    lab::Bench,
    scenario::note,
};
use injectd_testkit::reviews::TYPICAL;
use tokio::time::{Instant, sleep_until};

use super::{
    beside::{Beside, REFUSED, Sample, percentile, problems, times},
    crowd::Act,
    expensive::large_review,
    target::{Memory, Mesh, Place, Target},
};

/// A review has its usual speed if it takes at most this many times the p99 before the attack.
// Attackers, client and server share the cores, which alone doubles a time now and then.
const USUAL: u32 = 2;
/// The default timeout of a kubelet's probe.
const MAX_PROBE: Duration = Duration::from_secs(1);
/// A review with more bytes than this is that of 216 KB, not that of 12 KB.
const LARGE_BYTES: usize = 100 << 10;

/// What one client saw.
struct Seen {
    before: Vec<Sample>,
    during: Vec<Sample>,
    /// Why reviews failed: also those after the attack.
    problems: Vec<String>,
}

/// The clients beside an attack.
pub(super) struct Others {
    kept: Beside,
    new: Beside,
    probes: Beside,
    /// When the attack begins.
    begin: Instant,
    /// Whether the review of 216 KB may be refused during the attack: it has to be evaluated, and the reviews
    /// that wait have all the memory of bodies.
    pub(super) may_be_refused: bool,
}

/// Runs an attack beside a well-behaved client; fails unless each of its reviews is answered, also
/// before and after the attack, each probe in time, reviews have their usual speed again after it, and
/// the attackers have done something.
pub(super) async fn measure(bench: &Bench, name: &str, act: Act, connections: usize) -> Outcome {
    let mut target = Target::start(bench, Mesh::Linkerd, Memory::Spare, &[]).await?;
    let seconds = if bench.is_long { 8 } else { 2 };
    let attacker = act.at(if act.is_grpc() { target.grpc()? } else { target.place()? });
    let others = Others::start(&target, bench.is_long).await?;
    let until = others.begin + Duration::from_secs(seconds);
    let done = act.run_as(&attacker, connections, until).await;
    others.end(&mut target, &format!("{name}, {connections}"), &done.text()).await?;
    expect("whether the attackers have done anything", true, done.is_any())
}

impl Others {
    /// Starts them, and returns after a quiet time.
    pub(super) async fn start(target: &Target, is_long: bool) -> Outcome<Self> {
        let place: Place = target.place()?;
        let typical = || TYPICAL.as_bytes().to_vec();
        let kept = Beside::reviews(&place, Duration::ZERO, move |_| typical());
        let new = Beside::new_connections(&place, [typical(), large_review()]);
        let probes = Beside::probes(target.admin());
        let begin = Instant::now() + Duration::from_secs(if is_long { 2 } else { 1 });
        sleep_until(begin).await;
        Ok(Self { kept, new, probes, begin, may_be_refused: false })
    }

    /// Judges what they saw, once the attack has ended.
    pub(super) async fn end(self, target: &mut Target, what: &str, done: &str) -> Outcome {
        let end = Instant::now();
        let usual = percentile(&self.kept.before(self.begin), 99) * USUAL;
        let is_usual = |sample: &Sample| sample.problem.is_none() && sample.took <= usual;
        let after = eventually("reviews have their usual speed", async || {
            let after = self.kept.since(end);
            let first = after.iter().find(|sample| is_usual(sample));
            first
                .map(|sample| sample.begin + sample.took - end)
                .ok_or_else(|| failed("none has it"))
        })
        .await?;
        let [kept, mut new, probes] = [self.kept, self.new, self.probes].map(Beside::end);
        let kept = Seen::of(kept, self.begin, end);
        let worst = percentile(&probes, 100);
        let all = new.len();
        if self.may_be_refused {
            let is_during =
                |sample: &Sample| sample.begin + sample.took > self.begin && sample.begin < end;
            let is_refused = |sample: &Sample| sample.problem.as_deref() == Some(REFUSED);
            new.retain(|sample| {
                !(is_refused(sample) && sample.bytes > LARGE_BYTES && is_during(sample))
            });
        }
        note(&format!(
            "{what}: p50 / p99 / longest {} → {} ms of {} reviews; over new connections {} ms, {} of {all} \
             refused; worst probe {:.0} ms; peak RSS {} MiB; usual speed after {:.2} s; attackers: {}",
            times(&kept.before),
            times(&kept.during),
            kept.during.len(),
            times(&new),
            all - new.len(),
            worst.as_secs_f64() * 1e3,
            target.peak_mib()?,
            after.as_secs_f64(),
            done
        ));
        target.server.injectd.expect_running()?;
        expect("reviews that failed", &[] as &[&str], &*kept.problems)?;
        expect("reviews over new connections that failed", &[] as &[&str], &*problems(&new))?;
        expect("probes that failed", &[] as &[&str], &*problems(&probes))?;
        expect(
            "whether there were reviews and probes",
            false,
            kept.during.is_empty() || probes.is_empty(),
        )?;
        expect(
            format!("whether each probe takes at most {MAX_PROBE:?} ({worst:?})"),
            true,
            worst <= MAX_PROBE,
        )
    }
}

impl Seen {
    fn of(samples: Vec<Sample>, begin: Instant, end: Instant) -> Self {
        // A review that began before the attack and was answered during it is one of both.
        let ended = |sample: &Sample| sample.begin + sample.took;
        let problems = problems(&samples).into_iter().map(str::to_owned).collect();
        let before = samples.iter().filter(|sample| ended(sample) <= begin).cloned().collect();
        let during =
            samples.into_iter().filter(|sample| ended(sample) > begin && sample.begin < end);
        Self { before, during: during.collect(), problems }
    }
}
