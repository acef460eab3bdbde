//! Thousands of connections: what they cost while they are open, and after.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use injectd_harness::{
    expect::{Outcome, eventually, expect},
    scenario::note,
};
use tokio::{task::JoinSet, time::sleep};

use super::{
    Server,
    clients::{Client, Clients, Tally},
};

/// The allocator returns memory, and the server ends tasks, some time later.
const SETTLING_SECONDS: u64 = 5;
const IDLE_CLIENTS: usize = 4;
const BUSY_CLIENTS: usize = 2;

struct Row {
    when: String,
    rss_kib: u64,
    threads: u64,
    descriptors: usize,
    connections: usize,
}

/// The measurements.
struct Crowd<'a> {
    server: &'a Server,
    rows: Vec<Row>,
}

pub(super) async fn all(server: &mut Server) -> Outcome {
    let mut crowd = Crowd { server, rows: Vec::new() };
    let outcome = crowd.run().await;
    crowd.print();
    outcome
}

impl Crowd<'_> {
    async fn run(&mut self) -> Outcome {
        let good = self.server.answer().await?;
        let extent = &self.server.extent;
        let (count, most) = (extent.idle, extent.connections());
        let idle: Vec<Client> =
            (0..IDLE_CLIENTS).map(|_| self.server.client()).collect::<Outcome<_>>()?;
        self.measure("before", 0).await?;
        let begin = Instant::now();
        let idle = each(idle, count / IDLE_CLIENTS, false).await?;
        self.measure(&format!("{count} connections after their handshake"), count).await?;
        let opening = begin.elapsed().as_secs();
        let idle = each(idle, 0, true).await?;
        self.measure("  and a review each", count).await?;
        let load = self.busy(count, most).await?;
        // The server has not dropped any of them.
        let idle = close(each(idle, 0, true).await?);
        self.measure("all closed", 0).await?;
        // As many again reuse the memory of the first.
        let idle = each(idle, count / IDLE_CLIENTS, true).await?;
        self.measure(&format!("{count} again, with a review each"), count).await?;
        let idle = close(idle);
        self.measure("all closed again", 0).await?;
        sleep(Duration::from_secs(SETTLING_SECONDS)).await;
        self.measure(&format!("  {SETTLING_SECONDS} s later"), 0).await?;
        let rate = load.answered as u64 / extent.load_seconds;
        let slowest = load.slowest.as_millis();
        let mut total = load;
        for client in idle {
            total.add(client.tally);
        }
        total.expect_good(&[good])?;
        expect("connections that could not be opened", 0, total.unsent)?;
        self.expect_as_before()?;
        note(&format!(
            "{} reviews answered, 0 failed, 0 wrong; {count} handshakes in {opening} s; busy: {rate} \
             reviews/s, slowest {slowest} ms",
            total.answered
        ));
        Ok(())
    }

    /// Reviews over other connections beside the idle ones.
    async fn busy(&mut self, idle: usize, most: usize) -> Outcome<Tally> {
        let busy = most - idle;
        let mut clients = Clients::default();
        for _ in 0..BUSY_CLIENTS {
            let mut client = self.server.client()?;
            client.open(busy / BUSY_CLIENTS).await;
            clients.spawn(client.busy(Arc::clone(&clients.is_stopped)));
        }
        sleep(Duration::from_secs(self.server.extent.load_seconds)).await;
        self.measure(&format!("  and {busy} busy ones"), most).await?;
        clients.stop().await
    }

    async fn measure(&mut self, when: &str, connections: usize) -> Outcome {
        eventually("the connections", async || {
            let labels = [("server", "webhook")];
            let found = self.server.metric("injectd_connections", &labels).await?;
            expect("the open connections", connections as u64, found)
        })
        .await?;
        let container = &self.server.dropin.container;
        self.rows.push(Row {
            when: when.to_owned(),
            rss_kib: container.memory_kib("VmRSS")?,
            threads: container.status("Threads")?.parse()?,
            descriptors: container.descriptors()?,
            connections,
        });
        Ok(())
    }

    fn expect_as_before(&self) -> Outcome {
        let [first, .., last] = &*self.rows else { return Ok(()) };
        // A connection for metrics may be open, each time.
        let most = first.descriptors + 2;
        let what = format!("whether at most {most} descriptors are left, of {}", last.descriptors);
        expect(what, true, last.descriptors <= most)?;
        expect("the threads after", first.threads, last.threads)
    }

    fn print(&self) {
        let Some(Row { rss_kib: before, .. }) = self.rows.first() else { return };
        note(&format!(
            "  {:40} {:>10} {:>8} {:>12} {:>15}",
            "", "RSS", "threads", "descriptors", "per connection"
        ));
        for Row { when, rss_kib, threads, descriptors, connections } in &self.rows {
            let tenths = (rss_kib.saturating_sub(*before) * 10).checked_div(*connections as u64);
            let each = tenths
                .map(|tenths| format!("{}.{} KiB", tenths / 10, tenths % 10))
                .unwrap_or_default();
            note(&format!(
                "  {when:40} {:>10} {threads:8} {descriptors:12} {each:>15}",
                mib(*rss_kib)
            ));
        }
    }
}

/// KiB as MiB.
pub(crate) fn mib(kib: u64) -> String {
    let tenths = (kib * 10) >> 10;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// Opens connections of all clients, and asks over all of them.
async fn each(clients: Vec<Client>, opened: usize, is_asked: bool) -> Outcome<Vec<Client>> {
    let mut tasks = JoinSet::new();
    for mut client in clients {
        tasks.spawn(async move {
            client.open(opened).await;
            if is_asked {
                client.round().await;
            }
            client
        });
    }
    let mut clients = Vec::new();
    while let Some(client) = tasks.join_next().await {
        clients.push(client?);
    }
    Ok(clients)
}

fn close(mut clients: Vec<Client>) -> Vec<Client> {
    clients.iter_mut().for_each(Client::close);
    clients
}
