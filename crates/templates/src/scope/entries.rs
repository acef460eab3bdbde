//! Ways are divided among entries of a webhook: a pod is in one of them at most.

use injectd_k8s::selector::{Operator, Requirement, Selector};

use super::{
    Entry,
    fact::{Fact, NAMESPACE_NAME},
    way::{Way, without_others},
};

/// Entries, at most: one for each label of namespaces, and one for all others.
const MAX_ENTRIES: usize = 16;
/// Bytes of a condition.
// An API server evaluates it for each pod of the cluster, and each person who reads the
// configuration sees it.
const MAX_BYTES: usize = 16 << 10;
/// Terms of a condition.
const MAX_TERMS: usize = 64;

/// The ways of one entry.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) namespace: Vec<Requirement>,
    pub(super) labels: Vec<Requirement>,
    pub(super) ways: Vec<Way>,
}

/// Divides ways by labels of namespaces, which no condition can read.
pub(super) fn divided(ways: Vec<Way>) -> Vec<Part> {
    let (mut parts, mut selector, mut rest) = (Vec::new(), Vec::new(), ways);
    while !rest.is_empty() {
        selector.extend(take_common(&mut rest));
        let next = if parts.len() + 1 < MAX_ENTRIES { divider(&rest) } else { None };
        let Some(next) = next else {
            parts.push(part(selector, rest));
            break;
        };
        let inside = rest.iter().filter(|way| !is_excluded(&way.namespace, &next)).cloned();
        let mut inside: Vec<_> = inside.collect();
        for way in &mut inside {
            way.namespace.retain(|requirement| *requirement != next);
        }
        let mut of_inside = selector.clone();
        of_inside.push(next.clone());
        of_inside.extend(take_common(&mut inside));
        parts.push(part(of_inside, inside));
        rest.retain(|way| !way.namespace.contains(&next));
        selector.push(opposite(&next));
    }
    parts
}

/// A requirement that divides: one that says what is there, if there is one.
fn divider(ways: &[Way]) -> Option<Requirement> {
    let all = || ways.iter().flat_map(|way| &way.namespace).filter(|one| is_of_label(one));
    let is_positive =
        |one: &&Requirement| matches!(one.operator(), Operator::In | Operator::Exists);
    all().find(is_positive).or_else(|| all().next()).cloned()
}

fn is_of_label(requirement: &Requirement) -> bool {
    requirement.key() != NAMESPACE_NAME
}

/// The requirement that is met if the other one is not.
fn opposite(requirement: &Requirement) -> Requirement {
    let operator = match requirement.operator() {
        Operator::In => Operator::NotIn,
        Operator::NotIn => Operator::In,
        Operator::Exists => Operator::DoesNotExist,
        Operator::DoesNotExist => Operator::Exists,
    };
    let values: Vec<_> = requirement.values().iter().map(String::as_str).collect();
    Requirement::new(requirement.key(), operator, &values)
}

/// Whether no label meets all requirements and one more.
fn is_excluded(requirements: &[Requirement], one: &Requirement) -> bool {
    let both = requirements.iter().chain([one]).filter(|other| other.key() == one.key());
    let both: Selector = both.cloned().collect();
    both.example().is_none()
}

/// Takes the requirements for namespaces that all ways have.
fn take_common(ways: &mut [Way]) -> Vec<Requirement> {
    let common = common(ways, |way| &way.namespace);
    for way in ways {
        way.namespace.retain(|requirement| !common.contains(requirement));
    }
    common
}

/// What all ways have.
fn common<T: Clone + PartialEq>(ways: &[Way], of: impl Fn(&Way) -> &[T]) -> Vec<T> {
    let Some((first, others)) = ways.split_first() else { return Vec::new() };
    let is_common = |one: &&T| others.iter().all(|way| of(way).contains(one));
    of(first).iter().filter(is_common).cloned().collect()
}

/// What is left of labels of namespaces is left out, and names become facts.
fn part(mut namespace: Vec<Requirement>, mut ways: Vec<Way>) -> Part {
    namespace.dedup();
    for way in &mut ways {
        let names = std::mem::take(&mut way.namespace);
        let names = names.into_iter().filter(|requirement| !is_of_label(requirement));
        way.facts.splice(0..0, names.map(Fact::NamespaceName));
    }
    let mut ways = without_others(ways);
    let common = common(&ways, |way| &way.facts);
    let labels = common.into_iter().filter_map(|fact| match fact {
        Fact::Label(requirement) => Some(requirement),
        _ => None,
    });
    let labels: Vec<_> = labels.collect();
    for way in &mut ways {
        way.facts.retain(|fact| !matches!(fact, Fact::Label(one) if labels.contains(one)));
    }
    Part { namespace, labels, ways }
}

impl Part {
    /// Whether it has all pods of all namespaces, but those of the system and some by name.
    pub(super) fn is_all(&self) -> bool {
        let is_name = |one: &Requirement| !is_of_label(one) && one.operator() == Operator::NotIn;
        self.labels.is_empty() && self.namespace.iter().all(is_name) && self.widest().is_some()
    }

    /// A way that asks of a pod only that it is not of the system.
    pub(super) fn widest(&self) -> Option<&Way> {
        self.ways
            .iter()
            .find(|way| way.facts.iter().all(|fact| matches!(fact, Fact::NoSystemClass)))
    }

    /// The entry.
    ///
    /// # Errors
    /// Its condition is too long.
    pub(super) fn entry(&self) -> Result<Entry, String> {
        let is_open = self.ways.iter().any(|way| way.facts.is_empty());
        let terms: Vec<_> = self.ways.iter().map(term).collect();
        if terms.len() > MAX_TERMS {
            let count = terms.len();
            return Err(format!("the condition has {count} terms, more than {MAX_TERMS}"));
        }
        let condition = match &*terms {
            [term] => term.clone(),
            terms => terms.iter().map(|term| format!("({term})")).collect::<Vec<_>>().join(" || "),
        };
        if condition.len() > MAX_BYTES {
            let length = condition.len();
            return Err(format!("the condition has {length} bytes, more than {MAX_BYTES}"));
        }
        Ok(Entry {
            namespace_selector: self.namespace.iter().cloned().collect(),
            object_selector: self.labels.iter().cloned().collect(),
            condition: (!is_open).then_some(condition),
            pods: self.ways.iter().map(in_words).collect(),
        })
    }

    /// All pods, but those that no way has by namespace or by the class of the system.
    pub(super) fn of_all(ways: &[Way]) -> Self {
        let mut ways = ways.to_vec();
        let namespace = take_common(&mut ways);
        let facts = common(&ways, |way| &way.facts);
        let facts = facts.into_iter().filter(|fact| *fact == Fact::NoSystemClass).collect();
        let mut way = Way { facts, ..Way::default() };
        for one in ways {
            way.join(one.templates);
        }
        part(namespace, vec![way])
    }
}

fn term(way: &Way) -> String {
    way.facts.iter().map(Fact::cel).collect::<Vec<_>>().join(" && ")
}

fn in_words(way: &Way) -> String {
    let facts: Vec<_> = way.facts.iter().map(ToString::to_string).collect();
    let templates: Vec<_> = way.templates.iter().map(ToString::to_string).collect();
    let templates = templates.join(", ");
    if facts.is_empty() {
        format!("all pods, for template {templates}")
    } else {
        format!("pods where {}, for template {templates}", facts.join(" and "))
    }
}
