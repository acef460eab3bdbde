//! The steps of a review.

mod lookup;
mod standing;

use std::sync::Arc;

use injectd_core::{
    lookups::{Asked, Lookups, Metadata, NoTurn, Patience, Turn, Turns},
    mesh::{Caller, InjectError, Mesh, Output, Reviewed},
    namespace::{KeyPattern, KeySet, MissingNamespace, NamespaceReads},
    object::Kind,
    outcome::{Configuration, Outcome, SkipReason, TemplateLookup, Verdict, Warning},
};
use injectd_memory::{Head, Key, Memory, Reading};
use injectd_templates::{Template, reads::Reads};
use injectd_templates_tree::mesh::{SKIP_REASONS, skip_reasons};
use serde_json::Value;

pub use self::standing::{Known, Unknown};
use crate::{
    answer::{Answer, Effect},
    object::Object,
    set::{Choice, Extract, Origin, Set},
    tree,
};

/// Bytes of an evaluation for each byte of the extract of a pod, and besides.
const EVALUATION: usize = 64;
const BASE: usize = 256 << 10;

/// Sidecar templates with what they remember.
#[derive(Debug)]
pub struct Templates {
    set: Set,
    configuration: Arc<Configuration>,
    namespace_reads: NamespaceReads,
    /// `None` if every pod is evaluated.
    memory: Option<Memory<Answer>>,
}

/// What follows from a decision.
#[derive(Debug)]
pub struct Plan<'r>(Option<Chosen<'r>>);

/// Templates that may be for a pod.
#[derive(Debug)]
struct Chosen<'r> {
    choice: Arc<Choice>,
    /// Labels and annotations of the namespace.
    namespace: &'r Metadata,
}

impl Templates {
    /// Templates that are served together; `generation` counts configurations from 1. Pods of
    /// `own_namespace`, injectd's, are never changed.
    #[must_use]
    pub fn new(
        templates: impl IntoIterator<Item = impl Into<Arc<Template>>>,
        own_namespace: Option<String>,
        generation: u64,
    ) -> Self {
        let templates: Vec<_> = templates.into_iter().map(Into::into).collect();
        let release = format!("{} templates", templates.len());
        let set = Set::new(templates, own_namespace);
        Self {
            namespace_reads: namespace_reads(&set.needs().namespace),
            set,
            configuration: Arc::new(Configuration { generation, release }),
            memory: Some(Memory::new(Reading::default())),
        }
    }

    /// The same without a memory: every pod is evaluated.
    #[must_use]
    pub fn without_memory(self) -> Self {
        Self { memory: None, ..self }
    }

    /// The templates, in the order in which they are applied.
    #[must_use]
    pub fn templates(&self) -> &[Arc<Template>] {
        self.set.templates()
    }

    /// How many answers are kept for pods that read the same.
    #[must_use]
    pub fn answer_count(&self) -> u64 {
        self.memory.as_ref().map_or(0, Memory::count)
    }
}

/// What is read of namespaces, as keys of labels and annotations.
fn namespace_reads(reads: &Reads) -> NamespaceReads {
    let pattern = |key: &str| KeyPattern::Key(key.to_owned().into());
    let prefix = |prefix: &str| KeyPattern::Prefix(prefix.to_owned().into());
    let keys = |map: &str| -> KeySet {
        let of_map = reads.of_member("metadata").and_then(|metadata| metadata.of_member(map));
        match of_map.map(Reads::keys) {
            None => KeySet::default(),
            Some(None) => [prefix("")].into_iter().collect(),
            Some(Some((keys, prefixes))) => {
                keys.into_iter().map(pattern).chain(prefixes.into_iter().map(prefix)).collect()
            }
        }
    };
    NamespaceReads {
        missing: MissingNamespace::Empty,
        annotations: keys("annotations"),
        labels: keys("labels"),
    }
}

impl Mesh for Templates {
    const NAME: &'static str = "templates";
    const SKIP_REASONS: &'static [SkipReason] = &SKIP_REASONS;
    type Object<'a> = Object<'a>;
    type Plan<'r> = Plan<'r>;

    fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    fn namespace_reads(&self) -> &NamespaceReads {
        &self.namespace_reads
    }

