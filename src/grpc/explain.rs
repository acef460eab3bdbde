//! `Explain`: the explanation of an answer, as messages.

#![expect(clippy::disallowed_types, reason = "an explanation is not part of a review")]

use injectd_cluster::sources::Sources;
use injectd_core::explain::{
    Explain, Explanation, Layer, RuleResult, Tainted, TaintedMode, TaintedValue,
};
use injectd_profiles::{Profiles, for_mesh};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    failure::Failure,
    messages,
    v1::{self, ExplainResponse, InjectRequest},
};
use crate::{
    injector::{Injector, ReviewError},
    lookups::{CallerFacts, Turns},
    outcome::Verdict,
    patch::PatchBuffer,
};

/// Explains the answer to a request.
pub(super) async fn response(
    profiles: &Profiles,
    request: &InjectRequest,
    end: Instant,
    turns: &dyn Turns,
    failure: impl Fn(&ReviewError) -> Failure,
) -> Result<ExplainResponse, Failure> {
    let explained = for_mesh!(messages::named(profiles, request)?, injector => {
        explained(&injector, request, end, turns, failure).await?
    });
    Ok(message(&request.uid, explained))
}

async fn explained<M: Explain>(
    injector: &Injector<M, Sources>,
    request: &InjectRequest,
    end: Instant,
    turns: &dyn Turns,
    failure: impl Fn(&ReviewError) -> Failure,
) -> Result<Explanation, Failure> {
    let reviewed = messages::review_of(request)?;
    let end = end.into_std();
    let facts = messages::facts(request, reviewed.kind, end, injector.mesh().namespace_reads())?;
    let facts = CallerFacts { turns: Some(turns), ..facts };
    // It was decoded before.
    let raw: Value = serde_json::from_slice(&request.object).unwrap_or_default();
    let mut patch = PatchBuffer::json();
    injector.explain(&reviewed, &raw, facts, &mut patch).await.map_err(|error| failure(&error))
}

fn message(uid: &str, explanation: Explanation) -> ExplainResponse {
    let Explanation { mesh, release, verdict, reasons, denial, findings } = explanation;
    let verdict = if verdict == Verdict::Injected.as_str() {
        v1::Verdict::Injected
    } else if verdict == Verdict::Annotated.as_str() {
        v1::Verdict::Annotated
    } else {
        v1::Verdict::Skipped
    };
    let skips = reasons
        .into_iter()
        .map(|reason| v1::Skip { reason: reason.code.to_owned(), message: reason.text.to_owned() });
    let rules = findings.rules.into_iter().map(|rule| v1::Rule {
        name: rule.rule.to_owned(),
        result: result(rule.result).into(),
        reason: rule.reason.unwrap_or_default().to_owned(),
        message: rule.text,
        read: rule
            .read
            .into_iter()
            .map(|read| v1::ReadField {
                layer: layer(Some(read.layer)).into(),
                field: read.field,
                value: read.value,
            })
            .collect(),
    });
    let settings = findings.settings.into_iter().map(|setting| v1::Setting {
        name: setting.name,
        value: setting.value,
        origin: layer(Some(setting.origin)).into(),
        annotation: setting.annotation.unwrap_or_default(),
    });
    let ignored = findings.ignored.into_iter().map(|ignored| v1::Ignored {
        layer: layer(ignored.layer).into(),
        key: ignored.key,
        value: ignored.value,
        message: ignored.text,
    });
    let sidecars = findings.sidecars.into_iter().map(|sidecar| v1::Sidecar {
        container: sidecar.container,
        image: sidecar.image,
        product: sidecar.product.to_owned(),
        recognized: sidecar.recognised,
    });
    ExplainResponse {
        uid: uid.to_owned(),
        mesh: mesh.to_owned(),
        release,
        verdict: verdict.into(),
        denial,
        skips: skips.collect(),
        rules: rules.collect(),
        settings: settings.collect(),
        ignored: ignored.collect(),
        sidecars: sidecars.collect(),
        advice: findings.advice,
        tainted: findings.tainted.map(tainted),
    }
}

fn tainted(Tainted { values, modes }: Tainted) -> v1::Tainted {
    let values = values
        .into_iter()
        .map(|TaintedValue { value, templates }| v1::TaintedValue { value, templates });
    let modes = modes.into_iter().map(|TaintedMode { mode, is_in_use, outcome }| v1::TaintedMode {
        mode: mode.to_owned(),
        in_use: is_in_use,
        outcome,
    });
    v1::Tainted { values: values.collect(), modes: modes.collect() }
}

fn result(result: RuleResult) -> v1::RuleResult {
    match result {
        RuleResult::Passes => v1::RuleResult::Passes,
        RuleResult::Injects => v1::RuleResult::Injects,
        RuleResult::Skips => v1::RuleResult::Skips,
        RuleResult::Denies => v1::RuleResult::Denies,
        RuleResult::NotAsked => v1::RuleResult::NotAsked,
    }
}

fn layer(layer: Option<Layer>) -> v1::Layer {
    match layer {
        None => v1::Layer::Unspecified,
        Some(Layer::Request) => v1::Layer::Request,
        Some(Layer::Configuration) => v1::Layer::Configuration,
        Some(Layer::Namespace) => v1::Layer::Namespace,
        Some(Layer::ProxyConfig) => v1::Layer::ProxyConfig,
        Some(Layer::Workload) => v1::Layer::Workload,
        Some(Layer::Pod) => v1::Layer::Pod,
    }
}
