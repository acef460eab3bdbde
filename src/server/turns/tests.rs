use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::Instant;

use super::*;

const SMALL: Asked<'static> = Asked { namespace: "a", waiting_bytes: 0, memory: 1 };

fn limits(memory: u32) -> Limits {
    Limits { max_evaluation_memory: Some(memory), ..Limits::default() }
}

fn patience() -> CallerPatience {
    CallerPatience::until(Instant::now() + Duration::from_mins(1))
}

#[tokio::test(start_paused = true)]
async fn a_turn_comes_when_another_ends_or_not_at_all() {
    let (pool, patience) = (BodyBudget::pool(1 << 20), patience());
    let budget = BodyBudget::of_connection(&pool);
    let all = EvaluationTurns::of_runtime(&limits(9));
    let turns = all.of_caller(&budget, &patience, Threads::Workers);
    let first = turns.next(SMALL).await.expect("one worker thread");
    assert!(!first.has_waited);
    assert_eq!(turns.next(SMALL).await.expect_err("is taken"), NoTurn::Late);
    let (second, ()) = tokio::join!(turns.next(SMALL), async { drop(first) });
    assert!(second.expect("the first has ended").has_waited);
    assert_eq!(pool.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn not_more_wait_than_the_budget_has_memory_for() {
    const BYTES: usize = 100 << 10;
    let asked = Asked { waiting_bytes: BYTES, ..SMALL };
    let pool = BodyBudget::pool(u32::try_from(10 * (BYTES + WAITING_BYTES)).expect("a size"));
    let (budget, patience) = (BodyBudget::of_connection(&pool), patience());
    let all = EvaluationTurns::of_runtime(&limits(9));
    let turns = all.of_caller(&budget, &patience, Threads::Workers);
    let _first = turns.next(asked).await;
    let mut waiting = FuturesUnordered::new();
    waiting.extend((0..=10).map(|_| turns.next(asked)));
    let begin = Instant::now();
    assert!(waiting.next().await.is_some_and(|rejected| rejected.is_err()));
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert!(waiting.next().await.is_some_and(|late| late.is_err()));
    assert_eq!(begin.elapsed(), MAX_WAIT);
}

#[tokio::test(start_paused = true)]
async fn a_pod_beyond_the_memory_of_all_is_denied_with_the_limit() {
    let (budget, patience) = (BodyBudget::default(), patience());
    let all = EvaluationTurns::of_runtime(&limits(4096));
    let turns = all.of_caller(&budget, &patience, Threads::Separate);
    let denied = turns.next(Asked { memory: 5000, ..SMALL }).await.expect_err("too large");
    assert_eq!(
        denied.to_string(),
        "the pod is too large: its evaluation takes up to 5000 bytes of memory, and \
         --max-evaluation-memory is 4096"
    );
}

#[tokio::test(start_paused = true)]
async fn who_left_has_no_turn_and_its_work_learns_it() {
    let (budget, patience) = (BodyBudget::default(), patience());
    let all = EvaluationTurns::of_runtime(&limits(9));
    let turns = all.of_caller(&budget, &patience, Threads::Workers);
    let turn = turns.next(SMALL).await.expect("is free");
    let of_work = turn.patience();
    assert!(!of_work.is_over());
    drop(patience.while_present());
    assert!(of_work.is_over());
    drop(turn);
    assert_eq!(turns.next(SMALL).await.expect_err("left"), NoTurn::Late);
    assert!(!all.stand_still());
}

#[tokio::test(start_paused = true)]
async fn evaluations_stand_still_while_reviews_wait_and_none_has_a_turn() {
    let (budget, patience) = (BodyBudget::default(), patience());
    let all = EvaluationTurns::of_runtime(&limits(9));
    let turns = all.of_caller(&budget, &patience, Threads::Workers);
    let hanging = turns.next(SMALL).await.expect("is free");
    tokio::time::advance(STANDSTILL).await;
    assert!(!all.stand_still(), "no review waits");
    let (late, ()) = tokio::join!(turns.next(SMALL), async {
        assert!(all.stand_still());
    });
    assert!(late.is_err());
    drop(hanging);
    assert!(!all.stand_still());
}

#[test]
fn worker_threads_answer_while_a_pod_is_evaluated() {
    const PATIENCE: Duration = Duration::from_secs(30);
    for workers in [1, 2] {
        let runtime = crate::server::runtime(Some(workers)).expect("a runtime");
        let (began, begins) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel();
        let evaluation = runtime.spawn(async move {
            let (budget, patience) = (BodyBudget::default(), patience());
            let turns = EvaluationTurns::of_runtime(&limits(9));
            let of_caller = turns.of_caller(&budget, &patience, Threads::Workers);
            let turn = of_caller.next(SMALL).await.expect("is free");
            turn.run(|| {
                began.send(()).expect("the test must wait");
                ends.recv_timeout(PATIENCE)
            })
        });
        begins.recv_timeout(PATIENCE).expect("the evaluation must begin");
        let other = runtime.spawn(async move { end.send(()) });
        runtime.block_on(other).expect("no panic").expect("the evaluation must wait");
        let ended = runtime.block_on(evaluation).expect("no panic");
        assert_eq!(ended, Ok(()), "{workers} worker threads");
    }
}
