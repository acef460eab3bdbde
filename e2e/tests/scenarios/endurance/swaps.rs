//! Mounts that are swapped as a kubelet does: good contents in turn, and torn ones, which are rejected.

use std::{sync::Arc, time::Duration};

use injectd_harness::{
    expect::{Outcome, expect, expect_contains, failed, soon},
    scenario::{note, step},
    volume::{Files, files},
};
use tokio::time::sleep;

use super::{
    Server,
    clients::{Clients, Good, LOAD_CONNECTIONS, Tally},
};
use crate::dropin::{CONFIG, LOCAL, TLS, TRUST_ROOTS};

/// Many reload intervals.
// The servers look for changed files each 10 ms here: after twenty looks nothing is on its way.
const QUIET: Duration = Duration::from_millis(200);
/// Torn files come before every tenth swap.
const TORN_EVERY: usize = 10;
const CLIENTS: usize = 2;

/// How many reloads of the same files were accepted and rejected so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Reloads {
    accepted: u64,
    rejected: u64,
}

impl Reloads {
    fn sum(self) -> u64 {
        self.accepted + self.rejected
    }
}

/// One mount.
struct Swaps {
    what: &'static str,
    path: &'static str,
    good: [Files; 2],
    torn: Files,
    /// How many connections a client opens anew in each round.
    replaced: usize,
}

pub(super) async fn all(server: &mut Server) -> Outcome {
    let count = server.extent.swaps;
    for (name, swaps) in mounts(server)? {
        step(format!("{name}: swapped under load"), swaps.run(server, count)).await?;
    }
    step("an empty trust bundle is rejected", empty_bundle_is_rejected(server)).await
}

