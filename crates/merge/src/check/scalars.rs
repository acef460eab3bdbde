//! Whether a value is of a type that is not an object and not a list.

use injectd_gocompat::quantity;
use serde_json::{Number, Value};

use super::TypeError;
use crate::{schema::Kind, show::json_number, time::seconds};

/// Why a value does not fit.
pub(super) enum Problem {
    /// The value has another type; Go's word for it.
    Type(String),
    Other(TypeError),
}

/// Accepts null. A list or an object fits none of these types, nor a scalar one of theirs.
pub(super) fn check(value: &Value, kind: &Kind) -> Result<(), Problem> {
    let fits = match (kind, value) {
        (_, Value::Null)
        | (Kind::Any, _)
        | (Kind::Text(_) | Kind::IntOrString, Value::String(_))
        | (Kind::Boolean, Value::Bool(_)) => true,
        (Kind::Int32 | Kind::Int64 | Kind::IntOrString, Value::Number(number)) => {
            return integer(number, kind);
        }
        (Kind::Quantity, value) => return quantity(value),
        (Kind::Time, Value::String(text)) if seconds(text).is_none() => {
            return Err(Problem::Other(TypeError::Time(text.clone())));
        }
        (Kind::Time, Value::String(_)) => true,
        _ => false,
    };
    if fits { Ok(()) } else { Err(Problem::Type(json_type(value).to_owned())) }
}

impl Kind {
    /// Whether a value of this type may be written as this string.
    #[must_use]
    pub fn accepts_text(&self, text: &str) -> bool {
        match self {
            Self::Any | Self::Text(_) | Self::IntOrString => true,
            Self::Quantity => is_plain_quantity(text) || quantity(&Value::from(text)).is_ok(),
            Self::Time => seconds(text).is_some(),
            _ => false,
        }
    }

    /// Whether a value of this type surely may be written as this number of JSON, whose quotes would
    /// be none.
    #[must_use]
    pub fn accepts_number(&self, text: &str) -> bool {
        let is_integer = text != "-0" && text.parse::<i64>().is_ok();
        match self {
            Self::Any => true,
            Self::Int32 | Self::IntOrString => is_integer && text.parse::<i32>().is_ok(),
            Self::Int64 | Self::Quantity => is_integer,
            _ => false,
        }
    }
}

/// Whether a text is digits with a usual suffix.
fn is_plain_quantity(text: &str) -> bool {
    let digits = text.trim_end_matches("Mi").trim_end_matches("Gi").trim_end_matches('m');
    (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The type of a value in Go's words.
#[must_use]
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn integer(number: &Number, kind: &Kind) -> Result<(), Problem> {
    let text = json_number(number);
    let fits = match kind {
        Kind::Int64 => text.parse::<i64>().is_ok(),
        _ => text.parse::<i32>().is_ok(),
    };
    if fits { Ok(()) } else { Err(Problem::Type(format!("number {text}"))) }
}

const WRONG_FORMAT: &str = "quantities must match the regular expression \
                            '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";

/// Go parses the JSON of any value, without quotes and blanks around it.
fn quantity(value: &Value) -> Result<(), Problem> {
    let wrong = |reason| Err(Problem::Other(TypeError::Quantity(reason)));
    let json = match value {
        Value::String(text) => Value::from(text.as_str()).to_string(),
        Value::Number(number) => json_number(number),
        _ => return wrong(WRONG_FORMAT),
    };
    let unquoted = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
    let text = unquoted.unwrap_or(&json).trim();
    if quantity::parse(text).is_some() {
        return Ok(());
    }
    let digits = |text: &str| text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let tail = |text: &'_ str| text.len() - digits(text);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (_, rest) = unsigned.split_at(tail(unsigned));
    let rest = rest.strip_prefix('.').map_or(rest, |rest| rest.split_at(tail(rest)).1);
    let after = rest.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let after = after.strip_prefix(['+', '-']).unwrap_or(after);
    if text.is_empty() || digits(after) > 0 {
        wrong(WRONG_FORMAT)
    } else if quantity::parse(&format!("1{rest}")).is_none() {
        wrong(WRONG_SUFFIX)
    } else {
        wrong(WRONG_NUMBER)
    }
}
