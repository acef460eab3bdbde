//! The `caBundle` of webhooks, beside the certificates that are served.

use std::time::UNIX_EPOCH;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_cluster::causes::with_causes;
use injectd_webhooks::check::{Finding, Severity};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::Value;

use super::{
    lifetime::Lifetime,
    promise::Promise,
    served::{Served, ServiceName},
};

const CA_BUNDLE: &str = "clientConfig.caBundle";
const SERVICE: &str = "clientConfig.service";

/// Where the checked objects are from, and what is served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'c> {
    /// Whether the objects are those of the cluster: then a missing `caBundle` is not one that
    /// someone is about to write.
    pub(super) is_live: bool,
    pub(super) served: &'c [Served],
}

/// A webhook and what is found.
struct Check<'c> {
    configuration: &'c Value,
    webhook: &'c Value,
    context: Context<'c>,
    /// Who writes the `caBundle` instead of the file.
    promise: Option<Promise>,
    found: &'c mut Vec<Finding>,
}

/// Checks every `caBundle`, and that it verifies the certificate that its Service serves.
pub(super) fn check(configurations: &[&Value], context: Context<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for configuration in configurations {
        let promise = Promise::of(configuration);
        for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
            Check { configuration, webhook, context, promise, found: &mut found }.run();
        }
    }
    found
}

impl<'c> Check<'c> {
    fn run(&mut self) {
        match self.promise {
            Some(promise) if !self.context.is_live => self.check_promised(promise),
            _ => self.check_bundle(),
        }
    }

    /// Whatever a file has there is replaced; an empty text is written again each time that the file is
    /// applied.
    fn check_promised(&mut self, promise: Promise) {
        if let Some(served) = self.served() {
            self.check_leaf(served);
        }
        if self.webhook["clientConfig"]["caBundle"].as_str() != Some("") {
            return;
        }
        let problem =
            format!("it is empty, and {} writes it ({})", promise.program, promise.annotation);
        let advice = "Leave caBundle out: who applies the file again empties it.";
        self.add(Severity::Suggestion, CA_BUNDLE, problem, advice);
    }

    fn check_bundle(&mut self) {
        let served = self.served();
        let bundle = self.webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default();
        if bundle.is_empty() {
            let is_service = ServiceName::of(self.webhook).is_some();
            if served.is_some() || (self.context.is_live && is_service) {
                let problem =
                    "it is empty: the API server trusts only its own roots, and each call fails";
                let advice = self.advice(&self.to_write());
                self.danger(CA_BUNDLE, problem.to_owned(), &advice);
            }
            return;
        }
        // That it is base64 is checked with the other fields.
        let Ok(pem) = BASE64_STANDARD.decode(bundle) else { return };
        let cas: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
        if cas.is_empty() {
            let advice = self.advice("Use base64 of PEM certificates.");
            let problem = "it has no PEM certificate: each call fails";
            return self.danger(CA_BUNDLE, problem.to_owned(), &advice);
        }
        self.check_ends(&cas);
        if let Some(served) = served {
            self.check_served(cas, served);
        }
    }

    /// What its Service serves, if that was asked for.
    fn served(&self) -> Option<&'c Served> {
        let service = ServiceName::of(self.webhook)?;
        self.context.served.iter().find(|served| served.service == service)
    }

    fn check_ends(&mut self, cas: &[CertificateDer<'_>]) {
        let last = cas.iter().filter_map(Lifetime::of).max_by_key(Lifetime::ends);
        let words = if cas.len() == 1 { "its CA" } else { "the last of its CAs," };
        if let Some(problem) = last.and_then(|last| last.problem(words, now())) {
            let advice = self.advice("Renew the CA, and write both CAs while both are in use.");
            self.danger(CA_BUNDLE, problem, &advice);
        }
    }

    fn check_served(&mut self, cas: Vec<CertificateDer<'static>>, served: &Served) {
        let Some((leaf, intermediates)) = served.chain.split_first() else { return };
        let host = served.service.host();
        // API servers accept a certificate that is in the caBundle itself; the verifier may not.
        let verified = if cas.contains(leaf) {
            injectd_tls::verify_name(leaf, &host)
        } else {
            injectd_tls::verify_server(cas, leaf, intermediates, &host, now())
        };
        if let Err(error) = verified {
            let error = with_causes(&error);
            let problem = format!("it does not verify the served certificate for {host}: {error}");
            let advice =
                "Write the CA of the served certificate into caBundle, or serve one of this CA.";
            return self.danger(CA_BUNDLE, problem, advice);
        }
        self.check_leaf(served);
    }

    fn check_leaf(&mut self, served: &Served) {
        let leaf = served.chain.first().and_then(Lifetime::of);
        if let Some(problem) = leaf.and_then(|leaf| leaf.problem("its certificate", now())) {
            self.danger(SERVICE, problem, "Renew it, or correct what should.");
        }
    }

    /// What to do in a cluster about a promise that is not kept.
    fn advice(&self, otherwise: &str) -> String {
        match self.promise {
            Some(Promise { annotation, program }) => {
                format!("{program} should write it ({annotation}): find out why it does not.")
            }
            None => otherwise.to_owned(),
        }
    }

    /// What to do about a `caBundle` that no annotation promises.
    fn to_write(&self) -> String {
        let labels = &self.configuration["metadata"]["labels"];
        let release = labels["app.kubernetes.io/instance"].as_str();
        match (labels["app.kubernetes.io/name"].as_str(), release, ServiceName::of(self.webhook)) {
            (Some("injectd"), Some(release), Some(service)) => format!(
                "A replica of injectd writes it, unless its certificates are managed by something else: \
                 see kubectl -n {} logs deployment/{release}.",
                service.namespace
            ),
            _ => "Write the CA of the webhook's certificate.".to_owned(),
        }
    }

    fn danger(&mut self, field: &str, problem: String, advice: &str) {
        self.add(Severity::Danger, field, problem, advice);
    }

    fn add(&mut self, severity: Severity, field: &str, problem: String, advice: &str) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.found.push(Finding {
            severity,
            configuration: text(&self.configuration["metadata"]["name"]),
            webhook: Some(text(&self.webhook["name"])),
            field: field.to_owned(),
            problem,
            advice: advice.to_owned(),
        });
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    i64::try_from(now).unwrap_or(i64::MAX)
}
