//! The choice between meshes, and between the revisions of Istio.

use std::{fmt, sync::Arc};

use injectd_cluster::sources::Sources;
use injectd_core::{
    explain::Explain as _,
    injector::{self, Answer, ReviewError},
    linkerd::snapshot::Snapshot,
    lookups::CallerFacts,
    mesh::Mesh,
    outcome::SkipReason,
};
use injectd_istio::{
    envelope,
    mesh::Istio,
    path::{self, Route, Webhook},
    release::Release,
};

mod revisions;

pub use revisions::{DEFAULT_REVISION, Revisions};

/// The injection core for Linkerd with the sources of this process.
pub type Injector = injector::Injector<Snapshot, Sources>;

/// The injection core for Istio with the sources of this process.
pub type IstioInjector = injector::Injector<Istio, Sources>;

/// The same code for the injector of any mesh: `for_mesh!(profile, injector => code)`.
#[macro_export]
macro_rules! for_mesh {
    ($profile:expr, $injector:ident => $code:expr) => {
        match $profile {
            $crate::Profile::Linkerd($injector) => $code,
            $crate::Profile::Istio($injector) => $code,
        }
    };
}

/// A mesh with its configuration and its lookups; cheap to clone. Where meshes differ, a `match` on it
/// names each of them, so that a new mesh is a compile error where it is missing.
#[derive(Debug, Clone)]
pub enum Profile {
    /// Linkerd.
    Linkerd(Arc<Injector>),
    /// Istio, one revision.
    Istio(Arc<IstioInjector>),
}

/// The meshes that a process serves; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    /// Linkerd.
    pub linkerd: Option<Arc<Injector>>,
    /// Istio, with revisions that may come and go.
    pub istio: Option<Arc<Revisions>>,
}

/// What is answered to a target without a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoWebhook {
    /// 404: the mesh has its webhook at another path.
    OtherPath,
    /// 404: the target names no revision that is served. The text says which ones are.
    Revision(String),
    /// 503: the revision is not loaded yet.
    NotLoaded,
    /// 301 or 307: the webhook is at this clean path.
    Moved {
        /// The status of HTTP.
        status: u16,
        /// Header `Location`.
        location: String,
    },
    /// 400: the target cannot be parsed.
    Target,
}

impl NoWebhook {
    /// The status of HTTP.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::OtherPath | Self::Revision(_) => 404,
            Self::Moved { status, .. } => *status,
            Self::Target => 400,
            Self::NotLoaded => 503,
        }
    }

    /// Where the webhook is.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        match self {
            Self::Moved { location, .. } => Some(location),
            Self::OtherPath | Self::Revision(_) | Self::Target | Self::NotLoaded => None,
        }
    }
}

impl fmt::Display for NoWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherPath => f.write_str("the webhook is at /inject"),
            Self::Revision(problem) => f.write_str(problem),
            Self::NotLoaded => f.write_str("the revision of Istio is not loaded yet"),
            Self::Moved { location, .. } => {
                write!(f, "the webhook is at {location}")
            }
            Self::Target => {
                f.write_str("the target of the request is invalid; the webhook is at /inject")
            }
        }
    }
}

impl Profile {
    /// The decoded path of a request's target. Linkerd has its webhook at every path.
    ///
    /// # Errors
    /// The mesh has no webhook there.
    pub fn path(&self, target: &str) -> Result<String, NoWebhook> {
        self.path_below(target, &Webhook::of(target))
    }

    /// The decoded path at which a webhook calls the mesh. Where a webhook is only guessed to be one of
    /// Istio, its path says nothing.
    ///
    /// # Errors
    /// The mesh has no webhook there.
    pub fn path_of(&self, webhook: &injectd_webhooks::Webhook) -> Result<String, NoWebhook> {
        let path = self.path(&webhook.path);
        if webhook.injector.as_ref().is_some_and(|injector| injector.is_guess) {
            return path.or_else(|_| self.path(path::DEFAULT_TARGET));
        }
        path
    }

    /// Whether what a pod gets may depend on its name: Istio's templates may read it.
    #[must_use]
    pub fn reads_names(&self) -> bool {
        for_mesh!(self, injector => injector.mesh().reads_names())
    }

    fn path_below(&self, target: &str, webhook: &Webhook) -> Result<String, NoWebhook> {
        match self {
            Self::Linkerd(_) => Ok(String::new()),
            Self::Istio(injector) => path_of(target, webhook, injector.mesh().revision().release()),
        }
    }

    /// Whether a body that is no review is answered with a denial, as by the mesh's own injector.
    #[must_use]
    pub fn denies_other_bodies(&self) -> bool {
        match self {
            Self::Linkerd(_) => false,
            Self::Istio(_) => true,
        }
    }

