//! What must be true of a pod, in CEL for an API server and in words for a person.

use std::fmt;

use injectd_k8s::selector::{Operator, Requirement};

use crate::{
    matching::{OFF, ON, SYSTEM_PRIORITY_CLASSES},
    object::KeyPlace,
};

/// The label that has the name of a namespace. An API server sets it.
pub(super) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Characters of a list of names that is looked at: a longer one is taken for one with the name.
// The costs for as many lists as an entry has terms are small beside the limit of an API server.
const MAX_NAMES: usize = 256;

/// Something that is true of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact {
    /// What the key of enablement says in a label or an annotation of the pod.
    Says { place: KeyPlace, key: String, word: Word },
    /// A requirement for a label of the pod.
    Label(Requirement),
    /// A requirement for the name of the namespace.
    NamespaceName(Requirement),
    /// The pod has no priority class of the system.
    NoSystemClass,
    /// A condition of the author holds, or fails.
    Condition { name: String, text: String },
}

/// What the key of enablement says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// It switches the template on.
    On,
    /// The same, or it has the name of the template.
    OnOrName(String),
    /// It is not there, or does not switch the template off.
    NotOff,
}

impl Fact {
    /// Whether each pod of which this is true is one of which the other is true.
    pub(super) fn implies(&self, other: &Self) -> bool {
        let is_of_same_key = match (self, other) {
            (Self::Says { place, key, .. }, Self::Says { place: other, key: of, .. }) => {
                place == other && key == of
            }
            _ => false,
        };
        self == other
            || is_of_same_key
                && matches!(other, Self::Says { word: Word::NotOff, .. })
                && matches!(self, Self::Says { word: Word::On, .. })
    }

    /// Another fact that this one implies, if there is one.
    pub(super) fn follows(&self) -> Option<Self> {
        match self {
            Self::Says { place, key, word: Word::On } => {
                Some(Self::Says { place: *place, key: key.clone(), word: Word::NotOff })
            }
            _ => None,
        }
    }

    /// The fact as CEL that does not fail.
    pub(super) fn cel(&self) -> String {
        match self {
            Self::Says { place, key, word } => says(*place, key, word),
            Self::Label(requirement) => label(requirement),
            Self::NamespaceName(requirement) => namespace_name(requirement),
            Self::NoSystemClass => {
                let class = "object.spec.priorityClassName";
                format!("!(has({class}) && {class} in {})", list(SYSTEM_PRIORITY_CLASSES))
            }
            Self::Condition { text, .. } => bracketed(text),
        }
    }
}

/// The map with the keys of a place.
fn map_of(place: KeyPlace) -> &'static str {
    match place {
        KeyPlace::PodLabel | KeyPlace::NamespaceLabel => "object.metadata.labels",
        KeyPlace::PodAnnotation | KeyPlace::NamespaceAnnotation => "object.metadata.annotations",
    }
}

fn says(place: KeyPlace, key: &str, word: &Word) -> String {
    let (map, key) = (map_of(place), quoted(key));
    // A pod without any label has no such map: the condition would fail, and the webhook's failure
    // policy would decide about the pod.
    let has_key = format!("has({map}) && {key} in {map}");
    let value = format!("{map}[{key}]");
    // An annotation may be so long that the condition would cost more than it may, and fail.
    let size = |test: &str, length: usize, then: &str| match place {
        KeyPlace::PodAnnotation => format!("size({value}) {test} {length} {then} "),
        _ => String::new(),
    };
    let is_one_of = |words| format!("{value}.lowerAscii() in {}", list(words));
    let is_short = |words: [&str; 2]| {
        let longest = words.map(str::len).into_iter().max().unwrap_or_default();
        size("<=", longest, "&&")
    };
    match word {
        Word::On => format!("{has_key} && {}{}", is_short(ON), is_one_of(ON)),
        Word::NotOff => format!("!({has_key} && {}{})", is_short(OFF), is_one_of(OFF)),
        Word::OnOrName(name) => {
            let name = quoted(name);
            let is_named = format!("{value}.split(',').exists(name, name.trim() == {name})");
            format!("{has_key} && ({}{} || {is_named})", size(">", MAX_NAMES, "||"), is_one_of(ON))
        }
    }
}

fn label(requirement: &Requirement) -> String {
    let map = map_of(KeyPlace::PodLabel);
    let key = quoted(requirement.key());
    let has_key = format!("has({map}) && {key} in {map}");
    let values = || list(requirement.values().iter().map(String::as_str));
    match requirement.operator() {
        Operator::In => format!("{has_key} && {map}[{key}] in {}", values()),
        Operator::NotIn => format!("!({has_key} && {map}[{key}] in {})", values()),
        Operator::Exists => has_key,
        Operator::DoesNotExist => format!("!({has_key})"),
    }
}

/// Each namespace has the label.
fn namespace_name(requirement: &Requirement) -> String {
    let values = || list(requirement.values().iter().map(String::as_str));
    match requirement.operator() {
        Operator::In => format!("request.namespace in {}", values()),
        Operator::NotIn => format!("!(request.namespace in {})", values()),
        Operator::Exists => "true".to_owned(),
        Operator::DoesNotExist => "false".to_owned(),
    }
}

/// An expression of an author in brackets. It may end in a comment, which goes on to the end of its line.
pub(super) fn bracketed(text: &str) -> String {
    format!("({text}\n)")
}

/// A text as CEL.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn list<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    format!("[{}]", texts.into_iter().map(quoted).collect::<Vec<_>>().join(", "))
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Says { place, key, word } => {
                let layer = match place {
                    KeyPlace::PodLabel | KeyPlace::NamespaceLabel => "label",
                    KeyPlace::PodAnnotation | KeyPlace::NamespaceAnnotation => "annotation",
                };
                match word {
                    Word::On => write!(f, "{layer} {key} is {}", either(ON)),
                    Word::NotOff => write!(f, "{layer} {key} is not {}", either(OFF)),
                    Word::OnOrName(name) => {
                        write!(f, "{layer} {key} is {} or names {name}", either(ON))
                    }
                }
            }
            Self::Label(requirement) => f.write_str(&of_label(requirement)),
            Self::NamespaceName(requirement) => write!(f, "the namespace {}", asked(requirement)),
            Self::NoSystemClass => {
                write!(f, "the priority class is not {}", either(SYSTEM_PRIORITY_CLASSES))
            }
            Self::Condition { name, .. } => write!(f, "condition {name} holds"),
        }
    }
}

/// A requirement for a label of the namespace, in words.
pub(super) fn of_namespace(requirement: &Requirement) -> String {
    if requirement.key() == NAMESPACE_NAME {
        return format!("the name {}", asked(requirement));
    }
    of_label(requirement)
}

/// A requirement for a label of the pod, in words.
pub(super) fn of_label(requirement: &Requirement) -> String {
    format!("label {} {}", requirement.key(), asked(requirement))
}

/// What a requirement asks, in words.
fn asked(requirement: &Requirement) -> String {
    let values = || either(requirement.values().iter().map(String::as_str));
    match requirement.operator() {
        Operator::In => format!("is {}", values()),
        Operator::NotIn => format!("is not {}", values()),
        Operator::Exists => "is set".to_owned(),
        Operator::DoesNotExist => "is not set".to_owned(),
    }
}

fn either<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let quoted = |text: &'t str| if text.is_empty() { "\"\"" } else { text };
    texts.into_iter().map(quoted).collect::<Vec<_>>().join(" or ")
}
