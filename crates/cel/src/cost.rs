//! What calls cost (`interpreter/runtimecost.go` of cel-go, `pkg/cel/library/cost.go` of Kubernetes and
//! `ext/lists.go` of cel-go).
//!
//! A rule is chosen once, by the function and the overload that the checker found: without one overload
//! cel-go takes most calls for one unit.

use super::{
    check::{Resolved, Type},
    value::{Res, Val},
    work::Work,
};

/// The cost of a call by its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// One unit.
    Unit,
    /// The size of the first argument, in so many tenths.
    Tenths(u8),
    /// Twice a tenth of the size of the result.
    Result,
    /// A tenth of the smaller one.
    Least,
    /// A tenth of both.
    Both,
    /// The elements of the list that is searched.
    Member,
    Contains,
    Regex,
    /// The elements of a list, or the characters of a text, each with its own traversal.
    Traversal,
    ContainsIp(bool),
    ContainsCidr(bool),
    Format,
    /// A list that is made of the argument, at so many times its size.
    Flatten,
    /// A list that is made.
    Made,
    /// A list of so many numbers.
    Range,
    /// A check of an authorizer.
    Check,
    /// A selector for an authorizer.
    Selector,
    /// Nothing.
    Free,
    /// Every element of one list is compared with those of another one, so many times.
    Pairs(u8),
    /// Every element is compared with every other one of this argument.
    SelfCompare(u8),
    /// The library of Kubernetes has a rule for equality of its types.
    Equal,
}

/// Units for a question to an authorizer (`pkg/cel/library/cost.go`).
const CHECK: u64 = 350_000;
/// Units for a list of requirements, and for each of them.
const SELECTOR: u64 = 10;
const REQUIREMENT: u64 = 50;
/// Units for a call and a list that is made.
const LIST: u64 = 11;

impl Rule {
    pub(super) fn of(resolved: &Resolved) -> Self {
        let name = resolved.name.strip_prefix('.').unwrap_or(&resolved.name);
        by_function(name, resolved).unwrap_or_else(|| by_overload(name, resolved))
    }
}

/// The types of the one overload that fits; empty if there is none.
fn parameters(resolved: &Resolved) -> &[Type] {
    resolved.overload.map(|overload| &*overload.parameters).unwrap_or_default()
}

/// The functions of Kubernetes' estimator, which needs no overload.
fn by_function(name: &str, resolved: &Resolved) -> Option<Rule> {
    let of = |index: usize| parameters(resolved).get(index);
    let is_text = |index| of(index) == Some(&Type::named("string"));
    Some(match name {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => Rule::Traversal,
        "replace" | "split" | "ip.isCanonical" => Rule::Tenths(2),
        "join" => Rule::Result,
        "find" | "findAll" => Rule::Regex,
        "ip" if of(0) == Some(&Type::named("cidr")) => Rule::Unit,
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "ip" | "cidr" | "isIP"
        | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => Rule::Tenths(1),
        "containsIP" => Rule::ContainsIp(is_text(1)),
        "containsCIDR" => Rule::ContainsCidr(is_text(1)),
        "validate" => Rule::Format,
        "check" => Rule::Check,
        "fieldSelector" | "labelSelector" => Rule::Selector,
        "_==_" => Rule::Equal,
        _ => return None,
    })
}

/// The functions of cel-go, by the one overload that fits.
fn by_overload(name: &str, resolved: &Resolved) -> Rule {
    // The operators == and != have one overload for all types.
    if name == "_!=_" {
        return Rule::Least;
    }
    if resolved.overload.is_none() {
        return Rule::Unit;
    }
    let first = parameters(resolved).first();
    let is_of = |name: &str| first == Some(&Type::named(name));
    let is_text = is_of("string");
    let is_bytes = is_of("bytes");
    match name {
        "startsWith" | "endsWith" | "strings.quote" | "format" => Rule::Tenths(1),
        "bytes" if is_text => Rule::Tenths(1),
        "string" if is_bytes => Rule::Tenths(1),
        "@in" if matches!(parameters(resolved).get(1), Some(Type::List(_))) => Rule::Member,
        "_<_" | "_<=_" | "_>_" | "_>=_" if is_text || is_bytes => Rule::Least,
        "_+_" if is_text || is_bytes => Rule::Both,
        // The overload of `matches(text, pattern)` has another name, which the tracker of costs does not know.
        "matches" if resolved.name.starts_with('.') => Rule::Regex,
        "contains" => Rule::Contains,
        "slice" | "reverse" => Rule::Made,
        "lists.range" => Rule::Range,
        "flatten" => Rule::Flatten,
        "sets.contains" | "sets.intersects" => Rule::Pairs(1),
        "sets.equivalent" => Rule::Pairs(2),
        "distinct" | "sort" => Rule::SelfCompare(0),
        "@sortByAssociatedKeys" => Rule::SelfCompare(1),
        _ => Rule::Unit,
    }
}

/// Tenths of a size, rounded up as the float that cel-go computes.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as in Go"
)]
pub(super) fn tenths(size: u64, factor: u64) -> u64 {
    let exact = size.saturating_mul(factor) as f64 * 0.1;
    let whole = exact as u64;
    // As `ceil`, which is a call of a function.
    if exact > whole as f64 { whole + 1 } else { whole }
}

