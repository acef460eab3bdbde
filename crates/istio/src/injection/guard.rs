//! Executes the templates, and finds the values of the pod that do not stay within their scalar.

use std::{borrow::Cow, sync::Arc};

use injectd_gotemplate::{Reads, Template, Value};
use serde_json::Value as Json;

use super::{
    Injection, PodCluster,
    compare::{Shape, changed},
    data::Forms,
};
use crate::{
    annotations::PROXY_CONFIG_ANNOTATION,
    budget::{self, Budget, steps_of},
    fields::annotation,
    image::IMAGE_TYPE_ANNOTATION,
    memory::Record,
    owner::Owner,
    proto::{Message, layers},
    render::{Patches, Source, Text, document},
    strip::OVERRIDES_ANNOTATION,
    taint::{
        self, NameOf, Tainted, TaintedValues,
        neutral::{self, Form},
        problem, sources,
    },
};

/// Values that are looked at one by one to find the tainted ones. If there are more, all are named.
// Each one is a rendering, and all of them share the second budget of a pod.
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

/// One template, and what it is rendered with for a check of templates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probed<'p> {
    pub(crate) template: &'p Template,
    /// The form of the neutral values.
    pub(crate) form: Form,
    /// What is left of the whole check.
    pub(crate) budget: &'p Budget<'p>,
}

/// What the templates have written.
pub(super) struct Written {
    /// What they bring; nothing if the pod is denied for tainted values.
    pub(super) patches: Patches,
    /// Why a template after them cannot be used.
    pub(super) missing: Option<String>,
    /// The values of the pod that do not stay within their scalar.
    pub(super) tainted: Vec<Tainted>,
}

impl<'i> Injection<'i> {
    /// The values that were found to be tainted.
    pub(crate) fn tainted(&self) -> &[Tainted] {
        &self.tainted
    }

    /// Whether the pod is denied for tainted values.
    pub(crate) fn is_denied_for_taint(&self) -> bool {
        !self.tainted.is_empty() && self.tainted_values == TaintedValues::Deny
    }

    /// The warning about tainted values.
    ///
    /// # Errors
    /// The pod is denied for them.
    pub(super) fn allowed_taint(&self) -> Result<Option<String>, String> {
        match self.tainted_values {
            _ if self.tainted.is_empty() => Ok(None),
            TaintedValues::Deny => Err(problem(&self.tainted)),
            TaintedValues::Warn | TaintedValues::Off => Ok(Some(problem(&self.tainted))),
        }
    }

