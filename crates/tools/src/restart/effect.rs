//! What a restart does to the sidecars of pods, by the findings of the audit, and which findings are left
//! out: a pipeline alone does not remove a sidecar.
//!
//! Not for the rules of a restart, which are the same for all findings (`restart`).

use std::collections::{BTreeMap, BTreeSet};

use injectd_controllers::restart::Finding;
use injectd_k8s::workload::Workload;
use serde::Deserialize;

/// What a restart does to the sidecar of a pod; named as the findings of the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum Effect {
    /// The pod has none, and would get one.
    #[serde(rename = "missing")]
    Gets,
    /// The pod would get another one.
    #[serde(rename = "outdated")]
    Renews,
    /// The pod has one, and would get none.
    #[serde(rename = "unexpected")]
    Loses,
    /// The pod has none, and would get none: no webhook would be called.
    #[serde(skip)]
    Useless,
    /// A finding that this version of the command does not know.
    #[serde(other)]
    Unknown,
}

/// A row of the file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) of: Finding,
    /// `None` if a person wrote the file.
    #[serde(default, rename = "finding")]
    pub(super) effect: Option<Effect>,
    /// Whether new pods would be as they should be.
    #[serde(default = "cures")]
    restart_cures: bool,
}

fn cures() -> bool {
    true
}

/// Findings that may be left out without a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Include {
    /// Pods with a sidecar that they should not have: they lose it
    Unexpected,
}

/// Effects by workload: pods of one workload may have several findings.
#[derive(Debug, Default)]
pub(super) struct Effects(BTreeMap<Workload, BTreeSet<Effect>>);

/// The rows of a file that are restarted, and those that are not.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) findings: Vec<Finding>,
    /// Each with the reason.
    pub(super) left_out: BTreeMap<Workload, &'static str>,
    pub(super) effects: Effects,
}

impl Chosen {
    /// Workloads that a person named: what a restart does to their sidecars is not known.
    pub(super) fn named(findings: Vec<Finding>) -> Self {
        Self { findings, ..Self::default() }
    }

    /// The rows that are restarted. A workload is left out with all of its rows.
    pub(super) fn of(rows: Vec<Row>, include: &[Include]) -> Self {
        let mut effects = Effects::default();
        for Row { of, effect, restart_cures } in &rows {
            let effect = if *restart_cures { *effect } else { Some(Effect::Useless) };
            effects.0.entry(of.workload.clone()).or_default().extend(effect);
        }
        let mut chosen = Self::default();
        for Row { of, .. } in rows {
            match effects.why_left_out(&of.workload, include) {
                None => chosen.findings.push(of),
                Some(why) => _ = chosen.left_out.insert(of.workload, why),
            }
        }
        Self { effects, ..chosen }
    }
}

impl Effects {
    /// Why a workload is not restarted, whatever its state is.
    fn why_left_out(&self, workload: &Workload, include: &[Include]) -> Option<&'static str> {
        let effects = self.0.get(workload)?;
        if effects.contains(&Effect::Unknown) {
            return Some("its finding is not one that a restart repairs");
        }
        if effects.contains(&Effect::Useless) {
            return Some("no webhook would be called for its new pods; injectd explain says why");
        }
        let loses = effects.contains(&Effect::Loses) && !include.contains(&Include::Unexpected);
        loses.then_some("it would lose its sidecar; --include unexpected restarts it as well")
    }

    /// What a restart of a workload would do; empty if that is not known.
    pub(super) fn text(&self, workload: &Workload) -> String {
        let effects = self.0.get(workload).into_iter().flatten();
        match *effects.copied().collect::<Vec<_>>() {
            [] => String::new(),
            [Effect::Gets] => "would get its sidecar".to_owned(),
            [Effect::Renews] => "would get a new sidecar".to_owned(),
            [Effect::Loses] => "would lose its sidecar".to_owned(),
            [Effect::Useless] => "would get no sidecar".to_owned(),
            ref several => {
                let texts: Vec<_> = several.iter().map(|effect| effect.of_some_pods()).collect();
                texts.join(", ")
            }
        }
    }
}

impl Effect {
    fn of_some_pods(self) -> &'static str {
        match self {
            Self::Gets => "some pods would get their sidecar",
            Self::Renews => "some pods would get a new sidecar",
            Self::Loses => "some pods would lose their sidecar",
            Self::Useless => "some pods would get no sidecar",
            Self::Unknown => "some pods have another finding",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(all: &[(&str, &str)]) -> Vec<Row> {
        let row = |(name, finding): &(&str, &str)| {
            let json = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "namespace": "shop", "name": name, "finding": finding});
            serde_json::from_value(json).expect("a row")
        };
        all.iter().map(row).collect()
    }

    #[test]
    fn what_a_restart_does_not_cure_is_left_out() {
        let json = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "namespace": "shop", "name": "a", "finding": "missing", "restartCures": false});
        let row = serde_json::from_value(json).expect("a row");
        let chosen = Chosen::of(vec![row], &[Include::Unexpected]);
        assert!(chosen.findings.is_empty());
        let why = chosen.left_out.values().next().expect("a reason");
        assert!(why.contains("no webhook would be called"), "{why}");
    }

    fn names(chosen: &Chosen) -> (Vec<&str>, Vec<&str>) {
        let findings = chosen.findings.iter().map(|finding| &*finding.workload.name).collect();
        (findings, chosen.left_out.keys().map(|workload| &*workload.name).collect())
    }

    #[test]
    fn a_workload_that_would_lose_its_sidecar_is_left_out() {
        let all = [("a", "missing"), ("b", "unexpected"), ("c", "outdated"), ("d", "missing")];
        // Pods of d have both findings.
        let all = [&all[..], &[("d", "unexpected")]].concat();
        let chosen = Chosen::of(rows(&all), &[]);
        assert_eq!(names(&chosen), (vec!["a", "c"], vec!["b", "d"]));
        assert!(chosen.left_out.values().all(|reason| reason.contains("would lose its sidecar")));
        let chosen = Chosen::of(rows(&all), &[Include::Unexpected]);
        assert_eq!(names(&chosen), (vec!["a", "b", "c", "d", "d"], vec![]));
    }

    #[test]
    fn a_finding_that_is_not_known_is_left_out() {
        let chosen = Chosen::of(rows(&[("a", "unheard-of")]), &[Include::Unexpected]);
        assert_eq!(names(&chosen), (vec![], vec!["a"]));
    }

    #[test]
    fn the_text_says_what_happens_to_the_sidecar() {
        let all = [
            ("a", "missing"),
            ("b", "outdated"),
            ("c", "unexpected"),
            ("d", "missing"),
            ("d", "outdated"),
        ];
        let Chosen { findings, effects, .. } = Chosen::of(rows(&all), &[Include::Unexpected]);
        let texts: Vec<_> =
            findings.iter().map(|finding| effects.text(&finding.workload)).collect();
        let both = "some pods would get their sidecar, some pods would get a new sidecar";
        let expected = [
            "would get its sidecar",
            "would get a new sidecar",
            "would lose its sidecar",
            both,
            both,
        ];
        assert_eq!(texts, expected);
        let by_hand: Row = serde_json::from_str(
            r#"{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "a", "name": "b"}"#,
        )
        .expect("a row");
        let chosen = Chosen::of(vec![by_hand], &[]);
        assert_eq!(chosen.effects.text(&chosen.findings[0].workload), "");
    }
}
