//! Templates that are served together.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicU64, Ordering},
};

use injectd_core::lookups::{Metadata, Patience};
use injectd_templates::{
    Template,
    excerpt::{self, Excerpt},
    mark,
    object::KeyPlace,
    reads::{Needs, Reads, of_template},
};
use injectd_templates_tree::{Changed, Denied, Request, inject_while};
use moka::sync::Cache;
use serde_json::{Map, Value};

use crate::{candidates::Candidates, object::Object};

/// Choices of templates whose needs are kept: pods of a cluster ask for few combinations of templates.
const MAX_CHOICES: u64 = 1 << 10;

/// Templates that are served together.
#[derive(Debug)]
pub(crate) struct Set {
    /// In the order in which they are applied.
    templates: Vec<Arc<Template>>,
    /// What each of them reads.
    needs: Vec<Needs>,
    candidates: Candidates,
    /// injectd's own namespace.
    own_namespace: Option<String>,
    choices: Cache<Box<[usize]>, Arc<Choice>>,
    last_choice: AtomicU64,
}

/// Templates that may be for a pod, and what they read together.
#[derive(Debug)]
pub(crate) struct Choice {
    /// No other choice of the set has it.
    pub(crate) number: u64,
    templates: Box<[usize]>,
    pub(crate) needs: Needs,
    /// What is read of a pod that an excerpt does not say enough of: the same for most choices.
    all: Arc<Reads>,
}

/// What is read of a pod.
#[derive(Debug)]
pub(crate) struct Extract {
    /// JSON.
    pub(crate) text: Vec<u8>,
    /// Whether it is all that may be read of any pod; else it is only what is read of most.
    pub(crate) is_all: bool,
}

/// What is known about where a pod comes from.
#[derive(Debug)]
pub(crate) struct Origin<'o> {
    /// The name of its namespace.
    pub(crate) namespace: &'o str,
    /// Labels and annotations of its namespace.
    pub(crate) of_namespace: &'o Metadata,
    /// Its ServiceAccount, if it is there and read.
    pub(crate) service_account: Option<Value>,
    /// The objects of its owners, the nearest first, if they are read.
    pub(crate) owners: Vec<Value>,
}

impl Set {
    pub(crate) fn new(mut templates: Vec<Arc<Template>>, own_namespace: Option<String>) -> Self {
        templates.sort_by_cached_key(|template| template.order());
        Self {
            needs: templates.iter().map(|template| of_template(template)).collect(),
            candidates: Candidates::of(&templates),
            templates,
            own_namespace,
            choices: Cache::new(MAX_CHOICES),
            last_choice: AtomicU64::new(0),
        }
    }

    pub(crate) fn templates(&self) -> &[Arc<Template>] {
        &self.templates
    }

    /// What all templates read together.
    pub(crate) fn needs(&self) -> Needs {
        together(&self.needs)
    }

    /// What each of the templates reads.
    pub(crate) fn needs_of_each(&self) -> &[Needs] {
        &self.needs
    }

    pub(crate) fn own_namespace(&self) -> Option<&str> {
        self.own_namespace.as_deref()
    }

    /// The templates that may be for a pod; `None` if none is.
    pub(crate) fn choose(
        &self,
        object: &Object<'_>,
        namespace: &str,
        of_namespace: &Metadata,
    ) -> Option<Arc<Choice>> {
        if self.own_namespace.as_deref() == Some(namespace) {
            return None;
        }
        let found = self.candidates.find(namespace, |place, then| match place {
            KeyPlace::PodLabel => object.labels().for_each(|(key, _)| then(key)),
            KeyPlace::PodAnnotation => object.annotations().for_each(|(key, _)| then(key)),
            KeyPlace::NamespaceLabel => {
                of_namespace.labels.iter().for_each(|(key, _)| then(key));
            }
            KeyPlace::NamespaceAnnotation => {
                of_namespace.annotations.iter().for_each(|(key, _)| then(key));
            }
        });
        if found.is_empty() {
            return None;
        }
        // A hit needs no copy of the list as a key.
        if let Some(choice) = self.choices.get(&*found) {
            return Some(choice);
        }
        Some(self.choices.get_with(found.clone().into(), || Arc::new(self.choice(&found))))
    }

