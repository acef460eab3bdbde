use jiff::SignedDuration;

use super::*;
use crate::restart::{Finding, Observed, Seen};

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn finding(namespace: &str, name: &str) -> Finding {
    let workload =
        Workload { namespace: namespace.into(), name: name.into(), ..Workload::default() };
    let evidence = Evidence {
        environment: "environment".into(),
        cause: "cause".into(),
        ..Evidence::default()
    };
    Finding { workload, evidence, ..Finding::default() }
}

/// An audit that found these, with pods as old as the epoch.
fn audit(findings: &[Finding], begun: i64) -> Audit {
    let mut findings = findings.to_vec();
    for Finding { evidence, .. } in &mut findings {
        (evidence.audited, evidence.since) = (at(begun).to_string(), at(0).to_string());
    }
    let begun = at(begun);
    Audit { begun, environment: "environment".into(), findings, ..Audit::default() }
}

fn seen(is_meshed: bool, is_unknown: bool) -> Seen {
    Seen { is_meshed, is_unknown }
}

/// An audit that found these, and saw all pods of another workload so.
fn audit_with(findings: &[Finding], begun: i64, other: &Finding, seen: Seen) -> Audit {
    let seen = BTreeMap::from([(other.workload.named(), seen)]);
    Audit { seen, ..audit(findings, begun) }
}

fn restarted(finding: &Finding, since: i64) -> InFlight {
    let trigger = finding.evidence.trigger(&Observed::default());
    InFlight { trigger, ..InFlight::new(finding.workload.clone(), at(since)) }
}

fn stuck(namespace: &str, since: i64) -> InFlight {
    InFlight { stuck: Some("why".into()), ..restarted(&finding(namespace, "web"), since) }
}

/// Outcomes after an audit.
fn outcomes() -> Outcomes {
    let mut outcomes = Outcomes::default();
    outcomes.audited(&audit(&[], 0));
    outcomes
}

/// Restarts a workload, and audits after it with these findings.
fn restart(outcomes: &mut Outcomes, restart: &Finding, time: i64, found: &[Finding]) {
    outcomes.finished(restarted(restart, time), at(time + 1));
    outcomes.audited(&audit(found, time + 2));
}

/// Restarts a workload with success; an audit still finds these.
fn help(outcomes: &mut Outcomes, it: &Finding, time: i64, found: &[Finding]) {
    outcomes.finished(restarted(it, time), at(time + 1));
    outcomes.audited(&audit_with(found, time + 2, it, seen(true, false)));
}

fn label(outcomes: &Outcomes, namespace: &str) -> Option<&'static str> {
    outcomes.stops(&[]).wait(namespace).map(|wait| wait.as_str())
}

/// Outcomes with a restart that did not help in each of these namespaces.
fn failed(namespaces: &[&str]) -> (Outcomes, Vec<Finding>) {
    let mut outcomes = outcomes();
    let found: Vec<_> = namespaces.iter().map(|namespace| finding(namespace, "web")).collect();
    for (time, it) in (1..).zip(&found) {
        restart(&mut outcomes, it, 10 * time, &found);
    }
    (outcomes, found)
}

#[test]
fn restarts_that_do_not_help_in_several_namespaces_stop_all() {
    let (outcomes, _) = failed(&["a", "b"]);
    assert_eq!(label(&outcomes, "d"), None);
    let (mut outcomes, mut found) = failed(&["a", "b", "c"]);
    assert_eq!(label(&outcomes, "d"), Some("stopped"));
    // A later audit that finds the same changes nothing.
    outcomes.audited(&audit(&found, 100));
    assert_eq!(label(&outcomes, "d"), Some("stopped"));
    found.pop();
    outcomes.audited(&audit(&found, 200));
    assert_eq!(label(&outcomes, "d"), None, "one of them is gone");
}

