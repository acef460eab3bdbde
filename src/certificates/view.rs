//! What the watches of the Secret and of the webhook configurations found.

use std::collections::BTreeMap;

use k8s_openapi::api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Secret};
use kube::ResourceExt as _;
use tokio::time::Instant;

use super::{
    plan::Entry,
    state::{Data, InvalidSecret, State},
};
use crate::cluster::watch::{Update, WatchFailure};

/// A change that a watch found.
#[derive(Debug)]
pub(super) enum Found {
    Secret(Update<Secret>),
    /// The name of the configuration, and the change.
    Webhooks(String, Update<MutatingWebhookConfiguration>),
}

/// The Service of the webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) namespace: String,
    pub(super) name: String,
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

#[derive(Debug, Default)]
struct Configuration {
    /// `None` until it was read.
    entries: Option<Vec<Entry>>,
    is_failing: bool,
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
        let is_known = |it: &Configuration| it.entries.is_some() || it.is_failing;
        self.is_secret_read && self.configurations.values().all(is_known)
    }

    /// Whether all configurations can be read.
    pub(super) fn sees_webhooks(&self) -> bool {
        self.configurations.values().all(|it| it.entries.is_some() && !it.is_failing)
    }

    /// The Secret; `None` if it does not exist, or was not read.
    pub(super) fn secret(&self) -> Option<Result<&State, &InvalidSecret>> {
        self.secret.as_ref().map(Result::as_ref)
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        let found = self.configurations.values().filter_map(|it| it.entries.as_ref());
        found.flatten().cloned().collect()
    }

    pub(super) fn set_secret(&mut self, secret: Option<Result<State, InvalidSecret>>) {
        self.is_secret_read = true;
        if self.secret != secret {
            self.secret_since = Instant::now();
            self.secret = secret;
        }
    }

    pub(super) fn set_entries(&mut self, configuration: &str, entries: Vec<Entry>) {
        let state = Configuration { entries: Some(entries), is_failing: false };
        self.configurations.insert(configuration.to_owned(), state);
    }

    /// Applies a change. Returns why an object cannot be read, with its description.
    pub(super) fn apply(
        &mut self,
        found: Found,
        names: &[String],
        service: &Service,
    ) -> Option<(String, WatchFailure)> {
        match found {
            Found::Secret(update) => match update {
                Update::Listed(list) => {
                    self.set_secret(list.first().map(|it| decode(it, names)));
                }
                Update::Applied(secret) => self.set_secret(Some(decode(&secret, names))),
                Update::Deleted(_) => self.set_secret(None),
                Update::Failed(failure) => return Some(("the Secret".to_owned(), failure)),
            },
            Found::Webhooks(name, update) => match update {
                Update::Listed(list) => {
                    let entries = list.first().map(|it| entries(it, service));
                    self.set_entries(&name, entries.unwrap_or_default());
                }
                Update::Applied(it) => self.set_entries(&name, entries(&it, service)),
                Update::Deleted(_) => self.set_entries(&name, Vec::new()),
                Update::Failed(failure) => {
                    let state = self.configurations.entry(name.clone()).or_default();
                    state.is_failing = matches!(failure, WatchFailure::Forbidden(_));
                    let what = format!("the MutatingWebhookConfiguration {name}");
                    return Some((what, failure));
                }
            },
        }
        None
    }
}

/// The state in a Secret.
pub(super) fn decode(secret: &Secret, names: &[String]) -> Result<State, InvalidSecret> {
    State::decode(&data(secret), names)
}

/// The data of a Secret.
pub(super) fn data(secret: &Secret) -> Data {
    let data = secret.data.clone().unwrap_or_default();
    data.into_iter().map(|(key, value)| (key, value.0)).collect()
}

/// The entries of a configuration that lead to a Service.
pub(super) fn entries(
    configuration: &MutatingWebhookConfiguration,
    service: &Service,
) -> Vec<Entry> {
    let webhooks = configuration.webhooks.iter().flatten().enumerate();
    let ours = webhooks.filter_map(|(index, webhook)| {
        let to = webhook.client_config.service.as_ref()?;
        let ca_bundle = webhook.client_config.ca_bundle.as_ref();
        (to.name == service.name && to.namespace == service.namespace).then(|| Entry {
            configuration: configuration.name_any(),
            index,
            ca_bundle: ca_bundle.map(|it| it.0.clone()).unwrap_or_default(),
        })
    });
    ours.collect()
}