    /// Answers a review with facts of the caller.
    ///
    /// # Errors
    /// As [`Injector::review_with`](injectd_core::injector::Injector::review_with).
    pub async fn review_with<'a>(
        &'a self,
        facts: CallerFacts<'a>,
        body: &'a [u8],
    ) -> Result<Answer<'a>, ReviewError> {
        match self {
            Self::Linkerd(injector) => injector.review_with(facts, body).await,
            Self::Istio(injector) => envelope::review(injector, facts, body).await,
        }
    }
}

fn path_of(target: &str, webhook: &Webhook, release: Release) -> Result<String, NoWebhook> {
    match path::route(target, webhook, release) {
        Route::Inject(path) => Ok(path),
        Route::Redirect { status, location } => Err(NoWebhook::Moved { status, location }),
        Route::BadRequest => Err(NoWebhook::Target),
        Route::NotFound => Err(NoWebhook::OtherPath),
    }
}

impl From<Profile> for Profiles {
    /// One mesh; of Istio the revision `default`.
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Linkerd(injector) => Self { linkerd: Some(injector), istio: None },
            Profile::Istio(injector) => {
                let revisions = [(DEFAULT_REVISION.to_owned(), injector)];
                let istio = Some(Arc::new(Revisions::new(revisions)));
                Self { linkerd: None, istio }
            }
        }
    }
}

impl Profiles {
    /// Why pods are skipped, of all meshes.
    #[must_use]
    pub fn skip_reasons(&self) -> Vec<SkipReason> {
        let linkerd = self.linkerd.iter().flat_map(|_| Snapshot::SKIP_REASONS);
        let istio = self.istio.iter().flat_map(|_| Istio::SKIP_REASONS);
        linkerd.chain(istio).copied().collect()
    }

    /// How many templates and answers are cached.
    #[must_use]
    pub fn template_count(&self) -> u64 {
        let linkerd = self.linkerd.iter().map(|injector| injector.mesh().template_count());
        linkerd.chain(self.istio.iter().map(|istio| istio.answer_count())).sum()
    }

    /// The webhook at a request's target, and the decoded path of it. Istio has `/inject` and
    /// `/istio/REVISION/inject`; every other path is Linkerd's.
    ///
    /// # Errors
    /// There is no webhook.
    pub fn at(&self, target: &str) -> Result<(Profile, String), NoWebhook> {
        let linkerd = || self.linkerd.clone().map(Profile::Linkerd);
        let Some(istio) = &self.istio else {
            let linkerd = linkerd().ok_or(NoWebhook::OtherPath)?;
            return Ok((linkerd, String::new()));
        };
        let webhook = Webhook::of(target);
        let found = match &webhook {
            Webhook::Other => match linkerd() {
                Some(linkerd) => return Ok((linkerd, String::new())),
                None => istio.of_inject(),
            },
            Webhook::Default => istio.of_inject(),
            Webhook::Revision(revision) => istio.get(revision),
        };
        let Some(injector) = found else {
            // A target without a webhook is not one whose revision is missing.
            path_of(target, &webhook, Release::NEWEST)?;
            return Err(istio.missing(&webhook));
        };
        let profile = Profile::Istio(injector);
        let path = profile.path_below(target, &webhook)?;
        Ok((profile, path))
    }

    /// The profile of a name in gRPC requests: `linkerd`, `istio` for the revision of `/inject`,
    /// `istio/REVISION`. The empty name is that of the only mesh.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Profile> {
        let linkerd = || self.linkerd.clone().map(Profile::Linkerd);
        let istio = |injector: Option<_>| injector.map(Profile::Istio);
        match (name, &self.istio) {
            ("", None) | (Snapshot::NAME, _) => linkerd(),
            ("", Some(revisions)) if self.linkerd.is_none() => istio(revisions.of_inject()),
            (Istio::NAME, Some(revisions)) => istio(revisions.of_inject()),
            (name, Some(revisions)) => {
                let revision = name.strip_prefix(Istio::NAME)?.strip_prefix('/')?;
                istio(revisions.get(revision))
            }
            _ => None,
        }
    }

    /// The names that [`Profiles::named`] knows, in quotes with commas between.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.linkerd.iter().map(|_| Snapshot::NAME.to_owned()).collect();
        if let Some(istio) = &self.istio {
            let revisions = istio.names();
            names.extend(istio.of_inject().map(|_| Istio::NAME.to_owned()));
            if revisions.len() > 1 {
                let below = |revision: &String| format!("{}/{revision}", Istio::NAME);
                names.extend(revisions.iter().map(below));
            }
        }
        names
    }
}

#[cfg(test)]
mod tests;
