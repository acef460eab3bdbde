//! Tokens of `ServiceAccounts`: reviewed by the API server, and known for a moment.

use std::{fmt, time::Duration};

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::{Api, Client, api::PostParams};
use moka::future::Cache;
use sha2::{Digest as _, Sha256};

use super::{LookupError, Lookups};

/// How long the API server's word counts: as long as for its own callers at least, and not much
/// longer than it takes to revoke a token.
const KNOWN_FOR: Duration = Duration::from_secs(30);
/// Calls that may wait for the API server.
const MAX_WAITING: usize = 100;
/// Tokens that are known.
const MAX_TOKENS: u64 = 10_000;

/// What the API server says of tokens for one audience.
pub struct Tokens {
    reviews: Api<TokenReview>,
    audience: String,
    /// By digest: what is in memory opens nothing.
    known: Cache<[u8; 32], Option<String>>,
    /// Not those of reviews: whoever calls here has proved nothing yet.
    lookups: Lookups,
}

impl Tokens {
    /// Asks with a client that may make `TokenReviews`.
    #[must_use]
    pub fn new(client: Client, audience: String, timeout: Duration) -> Self {
        let known = Cache::builder().max_capacity(MAX_TOKENS).time_to_live(KNOWN_FOR).build();
        let lookups = Lookups::new(MAX_WAITING, timeout);
        Self { reviews: Api::all(client), audience, known, lookups }
    }

    /// The user that a token belongs to; `None` if it is none for this audience.
    ///
    /// # Errors
    /// When it is not known and the API server does not tell.
    pub async fn user(&self, token: &str) -> Result<Option<String>, LookupError> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(user) = self.known.get(&digest).await {
            return Ok(user);
        }
        let asked = self.known.try_get_with(digest, self.ask(token));
        self.lookups.wait_for(asked, None).await
    }

    async fn ask(&self, token: &str) -> Result<Option<String>, kube::Error> {
        let audiences = vec![self.audience.clone()];
        let review = TokenReview {
            spec: TokenReviewSpec { audiences: Some(audiences), token: token.to_owned() },
            ..TokenReview::default()
        };
        let review = self.reviews.create(&PostParams::default(), &review).await?;
        let status = review.status.unwrap_or_default();
        // An API server that knows no audiences says nothing of them.
        let is_meant = status.audiences.is_some_and(|it| it.contains(&self.audience));
        let is_known = is_meant && status.authenticated.unwrap_or_default();
        Ok(status.user.and_then(|user| user.username).filter(|_| is_known))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("audience", &self.audience).finish_non_exhaustive()
    }
}
