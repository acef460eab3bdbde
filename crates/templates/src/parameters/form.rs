//! What the values of a parameter are made of: one value, items, or entries.

use super::{
    reader::{Count, Reader, misplaced},
    scalar::ScalarValue,
};
use crate::{
    Problem,
    object::{Bounds, Parameter, ParameterType, Scalar},
};

/// How the values of a parameter are read.
#[derive(Debug)]
pub enum Form {
    /// One value.
    One(Reader),
    /// The items of a List.
    Items(Items),
    /// The entries of a Map.
    Entries {
        /// Reads the value of an entry.
        reader: Reader,
        /// How many there may be.
        count: Count,
    },
}

/// How the items of a List are read.
#[derive(Debug)]
pub struct Items {
    reader: Reader,
    separator: String,
    count: Count,
}

/// The items of a text.
#[derive(Debug)]
pub struct ReadItems {
    /// Those that are valid, in their order.
    pub values: Vec<ScalarValue>,
    /// Those that are not.
    pub invalid: Option<InvalidItems>,
}

/// Items of a List that are not valid.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidItems {
    /// The place of the first one among the items as they are written, from 1: empty ones count.
    pub first: usize,
    /// What the first one must be.
    pub reason: String,
    /// How many there are.
    pub count: usize,
}

impl Form {
    /// The form of a parameter.
    ///
    /// # Errors
    /// All problems of its types and bounds; their fields begin with `field`.
    pub fn new(parameter: &Parameter, field: &str) -> Result<Self, Vec<Problem>> {
        let Parameter { r#type: of, bounds, items, values, separator, .. } = parameter;
        match of {
            ParameterType::List => {
                let (reader, count) = many(*of, bounds, items.as_ref(), field)?;
                if separator.is_empty() {
                    let text = "found an empty text; expected what separates items, such as ,";
                    return Err(vec![Problem::new(format!("{field}.separator"), text)]);
                }
                Ok(Self::Items(Items { reader, separator: separator.clone(), count }))
            }
            ParameterType::Map => {
                let (reader, count) = many(*of, bounds, values.as_ref(), field)?;
                Ok(Self::Entries { reader, count })
            }
            _ => Reader::new(*of, bounds, field).map(Self::One),
        }
    }
}

/// The reader of items or values, and how many there may be.
fn many(
    of: ParameterType,
    bounds: &Bounds,
    scalar: Option<&Scalar>,
    field: &str,
) -> Result<(Reader, Count), Vec<Problem>> {
    let mut problems = misplaced(of, bounds, field);
    let count = Count::new(bounds, field).map_err(|problem| problems.push(problem));
    let below = if of == ParameterType::List { "items" } else { "values" };
    let reader = match scalar {
        Some(scalar) => Reader::new(scalar.r#type, &scalar.bounds, &format!("{field}.{below}")),
        None => Reader::new(ParameterType::String, &Bounds::default(), field),
    };
    match (reader, count) {
        (Ok(reader), Ok(count)) if problems.is_empty() => Ok((reader, count)),
        (reader, _) => {
            problems.extend(reader.err().into_iter().flatten());
            Err(problems)
        }
    }
}

impl Items {
    /// Reads the items of a text: divided at the separator, trimmed, empty ones left out.
    #[must_use]
    pub fn read(&self, text: &str) -> ReadItems {
        let mut read = ReadItems { values: Vec::new(), invalid: None };
        let items = text.split(&*self.separator).map(str::trim).enumerate();
        for (place, item) in items.filter(|(_, item)| !item.is_empty()) {
            match (self.reader.read(item), &mut read.invalid) {
                (Ok(value), _) => read.values.push(value),
                (Err(_), Some(invalid)) => invalid.count += 1,
                (Err(reason), none) => {
                    *none = Some(InvalidItems { first: place + 1, reason, count: 1 });
                }
            }
        }
        read
    }

    /// How many items there may be.
    #[must_use]
    pub fn count(&self) -> Count {
        self.count
    }
}
