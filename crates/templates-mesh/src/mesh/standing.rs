//! How a pod that runs stands to the templates that are served. Not for reviews: nothing is remembered.

use std::error::Error;

use injectd_core::{
    lookups::{LookupError, Lookups, Metadata},
    mesh::{Caller, InjectError},
    object::OwnerReference,
};
use injectd_templates::{
    Template,
    reads::{Needs, Reads},
};
use injectd_templates_tree::{Request, Standing, selected, standings};
use serde_json::Value;

use super::{
    Templates,
    lookup::{self, SERVICE_ACCOUNT, controller, service_account_name},
};
use crate::set::Origin;

/// A pod, and what is known of where it is.
#[derive(Debug, Clone, Copy)]
pub struct Known<'k> {
    /// The pod.
    pub pod: &'k Value,
    /// The name of its namespace.
    pub namespace: &'k str,
    /// Labels and annotations of its namespace; `None` if they are not known.
    pub of_namespace: Option<&'k Metadata>,
}

/// What templates read and is not known.
#[derive(Debug, thiserror::Error)]
#[error("template {templates}: {object} is not known")]
pub struct Unknown {
    /// The keys of the templates, with commas between.
    templates: String,
    /// Such as `ServiceAccount shop/web`.
    object: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Templates {
    /// Whether a template may read something at one of these places of a pod.
    #[must_use]
    pub fn reads_any(&self, places: &[&[&str]]) -> bool {
        let needs = self.set.needs();
        needs.reads_all || places.iter().any(|place| is_read(&needs.pod, place))
    }

    /// How a pod that runs stands to the templates, and to those of its mark.
    ///
    /// # Errors
    /// An object that a template reads is not known.
    pub async fn standings(
        &self,
        known: Known<'_>,
        lookups: &impl Lookups,
    ) -> Result<Vec<Standing>, Unknown> {
        let templates: Vec<_> = self.templates().iter().map(|template| &**template).collect();
        let needs = self.set.needs_of_each();
        let of_all: Vec<_> = templates.iter().copied().zip(needs).collect();
        let reads_namespace = |needs: &Needs| needs.namespace != Reads::default();
        if known.of_namespace.is_none() && needs.iter().any(reads_namespace) {
            return Err(Unknown::of(&of_all, reads_namespace, "Namespace", known.namespace, None));
        }
        let none = Metadata::default();
        let mut origin = Origin {
            namespace: known.namespace,
            of_namespace: known.of_namespace.unwrap_or(&none),
            service_account: None,
            owners: Vec::new(),
        };
        let namespace = origin.namespace_object();
        let own_namespace = self.set.own_namespace();
        let request = Request {
            pod: known.pod,
            namespace: &namespace,
            service_account: None,
            owners: &[],
            own_namespace,
        };
        let selected = of_all.into_iter().zip(selected(&templates, &request));
        let selected: Vec<_> = selected.filter(|(_, is)| *is).map(|(of, _)| of).collect();
        look_up(&selected, known, &mut origin, lookups).await?;
        let (service_account, owners) = (origin.service_account.as_ref(), &*origin.owners);
        Ok(standings(&templates, &Request { service_account, owners, ..request }))
    }
}

fn is_read(reads: &Reads, place: &[&str]) -> bool {
    let [key, rest @ ..] = place else { return true };
    // All keys are read.
    reads.keys().is_none() || reads.of_member(key).is_some_and(|reads| is_read(reads, rest))
}

/// Looks up what templates read besides the pod and its namespace. What cannot be had is an error.
async fn look_up(
    templates: &[(&Template, &Needs)],
    known: Known<'_>,
    origin: &mut Origin<'_>,
    lookups: &impl Lookups,
) -> Result<(), Unknown> {
    let mut needs = Needs::default();
    for (_, of) in templates {
        needs.add(of);
    }
    let namespace = known.namespace;
    let unknown = |reads: fn(&Needs) -> bool, kind: &str, name: &str, error| {
        Unknown::of(templates, reads, kind, &format!("{namespace}/{name}"), error)
    };
    if needs.service_account.is_some() {
        let name = service_account_name(known.pod);
        // A review takes an object that cannot be had for one that is not there. Here the verdict
        // would be wrong, so it is asked for first.
        let found = lookups.service_account(namespace, name, None).await;
        let reads: fn(&Needs) -> bool = |needs| needs.service_account.is_some();
        found.map_err(|error| unknown(reads, SERVICE_ACCOUNT, name, Some(error)))?;
    }
    if needs.reads_owners
        && let Some([kind, name, uid]) = controller(known.pod)
    {
        let owner = OwnerReference::new(&kind, &name, &uid);
        let found = lookups.object(namespace, &owner, None).await;
        found.map_err(|error| unknown(|needs| needs.reads_owners, &kind, &name, Some(error)))?;
    }
    let caller = Caller { workload: None, deadline: None, turns: None, lookups };
    lookup::of_pod(origin, known.pod, &needs, &caller).await.map_err(|error| {
        let source: Box<dyn Error + Send + Sync> = match error {
            InjectError::Lookup(error) => error.into(),
            InjectError::NoTurn(error) => error.into(),
        };
        let all = |_: &Needs| true;
        Unknown {
            source: Some(source),
            ..Unknown::of(templates, all, "an owner", "of the pod", None)
        }
    })
}

impl Unknown {
    fn of(
        templates: &[(&Template, &Needs)],
        reads: impl Fn(&Needs) -> bool,
        kind: &str,
        name: &str,
        error: Option<LookupError>,
    ) -> Self {
        let keys = templates.iter().filter(|(_, needs)| reads(needs));
        let keys: Vec<_> = keys.map(|(template, _)| template.key()).collect();
        let error = error.filter(|error| !matches!(error, LookupError::NotInMemory));
        let source = error.map(|error| Box::new(error) as Box<dyn Error + Send + Sync>);
        Self { templates: keys.join(", "), object: format!("{kind} {name}"), source }
    }
}
