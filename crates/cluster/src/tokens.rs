//! Tokens of service accounts: reviewed by the API server, and cached briefly.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use injectd_core::lookups::LookupError;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::{Api, Client, api::PostParams};
use moka::sync;
use sha2::{Digest as _, Sha256};

use crate::{client::LookupLimits, merged::MergedLookups};

/// How long a token review is cached: at least as long as in the API server itself, and not much
/// longer than the revocation of a token takes.
// Without it each gRPC call would wait for a token review of the API server.
const KNOWN_FOR: Duration = Duration::from_secs(30);
/// Maximum number of calls that wait for the API server.
// The callers are still unknown: without a bound any client could load the API server through
// injectd.
const MAX_WAITING: usize = 100;
/// Maximum number of cached tokens.
// Tokens that are not valid are kept, too, so that the same one is asked for once: a flood of them
// evicts.
const MAX_TOKENS: u64 = 10_000;

/// Reviews of tokens for one audience.
pub struct Tokens {
    reviews: Api<TokenReview>,
    audience: String,
    /// Users by digest of the token, so that no token stays in memory.
    known: sync::Cache<[u8; 32], Option<String>>,
    /// Separate from the lookups of reviews: these callers are not authenticated yet.
    lookups: MergedLookups<[u8; 32], Option<String>>,
}

impl Tokens {
    /// Reviews tokens with `client`, which must be allowed to create `TokenReviews`.
    #[must_use]
    pub fn new(client: Client, audience: String, timeout: Duration) -> Self {
        Self {
            reviews: Api::all(client),
            audience,
            known: sync::Cache::builder().max_capacity(MAX_TOKENS).time_to_live(KNOWN_FOR).build(),
            lookups: MergedLookups::new(Arc::new(LookupLimits::new(MAX_WAITING, timeout))),
        }
    }

    /// The user of a token; `None` if the token is not valid for this audience.
    ///
    /// # Errors
    /// When the token is not cached and its review in the API server fails.
    pub async fn user(&self, token: &str) -> Result<Option<String>, LookupError> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        match self.known.get(&digest) {
            Some(user) => Ok(user),
            None => self.review_once(digest, token).await,
        }
    }

    /// Has a token reviewed, with one request for all concurrent callers. Boxed, as a lookup of an owner is.
    fn review_once<'a>(
        &'a self,
        digest: [u8; 32],
        token: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, LookupError>> {
        Box::pin(async move {
            let keep = |user: &Option<String>| self.known.insert(digest, user.clone());
            self.lookups.once(&digest, None, Box::pin(self.review(token)), keep).await
        })
    }

    async fn review(&self, token: &str) -> Result<Option<String>, kube::Error> {
        let audiences = vec![self.audience.clone()];
        let review = TokenReview {
            spec: TokenReviewSpec { audiences: Some(audiences), token: token.to_owned() },
            ..TokenReview::default()
        };
        let review = self.reviews.create(&PostParams::default(), &review).await?;
        let status = review.status.unwrap_or_default();
        // An API server without support for audiences returns none.
        let audiences = status.audiences.unwrap_or_default();
        let is_valid =
            audiences.contains(&self.audience) && status.authenticated.unwrap_or_default();
        Ok(status.user.and_then(|user| user.username).filter(|_| is_valid))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("audience", &self.audience).finish_non_exhaustive()
    }
}
