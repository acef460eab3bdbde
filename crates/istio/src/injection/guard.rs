//! Renders the templates, and finds the values of the pod that do not stay within their scalar.

use std::sync::Arc;

use injectd_gotemplate::{Context, Reads, Template, Value};
use injectd_yaml::{DuplicateKeys, Options};
use serde_json::Value as Json;

use super::{Injection, PodCluster, data::Forms};
use crate::{
    annotations::PROXY_CONFIG_ANNOTATION,
    budget::{self, Budget, steps_of},
    fields::annotation,
    image::IMAGE_TYPE_ANNOTATION,
    memory::Record,
    owner::Owner,
    proto::{Message, layers},
    render::{Patches, Source, document},
    strip::OVERRIDES_ANNOTATION,
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
        let forms = self.forms(pod)?;
        let is_guarded = self.revision.tainted_values != TaintedValues::Off;
        let suspects = if is_guarded {
            sources::of(&forms.original, &self.namespace, &self.owner(pod))
        } else {
            Vec::new()
        };
        let own_record = match setting.record {
            None if is_guarded && (!suspects.is_empty() || has_odd_spec(&forms.stripped)) => {
                Some(Record::new(self.revision.release))
            }
            _ => None,
        };
        let record = setting.record.or(own_record.as_ref());
        let data = self.data(&forms, proxy, setting.native, self.proxy_ids(setting.cluster));
        let source =
            Source { data: &data, record, budget: setting.budget, keeps_texts: is_guarded };
        let (mut patches, missing) = self.render(source, self.asked_templates());
        let texts = patches.take_texts();
        let tainted = match record {
            Some(record) if is_guarded => {
                let has_read = |suspect: &Tainted| has_read(record, suspect);
                let mut read: Vec<_> = suspects.into_iter().filter(has_read).collect();
                read.extend(read_of_spec(record, &forms));
                self.tainted_of(&forms, read, texts.as_deref(), setting)
            }
            _ => Vec::new(),
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
        forms: &Forms,
        read: Vec<Tainted>,
        texts: Option<&[String]>,
        setting: Setting<'_>,
    ) -> Vec<Tainted> {
        // Without texts the pod is denied anyway; the guard only knows a better reason.
        let is_denied = texts.is_none() && self.revision.tainted_values != TaintedValues::Deny;
        if read.is_empty() || is_denied || texts.is_none() && setting.budget.is_spent() {
            return Vec::new();
        }
        let budget = Budget::of(&forms.original, setting.budget.is_over());
        let setting = Setting { budget: &budget, record: None, ..setting };
        let mut neutral = Vec::new();
        for &form in sources::forms(&forms.original, &read) {
            let Some(found) = self.neutral_texts(forms, &read, form, setting) else { continue };
            if is_same(texts, &found, &budget) {
                return Vec::new();
            }
            neutral.push((form, found));
        }
        let Some((form, neutral)) = neutral.into_iter().next() else {
            // Nothing says that the values are the reason why the templates fail.
            return if texts.is_some() { read } else { Vec::new() };
        };
        if read.len() > MAX_BLAMED || budget.is_spent() {
            return read;
        }
        let changes = |blamed: &Tainted| {
            let others: Vec<_> = read.iter().filter(|other| *other != blamed).cloned().collect();
            let found = self.neutral_texts(forms, &others, form, setting);
            !is_same(found.as_deref(), &neutral, &budget)
        };
        let blamed: Vec<_> = read.iter().filter(|blamed| changes(blamed)).cloned().collect();
        if blamed.is_empty() || budget.is_spent() { read } else { blamed }
    }

    /// What the templates write for the pod with neutral values at these sources; `None` if one of
    /// them fails, or the budget is spent.
    fn neutral_texts(
        &self,
        forms: &Forms,
        sources: &[Tainted],
        form: Form,
        setting: Setting<'_>,
    ) -> Option<Vec<String>> {
        setting.budget.spend(steps_of(&forms.original)).ok()?;
        let (neutral, data) = self.neutral(forms, sources, form, setting)?;
        let budget = setting.budget;
        let source = Source { data: &data, record: None, budget, keeps_texts: true };
        let (mut patches, _) = neutral.render(source, self.asked_templates());
        patches.take_texts()
    }

    /// The injection of the pod with neutral values at these sources, and its data; `None` if there is
    /// none.
    fn neutral(
        &self,
        forms: &Forms,
        sources: &[Tainted],
        form: Form,
        setting: Setting<'_>,
    ) -> Option<(Self, Value)> {
        let pod = &*forms.original;
        let neutral_forms = forms.map(|pod| sources::neutral_pod(pod, sources, form));
        let has = |source: Tainted| sources.contains(&source);
        let is_other_namespace = has(Tainted::Name(NameOf::Namespace));
        let is_other_owner = is_other_namespace || has(Tainted::Name(NameOf::Owner));
        let owner = self.owner(pod);
        let namespace = self.namespace.clone();
        let neutral = Injection {
            revision: self.revision,
            pod: Arc::clone(&neutral_forms.original),
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
        let data = neutral.data(&neutral_forms, &proxy, setting.native, ids);
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
        let (_, data) = self.neutral(&self.forms(&self.pod).ok()?, sources, form, setting)?;
        let execute = |context: &mut Context<'_>| template.execute(&data, context).ok();
        self.with_context(Some(reads), &|| false, execute)
    }
}

/// Whether the documents of the pod have the shape of the neutral ones. Both are YAML; it is read from the
/// budget.
fn is_same(texts: Option<&[String]>, neutral: &[String], budget: &Budget<'_>) -> bool {
    let is_same = |(own, neutral): (&String, &String)| {
        let read = |text: &String| {
            budget.spend_text(text).ok()?;
            Some((document(text).ok()?, repeats_keys(text)))
        };
        let (Some(own), Some(neutral)) = (read(own), read(neutral)) else { return false };
        shape::is_same(&own.0, &neutral.0) && (neutral.1 || !own.1)
    };
    texts
        .is_some_and(|texts| texts.len() == neutral.len() && texts.iter().zip(neutral).all(is_same))
}

/// Whether a document has a key twice in one mapping, so that the last one hides the others.
fn repeats_keys(text: &str) -> bool {
    let options = Options { duplicate_keys: DuplicateKeys::Error, ..budget::YAML };
    injectd_yaml::parse(text, options).is_err_and(|problem| problem.is_duplicate_key)
}

fn has_odd_spec(pod: &Json) -> bool {
    pod.get("spec").is_some_and(sources::is_odd)
}

/// Where the texts come from that are not plain and that templates have read in the `spec`.
fn read_of_spec(record: &Record, forms: &Forms) -> Option<Tainted> {
    let has_read = |pod: &Json| {
        pod.get("spec").is_some_and(|spec| record.has_read_of_spec(spec, &sources::is_odd))
    };
    if !has_read(&forms.stripped) {
        return None;
    }
    let is_own = Arc::ptr_eq(&forms.original, &forms.stripped)
        || annotation(&forms.stripped, OVERRIDES_ANNOTATION).is_none()
        || has_read(&forms.original);
    let of_overrides = || Tainted::Annotation(OVERRIDES_ANNOTATION.to_owned());
    Some(if is_own { Tainted::Name(NameOf::Part) } else { of_overrides() })
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