    /// Executes the templates of the pod with its `ProxyConfig`, and reads what they write. Where tainted
    /// values are denied, they are looked for before that: reading is most of the work.
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
        let is_guarded = self.tainted_values != TaintedValues::Off;
        let suspects = if is_guarded {
            sources::of(&forms.original, &self.namespace, &self.owner(pod))
        } else {
            Vec::new()
        };
        let own_record = match setting.record {
            // A record costs time: a pod with plain values only is executed without one.
            None if is_guarded && (!suspects.is_empty() || has_odd_spec(&forms.stripped)) => {
                Some(Record::new(self.revision.release))
            }
            _ => None,
        };
        let record = setting.record.or(own_record.as_ref());
        let data = self.data(&forms, proxy, setting.native, self.proxy_ids(setting.cluster));
        let source = Source { data: &data, record, budget: setting.budget };
        let (mut texts, missing) = self.render(source, self.asked_templates());
        let find = |texts: Option<&[Text<'_>]>| match record {
            Some(record) if is_guarded => {
                self.tainted_of(&forms, read(record, suspects, &forms), texts, setting)
            }
            _ => Vec::new(),
        };
        if self.tainted_values == TaintedValues::Deny {
            let tainted = find(texts.all());
            let patches = if tainted.is_empty() {
                texts.read(record, setting.budget)
            } else {
                Patches::default()
            };
            return Ok(Written { patches, missing, tainted });
        }
        let patches = texts.read(record, setting.budget);
        // A pod without all patches is denied, as by Istio.
        let tainted = texts.all().filter(|_| patches.is_whole()).map(|all| find(Some(all)));
        Ok(Written { patches, missing, tainted: tainted.unwrap_or_default() })
    }

    fn owner(&self, pod: &Json) -> Cow<'_, Owner> {
        match &self.owner {
            Some(owner) => Cow::Borrowed(owner),
            None => Cow::Owned(Owner::of(pod, &self.namespace, self.revision.release)),
        }
    }

    /// Those of the values that templates have read which changed more than their scalar. `texts` is what
    /// the templates have written; `None` if one of them failed.
    fn tainted_of(
        &self,
        forms: &Forms,
        read: Vec<taint::Source>,
        texts: Option<&[Text<'_>]>,
        setting: Setting<'_>,
    ) -> Vec<Tainted> {
        // Templates that failed because of the budget say nothing about the values.
        if read.is_empty() || texts.is_none() && setting.budget.is_spent() {
            return Vec::new();
        }
        // A budget of its own: otherwise a pod close to its limit would be denied because of the
        // guard alone.
        let budget = Budget::of(&forms.original, setting.budget.is_over());
        let setting = Setting { budget: &budget, record: None, ..setting };
        let mut first = None;
        // A template may read the value as JSON or as a number. It is tainted only if no form of a
        // neutral value gives its shape.
        for &form in sources::forms(&forms.original, &read) {
            let Some(found) = self.neutral_texts(forms, &read, form, setting) else { continue };
            let neutral: Vec<_> = found.iter().map(|text| Shape::of(text, &budget)).collect();
            let changed = changed(texts, &neutral, &budget);
            if changed.is_empty() {
                return Vec::new();
            }
            first.get_or_insert((form, neutral, changed));
        }
        let Some((form, neutral, all)) = first else {
            // Nothing says that the values are the reason why the templates fail.
            return texts.filter(|texts| are_documents(texts)).map_or_else(Vec::new, |texts| {
                let all: Vec<_> = texts.iter().map(|text| text.by.name).collect();
                read.into_iter().map(|source| tainted(source, &all)).collect()
            });
        };
        let mut blamed = Vec::new();
        if read.len() > 1 && read.len() <= MAX_BLAMED {
            for source in &read {
                let others: Vec<_> =
                    read.iter().filter(|other| *other != source).cloned().collect();
                let found = self.neutral_texts(forms, &others, form, setting);
                let changed = changed(found.as_deref(), &neutral, &budget);
                if !changed.is_empty() {
                    blamed.push(tainted(source.clone(), &changed));
                }
            }
        }
        // Values may leave their scalar only together. A denial must name something: all of them.
        if blamed.is_empty() || budget.is_spent() {
            return read.into_iter().map(|source| tainted(source, &all)).collect();
        }
        blamed
    }

    /// What the templates write for the pod with neutral values at these sources; `None` if one of
    /// them fails, or the budget is spent.
    fn neutral_texts(
        &self,
        forms: &Forms,
        sources: &[taint::Source],
        form: Form,
        setting: Setting<'_>,
    ) -> Option<Vec<Text<'i>>> {
        setting.budget.spend(steps_of(&forms.original)).ok()?;
        let (neutral, data) = self.neutral(forms, sources, form, setting)?;
        let source = Source { data: &data, record: None, budget: setting.budget };
        let (texts, _) = neutral.render(source, self.asked_templates());
        texts.into_all()
    }

    /// The injection of the pod with neutral values at these sources, and its data; `None` if there is
    /// none.
    fn neutral(
        &self,
        forms: &Forms,
        sources: &[taint::Source],
        form: Form,
        setting: Setting<'_>,
    ) -> Option<(Self, Value)> {
        let pod = &*forms.original;
        let neutral_forms = forms.map(|pod| sources::neutral_pod(pod, sources, form));
        let has = |source: taint::Source| sources.contains(&source);
        let is_other_namespace = has(taint::Source::Name(NameOf::Namespace));
        let is_other_owner = is_other_namespace || has(taint::Source::Name(NameOf::Owner));
        let owner = self.owner(pod);
        let namespace = self.namespace.clone();
        let neutral = Injection {
            revision: self.revision,
            pod: Arc::clone(&neutral_forms.original),
            namespace: if is_other_namespace { neutral::text(&namespace) } else { namespace },
            environment: self.environment.clone(),
            owner: Some(if is_other_owner {
                sources::neutral_owner(&owner)
            } else {
                owner.into_owned()
            }),
            patience: self.patience.clone(),
            // The renderings of the guard are not guarded themselves.
            tainted_values: TaintedValues::Off,
            tainted: Vec::new(),
        };
        let own = if has(taint::Source::Annotation(PROXY_CONFIG_ANNOTATION.to_owned())) {
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

    /// What one template writes for the pod with neutral values at these sources; `None` if it fails,
    /// or takes more than a pod may or than is left.
    pub(crate) fn neutral_text(
        &self,
        probed: Probed<'_>,
        sources: &[taint::Source],
        reads: &mut dyn Reads,
    ) -> Option<String> {
        let Probed { template, form, budget: all } = probed;
        all.spend(steps_of(&self.pod)).ok()?;
        let budget = all.of_pod(&self.pod);
        let (native, _) = self.revision.mode.is_native(None, "");
        let setting =
            Setting { cluster: PodCluster::default(), native, budget: &budget, record: None };
        let (_, data) = self.neutral(&self.forms(&self.pod).ok()?, sources, form, setting)?;
        self.with_context(Some(reads), all.is_over(), |context| {
            budget.lend(context);
            let text = template.execute(&data, context);
            all.settle(context, 0).ok()?;
            text.ok()
        })
    }
}

fn tainted(source: taint::Source, templates: &[&str]) -> Tainted {
    Tainted { source, templates: templates.iter().map(ToString::to_string).collect() }
}

fn are_documents(texts: &[Text<'_>]) -> bool {
    texts.iter().all(|text| document(&text.text, budget::YAML).is_ok())
}

fn has_odd_spec(pod: &Json) -> bool {
    pod.get("spec").is_some_and(sources::is_odd)
}

/// Those of the values that are not plain which templates have read.
fn read(record: &Record, suspects: Vec<taint::Source>, forms: &Forms) -> Vec<taint::Source> {
    let mut read = Vec::new();
    if !suspects.is_empty() {
        let metadata = record.read_of_metadata();
        let has_read = |source: &taint::Source| match source {
            taint::Source::Annotation(key) => {
                READ_OUTSIDE.contains(&&**key) || metadata.has("annotations", key)
            }
            taint::Source::Label(key) => metadata.has("labels", key),
            taint::Source::Name(_) => true,
        };
        read.extend(suspects.into_iter().filter(has_read));
    }
    read.extend(read_of_spec(record, forms));
    read
}

/// Where the texts come from that are not plain and that templates have read in the `spec`.
fn read_of_spec(record: &Record, forms: &Forms) -> Option<taint::Source> {
    let has_read = |pod: &Json| {
        pod.get("spec").is_some_and(|spec| record.has_read_of_spec(spec, &sources::is_odd))
    };
    if !has_read(&forms.stripped) {
        return None;
    }
    let is_own = Arc::ptr_eq(&forms.original, &forms.stripped)
        || annotation(&forms.stripped, OVERRIDES_ANNOTATION).is_none()
        || has_read(&forms.original);
    let of_overrides = || taint::Source::Annotation(OVERRIDES_ANNOTATION.to_owned());
    Some(if is_own { taint::Source::Name(NameOf::Part) } else { of_overrides() })
}