fn mounts(server: &Server) -> Outcome<[(&'static str, Swaps); 3]> {
    let it = &server.dropin;
    let config = it.manifest.config("linkerd-config")?;
    let values = config.get("values").map(String::as_str).unwrap_or_default();
    let line = "  outboundConnectTimeout: 1000ms\n";
    expect_contains("the values", line, values)?;
    let with = |values: &str| {
        let mut files = config.clone();
        files.insert("values".to_owned(), values.to_owned());
        files
    };
    let other = with(&values.replace(line, &line.replace("1000", "2000")));
    // As if the file were written in place: it ends in the middle of a quoted value.
    let quoted = "logHTTPHeaders: \"";
    let cut = values.find(quoted).ok_or_else(|| failed(format!("no {quoted} in the values")))?;
    let cut = with(&values[..cut + quoted.len() - 1]);
    let bundle = it.bundle()?;
    let both = format!("{bundle}\n{}", it.ca.pem());
    let roots = [bundle, both].map(|roots| files([("ca-bundle.crt", &roots)]));
    let issue = || it.ca.issue(&it.host, LOCAL);
    let (first, second, mut torn) = (it.certificate.clone(), issue()?, issue()?);
    torn.key.clone_from(&first.key);
    let config = config.clone();
    Ok([
        ("values", Swaps::new("config", CONFIG, [config, other], cut)),
        ("trust roots", Swaps::new("config", TRUST_ROOTS, roots, files([]))),
        (
            "TLS secret",
            Swaps {
                replaced: 1,
                ..Swaps::new("tls", TLS, [first.files(), second.files()], torn.files())
            },
        ),
    ])
}

impl Swaps {
    fn new(what: &'static str, path: &'static str, good: [Files; 2], torn: Files) -> Self {
        Self { what, path, good, torn, replaced: 0 }
    }

    /// Swaps that are awaited, then as many without waiting.
    async fn run(&self, server: &mut Server, count: usize) -> Outcome {
        let expected =
            [self.show(server, &self.good[0]).await?, self.show(server, &self.good[1]).await?];
        expect("whether both contents give the same answer", false, expected[0] == expected[1])?;
        let mut clients = Clients::default();
        for _ in 0..CLIENTS {
            let mut client = server.client()?;
            client.open(LOAD_CONNECTIONS / CLIENTS).await;
            clients.spawn(client.load(Arc::clone(&clients.is_stopped), self.replaced));
        }
        let torn = self.one_by_one(server, count, &expected).await?;
        let quick = self.without_waiting(server, count, &expected).await?;
        let tally = clients.stop().await?;
        tally.expect_good(&expected)?;
        for good in &expected {
            expect("whether each content was served", true, self.is_seen(&tally, good))?;
        }
        note(&format!(
            "{count} swaps accepted and {torn} torn ones rejected; of {count} without waiting, {} \
             accepted and {} rejected; {} reviews answered over {} connections, 0 failed, 0 wrong, \
             slowest {} ms",
            quick.accepted,
            quick.rejected,
            tally.answered,
            tally.opened,
            tally.slowest.as_millis(),
        ));
        Ok(())
    }

    /// Older connections have the old certificate.
    fn is_seen(&self, tally: &Tally, good: &Good) -> bool {
        let is_shown = self.replaced == 0 || tally.certificates.contains(&good.certificate);
        is_shown && tally.answers.contains_key(&good.body)
    }

    async fn reloads(&self, server: &Server) -> Outcome<Reloads> {
        reloads(server, self.what).await
    }

    /// Swaps to this content; returns the answer under it.
    async fn show(&self, server: &mut Server, content: &Files) -> Outcome<Good> {
        let before = soon("the earlier reloads", async || {
            let before = self.reloads(server).await?;
            sleep(QUIET).await;
            expect("the reloads", before, self.reloads(server).await?)?;
            Ok(before)
        })
        .await?;
        self.write(server, content)?;
        self.await_reload(server, Reloads { accepted: before.accepted + 1, ..before }).await?;
        server.answer().await
    }

    fn write(&self, server: &mut Server, content: &Files) -> Outcome {
        server.dropin.container.volume(self.path)?.write(content)
    }

    async fn await_reload(&self, server: &Server, expected: Reloads) -> Outcome {
        let found = soon("a reload", async || {
            let found = self.reloads(server).await?;
            expect("whether there was one", true, found.sum() >= expected.sum())?;
            Ok(found)
        })
        .await?;
        expect("reloads accepted and rejected", expected, found)
    }

    /// Returns how many torn contents were rejected.
    async fn one_by_one(
        &self,
        server: &mut Server,
        count: usize,
        expected: &[Good; 2],
    ) -> Outcome<usize> {
        let (mut reloads, mut torn) = (self.reloads(server).await?, 0);
        for index in 0..count {
            if index % TORN_EVERY == 0 {
                torn += 1;
                reloads.rejected += 1;
                self.write(server, &self.torn)?;
                self.await_reload(server, reloads).await?;
                // Before the first swap, the content is the last one of `show`.
                let is_same = server.answer().await? == expected[(index + 1) % 2];
                expect("whether torn files change no answer", true, is_same)?;
            }
            reloads.accepted += 1;
            self.write(server, &self.good[index % 2])?;
            self.await_reload(server, reloads).await?;
            let is_new = server.answer().await? == expected[index % 2];
            expect("whether a swap changes the answer", true, is_new)?;
        }
        Ok(torn)
    }

    async fn without_waiting(
        &self,
        server: &mut Server,
        count: usize,
        expected: &[Good; 2],
    ) -> Outcome<Reloads> {
        let before = self.reloads(server).await?;
        for index in 0..count {
            self.write(server, &self.good[index % 2])?;
        }
        let last = &expected[(count - 1) % 2];
        soon("the last content", async || {
            expect("whether it is served", true, server.answer().await? == *last)
        })
        .await?;
        let after = self.reloads(server).await?;
        Ok(Reloads {
            accepted: after.accepted - before.accepted,
            rejected: after.rejected - before.rejected,
        })
    }
}

async fn reloads(server: &Server, what: &str) -> Outcome<Reloads> {
    let count = async |result: &str| {
        server.metric("injectd_reloads_total", &[("what", what), ("result", result)]).await
    };
    Ok(Reloads { accepted: count("applied").await?, rejected: count("rejected").await? })
}

/// Without trust roots every pod would be denied.
async fn empty_bundle_is_rejected(server: &mut Server) -> Outcome {
    let (expected, before) = (server.answer().await?, reloads(server, "config").await?);
    let empty = files([("ca-bundle.crt", "")]);
    server.dropin.container.volume(TRUST_ROOTS)?.write(&empty)?;
    let after = soon("a reload", async || {
        let after = reloads(server, "config").await?;
        expect("whether there was one", true, after != before)?;
        Ok(after)
    })
    .await?;
    let rejected = Reloads { rejected: before.rejected + 1, ..before };
    expect("reloads accepted and rejected", rejected, after)?;
    expect("whether the answer stays", true, server.answer().await? == expected)
}
