//! Manifests at a URL.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{StatusCode, Uri, header::LOCATION};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use injectd_command::input::MAX_FILE_BYTES;
use rustls::crypto::aws_lc_rs;
use tokio::time::timeout;

/// The most redirects that are followed, as in Go's client.
const MAX_REDIRECTS: usize = 10;
/// The time for all of it.
// Without it a server that sends a byte a second would hold up a pipeline for good. The largest
// file needs 36 Mbit/s for it.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Why a URL could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum UrlError {
    #[error("not a valid URL; expected https://HOST/PATH")]
    Url,
    #[error("cannot read the root certificates of this system")]
    Roots(#[source] std::io::Error),
    #[error("cannot connect")]
    Connect(#[source] hyper_util::client::legacy::Error),
    #[error("no answer within {} seconds", TIMEOUT.as_secs())]
    Timeout,
    #[error("HTTP status {0}; expected 200")]
    Status(StatusCode),
    #[error("more than {MAX_REDIRECTS} redirects")]
    Redirects,
    #[error("a redirect from https to http; use the https URL of the file")]
    Downgrade,
    #[error("the answer is incomplete, or larger than {} MiB", MAX_FILE_BYTES >> 20)]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Whether a path is a URL.
pub(super) fn is_url(path: &str) -> bool {
    path.starts_with("https://") || path.starts_with("http://")
}

/// Reads the answer of a URL, up to [`MAX_FILE_BYTES`].
pub(super) async fn read(url: &str) -> Result<Vec<u8>, UrlError> {
    timeout(TIMEOUT, follow(url)).await.unwrap_or(Err(UrlError::Timeout))
}

async fn follow(url: &str) -> Result<Vec<u8>, UrlError> {
    let connector = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(aws_lc_rs::default_provider())
        .map_err(UrlError::Roots)?
        .https_or_http()
        .enable_http1();
    let client = Client::builder(TokioExecutor::new()).build(connector.build());
    let client: Client<_, Empty<Bytes>> = client;
    let mut url: Uri = url.parse().map_err(|_| UrlError::Url)?;
    // One request more than redirects.
    for _ in 0..=MAX_REDIRECTS {
        let response = client.get(url.clone()).await.map_err(UrlError::Connect)?;
        if response.status().is_redirection() {
            let next = response.headers().get(LOCATION).and_then(|next| next.to_str().ok());
            url = redirected(&url, next.ok_or(UrlError::Status(response.status()))?)?;
            continue;
        }
        if response.status() != StatusCode::OK {
            return Err(UrlError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), MAX_FILE_BYTES).collect();
        return Ok(body.await.map_err(UrlError::Body)?.to_bytes().to_vec());
    }
    Err(UrlError::Redirects)
}

/// Where a redirect leads: a URL, or a path on the same server.
fn redirected(from: &Uri, to: &str) -> Result<Uri, UrlError> {
    let next = if to.starts_with('/') && !to.starts_with("//") {
        let mut parts = from.clone().into_parts();
        parts.path_and_query = Some(to.parse().map_err(|_| UrlError::Url)?);
        Uri::from_parts(parts).map_err(|_| UrlError::Url)?
    } else {
        to.parse().map_err(|_| UrlError::Url)?
    };
    match (from.scheme_str(), next.scheme_str()) {
        // A proxy on the way could replace a manifest that is about to be applied.
        (Some("https"), Some("http")) => Err(UrlError::Downgrade),
        (_, Some(_)) => Ok(next),
        _ => Err(UrlError::Url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_to_urls_and_paths_and_never_from_https_to_http() {
        let from: Uri = "https://a.example/x?y".parse().expect("a URL");
        let to = |to| redirected(&from, to).map(|url| url.to_string());
        assert_eq!(to("/z?w").ok().as_deref(), Some("https://a.example/z?w"));
        assert_eq!(to("https://b.example/").ok().as_deref(), Some("https://b.example/"));
        assert!(matches!(to("http://b.example/"), Err(UrlError::Downgrade)));
        assert!(matches!(to("z"), Err(UrlError::Url)));
    }
}
