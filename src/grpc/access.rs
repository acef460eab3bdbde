//! Access control: clients with a certificate of a CA, `ServiceAccounts` with a token, or all
//! callers if only this machine can reach the server.

use std::sync::Arc;

use arc_swap::ArcSwap;
use hyper::{HeaderMap, header::AUTHORIZATION};
use injectd_cluster::{Tokens, causes::with_causes};
use rustls::pki_types::CertificateDer;
use tonic::Code;
use x509_parser::{extensions::GeneralName, parse_x509_certificate};

use super::failure::Failure;

/// The beginning of the users that Kubernetes names itself. Tokens that it issues are of such users.
const USERS: &str = "system:";

/// Decides which callers are allowed.
#[derive(Debug)]
pub struct Access {
    callers: Callers,
    allowed: ArcSwap<Option<Allowed>>,
}

/// The names of allowed callers. A certificate and a token prove different things, so a name counts
/// for one of them only.
#[derive(Debug, Default)]
pub struct Allowed {
    /// DNS names, in lower case, and URIs.
    of_certificates: Vec<String>,
    /// Users, such as `system:serviceaccount:jobs:runner`.
    of_tokens: Vec<String>,
}

/// A name that a caller proved, by its kind.
#[derive(Debug, Clone, Copy)]
enum Name<'n> {
    OfCertificate(&'n str),
    OfToken(&'n str),
}

/// How callers authenticate.
#[derive(Debug)]
pub enum Callers {
    /// Callers do not authenticate: only this machine can reach the server.
    Anyone,
    /// Callers have a client certificate, which TLS has verified, or a token if tokens can be reviewed.
    Authenticated(Option<Arc<Tokens>>),
}

impl Access {
    /// Allows callers that authenticate with a name in `allowed`: a DNS name or URI of their
    /// certificate, or the user of their token. Without `allowed`, all authenticated callers.
    #[must_use]
    pub fn new(callers: Callers, allowed: Option<Allowed>) -> Self {
        Self { callers, allowed: ArcSwap::from_pointee(allowed) }
    }

    /// Replaces the allowed names.
    pub fn replace_allowed(&self, allowed: Option<Allowed>) {
        self.allowed.store(Arc::new(allowed));
    }

    /// Checks whether a caller is allowed.
    pub(super) async fn check(
        &self,
        certificate: Option<&CertificateDer<'_>>,
        headers: &HeaderMap,
    ) -> Result<(), Failure> {
        let Callers::Authenticated(tokens) = &self.callers else { return Ok(()) };
        let mut known = Vec::new();
        if let Some(certificate) = certificate {
            let names = names(certificate);
            if self.allows(names.iter().map(|name| Name::OfCertificate(name))) {
                return Ok(());
            }
            known.extend(names);
        }
        // After the certificate: a token may cost a request to the API server.
        if let (Some(tokens), Some(token)) = (tokens, bearer(headers)) {
            let user = tokens.user(token).await.map_err(|error| {
                let causes = with_causes(&error);
                Failure::unavailable(format!("cannot review the token: {causes}"))
            })?;
            match user {
                Some(user) if self.allows([Name::OfToken(&user)]) => return Ok(()),
                Some(user) => known.push(user),
                // A certificate whose names are not allowed is a caller that is known: it is denied
                // below, with its names.
                None if certificate.is_none() => {
                    let message = "the token is not valid for this audience";
                    return Err(Failure::new(Code::Unauthenticated, message));
                }
                None => {}
            }
        }
        if certificate.is_none() && known.is_empty() {
            let wanted = match tokens {
                Some(_) => "send a client certificate, or a token as `authorization: Bearer …`",
                None => "send a client certificate",
            };
            return Err(Failure::new(Code::Unauthenticated, wanted));
        }
        let names = known.join(", ");
        let message = format!("none of the caller's names is allowed: {names}");
        Err(Failure::new(Code::PermissionDenied, message))
    }

    fn allows<'n>(&self, names: impl IntoIterator<Item = Name<'n>>) -> bool {
        match &**self.allowed.load() {
            Some(allowed) => names.into_iter().any(|name| allowed.has(name)),
            None => true,
        }
    }
}

impl Default for Access {
    /// Allows all callers.
    fn default() -> Self {
        Self::new(Callers::Anyone, None)
    }
}

impl Allowed {
    /// Whether there is no name: no caller is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of_certificates.is_empty() && self.of_tokens.is_empty()
    }

    fn has(&self, name: Name<'_>) -> bool {
        let (names, name) = match name {
            Name::OfCertificate(name) => (&self.of_certificates, name),
            Name::OfToken(name) => (&self.of_tokens, name),
        };
        names.iter().any(|allowed| allowed == name)
    }
}

impl<S: AsRef<str>> FromIterator<S> for Allowed {
    /// Empty names, as between two commas, are skipped.
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let mut allowed = Self::default();
        for name in names {
            match name.as_ref().trim() {
                // A line that is empty, or a comma at the end of a list, names no caller.
                "" => {}
                user if user.starts_with(USERS) => allowed.of_tokens.push(user.to_owned()),
                uri if uri.contains(':') => allowed.of_certificates.push(uri.to_owned()),
                // Names of hosts are compared in any case, URIs and users as they are written.
                dns => allowed.of_certificates.push(dns.to_ascii_lowercase()),
            }
        }
        allowed
    }
}

/// The DNS names and URIs of a certificate.
fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, certificate)) = parse_x509_certificate(certificate) else { return Vec::new() };
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let names = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::URI(uri) => Some((*uri).to_owned()),
        _ => None,
    });
    names.filter(|name| !name.is_empty()).collect()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim()).filter(|token| !token.is_empty())
}
