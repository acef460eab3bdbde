//! Renders the templates, and finds the values of the pod that do not stay within their scalar.

use std::sync::Arc;

use injectd_gotemplate::{Context, Reads, Template, Value};
use serde_json::Value as Json;

use super::{Injection, PodCluster};
use crate::{
    annotations::PROXY_CONFIG_ANNOTATION,
    budget::{Budget, steps_of},
    fields::annotation,
    image::IMAGE_TYPE_ANNOTATION,
    memory::Record,
    owner::Owner,
    proto::{Message, layers},
    render::{Patches, Source},
    taint::{
        NameOf, Source as Tainted, TaintedValues,
        neutral::{self, Form},
        problem, shape, sources,
    },
};

/// Values that are looked at one by one to find the tainted ones. If there are more, all are named.
const MAX_BLAMED: usize = 4;

/// Annotations that reach the templates in other fields than the pod's annotations.
const READ_OUTSIDE: [&str; 2] = [PROXY_CONFIG_ANNOTATION, IMAGE_TYPE_ANNOTATION];

/// What the templates of a pod are rendered with, besides the pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'s> {
    pub(super) cluster: PodCluster<'s>,
    pub(super) native: bool,
    pub(super) budget: &'s Budget<'s>,
    pub(super) record: Option<&'s Record>,
}

/// What the templates have written.
pub(super) struct Written {
    pub(super) patches: Patches,
    /// Why a template after them cannot be used.
    pub(super) missing: Option<String>,
    /// The values of the pod that do not stay within their scalar.
    pub(super) tainted: Vec<Tainted>,
}