    fn choice(&self, templates: &[usize]) -> Choice {
        let mut needs = Needs::default();
        for at in templates {
            needs.add(&self.needs[*at]);
        }
        // What is kept of a namespace is the same for all choices.
        needs.namespace = Reads::default();
        if needs.service_account.is_some() {
            needs.pod.at(["spec", "serviceAccountName"]).read_whole();
        }
        let mut all = needs.pod.clone();
        read_all(&mut all);
        let all = all.settled();
        needs.pod = needs.pod.settled();
        Choice {
            // Relaxed: the number only has to differ from others, and the cache publishes the
            // choice.
            number: self.last_choice.fetch_add(1, Ordering::Relaxed) + 1,
            templates: templates.into(),
            needs,
            all: if **USUAL_ALL == all { Arc::clone(&USUAL_ALL) } else { Arc::new(all) },
        }
    }

    /// Evaluates the templates of a choice for a pod.
    pub(crate) fn evaluate(
        &self,
        choice: &Choice,
        pod: &Value,
        origin: &Origin<'_>,
        patience: Option<&dyn Patience>,
    ) -> Result<Changed, Denied> {
        let templates: Vec<_> = choice.templates.iter().map(|at| &*self.templates[*at]).collect();
        let request = Request {
            pod,
            namespace: &origin.namespace_object(),
            service_account: origin.service_account.as_ref(),
            owners: &origin.owners,
            own_namespace: self.own_namespace.as_deref(),
        };
        inject_while(patience, &templates, &request)
    }
}

/// What is read of a pod that has a container of a template, or may have one.
const ALL: [&[&str]; 10] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "generateName"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "labels"],
    &["metadata", "annotations"],
    &["metadata", "ownerReferences"],
    &["spec"],
];

/// What is read of such a pod if no template reads more.
static USUAL_ALL: LazyLock<Arc<Reads>> = LazyLock::new(|| {
    let mut all = Reads::default();
    read_all(&mut all);
    Arc::new(all.settled())
});

fn read_all(all: &mut Reads) {
    for path in ALL {
        all.at(path.iter().copied()).read_whole();
    }
}

/// What templates read together. Halves are added to each other: what one template reads is few keys, and
/// what all read is many.
fn together(needs: &[Needs]) -> Needs {
    match needs {
        [] => Needs::default(),
        [one] => one.clone(),
        _ => {
            let (one, other) = needs.split_at(needs.len() / 2);
            let mut all = together(one);
            all.add(&together(other));
            all
        }
    }
}

impl Choice {
    /// What is read of a pod.
    ///
    /// # Errors
    /// The pod is not JSON where it is read.
    pub(crate) fn extract(
        &self,
        object: &Object<'_>,
    ) -> Result<Extract, injectd_core::json::ReadError> {
        // With a mark, an earlier injection is compared with the pod as it is: any part of it may
        // have changed.
        let has_mark = object.annotations().any(|(key, _)| key == mark::ANNOTATION);
        if !has_mark && !self.needs.reads_all {
            let Excerpt { text, has_own_name } = excerpt::excerpt(object.text, &self.needs.pod)?;
            if !has_own_name {
                return Ok(Extract { text, is_all: false });
            }
        }
        let Excerpt { text, .. } = excerpt::excerpt(object.text, &self.all)?;
        Ok(Extract { text, is_all: true })
    }
}

impl Origin<'_> {
    pub(crate) fn namespace_object(&self) -> Value {
        let map = |entries: &[(String, String)]| {
            let entries = entries.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
            Value::Object(entries.collect())
        };
        let metadata = Map::from_iter([
            ("name".to_owned(), self.namespace.into()),
            ("labels".to_owned(), map(&self.of_namespace.labels)),
            ("annotations".to_owned(), map(&self.of_namespace.annotations)),
        ]);
        Value::Object(Map::from_iter([("metadata".to_owned(), Value::Object(metadata))]))
    }
}
