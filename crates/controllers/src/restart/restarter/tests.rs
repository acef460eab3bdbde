mod simulation;

use super::*;
use crate::restart::Evidence;

fn finding(name: &str) -> Finding {
    let json = format!(
        r#"{{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop",
            "name": "{name}"}}"#
    );
    serde_json::from_str(&json).expect("a finding")
}

/// A restarter whose client is never called.
fn restarter() -> Restarter {
    let uri = "http://127.0.0.1:1".parse().expect("a URI");
    let client = Client::try_from(kube::Config::new(uri)).expect("a client");
    Restarter::new(client, Policy { max_restarting: 1, ..Policy::default() })
}

fn observed(since: Timestamp) -> Observed {
    Observed {
        uid: "u".into(),
        is_restarted_by_us: true,
        restarted_at: Some(since),
        rollout: crate::restart::Rollout::InProgress,
        ..Observed::default()
    }
}

fn names(restarter: &Restarter) -> Vec<&str> {
    restarter.waiting().map(|(finding, _)| &*finding.workload.name).collect()
}

#[tokio::test]
async fn a_list_is_bounded_and_has_each_workload_once() {
    let mut restarter = restarter();
    assert_eq!(restarter.set_findings(vec![finding("a"), finding("b"), finding("a")]), 0);
    assert_eq!(names(&restarter), ["a", "b"]);
    let many = (0..=MAX_FINDINGS).map(|number| finding(&format!("w{number}"))).collect();
    assert_eq!(restarter.set_findings(many), 1);
    assert_eq!(names(&restarter).len(), MAX_FINDINGS);
}

#[tokio::test]
async fn a_workload_that_rolls_out_is_not_listed_again() {
    let mut restarter = restarter();
    restarter.adopt(finding("a").workload, &observed(Timestamp::now()));
    restarter.adopt(finding("a").workload, &observed(Timestamp::now()));
    assert_eq!(restarter.in_flight().len(), 1);
    restarter.set_findings(vec![finding("a"), finding("b")]);
    assert_eq!(names(&restarter), ["b"]);
    let waits: Vec<_> = restarter.waiting().filter_map(|(_, wait)| wait).collect();
    assert_eq!(waits, [Wait::Namespace { other: "deployment shop/a".to_owned() }]);
}

#[tokio::test]
async fn only_unfinished_rollouts_of_the_last_hour_that_injectd_began_are_adopted() {
    let now = Timestamp::now();
    let is_adopted = |change: fn(&mut Observed)| {
        let mut observed = observed(now);
        change(&mut observed);
        let mut restarter = restarter();
        restarter.adopt(finding("a").workload, &observed);
        !restarter.in_flight().is_empty()
    };
    assert!(is_adopted(|_| {}));
    assert!(!is_adopted(|observed| observed.is_restarted_by_us = false));
    assert!(!is_adopted(|observed| observed.rollout = crate::restart::Rollout::Finished));
    assert!(!is_adopted(
        |observed| observed.restarted_at = observed.restarted_at.map(|at| at - PAUSE)
    ));
}

#[tokio::test]
async fn what_is_listed_again_keeps_its_reason() {
    let mut restarter = restarter();
    let paused = |restarter: &mut Restarter, name: &str| {
        let mut notices = Vec::new();
        restarter.wait(finding(name), &Candidate::default(), Wait::Paused, &mut notices);
        notices.len()
    };
    assert_eq!((paused(&mut restarter, "a"), paused(&mut restarter, "a")), (1, 0));
    restarter.set_findings(vec![finding("a")]);
    assert_eq!(paused(&mut restarter, "a"), 0, "it is reported once");
    restarter.set_findings(vec![finding("b")]);
    assert_eq!(paused(&mut restarter, "a"), 1, "it was not listed in between");
}

