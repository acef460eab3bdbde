//! As many templates as are served.

use super::*;

/// How many there may be of a kind.
const MANY: usize = 1_000;
/// How late the watches are: less than a keeper waits for them.
const LATE: Duration = Duration::from_secs(4);
/// How long requests are counted.
const COUNTED: Duration = Duration::from_mins(2);

/// Both replicas see what is there.
fn show(server: &Server) {
    let mut state = server.state();
    let State { store, planes: [plane, _], .. } = &mut *state;
    let now = Instant::now().into_std();
    plane.see_templates(store, now);
    plane.see_revisions(store, now);
    for sender in &*server.known {
        sender.send_replace(Arc::new(plane.known().clone()));
    }
}

/// The requests of two replicas with so many cluster templates, of which everything is written.
async fn requests_with(templates: usize) -> usize {
    let server = Server::new();
    server.state().is_late = true;
    for index in 0..templates {
        server.state().store.edit(&identity(2 * index), Some(1));
    }
    let replicas = [start(&server, 0, Term::endless()), start(&server, 1, no_term())];
    loop {
        show(&server);
        sleep(LATE).await;
        if server.written().is_empty() {
            break;
        }
    }
    must_be_done(&server);
    assert_eq!(server.known().templates.len(), templates);
    let before = server.state().requests;
    sleep(COUNTED).await;
    assert_eq!(server.written(), [""; 0]);
    replicas.iter().for_each(JoinHandle::abort);
    server.state().requests - before
}

/// Templates and revisions are watched: a keeper does not read them one by one.
#[test]
fn requests_do_not_grow_with_the_templates() {
    let [few, many] = [1, MANY].map(|templates| run(requests_with(templates)));
    // Of each replica its Lease, and of the leader all Leases, every ten seconds; and the pods.
    assert!((34..=40).contains(&few), "{few}");
    assert!(many.abs_diff(few) <= 2, "{few} with one template, {many} with {MANY}");
}