    async fn decide<'r, 'a>(
        &'r self,
        reviewed: Reviewed<'r, 'a, Object<'a>>,
        namespace: &'r Metadata,
        _: Option<&'r dyn Turns>,
        outcome: &mut Outcome<'a>,
    ) -> Result<Plan<'r>, NoTurn> {
        if reviewed.request.kind != Kind::Pod {
            return Ok(Plan(None));
        }
        if let Some(choice) =
            self.set.choose(reviewed.object, &reviewed.request.namespace, namespace)
        {
            Ok(Plan(Some(Chosen { choice, namespace })))
        } else {
            skip(outcome, &skip_reasons(&[]));
            Ok(Plan(None))
        }
    }

    async fn inject<'r, 'a>(
        &self,
        reviewed: Reviewed<'r, 'a, Object<'a>>,
        plan: &mut Plan<'r>,
        caller: Caller<'_, 'a, impl Lookups>,
        output: Output<'_, 'a>,
    ) -> Result<(), InjectError> {
        let Some(Chosen { choice, namespace }) = &plan.0 else { return Ok(()) };
        let extract = match choice.extract(reviewed.object) {
            Ok(extract) => extract,
            Err(error) => {
                write(&Answer::not_understood(&error), output);
                return Ok(());
            }
        };
        let mut origin = Origin {
            namespace: &reviewed.request.namespace,
            of_namespace: namespace,
            service_account: None,
            owners: Vec::new(),
        };
        // A pod whose answer is in memory needs no tree, unless a lookup needs names of the pod.
        let mut tree = None;
        if choice.needs.service_account.is_some() || choice.needs.reads_owners {
            match self::tree(&extract) {
                Ok(pod) => {
                    lookup::of_pod(&mut origin, &pod, &choice.needs, &caller).await?;
                    tree = Some(pod);
                }
                Err(error) => {
                    write(&Answer::not_understood(&error), output);
                    return Ok(());
                }
            }
        }
        let pod = Extracted { choice, extract: &extract, origin: &origin, tree };
        // The memory is asked before the turn: pods that are known do not queue behind new ones.
        let key = self.key(&pod);
        if let Some(answer) = self.known(key.as_ref()) {
            write_known(&answer, output);
            return Ok(());
        }
        let turn = match caller.turns {
            None => None,
            Some(turns) => {
                let memory = BASE + EVALUATION * extract.text.len();
                let namespace = origin.namespace;
                let waiting_bytes = extract.text.len();
                let turn = turns.next(Asked { namespace, waiting_bytes, memory }).await?;
                // A pod like it may have been evaluated meanwhile.
                if turn.has_waited
                    && let Some(answer) = self.known(key.as_ref())
                {
                    write_known(&answer, output);
                    return Ok(());
                }
                Some(turn)
            }
        };
        output.outcome.template = Some(TemplateLookup::Miss);
        let answer = Arc::new(self.evaluate(&pod, turn.as_ref())?);
        if let (Some(memory), Some(key)) = (&self.memory, key) {
            memory.keep_first(key, Arc::clone(&answer));
        }
        write(&answer, output);
        Ok(())
    }
}

/// A pod with all that its answer depends on.
struct Extracted<'e> {
    choice: &'e Choice,
    extract: &'e Extract,
    origin: &'e Origin<'e>,
    /// What is read as a tree, if that was needed before.
    tree: Option<Value>,
}

fn tree(extract: &Extract) -> Result<Value, serde_json::Error> {
    tree::read(&extract.text)
}

impl Templates {
    /// Evaluates templates, as long as the caller waits.
    fn evaluate(&self, pod: &Extracted<'_>, turn: Option<&Turn>) -> Result<Answer, NoTurn> {
        let Some(turn) = turn else { return Ok(self.evaluate_while(None, pod)) };
        let patience = turn.patience();
        let answer = turn.run(|| self.evaluate_while(Some(&*patience), pod));
        // The evaluation may have been given up.
        if patience.is_over() { Err(NoTurn::Late) } else { Ok(answer) }
    }

    fn evaluate_while(&self, patience: Option<&dyn Patience>, pod: &Extracted<'_>) -> Answer {
        let evaluated = |tree: &Value| {
            Answer::of(tree, self.set.evaluate(pod.choice, tree, pod.origin, patience))
        };
        match &pod.tree {
            Some(tree) => evaluated(tree),
            None => match tree(pod.extract) {
                Ok(tree) => evaluated(&tree),
                Err(error) => Answer::not_understood(&error),
            },
        }
    }

    /// The key of a pod's answer; `None` if it is not kept.
    fn key(&self, pod: &Extracted<'_>) -> Option<Key> {
        let memory = self.memory.as_ref()?;
        memory.whole_key(pod.head()?, pod.origin.namespace).ok()
    }

    /// The answer for an earlier pod.
    fn known(&self, key: Option<&Key>) -> Option<Arc<Answer>> {
        self.memory.as_ref()?.get(key?)
    }
}

impl Extracted<'_> {
    /// All that the answer depends on; `None` if it is too long to be kept.
    fn head(&self) -> Option<Head> {
        let Extract { text, is_all } = self.extract;
        let text = std::str::from_utf8(text).ok()?;
        let mut head = Head::new();
        // Two choices of templates may read the same of a pod, and answer differently.
        head.number(self.choice.number);
        head.flag(*is_all);
        head.text(self.origin.namespace);
        // All that the cache keeps of the namespace: it keeps no more than templates and meshes
        // read.
        for entries in [&self.origin.of_namespace.labels, &self.origin.of_namespace.annotations] {
            head.number(entries.len() as u64);
            for (key, value) in entries {
                head.text(key);
                head.text(value);
            }
        }
        head.flag(self.origin.service_account.is_some());
        for object in self.origin.service_account.iter().chain(&self.origin.owners) {
            head.text(&object.to_string());
        }
        head.text(text);
        Some(head)
    }
}

fn skip(outcome: &mut Outcome<'_>, reasons: &[usize]) {
    for reason in reasons {
        outcome.reasons.insert(*reason);
    }
    outcome.verdict = Verdict::Skipped;
}

/// Writes the answer for an earlier pod.
fn write_known(answer: &Answer, output: Output<'_, '_>) {
    output.outcome.template = Some(TemplateLookup::Hit);
    write(answer, output);
}

fn write(answer: &Answer, Output { patch, outcome }: Output<'_, '_>) {
    outcome.decisions = Some(Arc::clone(&answer.decisions));
    for problem in &answer.warnings {
        outcome.warnings.push(|| Warning { annotation: "", problem: problem.clone() });
    }
    match &answer.effect {
        Effect::Injected(segment) => {
            patch.begin(segment.base64_len());
            patch.segment(segment);
            outcome.verdict = Verdict::Injected;
        }
        Effect::Skipped(reasons) => skip(outcome, reasons),
        Effect::Denied(text) => outcome.deny(text.clone().into()),
    }
}
