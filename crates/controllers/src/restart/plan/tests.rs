use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const NOW: &str = "2026-11-29T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

fn workload(name: &str) -> Workload {
    Workload {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: "shop".into(),
        name: name.into(),
        uid: Some(name.into()),
    }
}

fn labels(app: &str) -> BTreeMap<String, String> {
    [("app".to_owned(), app.to_owned())].into()
}

fn candidate(name: &str) -> Candidate {
    let observed = Observed { uid: name.into(), pod_labels: labels(name), ..Observed::default() };
    Candidate { observed: Some(observed), ..Candidate::default() }
}

fn budget(app: &str, allowed: i64) -> Budget {
    let selector = format!(r#"{{"matchLabels": {{"app": "{app}"}}}}"#);
    Budget::new(app, serde_json::from_str(&selector).expect("a selector"), allowed)
}

fn policy() -> Policy {
    Policy { mode: Mode::On, ..Policy::default() }
}

/// The decision about `web`, and its text.
fn decide(change: impl FnOnce(&mut Policy, &mut Candidate), in_flight: &[InFlight]) -> String {
    let (mut policy, mut candidate) = (policy(), candidate("web"));
    change(&mut policy, &mut candidate);
    match policy.plan(now(), &[(workload("web"), candidate)], in_flight).pop() {
        Some(Decision::Wait(wait)) => wait.to_string(),
        decision => format!("{decision:?}"),
    }
}

fn observed(change: impl FnOnce(&mut Observed)) -> String {
    let change = |_: &mut Policy, candidate: &mut Candidate| {
        change(candidate.observed.as_mut().expect("a workload"));
    };
    decide(change, &[])
}

/// A workload of a namespace of its own that rolls out.
fn rolling_out(name: &str) -> InFlight {
    InFlight::new(Workload { namespace: name.into(), ..workload(name) }, now())
}

#[test]
fn a_workload_without_a_reason_to_wait_is_restarted() {
    assert_eq!(decide(|_, _| {}, &[]), "Some(Restart)");
}

#[test]
fn each_reason_to_wait_is_a_line_of_english() {
    let text = decide(|policy, _| policy.mode = Mode::DryRun, &[]);
    assert_eq!(text, "dry run: it would be restarted now");
    let text = decide(|policy, _| policy.mode = Mode::Annotated, &[]);
    assert_eq!(text, "its namespace does not have the annotation injectd.dev/restart: enabled");
    let monday = || Windows::parse("Mon 22:00-04:00 Europe/Berlin").expect("a window");
    let text = decide(|policy, _| policy.windows = monday(), &[]);
    let window = "outside of the maintenance window; the next begins at 2026-11-30T21:00:00Z";
    assert_eq!(text, window);
    let text = decide(|_, candidate| candidate.observed = None, &[]);
    assert_eq!(text, "it does not exist");
    assert_eq!(observed(|observed| observed.uid = "other".into()), "it does not exist");
    let text = observed(|observed| observed.no_rollout = Some("delete its pods one by one"));
    assert_eq!(text, "a restart does not replace its pods: delete its pods one by one");
    let text = observed(|observed| observed.is_paused = true);
    assert_eq!(text, "its rollouts are paused; resume them with kubectl rollout resume");
    let text = observed(|observed| observed.rollout = Rollout::InProgress);
    assert_eq!(text, "a rollout of it is in progress already");
    let text = decide(|_, candidate| candidate.budgets = [budget("web", 0)].into(), &[]);
    assert_eq!(text, "the PodDisruptionBudget web allows no disruption");
    let text = decide(|policy, _| policy.max_restarting = 1, &[rolling_out("db")]);
    assert_eq!(text, "another workload is still rolling out");
    let text =
        decide(|policy, _| policy.max_restarting = 2, &[rolling_out("db"), rolling_out("api")]);
    assert_eq!(text, "another 2 workloads are still rolling out");
    let near = || InFlight::new(workload("db"), now());
    let text = decide(|_, _| {}, &[near()]);
    assert_eq!(text, "deployment shop/db, of the same namespace, is still rolling out");
    let stuck = InFlight { stuck: Some("why".into()), ..near() };
    let text = decide(|_, _| {}, &[stuck]);
    let expected =
        "restarts of its namespace stopped: the rollout of deployment shop/db does not finish";
    assert_eq!(text, expected);
    let text = decide(|_, candidate| candidate.is_not_owner = true, &[]);
    assert_eq!(text, "the pods that were found name no ReplicaSet that is of it");
    let text = decide(|_, candidate| candidate.did_not_help = Some(now()), &[]);
    assert!(text.starts_with("its restart at 2026-11-29T12:00:00Z did not help"), "{text}");
    let text = decide(|_, candidate| candidate.refused = Some(now()), &[]);
    let expected = "the API server refused to restart it at 2026-11-29T12:00:00Z; it is asked again \
                    an hour later";
    assert_eq!(text, expected);
    let text = decide(|_, candidate| candidate.refused = Some(now() - PAUSE), &[]);
    assert_eq!(text, "Some(Restart)");
}

#[test]
fn a_rollout_that_is_stuck_takes_the_room_of_its_namespace_only() {
    let stuck = |name: &str| InFlight { stuck: Some("why".into()), ..rolling_out(name) };
    let text = decide(|policy, _| policy.max_restarting = 1, &[stuck("db"), stuck("api")]);
    assert_eq!(text, "Some(Restart)");
}

/// A workload that was restarted for a cause, and what an audit finds that began so long after the
/// restart, with pods that are as much newer than it.
fn restarted(cause: &str, template: &str, [audited, age]: [i64; 2]) -> (Observed, Evidence) {
    let after = |seconds| (now() + SignedDuration::from_secs(seconds)).to_string();
    let (audited, since) = (after(audited), after(age));
    let evidence = Evidence { cause: "cause".into(), audited, since, ..Evidence::default() };
    let mut observed = Observed { template_digest: "template".into(), ..Observed::default() };
    let trigger = Evidence { cause: cause.into(), ..Evidence::default() }.trigger(&observed);
    observed.restarted_at = Some(now());
    observed.restarted_for = trigger.map(|trigger| trigger.digest);
    observed.template_digest = template.into();
    (observed, evidence)
}

#[test]
fn a_restart_that_did_not_help_is_known_by_its_pods() {
    let is_known = |cause, template, times| {
        let (observed, evidence) = restarted(cause, template, times);
        observed.did_not_help(&evidence, DEFAULT_ROLLOUT_TIMEOUT).is_some()
    };
    let later = |age| [3600, age];
    assert!(is_known("cause", "template", later(0)) && is_known("cause", "template", later(600)));
    // Clocks differ: all pods are new when a rollout is finished.
    assert!(is_known("cause", "template", later(-7200)));
    assert!(is_known("cause", "template", later(660)));
    assert!(!is_known("cause", "template", later(661)), "the restart had helped before");
    assert!(!is_known("cause", "template", [600, 0]), "it may not have been finished");
    assert!(!is_known("other", "template", later(0)), "the cause changed");
    assert!(!is_known("cause", "other", later(0)), "the template changed");
    assert!(!is_known("", "template", later(0)), "it was not restarted for a finding");
    let (observed, evidence) = restarted("cause", "template", later(0));
    let unfinished = Observed { rollout: Rollout::InProgress, ..observed.clone() };
    assert_eq!(unfinished.did_not_help(&evidence, DEFAULT_ROLLOUT_TIMEOUT), None);
    let unknown = Evidence::default();
    assert_eq!(observed.did_not_help(&unknown, DEFAULT_ROLLOUT_TIMEOUT), None);
}

#[test]
fn a_restart_that_did_not_help_is_not_repeated_after_the_pause() {
    let text = decide(
        |_, candidate| {
            let at = now() - SignedDuration::from_hours(48);
            candidate.observed.as_mut().expect("a workload").restarted_at = Some(at);
            candidate.did_not_help = Some(at);
        },
        &[],
    );
    assert!(text.contains("did not help"), "{text}");
}

#[test]
fn a_workload_is_not_restarted_twice_an_hour() {
    let ago = |seconds| {
        observed(|observed| {
            observed.restarted_at = Some(now() - SignedDuration::from_secs(seconds));
        })
    };
    let expected = "it was restarted less than an hour ago, at 2026-11-29T11:00:01Z";
    assert_eq!(ago(3599), expected);
    assert_eq!(ago(3600), "Some(Restart)");
    // The clock of another machine is ahead.
    assert!(ago(-30).starts_with("it was restarted less than an hour ago"));
}

#[test]
fn a_budget_of_other_pods_does_not_matter() {
    let text = decide(|_, candidate| candidate.budgets = [budget("db", 0)].into(), &[]);
    assert_eq!(text, "Some(Restart)");
}

#[test]
fn workloads_of_one_namespace_roll_out_one_after_the_other() {
    let of = |name: &str| (workload(name), candidate(name));
    let decisions = policy().plan(now(), &[of("web"), of("db")], &[]);
    let wait = Wait::Namespace { other: "deployment shop/web".to_owned() };
    assert_eq!(decisions, [Decision::Restart, Decision::Wait(wait)]);
}

#[test]
fn kinds_without_a_rollout_say_what_to_do() {
    for kind in ["Pod", "Job", "CronJob", "ReplicaSet", "Rollout"] {
        let pod = Workload { kind: kind.into(), ..workload("web") };
        let decision = policy().plan(now(), &[(pod, Candidate::default())], &[]).pop();
        assert!(
            matches!(&decision, Some(Decision::Wait(Wait::NoRollout { .. }))),
            "{kind}: {decision:?}"
        );
    }
}

#[test]
fn a_rollout_is_stuck_when_its_time_is_over_and_not_before() {
    let policy = policy();
    let after = |seconds, rollout, is_paused| {
        let now = now() + SignedDuration::from_secs(seconds);
        let observed = Observed { uid: "web".into(), rollout, is_paused, ..Observed::default() };
        policy.follow(now, rolling_out("web"), Some(&observed))
    };
    let stuck = |seconds, rollout| after(seconds, rollout, false).and_then(|restart| restart.stuck);
    assert_eq!(stuck(599, Rollout::InProgress), None);
    assert_eq!(stuck(600, Rollout::InProgress).as_deref(), Some("it is not finished after 600s"));
    assert!(stuck(1, Rollout::DeadlineExceeded).is_some());
    assert_eq!(after(601, Rollout::Finished, false), None);
    let paused = after(1, Rollout::InProgress, true).expect("it is not finished");
    assert!(paused.is_paused && paused.stuck.is_some(), "it takes no room of other namespaces");
    assert!(!paused.is_due(now() + SignedDuration::from_secs(60)));
    assert!(paused.is_due(now() + SignedDuration::from_secs(61)));
    assert_eq!(policy.follow(now(), rolling_out("web"), None), None, "it was deleted");
}

#[test]
fn labels_of_metrics_are_a_closed_set() {
    let mut labels = Wait::LABELS;
    labels.sort_unstable();
    assert_eq!(labels, Wait::LABELS);
    let page = include_str!("../../../../../docs/commands/restart.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let rows: Vec<_> = rows.map(|(label, _)| label).collect();
    let is_listed = |label: &&str| rows.contains(label);
    assert!(labels.iter().all(is_listed), "docs/commands/restart.md lists {rows:?}");
    assert!(Wait::LABELS.contains(&Wait::Others { count: 1 }.as_str()));
}

proptest! {
    /// The rules, asked one by one of each restart that is planned.
    #[test]
    fn no_restart_breaks_a_rule(
        facts in prop::collection::vec(
            (0..3_i64, any::<bool>(), any::<bool>(), -100..7200_i64, 0..3_u8, 0..6_u8),
            0..30,
        ),
        max_restarting in 1..5_usize,
        rolling_out_count in 0..4_usize,
        stuck_count in 0..4_usize,
        is_open in any::<bool>(),
    ) {
        let window = if is_open { "Sun 00:00-24:00" } else { "Mon-Sat 00:00-24:00" };
        let windows = Windows::parse(window).expect("a window");
        let policy = Policy { windows, max_restarting, ..policy() };
        let asked: Vec<_> = facts
            .iter()
            .enumerate()
            .map(|(index, &(allowed, is_paused, has_budget, ago, rollout, namespace))| {
                let name = format!("w{index}");
                let mut it = candidate(&name);
                it.is_not_owner = ago % 7 == 0;
                it.did_not_help = (ago % 5 == 0).then(now);
                it.refused = (ago % 11 == 0).then(now);
                let observed = it.observed.as_mut().expect("a workload");
                observed.is_paused = is_paused;
                observed.restarted_at = Some(now() - SignedDuration::from_secs(ago));
                if rollout == 0 {
                    observed.rollout = Rollout::InProgress;
                }
                it.budgets = has_budget.then(|| budget(&name, allowed)).into_iter().collect();
                (Workload { namespace: format!("f{namespace}"), ..workload(&name) }, it)
            })
            .collect();
        let mut in_flight: Vec<_> = (0..rolling_out_count).map(|number| rolling_out(&format!("f{number}"))).collect();
        for it in in_flight.iter_mut().take(stuck_count) {
            it.stuck = Some("why".into());
        }
        let decisions = policy.plan(now(), &asked, &in_flight);
        prop_assert_eq!(decisions.len(), facts.len());
        let restarted = facts.iter().zip(&decisions).filter(|(_, it)| **it == Decision::Restart);
        let mut namespaces: Vec<_> = (0..rolling_out_count).map(|number| format!("f{number}")).collect();
        let mut count = 0;
        for (&(allowed, is_paused, has_budget, ago, rollout, namespace), _) in restarted {
            prop_assert!(is_open && !is_paused && ago >= 3600 && rollout != 0);
            prop_assert!(!has_budget || allowed > 0);
            prop_assert!(ago % 7 != 0 && ago % 5 != 0 && ago % 11 != 0);
            let namespace = format!("f{namespace}");
            prop_assert!(!namespaces.contains(&namespace), "two of {namespace}");
            namespaces.push(namespace);
            count += 1;
        }
        let moving = rolling_out_count.saturating_sub(stuck_count);
        prop_assert!(count == 0 || count + moving <= max_restarting);
    }
}
