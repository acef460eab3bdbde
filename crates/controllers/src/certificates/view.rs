//! What the watches of the Secret and of the webhook configurations found.

use std::collections::BTreeMap;

use injectd_cluster::{
    Service,
    watch::{Update, WatchFailure},
};
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration},
    core::v1::Secret,
};
use tokio::time::Instant;

use super::{
    culprit::Culprit,
    plan::{Entry, Published},
    state::{Data, InvalidSecret, State, Terms},
};

/// A change that a watch found.
#[derive(Debug)]
pub(super) enum Found {
    Secret(Update<Secret>),
    /// The name of the configuration, and the change.
    Webhooks(String, Update<MutatingWebhookConfiguration>),
}

/// The state of the cluster as it was last seen.
#[derive(Debug)]
pub(super) struct View {
    /// `None` if it does not exist, or was not read.
    secret: Option<Result<State, InvalidSecret>>,
    is_secret_read: bool,
    /// When the Secret was first seen as it is.
    pub(super) secret_since: Instant,
    configurations: BTreeMap<String, Configuration>,
}

/// A webhook configuration.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    /// `None` until it was read.
    entries: Option<Vec<Entry>>,
    /// Its `resourceVersion`; empty if it does not exist.
    pub(super) version: String,
    /// Why a `caBundle` of it is wrong, if one is; `None` if it does not exist.
    pub(super) culprit: Option<Culprit>,
    is_forbidden: bool,
}

impl View {
    pub(super) fn new(configurations: &[String]) -> Self {
        let empty = configurations.iter().map(|name| (name.clone(), Configuration::default()));
        Self {
            secret: None,
            is_secret_read: false,
            secret_since: Instant::now(),
            configurations: empty.collect(),
        }
    }

    /// Whether the Secret was read, and each configuration was read or cannot be.
    pub(super) fn is_complete(&self) -> bool {
        let is_known = |configuration: &Configuration| {
            configuration.entries.is_some() || configuration.is_forbidden
        };
        self.is_secret_read && self.configurations.values().all(is_known)
    }

    /// Whether each configuration was read, now or before.
    pub(super) fn is_all_read(&self) -> bool {
        self.configurations.values().all(|configuration| configuration.entries.is_some())
    }

    /// The Secret; `None` if it does not exist, or was not read.
    pub(super) fn secret(&self) -> Option<Result<&State, &InvalidSecret>> {
        self.secret.as_ref().map(Result::as_ref)
    }

    /// The configurations that were read; those that `is_writable` allows may be written.
    pub(super) fn published(&self, is_writable: impl Fn(&str) -> bool) -> Vec<Published<'_>> {
        let read = self.configurations.iter().filter_map(|(name, it)| {
            let is_writable = !it.is_forbidden && is_writable(name);
            Some(Published { configuration: name, entries: it.entries.as_deref()?, is_writable })
        });
        read.collect()
    }

    pub(super) fn configuration(&self, name: &str) -> Option<&Configuration> {
        self.configurations.get(name)
    }

    pub(super) fn set_secret(&mut self, secret: Option<Result<State, InvalidSecret>>) {
        self.is_secret_read = true;
        // A watch lists the same Secret again when it reconnects: its age must not begin anew.
        if self.secret != secret {
            self.secret_since = Instant::now();
            self.secret = secret;
        }
    }

    /// `None` if the configuration does not exist.
    pub(super) fn set_configuration(
        &mut self,
        name: &str,
        found: Option<&MutatingWebhookConfiguration>,
        service: &Service,
    ) {
        let configuration = found.map_or_else(
            || Configuration { entries: Some(Vec::new()), ..Configuration::default() },
            |found| Configuration::new(found, service),
        );
        self.configurations.insert(name.to_owned(), configuration);
    }

    /// Applies a change. Returns why an object cannot be read, with its description.
    pub(super) fn apply(
        &mut self,
        found: Found,
        terms: &Terms,
        service: &Service,
    ) -> Option<(String, WatchFailure)> {
        match found {
            Found::Secret(update) => match update {
                Update::Listed(list) => {
                    self.set_secret(list.first().map(|secret| decode(secret, terms)));
                }
                Update::Applied(secret) => self.set_secret(Some(decode(&secret, terms))),
                Update::Deleted(_) => self.set_secret(None),
                Update::Failed(failure) => return Some(("the Secret".to_owned(), failure)),
            },
            Found::Webhooks(name, update) => match update {
                Update::Listed(list) => self.set_configuration(&name, list.first(), service),
                Update::Applied(it) => self.set_configuration(&name, Some(&it), service),
                Update::Deleted(_) => self.set_configuration(&name, None, service),
                Update::Failed(failure) => {
                    let state = self.configurations.entry(name.clone()).or_default();
                    // The entries stay as they were seen last: a watch that fails must not look
                    // like a deletion.
                    state.is_forbidden = matches!(failure, WatchFailure::Forbidden(_));
                    let what = format!("the MutatingWebhookConfiguration {name}");
                    return Some((what, failure));
                }
            },
        }
        None
    }
}

impl Configuration {
    fn new(found: &MutatingWebhookConfiguration, service: &Service) -> Self {
        Self {
            entries: Some(entries(found, service)),
            version: found.metadata.resource_version.clone().unwrap_or_default(),
            culprit: Some(Culprit::of(found, |webhook| {
                service.is_called_by(&webhook.client_config)
            })),
            is_forbidden: false,
        }
    }
}

/// The state in a Secret.
pub(super) fn decode(secret: &Secret, terms: &Terms) -> Result<State, InvalidSecret> {
    State::decode(&data(secret), terms)
}

/// The data of a Secret, or of a new one, with a state.
pub(super) fn data_with(secret: Option<&Secret>, state: &State) -> Result<Data, rcgen::Error> {
    let mut data = secret.map(data).unwrap_or_default();
    state.encode(&mut data)?;
    Ok(data)
}

/// The data of a Secret.
fn data(secret: &Secret) -> Data {
    let data = secret.data.clone().unwrap_or_default();
    data.into_iter().map(|(key, value)| (key, value.0)).collect()
}

/// The entries of a configuration that lead to a Service.
fn entries(configuration: &MutatingWebhookConfiguration, service: &Service) -> Vec<Entry> {
    let webhooks = configuration.webhooks.iter().flatten().enumerate();
    let ours = webhooks.filter(|(_, webhook)| service.is_called_by(&webhook.client_config));
    let entry = |(index, webhook): (usize, &MutatingWebhook)| {
        let bundle = webhook.client_config.ca_bundle.as_ref().map_or(&[][..], |bundle| &bundle.0);
        Entry::new(&webhook.name, index, bundle)
    };
    ours.map(entry).collect()
}
