use std::collections::VecDeque;

use tokio::sync::oneshot::error::TryRecvError;

use super::*;

const MEMORY: usize = 1000;

/// One turn of each kind.
fn queue() -> Queue {
    Queue::new(1, 1, MEMORY)
}

fn ask(queue: &Queue, namespace: &str, memory: usize) -> Waiting {
    queue.wait(Threads::Workers, namespace, memory).expect("within the memory")
}

fn state_of(queue: &Queue) -> (usize, usize, [usize; 2]) {
    let state = queue.state();
    let lines = &state.lines;
    assert!(lines.iter().all(|line| line.namespaces.len() == line.order.len()));
    let waiting = |line: &Line| line.namespaces.values().map(|it| it.waiting.len()).sum::<usize>();
    assert!(lines.iter().all(|line| line.waiting == waiting(line)));
    (
        state.free_memory,
        lines.iter().map(|line| line.free).sum(),
        [0, 1].map(|at| lines[at].waiting),
    )
}

/// The namespaces of the turns, one after the other, until all have had theirs.
fn order(mut waiting: VecDeque<Waiting>) -> Vec<String> {
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let ready = waiting.iter_mut().enumerate().find_map(|(at, it)| Some((at, it.try_turn()?)));
        let (at, held) = ready.expect("one must have its turn");
        order.extend(waiting.remove(at).map(|it| it.namespace.to_string()));
        drop(held);
    }
    order
}

#[tokio::test]
async fn namespaces_take_turns() {
    let queue = queue();
    let greedy = (0..1000).map(|_| ask(&queue, "greedy", 1));
    let mut waiting: VecDeque<_> = greedy.collect();
    for namespace in ["b", "c", "b"] {
        waiting.push_back(ask(&queue, namespace, 1));
    }
    let order = order(waiting);
    assert_eq!(order[..6], ["greedy", "greedy", "b", "c", "greedy", "b"]);
    assert!(order[6..].iter().all(|namespace| namespace == "greedy"));
    assert_eq!(state_of(&queue), (MEMORY, 2, [0, 0]));
}

#[tokio::test]
async fn who_leaves_is_not_asked_and_has_no_turn() {
    let queue = queue();
    let mut first = ask(&queue, "a", 1);
    let held = first.try_turn().expect("is free");
    let [gone, mut other] = ["b", "c"].map(|namespace| ask(&queue, namespace, 1));
    let unread = ask(&queue, "b", 1);
    drop(gone);
    assert_eq!(state_of(&queue), (MEMORY - 1, 1, [2, 0]));
    drop(held);
    // The turn of `b` came and was not received.
    assert_eq!(other.receiver.try_recv().expect_err("not yet"), TryRecvError::Empty);
    drop(unread);
    drop(other.try_turn().expect("the turn is given on"));
    assert_eq!(state_of(&queue), (MEMORY, 2, [0, 0]));
}

#[tokio::test]
async fn both_kinds_of_threads_have_turns_of_their_own() {
    let queue = queue();
    let [mut worker, mut separate] = [Threads::Workers, Threads::Separate]
        .map(|threads| queue.wait(threads, "a", 1).expect("within the memory"));
    let _held = (worker.try_turn().expect("is free"), separate.try_turn().expect("is free"));
    assert_eq!(state_of(&queue), (MEMORY - 2, 0, [0, 0]));
}

#[tokio::test]
async fn the_memory_of_all_is_bounded_and_a_large_one_gets_its_own() {
    let queue = Queue::new(3, 1, MEMORY);
    assert!(queue.wait(Threads::Workers, "a", MEMORY + 1).is_err());
    let mut first = ask(&queue, "a", 600);
    let first = first.try_turn().expect("is free");
    let mut large = ask(&queue, "b", MEMORY);
    let mut small = ask(&queue, "c", 1);
    let mut separate = queue.wait(Threads::Separate, "d", 1).expect("within the memory");
    // Others would take its memory for ever.
    assert!([&mut large, &mut small, &mut separate].iter_mut().all(|it| it.try_turn().is_none()));
    drop(first);
    let held = large.try_turn().expect("all memory is free");
    assert!([&mut small, &mut separate].iter_mut().all(|it| it.try_turn().is_none()));
    drop(held);
    let _both = (small.try_turn().expect("its turn"), separate.try_turn().expect("its turn"));
    assert_eq!(state_of(&queue), (MEMORY - 2, 2, [0, 0]));
}

#[tokio::test]
async fn a_large_one_that_leaves_blocks_no_others() {
    let queue = Queue::new(2, 1, MEMORY);
    let _first = ask(&queue, "a", 600).try_turn().expect("is free");
    let large = ask(&queue, "b", MEMORY);
    let mut small = ask(&queue, "c", 1);
    assert!(small.try_turn().is_none());
    drop(large);
    assert!(small.try_turn().is_some());
}

#[tokio::test]
async fn large_ones_of_one_kind_of_threads_alternate_with_the_other_kind() {
    let queue = queue();
    let held = ask(&queue, "a", MEMORY).try_turn().expect("is free");
    let mut large = [(); 2].map(|()| ask(&queue, "a", MEMORY));
    let mut separate = queue.wait(Threads::Separate, "b", 1).expect("within the memory");
    drop(held);
    drop(separate.try_turn().expect("the other kind is first"));
    for large in &mut large {
        drop(large.try_turn().expect("its turn"));
    }
    assert_eq!(state_of(&queue), (MEMORY, 2, [0, 0]));
}
