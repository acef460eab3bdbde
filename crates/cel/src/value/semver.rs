//! Versions (the rules of `github.com/blang/semver/v4`).

use std::{borrow::Cow, cmp::Ordering};

/// A version.
#[derive(Debug, Clone)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    /// Parts of the pre-release.
    pre: Vec<Box<str>>,
}

impl Semver {
    /// Reads a version that is written as the rules say.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let (major, minor) = (numeric(parts.next()?)?, numeric(parts.next()?)?);
        let rest = parts.next()?;
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(it, b)| (it, Some(b)));
        let (patch, pre) = rest.split_once('-').map_or((rest, None), |(it, p)| (it, Some(p)));
        if build.is_some_and(|build| !build.split('.').all(is_part)) {
            return None;
        }
        let pre: Vec<_> = pre.into_iter().flat_map(|pre| pre.split('.')).collect();
        let is_valid = |part: &&str| is_part(part) && (!is_number(part) || numeric(part).is_some());
        if !pre.iter().all(is_valid) {
            return None;
        }
        let pre = pre.into_iter().map(Box::from).collect();
        Some(Self { numbers: [major, minor, numeric(patch)?], pre })
    }

    /// Reads a version that may begin with a `v`, lack numbers, and have zeros before them.
    pub(crate) fn parse_loosely(text: &str) -> Option<Self> {
        Self::parse(&normalized(text)?)
    }

    /// Major, minor and patch.
    pub(crate) fn numbers(&self) -> [u64; 3] {
        self.numbers
    }

    /// The order of versions, without what follows a plus sign.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let by_pre = || match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let pairs = self.pre.iter().zip(&other.pre);
                let mut orders = pairs.map(|(one, other)| part_order(one, other));
                let by_length = self.pre.len().cmp(&other.pre.len());
                orders.find(|order| order.is_ne()).unwrap_or(by_length)
            }
        };
        self.numbers.cmp(&other.numbers).then_with(by_pre)
    }
}

/// Without a `v`, with three numbers and without zeros before them.
fn normalized(text: &str) -> Option<Cow<'_, str>> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<_> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 && parts.last()?.contains(['+', '-']) {
        return None;
    }
    parts.resize(3, "0".into());
    Some(parts.join(".").into())
}

fn without_zeros(part: &str) -> Cow<'_, str> {
    if part.len() < 2 {
        return part.into();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|digit: char| digit.is_ascii_digit()) {
        rest.into()
    } else {
        format!("0{rest}").into()
    }
}

/// Numbers are less than words.
fn part_order(one: &str, other: &str) -> Ordering {
    match (numeric(one), numeric(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

fn is_part(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A number without zeros before it.
fn numeric(text: &str) -> Option<u64> {
    (is_number(text) && (text.len() == 1 || !text.starts_with('0'))).then(|| text.parse().ok())?
}
