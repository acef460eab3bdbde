//! The choice between meshes, and between the revisions of Istio. Sidecar templates count as a mesh.

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
use injectd_templates_mesh::Templates;

mod revisions;

pub use revisions::{DEFAULT_REVISION, Revisions};

/// The injection core for Linkerd with the sources of this process.
pub type Injector = injector::Injector<Snapshot, Sources>;

/// The injection core for Istio with the sources of this process.
pub type IstioInjector = injector::Injector<Istio, Sources>;

/// The injection core for sidecar templates with the sources of this process.
pub type TemplatesInjector = injector::Injector<Templates, Sources>;

/// The path of the webhook of sidecar templates.
pub const TEMPLATES_PATH: &str = "/templates";

/// The same code for the injector of any mesh: `for_mesh!(profile, injector => code)`.
#[macro_export]
macro_rules! for_mesh {
    ($profile:expr, $injector:ident => $code:expr) => {
        match $profile {
            $crate::Profile::Linkerd($injector) => $code,
            $crate::Profile::Istio($injector) => $code,
            $crate::Profile::Templates($injector) => $code,
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
    /// Sidecar templates.
    Templates(Arc<TemplatesInjector>),
}

/// The meshes that a process serves; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    /// Linkerd.
    pub linkerd: Option<Arc<Injector>>,
    /// Istio, with revisions that may come and go.
    pub istio: Option<Arc<Revisions>>,
    /// Sidecar templates.
    pub templates: Option<Arc<TemplatesInjector>>,
}

/// What is answered to a target without a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoWebhook {
    /// 404: Istio has its webhook at another path.
    OtherPath,
    /// 404: sidecar templates have their webhook at another path.
    NotTemplates,
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
            Self::OtherPath | Self::NotTemplates | Self::Revision(_) => 404,
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
            Self::OtherPath
            | Self::NotTemplates
            | Self::Revision(_)
            | Self::Target
            | Self::NotLoaded => None,
        }
    }
}

impl fmt::Display for NoWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherPath => f.write_str("the webhook is at /inject"),
            Self::NotTemplates => write!(f, "the webhook is at {TEMPLATES_PATH}"),
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
            Self::Templates(_) if is_of_templates(target) => Ok(String::new()),
            Self::Templates(_) => Err(NoWebhook::NotTemplates),
            Self::Istio(injector) => path_of(target, webhook, injector.mesh().revision().release()),
        }
    }

    /// Whether a body that is no review is answered with a denial, as by the mesh's own injector.
    #[must_use]
    pub fn denies_other_bodies(&self) -> bool {
        match self {
            Self::Linkerd(_) | Self::Templates(_) => false,
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
            // Boxed: the future of a review must not have the size of the lookups of templates.
            Self::Templates(injector) => Box::pin(injector.review_with(facts, body)).await,
        }
    }
}

/// Whether a request's target is the webhook of sidecar templates.
fn is_of_templates(target: &str) -> bool {
    target.split_once('?').map_or(target, |(path, _)| path) == TEMPLATES_PATH
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
            Profile::Linkerd(injector) => Self { linkerd: Some(injector), ..Self::default() },
            Profile::Istio(injector) => {
                let revisions = [(DEFAULT_REVISION.to_owned(), injector)];
                let istio = Some(Arc::new(Revisions::new(revisions)));
                Self { istio, ..Self::default() }
            }
            Profile::Templates(injector) => Self { templates: Some(injector), ..Self::default() },
        }
    }
}

impl Profiles {
    /// Why pods are skipped, of all meshes.
    #[must_use]
    pub fn skip_reasons(&self) -> Vec<SkipReason> {
        let linkerd = self.linkerd.iter().flat_map(|_| Snapshot::SKIP_REASONS);
        let istio = self.istio.iter().flat_map(|_| Istio::SKIP_REASONS);
        let templates = self.templates.iter().flat_map(|_| Templates::SKIP_REASONS);
        linkerd.chain(istio).chain(templates).copied().collect()
    }

    /// How many templates and answers are cached.
    #[must_use]
    pub fn template_count(&self) -> u64 {
        let linkerd = self.linkerd.iter().map(|injector| injector.mesh().template_count());
        let istio = self.istio.iter().map(|istio| istio.answer_count());
        let templates = self.templates.iter().map(|injector| injector.mesh().answer_count());
        linkerd.chain(istio).chain(templates).sum()
    }

    /// Where the namespaces and owners of a cluster are looked up, if a mesh needs them always.
    #[must_use]
    pub fn sources(&self) -> Option<&Sources> {
        let linkerd = self.linkerd.as_ref().map(|injector| injector.lookups());
        linkerd.or_else(|| self.templates.as_ref().map(|injector| injector.lookups()))
    }

    /// The webhook at a request's target, and the decoded path of it. Sidecar templates have
    /// [`TEMPLATES_PATH`], Istio has `/inject` and `/istio/REVISION/inject`; every other path is Linkerd's.
    ///
    /// # Errors
    /// There is no webhook.
    pub fn at(&self, target: &str) -> Result<(Profile, String), NoWebhook> {
        let linkerd = || self.linkerd.clone().map(Profile::Linkerd);
        if let Some(templates) = self.templates.clone().filter(|_| is_of_templates(target)) {
            return Ok((Profile::Templates(templates), String::new()));
        }
        let Some(istio) = &self.istio else {
            let linkerd = linkerd().ok_or(NoWebhook::NotTemplates)?;
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
    /// `istio/REVISION`, `templates`. The empty name is that of the only mesh.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Profile> {
        let istio = || self.istio.as_ref().and_then(|revisions| revisions.of_inject());
        match name {
            "" => self.only().and_then(|name| self.named(name)),
            Snapshot::NAME => self.linkerd.clone().map(Profile::Linkerd),
            Istio::NAME => istio().map(Profile::Istio),
            Templates::NAME => self.templates.clone().map(Profile::Templates),
            name => {
                let revision = name.strip_prefix(Istio::NAME)?.strip_prefix('/')?;
                self.istio.as_ref()?.get(revision).map(Profile::Istio)
            }
        }
    }

    /// The name of the only mesh.
    fn only(&self) -> Option<&'static str> {
        match (&self.linkerd, &self.istio, &self.templates) {
            (Some(_), None, None) => Some(Snapshot::NAME),
            (None, Some(_), None) => Some(Istio::NAME),
            (None, None, Some(_)) => Some(Templates::NAME),
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
        names.extend(self.templates.iter().map(|_| Templates::NAME.to_owned()));
        names
    }
}

#[cfg(test)]
mod tests;
