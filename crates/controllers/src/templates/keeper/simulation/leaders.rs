//! Two keepers of which the leader stops in any of its writes: it dies, or hangs until the other one has led
//! for some time.

use tokio::sync::oneshot;

use super::*;

/// By then the Lease of a replica that ended is removed.
const REMOVED: Duration = Duration::from_mins(7);

/// Where a replica hangs.
#[derive(Debug)]
pub(super) struct Halt {
    replica: usize,
    /// Its writes before that.
    left: usize,
    /// Whether the API server gets the write only when the replica wakes up.
    is_late: bool,
    /// Ends when it wakes up.
    wakes: oneshot::Receiver<()>,
}

/// How a leader stops.
#[derive(Debug, Clone, Copy)]
enum Stop {
    /// It ends after the write.
    Dies,
    /// The answer comes late.
    Hangs,
    /// The write comes late.
    Delayed,
    /// The write comes late, and the replica still takes itself for the leader.
    Stale,
}

/// The place in which this replica hangs now.
pub(super) fn halt(server: &Server) -> Option<Halt> {
    let mut state = server.state();
    let halt = state.halt.as_mut().filter(|halt| halt.replica == server.replica)?;
    if halt.left > 0 {
        halt.left -= 1;
        return None;
    }
    state.halt.take()
}

/// A write of a replica that hangs.
pub(super) async fn hang(
    server: &Server,
    write: &Write,
    halt: Option<Halt>,
) -> Result<(), RequestError> {
    let Some(Halt { is_late, wakes, .. }) = halt else { return Ok(()) };
    if is_late {
        drop(wakes.await);
        return server.write(write).await;
    }
    let answer = server.write(write).await;
    drop(wakes.await);
    answer
}

/// A time that no run lasts to.
fn later() -> Instant {
    Instant::now() + Duration::from_hours(24)
}

/// The templates that replicas must not stop to serve.
fn must_be_served(server: &Server, replicas: &[watch::Receiver<Arc<KnownTemplates>>]) {
    for known in replicas {
        let known = known.borrow();
        for index in [0, 1] {
            let found = known.templates.get(&identity(index));
            let is_served = found.is_some_and(|found| found.served.is_some());
            assert!(is_served, "{}", identity(index));
        }
    }
    assert_eq!(replicas.len(), server.known.len());
}

/// Runs a story in which the first leader stops in the write after so many. Returns how many it does if it does
/// not stop.
async fn story(stop: Option<(usize, Stop)>) -> usize {
    let server = Server::new();
    let terms: [watch::Sender<Option<Instant>>; REPLICAS] =
        [watch::Sender::new(Some(later())), watch::Sender::new(None)];
    let tasks =
        [0, 1].map(|replica| start(&server, replica, Term::given(terms[replica].subscribe())));
    let replicas: Vec<_> = server.known.iter().map(watch::Sender::subscribe).collect();
    for spec in [1, 2] {
        server.happens(Event::Edit(0, Some(spec)));
        server.happens(Event::Edit(1, Some(spec)));
        sleep(DONE).await;
    }
    must_be_done(&server);
    server.written();
    let (wake, wakes) = oneshot::channel();
    if let Some((left, stop)) = stop {
        let is_late = matches!(stop, Stop::Delayed | Stop::Stale);
        server.state().halt = Some(Halt { replica: 0, left, is_late, wakes });
    }
    server.happens(Event::Edit(0, Some(3)));
    server.happens(Event::Edit(1, Some(1)));
    server.happens(Event::Lose(0));
    sleep(DONE).await;
    must_be_served(&server, &replicas);
    let Some((_, stop)) = stop else { return server.written().len() };
    if !matches!(stop, Stop::Stale) {
        terms[0].send_replace(None);
    }
    if matches!(stop, Stop::Dies) {
        tasks[0].abort();
    }
    terms[1].send_replace(Some(later()));
    sleep(DONE).await;
    must_be_served(&server, &replicas);
    server.happens(Event::Edit(1, None));
    sleep(DONE).await;
    drop(wake);
    sleep(REMOVED).await;
    must_be_served(&server, &replicas);
    must_be_done(&server);
    server.written();
    sleep(2 * DONE).await;
    assert_eq!(server.written(), [""; 0], "nothing is left to do");
    tasks.iter().for_each(JoinHandle::abort);
    0
}

#[test]
fn a_leader_may_stop_in_any_of_its_writes() {
    let all = run(story(None));
    assert!(all >= 6, "{all} writes");
    for stop in [Stop::Dies, Stop::Hangs, Stop::Delayed, Stop::Stale] {
        for write in 0..all {
            run(story(Some((write, stop))));
        }
    }
}