#[test]
fn clocks_of_pods_do_not_hide_that_a_restart_did_not_help() {
    for since in ["1969-12-31T23:00:00Z", "1970-01-01T00:00:50Z"] {
        let mut outcomes = outcomes();
        let it = finding("a", "web");
        outcomes.finished(restarted(&it, 10), at(11));
        let mut audit = audit(std::slice::from_ref(&it), 20);
        since.clone_into(&mut audit.findings[0].evidence.since);
        outcomes.audited(&audit);
        let trigger = restarted(&it, 10).trigger.expect("a trigger");
        assert_eq!(outcomes.failure(&it.workload, &trigger), Some(at(10)), "{since}");
    }
}

#[test]
fn pods_that_are_newer_than_the_rollout_are_not_of_it() {
    let mut outcomes = outcomes();
    let it = finding("a", "web");
    outcomes.finished(restarted(&it, 10), at(11));
    let mut audit = audit(std::slice::from_ref(&it), 1000);
    at(900).to_string().clone_into(&mut audit.findings[0].evidence.since);
    outcomes.audited(&audit);
    let trigger = restarted(&it, 10).trigger.expect("a trigger");
    assert_eq!(outcomes.failure(&it.workload, &trigger), None);
}

#[test]
fn a_tenant_stops_its_own_namespace_only() {
    let mut outcomes = outcomes();
    help(&mut outcomes, &finding("shop", "web"), 10, &[]);
    let found: Vec<_> = (0..3).map(|number| finding("a", &number.to_string())).collect();
    for it in &found {
        restart(&mut outcomes, it, 50, &found);
    }
    assert_eq!(label(&outcomes, "a"), Some("namespace_stopped"));
    assert_eq!(label(&outcomes, "shop"), None);
    let all: Vec<_> = found.iter().map(|_| stuck("a", 60)).collect();
    assert_eq!(outcomes.stops(&all).wait("shop"), None);
}

#[test]
fn rollouts_that_do_not_finish_count_by_namespace() {
    let stopped =
        outcomes().stopped(&["c", "a", "b"].map(|namespace| stuck(namespace, 10))).expect("a stop");
    assert_eq!(stopped.namespaces, "a, b, c");
    assert_eq!(stopped.example.namespace, "c", "of those that are counted");
    assert_eq!(outcomes().stopped(&["a", "b"].map(|namespace| stuck(namespace, 10))), None);
}

#[test]
fn rollouts_that_were_stuck_before_a_restart_helped_do_not_count() {
    let mut outcomes = outcomes();
    help(&mut outcomes, &finding("d", "web"), 20, &[]);
    let stopped = |times: [i64; 3]| {
        let all: Vec<_> =
            ["a", "b", "c"].iter().zip(times).map(|(it, time)| stuck(it, time)).collect();
        outcomes.stopped(&all).is_some()
    };
    assert!(!stopped([10, 10, 10]) && !stopped([30, 30, 20]));
    assert!(stopped([30, 30, 30]));
}

#[test]
fn rollouts_that_are_paused_do_not_stop_others() {
    let paused = |namespace| InFlight { is_paused: true, ..stuck(namespace, 10) };
    assert_eq!(outcomes().stopped(&["a", "b", "c"].map(paused)), None);
}

#[test]
fn a_text_names_few_namespaces() {
    let all: Vec<_> = (0..12).map(|number| stuck(&format!("n{number:02}"), 10)).collect();
    let names = outcomes().stopped(&all).expect("a stop").namespaces;
    assert!(names.ends_with("n08, n09 and 2 more"), "{names}");
}

#[test]
fn a_restart_that_helped_makes_earlier_failures_history() {
    let (mut outcomes, found) = failed(&["a", "b"]);
    help(&mut outcomes, &finding("d", "web"), 30, &found);
    let later = [&found[..], &[finding("c", "web")]].concat();
    restart(&mut outcomes, &later[2], 40, &later);
    assert_eq!(label(&outcomes, "d"), None);
}