impl Injection<'_> {
    /// The values that were found to be tainted.
    pub(crate) fn tainted(&self) -> &[Tainted] {
        &self.tainted
    }

    /// Whether the pod is denied for tainted values.
    pub(crate) fn is_denied_for_taint(&self) -> bool {
        !self.tainted.is_empty() && self.revision.tainted_values == TaintedValues::Deny
    }

    /// The warning about tainted values.
    ///
    /// # Errors
    /// The pod is denied for them.
    pub(super) fn allowed_taint(&self) -> Result<Option<String>, String> {
        match self.revision.tainted_values {
            _ if self.tainted.is_empty() => Ok(None),
            TaintedValues::Deny => Err(problem(&self.tainted)),
            TaintedValues::Warn | TaintedValues::Off => Ok(Some(problem(&self.tainted))),
        }
    }

    /// Renders the templates of the pod with its `ProxyConfig`.
    ///
    /// # Errors
    /// The message of the denial.
    pub(super) fn write(
        &self,
        pod: &Arc<Json>,
        proxy: &Arc<Message>,
        setting: Setting<'_>,
    ) -> Result<Written, String> {
        let suspects = match self.revision.tainted_values {
            TaintedValues::Off => Vec::new(),
            _ => sources::of(pod, &self.namespace, &self.owner(pod)),
        };
        let own_record = match setting.record {
            None if !suspects.is_empty() => Some(Record::new(self.revision.release)),
            _ => None,
        };
        let record = setting.record.or(own_record.as_ref());
        let data = self.data(pod, proxy, setting.native, self.proxy_ids(setting.cluster))?;
        let keeps_documents = !suspects.is_empty();
        let source = Source { data: &data, record, budget: setting.budget, keeps_documents };
        let (patches, missing) = self.render(source, self.asked_templates());
        let tainted = match record {
            Some(record) => {
                let has_read = |suspect: &Tainted| has_read(record, suspect);
                let read: Vec<_> = suspects.into_iter().filter(has_read).collect();
                self.tainted_of(pod, read, &patches, setting)
            }
            None => Vec::new(),
        };
        Ok(Written { patches, missing, tainted })
    }

    fn owner(&self, pod: &Json) -> Owner {
        let guess = || Owner::of(pod, &self.namespace, self.revision.release);
        self.owner.clone().unwrap_or_else(guess)
    }

    /// Those of the values that templates have read which changed more than their scalar.
    fn tainted_of(
        &self,
        pod: &Arc<Json>,
        read: Vec<Tainted>,
        patches: &Patches,
        setting: Setting<'_>,
    ) -> Vec<Tainted> {
        let documents = patches.documents();
        // Without documents the pod is denied anyway; the guard only knows a better reason.
        let is_denied = documents.is_none() && self.revision.tainted_values != TaintedValues::Deny;
        if read.is_empty() || is_denied || documents.is_none() && setting.budget.is_spent() {
            return Vec::new();
        }
        let budget = Budget::of(pod, setting.budget.is_over());
        let setting = Setting { budget: &budget, record: None, ..setting };
        let mut neutral = Vec::new();
        for form in [Form::Text, Form::Json] {
            let Some(found) = self.neutral_documents(pod, &read, form, setting) else { continue };
            if is_same(documents.as_deref(), &found) {
                return Vec::new();
            }
            neutral.push((form, found));
        }
        let Some((form, neutral)) = neutral.into_iter().next() else {
            // Nothing says that the values are the reason why the templates fail.
            return if documents.is_some() { read } else { Vec::new() };
        };
        if read.len() > MAX_BLAMED || budget.is_spent() {
            return read;
        }
        let changes = |blamed: &Tainted| {
            let others: Vec<_> = read.iter().filter(|other| *other != blamed).cloned().collect();
            let found = self.neutral_documents(pod, &others, form, setting);
            let found: Option<Vec<_>> = found.as_ref().map(|found| found.iter().collect());
            !is_same(found.as_deref(), &neutral)
        };
        let blamed: Vec<_> = read.iter().filter(|blamed| changes(blamed)).cloned().collect();
        if blamed.is_empty() || budget.is_spent() { read } else { blamed }
    }

    /// What the templates write for the pod with neutral values at these sources; `None` if one of
    /// them fails, or the budget is spent.
    fn neutral_documents(
        &self,
        pod: &Json,
        sources: &[Tainted],
        form: Form,
        setting: Setting<'_>,
    ) -> Option<Vec<Json>> {
        setting.budget.spend(steps_of(pod)).ok()?;
        let (neutral, data) = self.neutral(pod, sources, form, setting)?;
        let source =
            Source { data: &data, record: None, budget: setting.budget, keeps_documents: true };
        let (patches, _) = neutral.render(source, self.asked_templates());
        Some(patches.documents()?.into_iter().cloned().collect())
    }

    /// The injection of the pod with neutral values at these sources, and its data; `None` if there is
    /// none.
    fn neutral(
        &self,
        pod: &Json,
        sources: &[Tainted],
        form: Form,
        setting: Setting<'_>,
    ) -> Option<(Self, Value)> {
        let has = |source: Tainted| sources.contains(&source);
        let is_other_namespace = has(Tainted::Name(NameOf::Namespace));
        let is_other_owner = is_other_namespace || has(Tainted::Name(NameOf::Owner));
        let owner = self.owner(pod);
        let namespace = self.namespace.clone();
        let neutral = Injection {
            revision: self.revision,
            pod: Arc::new(sources::neutral_pod(pod, sources, form)),
            namespace: if is_other_namespace { neutral::text(&namespace) } else { namespace },
            environment: self.environment.clone(),
            owner: Some(if is_other_owner { sources::neutral_owner(&owner) } else { owner }),
            patience: self.patience.clone(),
            tainted: Vec::new(),
        };
        let own = if has(Tainted::Annotation(PROXY_CONFIG_ANNOTATION.to_owned())) {
            let text = neutral::proxy_config(annotation(pod, PROXY_CONFIG_ANNOTATION)?)?;
            layers::read_annotation(&text, self.revision.release).ok()
        } else {
            self.own_proxy_config()
        };
        let proxy = Arc::new(self.proxy_config(own.as_ref(), setting.cluster.resources));
        let ids = self.proxy_ids(setting.cluster);
        let data = neutral.data(&neutral.pod, &proxy, setting.native, ids).ok()?;
        Some((neutral, data))
    }

    /// What one template writes for the pod with neutral values at these sources; `None` if it fails.
    pub(crate) fn neutral_text(
        &self,
        template: &Template,
        sources: &[Tainted],
        form: Form,
        reads: &mut dyn Reads,
    ) -> Option<String> {
        let budget = Budget::of(&self.pod, &|| false);
        let (native, _) = self.revision.mode.is_native(None, "");
        let setting =
            Setting { cluster: PodCluster::default(), native, budget: &budget, record: None };
        let (_, data) = self.neutral(&self.pod, sources, form, setting)?;
        let execute = |context: &mut Context<'_>| template.execute(&data, context).ok();
        self.with_context(Some(reads), &|| false, execute)
    }
}

/// Whether the documents of the pod have the shape of the neutral ones.
fn is_same(documents: Option<&[&Json]>, neutral: &[Json]) -> bool {
    documents.is_some_and(|documents| {
        documents.len() == neutral.len()
            && documents
                .iter()
                .zip(neutral)
                .all(|(document, neutral)| shape::is_same(document, neutral))
    })
}

/// Whether templates may have written a value.
fn has_read(record: &Record, source: &Tainted) -> bool {
    match source {
        Tainted::Annotation(key) => {
            READ_OUTSIDE.contains(&&**key) || record.has_read("annotations", key)
        }
        Tainted::Label(key) => record.has_read("labels", key),
        Tainted::Name(_) => true,
    }
}
