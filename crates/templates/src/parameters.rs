//! The parameters of a template are checked when it is read. [`Form`] reads their values.
//!
//! Not for the values of a pod: who evaluates a template looks at its [`sources`].

use std::collections::BTreeMap;

use injectd_cel::RESERVED;
use injectd_k8s::names::is_qualified_name;

use self::reader::shown;
use crate::{
    Problem,
    object::{Empty, OnInvalid, Parameter, ParameterKeys, ParameterSource, ParameterType},
};

mod form;
mod reader;
mod scalar;
mod source;

#[cfg(test)]
pub(crate) mod tests;

pub use self::{
    form::{Form, InvalidItems, Items, ReadItems},
    reader::{Count, Reader},
    scalar::{ScalarValue, must_be},
    source::sources,
};

/// Checks parameters, and the keys that they have.
#[must_use]
pub fn check(parameters: &[Parameter], keys: Option<&ParameterKeys>) -> Vec<Problem> {
    let mut check =
        Check { keys, names: BTreeMap::new(), families: BTreeMap::new(), problems: Vec::new() };
    check.keys();
    for (at, parameter) in parameters.iter().enumerate() {
        Checked { parameter, at, field: format!("spec.parameters[{at}]") }.check(&mut check);
    }
    check.problems
}

/// How the values of parameters are read: patterns and bounds are compiled once.
///
/// # Errors
/// All problems of types and bounds.
pub fn forms(parameters: &[Parameter]) -> Result<Vec<Form>, Vec<Problem>> {
    let parameters = parameters.iter().enumerate();
    parameters.map(|(at, of)| Form::new(of, &format!("spec.parameters[{at}]"))).collect()
}

/// Why a name is not an identifier of CEL, which expressions could use.
#[must_use]
pub fn identifier_problem(name: &str) -> Option<String> {
    let is_first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let is_next = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if !name.starts_with(is_first) || !name.chars().all(is_next) {
        return Some(format!(
            "found {}; expected a name of CEL: letters, digits and _, not a digit first",
            shown(name)
        ));
    }
    RESERVED
        .contains(&name)
        .then(|| format!("found {}; CEL keeps this word for itself: use another name", shown(name)))
}

/// Whether a pod that is not denied may be without a value. An empty source may hide a default.
#[must_use]
pub fn may_be_absent(parameter: &Parameter) -> bool {
    let hides = parameter.empty == Empty::Value && parameter.r#type != ParameterType::String;
    let has_default = parameter.default.is_some() && !hides;
    parameter.r#type != ParameterType::Map && !parameter.required && !has_default
}

/// What was found up to a parameter.
struct Check<'t> {
    keys: Option<&'t ParameterKeys>,
    /// The names of parameters, and their indexes.
    names: BTreeMap<&'t str, usize>,
    /// The prefixes of keys, and the indexes of their parameters.
    families: BTreeMap<&'t str, usize>,
    problems: Vec<Problem>,
}

/// A parameter that is checked.
struct Checked<'t> {
    parameter: &'t Parameter,
    at: usize,
    field: String,
}

impl Check<'_> {
    fn add(&mut self, field: String, text: impl Into<String>) {
        self.problems.push(Problem::new(field, text));
    }

    fn keys(&mut self) {
        let Some(keys) = self.keys else { return };
        if !is_beginning(&keys.prefix) {
            let text = format!(
                "found {}; expected the beginning of an annotation's key, such as example.com/",
                shown(&keys.prefix)
            );
            self.add("spec.parameterKeys.prefix".to_owned(), text);
        }
        if keys.r#in.is_empty() {
            self.add(
                "spec.parameterKeys.in".to_owned(),
                "found no place; list at least one of PodLabel, PodAnnotation, \
                 NamespaceLabel and NamespaceAnnotation",
            );
        }
    }
}

impl<'t> Checked<'t> {
    fn check(&self, check: &mut Check<'t>) {
        self.name(check);
        self.key(check);
        self.sources(check);
        self.fields(check);
        match Form::new(self.parameter, &self.field) {
            Ok(form) => self.default(&form, check),
            Err(problems) => check.problems.extend(problems),
        }
    }

    fn below(&self, name: &str) -> String {
        format!("{}.{name}", self.field)
    }

    fn is(&self, of: ParameterType) -> bool {
        self.parameter.r#type == of
    }

    fn name(&self, check: &mut Check<'t>) {
        let name = &*self.parameter.name;
        if let Some(problem) = identifier_problem(name) {
            check.add(self.below("name"), problem);
        }
        if let Some(first) = check.names.get(name) {
            let text =
                format!("parameters[{first}] has the name {}, too; use another name", shown(name));
            check.add(self.below("name"), text);
        } else {
            check.names.insert(name, self.at);
        }
    }

    fn key(&self, check: &mut Check<'t>) {
        let Some(key) = &self.parameter.key else { return };
        let problem = match check.keys {
            None => Some(
                "there is no parameterKeys that gives the key its prefix; add it, or use from"
                    .to_owned(),
            ),
            Some(_) if self.is(ParameterType::Map) => {
                Some("a Map has no key of its own; use from with podAnnotationPrefix".to_owned())
            }
            Some(keys) => {
                let whole = format!("{}{key}", keys.prefix);
                (is_beginning(&keys.prefix) && !is_key(&whole)).then(|| {
                    format!(
                        "found {}; with its prefix it is not the key of an annotation: {}",
                        shown(key),
                        shown(&whole)
                    )
                })
            }
        };
        if let Some(problem) = problem {
            check.add(self.below("key"), problem);
        }
    }