#[test]
fn only_pods_that_were_seen_with_their_sidecar_show_that_a_restart_helped() {
    let it = finding("a", "web");
    let after = |seen: Option<Seen>| {
        let mut outcomes = outcomes();
        outcomes.finished(restarted(&it, 10), at(11));
        outcomes.audited(&match seen {
            Some(seen) => audit_with(&[], 20, &it, seen),
            None => audit(&[], 20),
        });
        (outcomes.successes.len(), outcomes.unverified.len())
    };
    assert_eq!(after(Some(seen(true, false))), (1, 0));
    assert_eq!(after(Some(seen(false, false))), (0, 0), "its pods need no sidecar now");
    assert_eq!(after(None), (0, 0), "it has no pods");
    assert_eq!(after(Some(seen(true, true))), (0, 1), "some pods cannot be judged");
    let mut outcomes = outcomes();
    outcomes.finished(restarted(&it, 10), at(11));
    outcomes.audited(&Audit { is_cut: true, ..audit(&[], 20) });
    assert_eq!(outcomes.unverified.len(), 1, "it was left out");
    outcomes.audited(&Audit { is_cut: true, ..audit(&[], 4000) });
    assert_eq!(outcomes.unverified.len(), 0, "it does not hold up others for ever");
}

#[test]
fn an_audit_that_cannot_judge_a_workload_keeps_its_failure() {
    let (mut outcomes, found) = failed(&["a"]);
    outcomes.audited(&audit_with(&[], 50, &found[0], seen(false, true)));
    assert_eq!(outcomes.failures.len(), 1);
    outcomes.audited(&audit_with(&[], 60, &found[0], seen(true, false)));
    assert_eq!(outcomes.failures.len(), 0);
}

#[test]
fn a_failure_stays_while_any_finding_of_the_workload_has_its_cause() {
    let (mut outcomes, found) = failed(&["a"]);
    let mut other = found[0].clone();
    other.evidence.cause = "other".into();
    other.workload.uid = Some("forged".into());
    outcomes.audited(&audit(&[found[0].clone(), other.clone()], 50));
    assert_eq!(outcomes.failures.len(), 1);
    outcomes.audited(&audit(&[other], 60));
    assert_eq!(outcomes.failures.len(), 0);
}

#[test]
fn few_restarts_begin_before_one_has_helped() {
    let mut outcomes = outcomes();
    let all: Vec<_> = (0..9).map(|number| finding("a", &number.to_string())).collect();
    for it in &all[..3] {
        assert_eq!(label(&outcomes, "d"), None);
        outcomes.finished(restarted(it, 10), at(11));
    }
    assert_eq!(label(&outcomes, "d"), Some("unverified"));
    // It began before the rollouts were finished.
    outcomes.audited(&audit_with(&[], 11, &all[0], seen(true, false)));
    assert_eq!(label(&outcomes, "d"), Some("unverified"));
    outcomes.audited(&audit_with(&[], 12, &all[0], seen(true, false)));
    assert_eq!(label(&outcomes, "d"), None);
    for it in &all[3..] {
        outcomes.finished(restarted(it, 20), at(21));
    }
    assert_eq!(label(&outcomes, "d"), None, "restarts help");
}

#[test]
fn another_environment_begins_anew() {
    let mut outcomes = outcomes();
    help(&mut outcomes, &finding("a", "web"), 10, &[]);
    outcomes.audited(&Audit { environment: "other".into(), ..audit(&[], 20) });
    for it in 0..3 {
        outcomes.finished(restarted(&finding("c", &it.to_string()), 20), at(21));
    }
    assert_eq!(label(&outcomes, "d"), Some("unverified"));
}

#[test]
fn a_failure_is_of_the_same_trigger() {
    let (mut outcomes, found) = failed(&["a"]);
    let trigger = restarted(&found[0], 1).trigger.expect("a trigger");
    let workload = &found[0].workload;
    assert_eq!(outcomes.failure(workload, &trigger), Some(at(10)));
    let other = Trigger { digest: "other".into(), ..trigger.clone() };
    assert_eq!(outcomes.failure(workload, &other), None);
    outcomes.forget(workload);
    assert_eq!(outcomes.failure(workload, &trigger), None);
}
