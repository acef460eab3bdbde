//! The API server hangs: reviews of known namespaces go on, those of unknown ones are refused in time.

use std::time::Instant;

use injectd_harness::{
    client::review_of,
    expect::{Outcome, eventually, expect},
    objects::{enabled, namespace, plain_pod},
    scenario::note,
};
use serde_json::json;

use super::{
    CALLERS, Memory,
    callers::{Answers, send},
    objects::team,
};

impl Memory<'_> {
    pub(super) async fn hangs(&mut self) -> Outcome {
        let review = |index: usize| self.objects.review(&team(index % 10), None, None);
        let reviews: Vec<_> = (0..self.extent.reviews).map(review).collect();
        let before = self.send(&reviews, CALLERS).await?;
        self.api_server.hang().await?;
        let (during, two, three, ten) = tokio::join!(
            self.send(&reviews, CALLERS),
            self.expect_late(2),
            self.expect_late(3),
            self.expect_late(10),
        );
        self.api_server.resume()?;
        let (during, late) = (during?, [two?, three?, ten?]);
        let texts = format!("{}, then {}", before.text(), during.text());
        let is_as_fast = during.rate() >= before.rate() / 2.0;
        expect(format!("whether known namespaces are as fast ({texts})"), true, is_as_fast)?;
        let back = self.expect_back().await?;
        let after = self.send(&reviews, CALLERS).await?;
        note(&format!(
            "known namespaces before: {texts}; after: {}; unknown ones: 503 after {late:.1?} s with \
             a timeout of 2, 3 and 10; a new one injected {back:.1} s after it was back",
            after.text()
        ));
        self.measure("  and the API server hung meanwhile".to_owned()).await
    }

    /// Returns the seconds until a pod of a new namespace was injected.
    async fn expect_back(&mut self) -> Outcome<f64> {
        let (begin, name) = (Instant::now(), unknown(10));
        eventually("the API server", async || {
            let answer = self.ask(&name, 10).await?;
            let response = answer.only()?.response()?;
            let message = response["status"]["message"].as_str();
            let expected = format!("namespaces \"{name}\" not found");
            expect("the message", Some(&*expected), message)
        })
        .await?;
        let object = namespace(&name, &enabled(), &json!({}));
        self.lab.api.create(None, &object).await?.created()?;
        self.send(&[self.objects.review(&name, None, None)], 1).await?;
        let seconds = begin.elapsed().as_secs_f64();
        eventually("the watch", async || {
            let failing = self.replica.metric("injectd_watch_failing", &[]).await?;
            expect("whether it fails", 0, failing)
        })
        .await?;
        self.replica.expect_ready().await?;
        Ok(seconds)
    }

    /// One review of a pod that asks for nothing.
    async fn ask(&self, namespace: &str, timeout_seconds: u64) -> Outcome<Answers> {
        let review = review_of(namespace, &plain_pod("stranger")).to_vec();
        send(&self.replica.endpoint(&self.ca)?, &[review], 1, timeout_seconds).await
    }

    /// Fails unless an unknown namespace is refused within the timeout; returns the seconds.
    async fn expect_late(&self, timeout_seconds: u32) -> Outcome<f64> {
        let found = self.ask(&unknown(timeout_seconds), timeout_seconds.into()).await?;
        found.only()?.expect_refused()?;
        let is_in_time = found.seconds <= f64::from(timeout_seconds);
        let what = format!("whether 503 after {:.1} s is in time", found.seconds);
        expect(what, true, is_in_time)?;
        Ok(found.seconds)
    }
}

/// The name of a namespace that is not there.
fn unknown(seconds: u32) -> String {
    format!("unknown-{seconds}")
}