    fn sources(&self, check: &mut Check<'t>) {
        let is_map = self.is(ParameterType::Map);
        for (at, source) in self.parameter.from.iter().enumerate() {
            if let Some(text) = self.source_problem(source, check) {
                check.add(self.below(&format!("from[{at}]")), text);
            }
        }
        let has_prefix = self.parameter.from.iter().any(ParameterSource::is_prefix);
        if is_map && !has_prefix {
            check.add(
                self.below("from"),
                "a Map needs a source that is a prefix; add podAnnotationPrefix or \
                 namespaceAnnotationPrefix",
            );
        }
        if !is_map && self.parameter.required && sources(self.parameter, check.keys).is_empty() {
            check.add(
                self.below("from"),
                "the parameter is required, but has no source; add one, or a key",
            );
        }
    }

    fn source_problem(&self, source: &'t ParameterSource, check: &mut Check<'t>) -> Option<String> {
        match (self.is(ParameterType::Map), source.is_prefix()) {
            (true, false) => {
                let text = "a Map reads prefixes only; use podAnnotationPrefix or \
                    namespaceAnnotationPrefix";
                return Some(text.to_owned());
            }
            (false, true) => {
                let of = self.parameter.r#type;
                return Some(format!(
                    "only a Map reads a prefix, and the type is {of:?}; use podAnnotation or \
                     namespaceAnnotation"
                ));
            }
            _ => {}
        }
        let key = source.key();
        if !source.is_prefix() {
            return (!is_key(key)).then(|| {
                format!(
                    "found {}; expected the key of an annotation or label, such as \
                     example.com/name",
                    shown(key)
                )
            });
        }
        if !is_beginning(key) {
            return Some(format!(
                "found {}; expected the beginning of an annotation's key, such as \
                 example.com/name-",
                shown(key)
            ));
        }
        let first = *check.families.entry(key).or_insert(self.at);
        (first != self.at).then(|| {
            format!("parameters[{first}] has the prefix {}, too; use another prefix", shown(key))
        })
    }

    /// Fields that the type does not have, or that exclude each other.
    fn fields(&self, check: &mut Check<'t>) {
        let Parameter {
            r#type: of, default, required, on_invalid, items, values, separator, ..
        } = self.parameter;
        let (is_list, is_map) = (self.is(ParameterType::List), self.is(ParameterType::Map));
        let mut wrong = |is_wrong: bool, name: &str, text: String| {
            if is_wrong {
                check.add(self.below(name), text);
            }
        };
        let only = |known: &str| {
            format!("the field belongs to {known}, and the type is {of:?}; remove it")
        };
        wrong(!is_list && items.is_some(), "items", only("List"));
        wrong(!is_map && values.is_some(), "values", only("Map"));
        wrong(!is_list && separator != ",", "separator", only("List"));
        wrong(
            is_map && default.is_some(),
            "default",
            "a Map has no default: without entries it is empty; remove it".to_owned(),
        );
        wrong(
            is_map && *required,
            "required",
            "a Map is never absent; use minItems instead".to_owned(),
        );
        wrong(
            !is_map && *required && default.is_some(),
            "required",
            "a parameter with a default is never without a value; remove required or default"
                .to_owned(),
        );
        wrong(
            *on_invalid == OnInvalid::DropItem && !is_list && !is_map,
            "onInvalid",
            format!(
                "DropItem is for items and entries, and the type is {of:?}; use Deny, NextSource or \
                 UseDefault"
            ),
        );
        wrong(
            *on_invalid == OnInvalid::UseDefault && is_map,
            "onInvalid",
            "a Map has no default; use Deny, NextSource or DropItem".to_owned(),
        );
    }

    fn default(&self, form: &Form, check: &mut Check<'t>) {
        let Some(default) = &self.parameter.default else { return };
        let problem = match form {
            Form::One(reader) => {
                reader.read(default).err().map(|reason| format!("the value {reason}"))
            }
            Form::Items(items) => {
                let read = items.read(default);
                let invalid = read
                    .invalid
                    .map(|invalid| format!("item {} {}", invalid.first, invalid.reason));
                let count = items.count().check(read.values.len());
                invalid.or_else(|| count.err().map(|reason| format!("the list {reason}")))
            }
            Form::Entries { .. } => None,
        };
        if let Some(problem) = problem {
            check.add(self.below("default"), format!("found {}; {problem}", shown(default)));
        }
    }
}

/// Whether an annotation may have the key.
fn is_key(key: &str) -> bool {
    // An API server accepts upper case in the prefix of an annotation.
    is_qualified_name(&key.to_ascii_lowercase())
}

/// Whether keys of annotations begin with it.
fn is_beginning(prefix: &str) -> bool {
    !prefix.is_empty() && is_key(&format!("{prefix}a"))
}
