//! The `caBundle` of webhooks, beside the certificates that are served.

#![expect(clippy::disallowed_types, reason = "objects of any shape")]

use std::time::{Duration, UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_webhooks::check::{Finding, Severity};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::Value;
use x509_parser::{certificate::X509Certificate, parse_x509_certificate};

use super::served::{Served, ServiceName};
use crate::{causes::with_causes, tls};

const CA_BUNDLE: &str = "clientConfig.caBundle";
const SERVICE: &str = "clientConfig.service";
/// A CA that ends sooner is reported.
const SOON: Duration = Duration::from_hours(7 * 24);
/// A served certificate is reported when less than this part of its lifetime remains: whatever renews
/// it should have done so.
const OVERDUE_PART: i64 = 10;

/// Where the checked objects are from, and what is served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'c> {
    /// Whether the objects are those of the cluster: then a missing `caBundle` is not one that
    /// someone is about to write.
    pub(super) is_live: bool,
    pub(super) served: &'c [Served],
}

/// Checks every `caBundle`, and that it verifies the certificate that its Service serves.
pub(super) fn check(configurations: &[&Value], context: Context<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for object in configurations {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for webhook in object["webhooks"].as_array().into_iter().flatten() {
            let mut add = |field: &str, problem: String, advice: &str| {
                found.push(Finding {
                    severity: Severity::Danger,
                    configuration: text(&object["metadata"]["name"]),
                    webhook: Some(text(&webhook["name"])),
                    field: field.to_owned(),
                    problem,
                    advice: advice.to_owned(),
                });
            };
            check_one(webhook, context, &mut add);
        }
    }
    found
}

type Add<'a> = dyn FnMut(&str, String, &str) + 'a;

fn check_one(webhook: &Value, context: Context<'_>, add: &mut Add<'_>) {
    let service = ServiceName::of(webhook);
    let served = service.as_ref().and_then(|it| context.served.iter().find(|of| of.service == *it));
    let bundle = webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default();
    if bundle.is_empty() {
        if served.is_some() || (context.is_live && service.is_some()) {
            let problem =
                "it is empty: the API server trusts only its own roots, and each call fails";
            return add(
                CA_BUNDLE,
                problem.to_owned(),
                "Write the CA of the webhook's certificate.",
            );
        }
        return;
    }
    // That it is base64 is checked with the other fields.
    let Ok(pem) = BASE64_STANDARD.decode(bundle) else { return };
    let cas: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    if cas.is_empty() {
        let problem = "it has no PEM certificate: each call fails";
        return add(CA_BUNDLE, problem.to_owned(), "Use base64 of PEM certificates.");
    }
    let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    check_ends(&cas, now, add);
    if let Some(served) = served {
        check_served(cas, served, now, add);
    }
}

fn check_ends(cas: &[CertificateDer<'_>], now: i64, add: &mut Add<'_>) {
    let ends = cas.iter().filter_map(|ca| parsed(ca).map(|ca| ca.validity().not_after.timestamp()));
    let Some(last) = ends.max() else { return };
    let renew = "Renew the CA, and write both CAs while both are in use.";
    if last <= now {
        add(CA_BUNDLE, "every CA in it has expired".to_owned(), renew);
    } else if last - now <= SOON.as_secs().cast_signed() {
        add(CA_BUNDLE, format!("its last CA ends in {}", span(last - now)), renew);
    }
}

fn check_served(cas: Vec<CertificateDer<'static>>, served: &Served, now: i64, add: &mut Add<'_>) {
    let Some((leaf, intermediates)) = served.chain.split_first() else { return };
    let host = served.service.host();
    // API servers accept a certificate that is in the caBundle itself; the verifier may not.
    let verified = if cas.contains(leaf) {
        tls::verify_name(leaf, &host)
    } else {
        tls::verify_server(cas, (leaf, intermediates), &host, now)
    };
    if let Err(error) = verified {
        let error = with_causes(&error);
        let problem = format!("it does not verify the served certificate for {host}: {error}");
        let advice =
            "Write the CA of the served certificate into caBundle, or serve one of this CA.";
        return add(CA_BUNDLE, problem, advice);
    }
    let Some(leaf) = parsed(leaf) else { return };
    let (begins, ends) = (leaf.validity().not_before.timestamp(), leaf.validity().not_after);
    let remaining = ends.timestamp() - now;
    if remaining <= (ends.timestamp() - begins) / OVERDUE_PART {
        let problem = match remaining {
            ..=0 => "its certificate has ended".to_owned(),
            _ => format!("its certificate ends in {}, and was not renewed", span(remaining)),
        };
        add(SERVICE, problem, "Renew it, or correct what should.");
    }
}

fn parsed<'c>(certificate: &'c CertificateDer<'_>) -> Option<X509Certificate<'c>> {
    parse_x509_certificate(certificate).ok().map(|(_, parsed)| parsed)
}

/// Seconds for people.
fn span(seconds: i64) -> String {
    match seconds {
        ..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