/// Each change of what is found is in the log once, and the end of it.
#[tokio::test]
async fn what_is_found_is_reported_when_it_changes() {
    let mut restarter = restarter();
    let found = |pods: u64, reason: &str| {
        Finding::about(finding("a").workload, [pods, 3], reason, Evidence::default())
    };
    let mut reported = |finding: Option<Finding>| {
        restarter.set_findings(finding.iter().cloned().collect());
        let mut notices: Vec<_> = restarter.gone.drain(..).map(Notice::Gone).collect();
        if let Some(finding) = finding {
            restarter.wait(finding, &Candidate::default(), Wait::DryRun, &mut notices);
        }
        let text = |notice: &Notice| match notice {
            Notice::Waits(finding, _) => finding.reason.clone(),
            other => format!("{other:?}").split('(').next().unwrap_or_default().to_owned(),
        };
        notices.iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(reported(Some(found(1, "no sidecar"))), ["1 of 3 pods: no sidecar"]);
    assert_eq!(reported(Some(found(2, "no sidecar"))), [""; 0], "the gauge has the number");
    assert_eq!(reported(Some(found(2, "outdated"))), ["2 of 3 pods: outdated"]);
    assert_eq!(reported(None), ["Gone"]);
    assert_eq!(reported(None), [""; 0]);
    assert_eq!(reported(Some(found(1, "outdated"))), ["1 of 3 pods: outdated"]);
}

#[tokio::test]
async fn findings_of_namespaces_without_room_are_not_drawn() {
    let mut restarter = restarter();
    restarter.policy.max_restarting = 2;
    let of = |namespace: &str, name: &str| {
        let mut finding = finding(name);
        finding.workload.namespace = namespace.into();
        finding
    };
    restarter.in_flight.push(InFlight::new(of("shop", "a").workload, Timestamp::now()));
    restarter.set_findings(vec![of("shop", "b"), of("bank", "c")]);
    let drawn: Vec<_> = restarter.draw().into_iter().map(|finding| finding.workload.name).collect();
    assert_eq!(drawn, ["c"]);
}

fn answer(code: u16) -> RequestError {
    let status = kube::core::Status { code, ..kube::core::Status::default() };
    RequestError::Failed(Box::new(kube::Error::Api(status.into())))
}

#[tokio::test]
async fn what_the_api_server_refuses_waits_and_what_it_may_have_done_is_first() {
    let after = |error: RequestError| {
        let mut restarter = restarter();
        restarter.set_findings(vec![finding("a"), finding("b")]);
        let first = restarter.draw().swap_remove(0);
        restarter.set_findings(vec![finding("b")]);
        restarter.failed(first, error, &mut Vec::new());
        let order: Vec<_> = names(&restarter).into_iter().map(str::to_owned).collect();
        (order.concat(), restarter.refused.len())
    };
    for refusal in [answer(422), answer(403), answer(400)] {
        assert_eq!(after(refusal), ("ba".to_owned(), 1));
    }
    for other in [answer(401), answer(429), RequestError::Changed] {
        assert_eq!(after(other), ("ba".to_owned(), 0));
    }
    for lost in [answer(500), answer(504), RequestError::Timeout] {
        assert_eq!(after(lost), ("ab".to_owned(), 0));
    }
}

#[tokio::test]
async fn a_namespace_that_cannot_be_read_reports_it_once() {
    let mut restarter = restarter();
    restarter.set_findings(vec![finding("a"), finding("b")]);
    let notices = restarter.step(&|| true).await;
    assert!(matches!(&notices[..], [Notice::Failed(..)]), "{notices:?}");
    assert_eq!(names(&restarter), ["a", "b"]);
}

/// Restarts in three namespaces that did not help stop all, until one of them is found for another
/// cause.
#[tokio::test]
async fn restarts_that_do_not_help_stop_all_until_something_changes() {
    let mut restarter = restarter();
    let now = Timestamp::now();
    let of = |namespace: &str, cause: &str| {
        let mut finding = finding("web");
        finding.workload.namespace = namespace.into();
        finding.evidence.cause = cause.into();
        finding.evidence.environment = cause.into();
        finding
    };
    let namespaces = ["a", "b", "c"];
    let all = |cause: &str| namespaces.map(|namespace| of(namespace, cause)).to_vec();
    let audit = |cause: &str| Audit {
        begun: now,
        environment: cause.into(),
        findings: all(cause),
        ..Audit::default()
    };
    restarter.audited(audit("one"));
    let wait = Wait::DidNotHelp { at: now };
    let candidate = Candidate { observed: Some(Observed::default()), ..Candidate::default() };
    let mut notices = Vec::new();
    for finding in all("one") {
        assert!(!restarter.is_stopped());
        restarter.wait(finding, &candidate, wait.clone(), &mut notices);
        restarter.note_stop(&mut notices);
    }
    assert!(restarter.is_stopped());
    let is_stop =
        |notice: &Notice| matches!(notice, Notice::Stopped(_, names) if names == "a, b, c");
    assert!(notices.last().is_some_and(is_stop), "{notices:?}");
    assert!(restarter.draw().is_empty());
    restarter.audited(audit("one"));
    assert!(restarter.draw().is_empty(), "nothing changed");
    restarter.audited(audit("two"));
    restarter.note_stop(&mut notices);
    assert!(matches!(notices.last(), Some(Notice::Resumed)), "{notices:?}");
    assert_eq!(restarter.draw().len(), 3);
}
