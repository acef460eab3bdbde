//! The values of a parameter are read from texts, and held against its bounds.
//!
//! No text of this module has a value of a pod.

use injectd_gocompat::pattern;
use regex::{Regex, RegexBuilder};

use super::scalar::{ScalarValue, must_be};
use crate::{
    Problem,
    object::{Bounds, ParameterType},
};

/// Maximum size of a compiled pattern.
// A short pattern may be large once it is compiled: each count of a repetition multiplies those
// inside of it.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// Values of `enum` that a message lists.
const MOST_LISTED: usize = 12;

/// Characters of a text of the template that a problem shows.
const MOST_SHOWN: usize = 80;

/// Reads values of a scalar type.
#[derive(Debug)]
pub struct Reader {
    of: ParameterType,
    /// Least and greatest value.
    range: Range<ScalarValue>,
    /// Least and greatest number of characters.
    length: Range<u32>,
    pattern: Option<(String, Regex)>,
    allowed: Option<Vec<ScalarValue>>,
}

/// How many items or entries there may be.
#[derive(Debug, Clone, Copy)]
pub struct Count(Range<u32>);

#[derive(Debug, Clone, Copy)]
struct Range<T> {
    least: Option<T>,
    most: Option<T>,
}

// === impl Reader ===

impl Reader {
    /// The reader of a scalar type with its bounds.
    ///
    /// # Errors
    /// All problems of type and bounds; their fields are below `field`, that of `minimum` is `FIELD.minimum`.
    pub fn new(of: ParameterType, bounds: &Bounds, field: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = misplaced(of, bounds, field);
        if matches!(of, ParameterType::List | ParameterType::Map) {
            let text =
                format!("found {of:?}; expected String, Integer, Boolean, Quantity or Duration");
            problems.push(Problem::new(format!("{field}.type"), text));
            return Err(problems);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut value = |name: &str, text: &str| {
            let found = ScalarValue::read(of, text);
            if found.is_none() {
                let text = format!("found {}; the value {}", shown(text), must_be(of));
                problems.push(Problem::new(format!("{field}.{name}"), text));
            }
            found
        };
        let range = Range {
            least: bounds.minimum.as_ref().and_then(|text| value("minimum", text)),
            most: bounds.maximum.as_ref().and_then(|text| value("maximum", text)),
        };
        let listed = bounds.r#enum.as_ref().map(|texts| {
            let values = texts.iter().enumerate();
            values.filter_map(|(at, text)| value(&format!("enum[{at}]"), text)).collect()
        });
        let length = Range { least: bounds.min_length, most: bounds.max_length };
        let pattern = bounds.pattern.as_ref().and_then(|pattern| {
            let compiled = compile(pattern);
            compiled
                .map_err(|text| problems.push(Problem::new(format!("{field}.pattern"), text)))
                .ok()
        });
        problems.extend(crossed(&range, &length, field));
        if listed.as_ref().is_some_and(Vec::is_empty) && problems.is_empty() {
            let text = "found no value; list at least one, or remove the field";
            problems.push(Problem::new(format!("{field}.enum"), text));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self { of, range, length, pattern, allowed: listed })
    }

    /// The type of its values.
    #[must_use]
    pub fn of(&self) -> ParameterType {
        self.of
    }

    /// Reads a value.
    ///
    /// # Errors
    /// What the value must be. The text never has the value.
    pub fn read(&self, text: &str) -> Result<ScalarValue, String> {
        let value = ScalarValue::read(self.of, text).ok_or_else(|| must_be(self.of).to_owned())?;
        self.check_range(&value)?;
        if let ScalarValue::Text(text) = &value {
            self.check_text(text)?;
        }
        let is_allowed =
            |allowed: &Vec<ScalarValue>| allowed.iter().any(|known| known.is_same(&value));
        match &self.allowed {
            Some(allowed) if !is_allowed(allowed) => Err(must_be_one_of(allowed)),
            _ => Ok(value),
        }
    }

    fn check_range(&self, value: &ScalarValue) -> Result<(), String> {
        if let Some(least) = &self.range.least
            && value.order(least).is_some_and(std::cmp::Ordering::is_lt)
        {
            return Err(format!("must be at least {least}"));
        }
        if let Some(most) = &self.range.most
            && value.order(most).is_some_and(std::cmp::Ordering::is_gt)
        {
            return Err(format!("must be at most {most}"));
        }
        Ok(())
    }

    fn check_text(&self, text: &str) -> Result<(), String> {
        let length = text.chars().count();
        self.length.check(length, "character")?;
        match &self.pattern {
            Some((pattern, regex)) if !regex.is_match(text) => {
                Err(format!("must match the pattern {}", shown(pattern)))
            }
            _ => Ok(()),
        }
    }
}

