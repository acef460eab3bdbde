//! Who answers reviews: the injector of a mesh, or sidecar templates.

use injectd_command::{
    CommandError,
    config::{ConfigArgs, Purpose},
};
use injectd_core::{
    injector::{Answer, Injector, ReviewError},
    lookups::CallerFacts,
    standalone::Standalone,
};
use injectd_profiles::Profile;
use injectd_templates::Template;
use injectd_templates_tree::mesh::Templates;

use super::sidecars;

/// Who answers reviews.
pub(super) enum Answering {
    Mesh(Profile),
    Templates(Box<Injector<Templates, Standalone>>),
}

impl Answering {
    /// Templates with the objects of `--objects`.
    pub(super) fn templates(
        templates: Vec<Template>,
        config: &ConfigArgs,
    ) -> Result<Self, CommandError> {
        let surroundings = sidecars::surroundings(config, Purpose::Replay)?;
        // Templates find namespaces and owners among their surroundings.
        let nothing = Standalone::default();
        let injector = Injector::new(Templates::new(templates, surroundings), nothing);
        Ok(Self::Templates(Box::new(injector)))
    }

    /// Whether a body that is no review is answered with a denial.
    pub(super) fn denies_other_bodies(&self) -> bool {
        match self {
            Self::Mesh(profile) => profile.denies_other_bodies(),
            Self::Templates(_) => false,
        }
    }

    /// Answers a review.
    pub(super) async fn review<'a>(
        &'a self,
        path: &'a str,
        body: &'a [u8],
    ) -> Result<Answer<'a>, ReviewError> {
        let facts = CallerFacts { path, ..CallerFacts::default() };
        match self {
            Self::Mesh(profile) => profile.review_with(facts, body).await,
            Self::Templates(injector) => injector.review_with(facts, body).await,
        }
    }
}
