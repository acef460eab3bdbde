//! The product's core as a subject: the bytes of a request through `Injector::review`.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use injectd::{
    injector::Answer,
    linkerd::{
        events,
        release::Release as CoreRelease,
        snapshot::{Config, Snapshot},
    },
    objects::Objects,
    outcome::Outcome,
    standalone::Standalone,
};
use injectd_profiles::Injector;
use injectd_testkit::reference::Release;
use serde_json::Value;

use super::{
    corpus::{Case, ConfigSet},
    subject::{Answered, SeenEvent, Subject, SubjectAnswer},
};

/// See [`Injector`].
#[derive(Debug)]
pub(crate) struct CoreSubject {
    runtime: tokio::runtime::Runtime,
}

impl Default for CoreSubject {
    fn default() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        Self { runtime: runtime.expect("a runtime without drivers must start") }
    }
}

impl Subject for CoreSubject {
    fn answer(&mut self, release: Release, config: &ConfigSet, case: &Case) -> SubjectAnswer {
        let injector = match injector(release, config, case) {
            Ok(injector) => injector,
            Err(refusal) => return SubjectAnswer::Refused(refusal),
        };
        self.runtime.block_on(async {
            SubjectAnswer::Answered(Box::new(match injector.review(&case.body).await {
                Ok(answer) => answered(&answer, &injector).await,
                Err(_) => not_a_review(),
            }))
        })
    }
}

/// The injector for a case, with its configuration and cluster, or why the configuration is
/// rejected.
pub(crate) fn injector(
    release: Release,
    config: &ConfigSet,
    case: &Case,
) -> Result<Injector, String> {
    let (year, month, number) = release.edge;
    let snapshot = Snapshot::new(
        Config {
            values: &config.values_yaml,
            trust_roots: &config.trust_roots,
            control_plane_namespace: "linkerd",
            fallback_release: Some(if release.stable_2_14 {
                CoreRelease::stable_2_14()
            } else {
                CoreRelease::edge(year, month, number)
            }),
        },
        1,
    );
    let snapshot = snapshot.map_err(|error| error.to_string())?;
    let mut objects = Objects::default();
    for object in case.objects.iter().chain(&case.get_only) {
        // Objects without a name cannot be looked up.
        drop(objects.add(object));
    }
    let objects = Arc::new(objects);
    Ok(Injector::new(snapshot, Standalone::Listed(objects).into()))
}

fn not_a_review() -> Answered {
    Answered {
        status: 400,
        review: None,
        patch: None,
        verdict: "http-400".to_owned(),
        reasons: Vec::new(),
        event: None,
    }
}

async fn answered(answer: &Answer<'_>, injector: &Injector) -> Answered {
    let review: Value = serde_json::from_slice(&answer.body).expect("an answer must be JSON");
    let patch = review["response"]["patch"].as_str().map(|patch| {
        let json = STANDARD.decode(patch).expect("a patch must be base64");
        serde_json::from_slice(&json).expect("a patch must be a list")
    });
    let outcome = &answer.outcome;
    let reasons = outcome.reasons.iter().map(|(_, reason)| reason.code);
    Answered {
        status: 200,
        patch,
        verdict: outcome.verdict.as_str().to_owned(),
        reasons: reasons.map(str::to_owned).collect(),
        event: event(outcome, injector).await,
        review: Some(review),
    }
}

/// The event as it would be sent.
async fn event(outcome: &Outcome<'_>, injector: &Injector) -> Option<SeenEvent> {
    let event = outcome.event.as_ref()?;
    let object = events::involved_object(injector.lookups(), event).await?;
    Some(SeenEvent {
        kind: "Normal".to_owned(),
        reason: events::reason(event.reasons).to_owned(),
        message: events::message(event.reasons),
        component: events::SOURCE_COMPONENT.to_owned(),
        regarding: [object.api_version, object.kind, &object.name, &event.namespace]
            .map(str::to_owned),
    })
}
