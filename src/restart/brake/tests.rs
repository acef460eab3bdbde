use jiff::SignedDuration;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn finding(namespace: &str, name: &str, since: i64) -> Finding {
    let workload =
        Workload { namespace: namespace.into(), name: name.into(), ..Workload::default() };
    let evidence = Evidence {
        environment: "environment".into(),
        cause: "cause".into(),
        since: at(since).to_string(),
        ..Evidence::default()
    };
    Finding { workload, evidence, ..Finding::default() }
}

fn restarted(finding: &Finding, since: i64) -> InFlight {
    let trigger = finding.evidence.trigger(&crate::restart::Observed::default());
    InFlight { trigger, ..InFlight::new(finding.workload.clone(), at(since)) }
}

/// A brake after an audit.
fn brake() -> Brake {
    let mut brake = Brake::default();
    brake.audited(&[finding("any", "any", 0)], at(0));
    brake
}

/// Restarts a workload, and audits after it with these findings.
fn restart(brake: &mut Brake, restart: &Finding, time: i64, found: &[Finding]) {
    brake.finished(restarted(restart, time), at(time + 1));
    brake.audited(found, at(time + 2));
}

fn label(brake: &Brake, namespace: &str) -> Option<&'static str> {
    brake.stops(&[]).wait(namespace).map(|it| it.as_str())
}

#[test]
fn restarts_that_do_not_help_in_several_namespaces_stop_all() {
    let mut brake = brake();
    let mut found = Vec::new();
    for (index, namespace) in (0..).zip(["a", "b", "c"]) {
        assert_eq!(label(&brake, "d"), None);
        // Their pods were created after the restart.
        found.push(finding(namespace, "web", 10 * index + 1));
        restart(&mut brake, &finding(namespace, "web", 0), 10 * index, &found);
    }
    assert_eq!(label(&brake, "d"), Some("stopped"));
    // A later audit that finds the same changes nothing.
    brake.audited(&found, at(100));
    assert_eq!(label(&brake, "d"), Some("stopped"));
    found.pop();
    brake.audited(&found, at(200));
    assert_eq!(label(&brake, "d"), None, "one of them was cured by others");
}

#[test]
fn a_tenant_stops_its_own_namespace_only() {
    let mut brake = brake();
    restart(&mut brake, &finding("shop", "web", 0), 0, &[]);
    let found: Vec<_> = (0..3).map(|it| finding("a", &it.to_string(), 100)).collect();
    for it in &found {
        restart(&mut brake, it, 50, &found);
    }
    assert_eq!(label(&brake, "a"), Some("namespace_stopped"));
    assert_eq!(label(&brake, "shop"), None);
    let stuck = |it: &Finding| InFlight { stuck: Some("why".into()), ..restarted(it, 60) };
    let all: Vec<_> = found.iter().map(stuck).collect();
    assert_eq!(brake.stops(&all).wait("shop"), None);
}

#[test]
fn rollouts_that_do_not_finish_count_by_namespace() {
    let stuck = |namespace: &str| {
        let it = restarted(&finding(namespace, "web", 0), 0);
        InFlight { stuck: Some("why".into()), ..it }
    };
    let wait = brake().stops(&["a", "b", "c"].map(stuck)).wait("d");
    let namespaces = "a, b, c".to_owned();
    assert_eq!(wait, Some(Wait::Stopped { namespaces }));
    assert_eq!(brake().stops(&["a", "b"].map(stuck)).wait("d"), None);
}

#[test]
fn a_cure_makes_earlier_failures_history() {
    let mut brake = brake();
    let found: Vec<_> = ["a", "b"].iter().map(|it| finding(it, "web", 10)).collect();
    for it in &found {
        restart(&mut brake, it, 10, &found);
    }
    restart(&mut brake, &finding("d", "web", 0), 20, &found);
    let later = [&found[..], &[finding("c", "web", 30)]].concat();
    restart(&mut brake, &later[2], 30, &later);
    assert_eq!(label(&brake, "d"), None);
}

#[test]
fn few_restarts_begin_before_one_has_helped() {
    let mut brake = brake();
    for index in 0..3 {
        assert_eq!(label(&brake, "d"), None);
        brake.finished(restarted(&finding("a", &index.to_string(), 0), 10), at(11));
    }
    assert_eq!(label(&brake, "d"), Some("unverified"));
    // It began before the rollouts were finished.
    brake.audited(&[], at(11));
    assert_eq!(label(&brake, "d"), Some("unverified"));
    brake.audited(&[], at(12));
    assert_eq!(label(&brake, "d"), None);
    for index in 3..9 {
        brake.finished(restarted(&finding("a", &index.to_string(), 0), 20), at(21));
    }
    assert_eq!(label(&brake, "d"), None, "restarts help");
}

#[test]
fn another_environment_begins_anew() {
    let mut brake = brake();
    restart(&mut brake, &finding("a", "web", 0), 0, &[]);
    let mut other = finding("b", "web", 0);
    other.evidence.environment = "other".into();
    other.evidence.cause = "other".into();
    brake.audited(&[other.clone()], at(10));
    (0..3).for_each(|it| {
        let mut finding = finding("c", &it.to_string(), 0);
        finding.evidence.cause = "other".into();
        brake.finished(restarted(&finding, 20), at(21));
    });
    assert_eq!(label(&brake, "d"), Some("unverified"));
}

#[test]
fn a_failure_is_of_the_same_trigger() {
    let mut brake = brake();
    let it = finding("a", "web", 1);
    restart(&mut brake, &it, 1, std::slice::from_ref(&it));
    let trigger = restarted(&it, 1).trigger.expect("a trigger");
    assert_eq!(brake.failure(&it.workload, &trigger), Some(at(1)));
    let other = Trigger { digest: "other".into(), ..trigger.clone() };
    assert_eq!(brake.failure(&it.workload, &other), None);
    brake.forget(&it.workload);
    assert_eq!(brake.failure(&it.workload, &trigger), None);
}