/// A pattern of Go, not anchored.
fn compile(pattern: &str) -> Result<(String, Regex), String> {
    let invalid = |problem: &str| {
        format!("found {}; expected a regular expression of RE2: {problem}", shown(pattern))
    };
    let translated = pattern::translate(pattern).map_err(invalid)?;
    let regex = RegexBuilder::new(&translated).size_limit(MAX_REGEX_BYTES).build();
    let regex = regex.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => invalid("it is too large; use smaller repetitions"),
        _ => invalid("its syntax is invalid"),
    })?;
    Ok((pattern.to_owned(), regex))
}

fn must_be_one_of(allowed: &[ScalarValue]) -> String {
    let texts: Vec<_> =
        allowed.iter().take(MOST_LISTED).map(|value| shown(&value.to_string())).collect();
    let names = texts.iter().map(String::as_str);
    let listed = injectd_core::text::first_names(names, allowed.len(), MOST_LISTED);
    format!("must be one of {listed}")
}

/// A text of the template, in quotes, on one line, with its first characters only.
pub(super) fn shown(text: &str) -> String {
    let mut first: String = text.chars().take(MOST_SHOWN).collect();
    if first.len() < text.len() {
        first.push('…');
    }
    format!("\"{}\"", injectd_core::text::printable(&first))
}

/// Bounds that the type does not have.
pub(super) fn misplaced(of: ParameterType, bounds: &Bounds, field: &str) -> Vec<Problem> {
    use ParameterType::{Duration, Integer, List, Map, Quantity, String};
    const ORDERED: &[ParameterType] = &[Integer, Quantity, Duration];
    const TEXT: &[ParameterType] = &[String];
    const MANY: &[ParameterType] = &[List, Map];
    const SCALAR: &[ParameterType] = &[String, Integer, ParameterType::Boolean, Quantity, Duration];
    let Bounds { minimum, maximum, min_length, max_length, pattern, r#enum, min_items, max_items } =
        bounds;
    let rows = [
        ("minimum", minimum.is_some(), ORDERED),
        ("maximum", maximum.is_some(), ORDERED),
        ("minLength", min_length.is_some(), TEXT),
        ("maxLength", max_length.is_some(), TEXT),
        ("pattern", pattern.is_some(), TEXT),
        ("enum", r#enum.is_some(), SCALAR),
        ("minItems", min_items.is_some(), MANY),
        ("maxItems", max_items.is_some(), MANY),
    ];
    let wrong = rows.into_iter().filter(|(_, is_set, types)| *is_set && !types.contains(&of));
    wrong
        .map(|(name, _, types)| Problem::new(format!("{field}.{name}"), not_of(of, types)))
        .collect()
}

fn not_of(of: ParameterType, types: &[ParameterType]) -> String {
    let names: Vec<_> = types.iter().map(|known| format!("{known:?}")).collect();
    let hint = match of {
        ParameterType::List => " or set it below items",
        ParameterType::Map => " or set it below values",
        _ => "",
    };
    let hint = if types.contains(&ParameterType::List) { "" } else { hint };
    format!("the type is {of:?}, the field belongs to {}; remove it{hint}", names.join(", "))
}

/// Least bounds above the greatest.
fn crossed(range: &Range<ScalarValue>, length: &Range<u32>, field: &str) -> Option<Problem> {
    if let (Some(least), Some(most)) = (&range.least, &range.most)
        && least.order(most).is_some_and(std::cmp::Ordering::is_gt)
    {
        let text = format!("found {least}, but maximum is {most}; expected no more than that");
        return Some(Problem::new(format!("{field}.minimum"), text));
    }
    length.crossed(&format!("{field}.minLength"), "maxLength")
}

// === impl Count ===

impl Count {
    /// The bounds of a List or Map.
    ///
    /// # Errors
    /// The least is above the greatest.
    pub fn new(bounds: &Bounds, field: &str) -> Result<Self, Problem> {
        let range = Range { least: bounds.min_items, most: bounds.max_items };
        match range.crossed(&format!("{field}.minItems"), "maxItems") {
            Some(problem) => Err(problem),
            None => Ok(Self(range)),
        }
    }

    /// Whether there may be so many.
    ///
    /// # Errors
    /// How many there must be.
    pub fn check(&self, count: usize) -> Result<(), String> {
        self.0.check(count, "item")
    }
}

// === impl Range ===

impl Range<u32> {
    fn check(&self, count: usize, noun: &str) -> Result<(), String> {
        let must_have = |bound: &str, limit: u32| {
            let ending = if limit == 1 { "" } else { "s" };
            Err(format!("must have at {bound} {limit} {noun}{ending}; it has {count}"))
        };
        match *self {
            Self { least: Some(least), .. } if count < least as usize => must_have("least", least),
            Self { most: Some(most), .. } if count > most as usize => must_have("most", most),
            _ => Ok(()),
        }
    }

    fn crossed(&self, field: &str, of_most: &str) -> Option<Problem> {
        let (least, most) = (self.least?, self.most?);
        let text = || format!("found {least}, but {of_most} is {most}; expected no more than that");
        (least > most).then(|| Problem::new(field, text()))
    }
}
