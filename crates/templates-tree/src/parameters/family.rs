//! Maps: annotations whose keys begin with a prefix.

use std::collections::{BTreeMap, BTreeSet};

use injectd_templates::{
    object::{Empty, OnInvalid, Parameter, ParameterSource, ParameterType},
    parameters::{Reader, ScalarValue},
};

use super::{is_empty, named, shown, warnings::Warnings};
use crate::layers::Layers;

/// The prefixes of all Maps of a template.
pub(super) struct Families<'t>(Vec<&'t str>);

impl<'t> Families<'t> {
    pub(super) fn of(parameters: &'t [Parameter]) -> Self {
        let maps = parameters.iter().filter(|parameter| parameter.r#type == ParameterType::Map);
        let sources = maps.flat_map(|parameter| &parameter.from);
        let prefixes: BTreeSet<_> =
            sources.filter(|source| source.is_prefix()).map(ParameterSource::key).collect();
        Self(prefixes.into_iter().collect())
    }

    /// The prefix that a key belongs to, wherever it is: the longest one. A key that is only the prefix
    /// belongs to none.
    pub(super) fn owner(&self, key: &str) -> Option<&'t str> {
        let is_of = |prefix: &&str| key.len() > prefix.len() && key.starts_with(*prefix);
        self.0.iter().copied().filter(is_of).max_by_key(|prefix| prefix.len())
    }

    /// The entries of a Map; the first source that has a key counts.
    pub(super) fn read(
        &self,
        parameter: &Parameter,
        reader: &Reader,
        layers: &Layers,
        warnings: &mut Warnings,
    ) -> Result<BTreeMap<String, ScalarValue>, String> {
        let mut entries = BTreeMap::new();
        // Entries that are empty or dropped hide those behind them.
        let mut hidden = BTreeSet::new();
        for source in &parameter.from {
            for (key, text) in layers.family(source) {
                let name = &key[source.key().len()..];
                let is_settled = entries.contains_key(name) || hidden.contains(name);
                if is_settled || self.owner(key) != Some(source.key()) {
                    continue;
                }
                match entry(parameter, reader, text) {
                    Entry::Value(value) => _ = entries.insert(name.to_owned(), value),
                    Entry::Absent => {}
                    Entry::Hidden => _ = hidden.insert(name),
                    Entry::Invalid(reason) => {
                        let source = annotation(source, key);
                        let problem = format!("{}: {source} {reason}", named(parameter));
                        if is_dropped(parameter, problem, warnings)? {
                            hidden.insert(name);
                        }
                    }
                }
            }
        }
        Ok(entries)
    }
}

/// What the text of an annotation is for a Map.
enum Entry {
    Value(ScalarValue),
    /// The next source may have the entry.
    Absent,
    /// There is no entry, whatever the next sources have.
    Hidden,
    /// What its value must be.
    Invalid(String),
}

fn entry(parameter: &Parameter, reader: &Reader, text: &str) -> Entry {
    match (parameter.empty, reader.of()) {
        (empty, of)
            if !is_empty(of, text) || (empty, of) == (Empty::Value, ParameterType::String) =>
        {
            reader.read(text).map_or_else(Entry::Invalid, Entry::Value)
        }
        (Empty::Absent, _) => Entry::Absent,
        (Empty::Value, _) => Entry::Hidden,
    }
}

/// Whether an invalid entry is dropped; else the next source may have it.
fn is_dropped(
    parameter: &Parameter,
    problem: String,
    warnings: &mut Warnings,
) -> Result<bool, String> {
    let (is_dropped, instead) = match parameter.on_invalid {
        OnInvalid::Deny => return Err(problem),
        OnInvalid::NextSource => (false, "the next source counts instead"),
        // A Map has no default.
        OnInvalid::DropItem | OnInvalid::UseDefault => (true, "it is dropped"),
    };
    warnings.add(format!("{problem}; {instead}"));
    Ok(is_dropped)
}

/// An annotation of a family in a message.
fn annotation(source: &ParameterSource, key: &str) -> String {
    let key = shown(key);
    match source {
        ParameterSource::NamespaceAnnotationPrefix(_) => {
            ParameterSource::NamespaceAnnotation(key).to_string()
        }
        _ => ParameterSource::PodAnnotation(key).to_string(),
    }
}
