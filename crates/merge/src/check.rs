//! Type errors of a patch.

mod places;
mod scalars;

#[cfg(test)]
mod tests;

pub use places::{Misfit, misfits};
pub use scalars::json_type;
use serde_json::{Map, Number, Value};
use thiserror::Error;

use crate::{
    MAX_DEPTH,
    apply::{is_deletion, is_directive},
    schema::{Kind, POD, Struct},
};

/// Why a merged Pod cannot be read. The texts are Go's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TypeError {
    /// A value has another type than its field.
    #[error(
        "json: cannot unmarshal {value} into Go struct field {go_struct}.{path} of type {go_type}"
    )]
    Unmarshal {
        /// What the value is: `string`, `number`, `number 1.5`, `bool`, `array` or `object`.
        value: String,
        /// Go's name of the struct that has the field, such as `Container`.
        go_struct: &'static str,
        /// The keys from the Pod to the field, and names of embedded structs, with points between.
        path: String,
        /// Go's type of the field or of its elements, such as `v1.PullPolicy`.
        go_type: String,
    },
    /// A text is not a quantity.
    #[error("{0}")]
    Quantity(&'static str),
    /// A text is not a time. Go's text goes on with the part that it cannot parse.
    #[error("parsing time {0:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse")]
    Time(String),
    /// Lists and objects are nested too deep.
    #[error("exceeded max depth")]
    TooDeep,
}

/// Reports the first value of a wrong type that a patch would put into a Pod.
///
/// Strings, booleans and integers are strict: no `5` for a string and no `"5"` for an integer.
/// A float counts as an integer if it has no fraction. An int-or-string takes both, a quantity a
/// string or a number, a time a text of RFC 3339. `null` has no type. Keys are found in any case.
/// Unknown fields, directives and what `$patch: delete` removes are not checked. Other objects with
/// `$patch` are, also where the merge drops them because the Pod has no such field.
///
/// Of several errors Go reports the first one in the order of keys, but an int-or-string, a
/// quantity or a time goes before all others.
///
/// # Errors
///
/// See [`TypeError`].
pub fn check(patch: &Value) -> Result<(), TypeError> {
    Checker::new(Of::Patch).run(patch)
}

/// Reports the first value of a Pod that has the wrong type, in the order of its text.
///
/// As [`check`], but a float is no integer, even without a fraction, and `$patch` means nothing.
///
/// Go: `json.Unmarshal` into a `v1.Pod`.
///
/// # Errors
///
/// See [`TypeError`].
pub fn check_pod(pod: &Value) -> Result<(), TypeError> {
    Checker::new(Of::Pod).run(pod)
}

/// What is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Patch,
    Pod,
}

struct Checker {
    of: Of,
    path: Vec<&'static str>,
    /// The struct of the last field in the path.
    owner: &'static str,
    /// The first error that does not end Go's decoding.
    first: Option<TypeError>,
    depth: usize,
}

impl Checker {
    fn new(of: Of) -> Self {
        Self { of, path: Vec::new(), owner: "Pod", first: None, depth: 0 }
    }

    fn run(mut self, value: &Value) -> Result<(), TypeError> {
        self.value(value, &POD)?;
        self.first.map_or(Ok(()), Err)
    }

    /// The entries of an object: Go reads those of a patch, which it wrote itself, in the order of
    /// their keys.
    fn entries<'v>(&self, map: &'v Map<String, Value>) -> Vec<(&'v String, &'v Value)> {
        match self.of {
            Of::Patch => sorted(map),
            Of::Pod => map.iter().collect(),
        }
    }

    /// The error is one that ends Go's decoding.
    fn value(&mut self, value: &Value, kind: &'static Kind) -> Result<(), TypeError> {
        if self.depth > MAX_DEPTH {
            return Err(TypeError::TooDeep);
        }
        self.depth += 1;
        match (kind, value) {
            (_, Value::Null) | (Kind::Any, _) => {}
            (_, value) if self.of == Of::Patch && is_deletion(value) => {}
            (Kind::Struct(inner), Value::Object(map)) => self.fields(map, inner.get())?,
            (Kind::Map(_, inner), Value::Object(map)) => {
                for (_, value) in self.entries(map) {
                    self.value(value, inner)?;
                }
            }
            (Kind::List(inner), Value::Array(list)) => {
                for value in list {
                    self.value(value, inner)?;
                }
            }
            (Kind::IntOrString | Kind::Quantity | Kind::Time, value) => {
                self.scalar(value, kind).map_err(|problem| self.place(problem, kind))?;
            }
            (kind, value) => {
                if let Err(problem) = self.scalar(value, kind) {
                    let error = self.place(problem, kind);
                    self.first.get_or_insert(error);
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn fields(
        &mut self,
        map: &Map<String, Value>,
        fields: &'static Struct,
    ) -> Result<(), TypeError> {
        let (owner, length) = (self.owner, self.path.len());
        for (key, value) in self.entries(map).into_iter().filter(|(key, _)| !is_directive(key)) {
            if let Some(field) = fields.field_ignoring_case(key) {
                self.owner = fields.name;
                self.path.extend(Some(field.embedded_in).filter(|names| !names.is_empty()));
                self.path.push(field.name);
                self.value(value, &field.kind)?;
                self.path.truncate(length);
            }
        }
        self.owner = owner;
        Ok(())
    }

    fn scalar(&self, value: &Value, kind: &Kind) -> Result<(), scalars::Problem> {
        match value {
            Value::Number(number) if self.of == Of::Pod && is_float_for(number, kind) => {
                Err(scalars::Problem::Type(format!("number {number}")))
            }
            _ => scalars::check(value, kind),
        }
    }

    fn place(&self, problem: scalars::Problem, kind: &Kind) -> TypeError {
        match problem {
            scalars::Problem::Other(error) => error,
            scalars::Problem::Type(value) => TypeError::Unmarshal {
                value,
                go_struct: self.owner,
                path: self.path.join("."),
                go_type: kind.go_type(),
            },
        }
    }
}

/// Go writes the merged object with sorted keys before it reads it.
fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// Whether a number is a float where an integer is expected.
fn is_float_for(number: &Number, kind: &Kind) -> bool {
    let is_integer = matches!(kind, Kind::Int32 | Kind::Int64 | Kind::IntOrString);
    is_integer && !number.is_i64() && !number.is_u64()
}