/// Charges a call before it is made. What depends on its result is charged by [`charge_result`].
///
/// # Errors
/// The condition costs more than it may.
pub(super) fn charge(rule: Rule, arguments: &[Val<'_>], work: &mut Work) -> Res<()> {
    let cost = {
        let mut sized =
            |index: usize| arguments.get(index).map_or(Ok(1), |value| size(value, work));
        match rule {
            Rule::Unit => 1,
            Rule::Check => CHECK,
            Rule::Selector => {
                let length = sized(1)?;
                SELECTOR + tenths(length, 1) + length.div_ceil(2).saturating_mul(REQUIREMENT)
            }
            Rule::Tenths(factor) => tenths(sized(0)?, factor.into()),
            Rule::Result | Rule::Made | Rule::Free => 0,
            Rule::Range => match arguments.first() {
                Some(Val::Int(count)) => u64::try_from(*count).unwrap_or(0).saturating_add(LIST),
                _ => LIST,
            },
            Rule::Equal if arguments.first().is_some_and(is_of_kubernetes) => 1,
            Rule::Least | Rule::Equal => tenths(sized(0)?.min(sized(1)?), 1),
            Rule::Both => tenths(sized(0)?.saturating_add(sized(1)?), 1),
            Rule::Member => sized(1)?,
            Rule::Contains => tenths(sized(0)?, 1).saturating_mul(tenths(sized(1)?, 1)),
            Rule::Regex => {
                let text = tenths(sized(0)?.saturating_add(1), 1);
                text.saturating_mul(sized(1)?.div_ceil(4))
            }
            Rule::Format => {
                let pattern = match arguments.first() {
                    Some(Val::Format(format)) => format.size,
                    _ => 1,
                };
                tenths(sized(1)?.saturating_add(1), 1).saturating_mul(pattern.div_ceil(4))
            }
            Rule::ContainsIp(is_text) => {
                let other = if is_text { tenths(sized(1)?, 1) } else { 0 };
                tenths(sized(0)?, 2) + other
            }
            Rule::ContainsCidr(is_text) => {
                let other = if is_text { tenths(sized(1)?, 1) } else { 0 };
                tenths(sized(0)?, 2) + tenths(sized(0)?, 1) + 1 + other
            }
            Rule::Flatten => {
                let depth = match arguments.get(1) {
                    Some(Val::Int(depth)) => u64::try_from(*depth).unwrap_or(0),
                    _ => 1,
                };
                sized(0)?.saturating_mul(depth).saturating_add(LIST)
            }
            Rule::Pairs(factor) => {
                sized(0)?.saturating_mul(sized(1)?).saturating_mul(factor.into()).saturating_add(1)
            }
            Rule::SelfCompare(index) => {
                let index = usize::from(index);
                self_compare(arguments.get(index), sized(index)?)
            }
            Rule::Traversal => traversal(arguments.first(), work)?,
        }
    };
    work.charge(cost)
}

/// Charges a call by what it made.
///
/// # Errors
/// The condition costs more than it may.
pub(super) fn charge_result(rule: Rule, result: &Res<Val<'_>>, work: &mut Work) -> Res<()> {
    let size = |work: &mut Work| result.as_ref().map_or(Ok(1), |value| size(value, work));
    let cost = match rule {
        Rule::Result => tenths(size(work)?, 2),
        Rule::Made => size(work)?.saturating_add(LIST),
        _ => return Ok(()),
    };
    work.charge(cost)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as in Go"
)]
fn self_compare(list: Option<&Val<'_>>, size: u64) -> u64 {
    let first = match list {
        Some(Val::List(list)) => list.get(0),
        _ => None,
    };
    let factor = match first {
        Some(Ok(Val::Text(_) | Val::Bytes(_))) => 2.1,
        _ => 2.0,
    };
    ((size.saturating_mul(size) as f64 * factor) as u64).saturating_add(LIST)
}

/// The cost of going through a value (`traversalCost`).
fn traversal(value: Option<&Val<'_>>, work: &mut Work) -> Res<u64> {
    Ok(match value {
        // Bytes, rounded down.
        Some(Val::Text(text)) => text.len() as u64 / 10,
        Some(Val::Bytes(bytes)) => bytes.len() as u64 / 10,
        Some(Val::List(list)) => {
            let mut sum = 0_u64;
            for item in list.iter() {
                work.spend_items(1)?;
                sum = sum.saturating_add(traversal(Some(&item?), work)?);
            }
            sum
        }
        Some(Val::Map(map)) => {
            let mut sum = 0_u64;
            for (key, value) in map.entries(work)? {
                sum = sum.saturating_add(traversal(Some(&key), work)?);
                sum = sum.saturating_add(traversal(Some(&value?), work)?);
            }
            sum
        }
        _ => 1,
    })
}

/// Types whose equality Kubernetes takes for one unit.
fn is_of_kubernetes(value: &Val<'_>) -> bool {
    matches!(
        value,
        Val::Quantity(_)
            | Val::Ip(_)
            | Val::Cidr(_)
            | Val::Format(_)
            | Val::Url(_)
            | Val::Semver(_)
    )
}

/// Code points of a text.
pub(super) fn characters(text: &str) -> u64 {
    let count = if text.is_ascii() { text.len() } else { text.chars().count() };
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The size of a value: code points, bytes, elements or entries, and one for all else (`actualSize`).
fn size(value: &Val<'_>, work: &mut Work) -> Res<u64> {
    let size = match value {
        Val::Text(text) => {
            work.spend(text.len())?;
            return Ok(characters(text));
        }
        Val::Bytes(bytes) => bytes.len(),
        Val::List(list) => list.len(),
        Val::Map(map) => map.len(),
        Val::Optional(Some(value)) => return size(value, work),
        Val::Cidr(cidr) => return Ok(cidr.size()),
        Val::Ip(address) => {
            if address.is_ipv4() {
                4
            } else {
                16
            }
        }
        _ => 1,
    };
    Ok(u64::try_from(size).unwrap_or(u64::MAX))
}
