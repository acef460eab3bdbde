//! Versions.

use std::{any::Any, borrow::Cow, cmp::Ordering, sync::Arc};

use crate::{
    function::Param,
    text::Text,
    value::{IntKind, Object, Shape, Signature, UintKind, Value},
};

/// A version; parts that are not written are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) numbers: [u64; 3],
    pub(super) pre: String,
    metadata: String,
    original: String,
    /// It is no pointer, as the next versions are.
    is_struct: bool,
}

/// Longer versions are an error, as in semver 3.5.
const MAX_BYTES: usize = 256;

const INVALID: &str = "invalid semantic version";

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The part from a mark on, without the mark; it has identifiers between points.
fn tail(text: &str, mark: char) -> Result<(&str, &str), String> {
    let Some((before, tail)) = text.split_once(mark) else { return Ok((text, "")) };
    if !tail.split('.').all(is_identifier) {
        return Err(INVALID.to_owned());
    }
    Ok((before, tail))
}

impl Version {
    /// Go: `semver.NewVersion`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("version string is too long (max {MAX_BYTES} bytes)"));
        }
        let body = text.strip_prefix('v').unwrap_or(text);
        let (body, metadata) = tail(body, '+')?;
        let (body, pre) = tail(body, '-')?;
        let parts: Vec<_> = body.split('.').collect();
        if parts.len() > 3 || !parts.iter().all(|part| is_number(part)) {
            return Err(INVALID.to_owned());
        }
        let mut numbers = [0; 3];
        for (number, part) in numbers.iter_mut().zip(parts) {
            *number = part.parse().map_err(|_| {
                format!(
                    "error parsing version segment: strconv.ParseUint: parsing \"{part}\": value \
                     out of range"
                )
            })?;
        }
        if pre.split('.').any(|part| is_number(part) && part.len() > 1 && part.starts_with('0')) {
            return Err("version segment starts with 0".to_owned());
        }
        Ok(Self {
            numbers,
            pre: pre.to_owned(),
            metadata: metadata.to_owned(),
            original: text.to_owned(),
            is_struct: false,
        })
    }

    fn shown(&self) -> String {
        let [major, minor, patch] = self.numbers;
        let mut out = format!("{major}.{minor}.{patch}");
        for (mark, part) in [('-', &self.pre), ('+', &self.metadata)] {
            if !part.is_empty() {
                out.push(mark);
                out.push_str(part);
            }
        }
        out
    }

    /// Metadata does not count. Go: `Version.Compare`.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| compare_pre(&self.pre, &other.pre))
    }

    /// The next version, with this number one greater and those after it zero.
    fn next(&self, index: usize) -> Self {
        let mut numbers = self.numbers;
        if index != 2 || self.pre.is_empty() {
            numbers[index] = numbers[index].wrapping_add(1);
            numbers[index + 1..].fill(0);
        }
        let (pre, metadata, original) = (String::new(), String::new(), String::new());
        let mut next = Self { numbers, pre, metadata, original, is_struct: true };
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        next.original = format!("{prefix}{}", next.shown());
        next
    }
}

/// A version without a pre-release is the greater one. Go: `comparePrerelease`.
pub(super) fn compare_pre(one: &str, other: &str) -> Ordering {
    match (one.is_empty(), other.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut ones, mut others) = (one.split('.'), other.split('.'));
    loop {
        let (one, other) = match (ones.next(), others.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(one), Some(other)) => (one, other),
        };
        let order = match (one.parse::<u64>(), other.parse::<u64>()) {
            _ if one == other => Ordering::Equal,
            (Err(_), Err(_)) => one.cmp(other),
            (Err(_), Ok(_)) => Ordering::Greater,
            (Ok(one), Ok(other)) if one > other => Ordering::Greater,
            // Unequal texts of equal numbers are in this order, too.
            (Ok(_), _) => Ordering::Less,
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

const OTHER: Signature = Signature { params: &[Param::Object("*semver.Version")], variadic: None };

impl Object for Version {
    fn type_name(&self) -> Cow<'static, str> {
        if self.is_struct { "semver.Version" } else { "*semver.Version" }.into()
    }

    fn shape(&self) -> Shape {
        if self.is_struct { Shape::Struct } else { Shape::Pointer }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "String" | "IncMajor"
            | "IncMinor" | "IncPatch" => Some(Signature::NONE),
            // These are methods of the pointer only.
            _ if self.is_struct => None,
            "Original" => Some(Signature::NONE),
            "Compare" | "Equal" | "GreaterThan" | "GreaterThanEqual" | "LessThan"
            | "LessThanEqual" => Some(OTHER),
            _ => None,
        }
    }

    fn call(&self, name: &str, args: &[Value]) -> Result<Value, String> {
        let number = |index: usize| Value::Uint(self.numbers[index], UintKind::Uint64);
        let next = |index: usize| Value::Object(Arc::new(self.next(index)));
        Ok(match name {
            "Major" => number(0),
            "Minor" => number(1),
            "Patch" => number(2),
            "Prerelease" => self.pre.as_str().into(),
            "Metadata" => self.metadata.as_str().into(),
            "Original" => self.original.as_str().into(),
            "String" => self.shown().into(),
            "IncMajor" => next(0),
            "IncMinor" => next(1),
            "IncPatch" => next(2),
            _ => {
                let Some(Value::Object(other)) = args.first() else {
                    return Err(super::super::lists::NIL_DEREFERENCE.to_owned());
                };
                let Some(other) = other.as_any().downcast_ref::<Self>() else {
                    return Err(super::super::lists::NIL_DEREFERENCE.to_owned());
                };
                let order = self.compare(other);
                match name {
                    "Compare" => Value::Int(i64::from(order as i8), IntKind::Int),
                    "Equal" => order.is_eq().into(),
                    "GreaterThan" => order.is_gt().into(),
                    "GreaterThanEqual" => order.is_ge().into(),
                    "LessThan" => order.is_lt().into(),
                    _ => order.is_le().into(),
                }
            }
        })
    }

    fn text(&self) -> Option<Text> {
        Some(self.shown().into())
    }

    fn json(&self) -> Result<String, String> {
        Ok(format!("\"{}\"", self.shown()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
