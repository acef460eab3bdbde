//! Amounts of resources (`cpu: 100m`), and how those of containers add up to those of a pod.
//!
//! Not for policies: limit ranges and quotas compare what is computed here.

use std::{cmp::Ordering, collections::BTreeMap, fmt, sync::Arc};

use injectd_gocompat::quantity;
use serde_json::Value;

use super::present;

pub(super) mod names;
pub(super) mod pod;

/// Billionths of a unit: every quantity of Kubernetes has whole ones.
const BILLIONTHS: i128 = 1_000_000_000;

/// Billionths of a thousandth.
const THOUSANDTHS: i128 = 1_000_000;

/// What stands for a quantity that is too large: more than all that fit, with room for sums.
const TOO_LARGE: i128 = i128::MAX >> 16;

/// An amount of a resource.
#[derive(Debug, Clone)]
pub(super) struct Amount {
    billionths: i128,
    /// Whether it is written with `Ki`, `Mi` and so on.
    is_binary: bool,
    /// The limit range that gave it as a default.
    pub(super) given_by: Option<Arc<str>>,
}

/// Amounts by the name of the resource.
pub(super) type Amounts = BTreeMap<String, Amount>;

impl Amount {
    /// One unit.
    pub(super) const ONE: Self = Self { billionths: BILLIONTHS, is_binary: false, given_by: None };

    const ZERO: Self = Self { billionths: 0, is_binary: false, given_by: None };

    /// `None` if the value is not a quantity. A null is zero, as `Quantity.UnmarshalJSON` of
    /// k8s.io/apimachinery v0.36.3 has it.
    fn read(value: &Value) -> Option<Self> {
        let text = match value {
            Value::Null => return Some(Self::ZERO),
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        let billionths = quantity::parse(&text)?.billionths().unwrap_or(TOO_LARGE);
        Some(Self { billionths, is_binary: text.ends_with('i'), given_by: None })
    }

    pub(super) fn is_positive(&self) -> bool {
        self.billionths > 0
    }

    pub(super) fn is_negative(&self) -> bool {
        self.billionths < 0
    }

    /// Whether it is a whole number of units.
    pub(super) fn is_whole(&self) -> bool {
        self.in_thousandths() % 1000 == 0
    }

    /// Whether it is a multiple of another.
    pub(super) fn is_multiple_of(&self, other: &Self) -> bool {
        other.is_positive() && self.billionths % other.billionths == 0
    }

    /// The next whole number of thousandths, as `Quantity.MilliValue` counts.
    pub(super) fn in_thousandths(&self) -> i128 {
        rounded_up(self.billionths, THOUSANDTHS)
    }

    /// The next whole number of units, as `Quantity.Value` counts.
    pub(super) fn in_units(&self) -> i128 {
        rounded_up(self.billionths, BILLIONTHS)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let billionths = self.billionths.saturating_add(other.billionths);
        Self { billionths, is_binary: self.is_binary || other.is_binary, given_by: None }
    }
}

/// Away from zero.
fn rounded_up(billionths: i128, unit: i128) -> i128 {
    billionths / unit + (billionths % unit).signum()
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.billionths == other.billionths
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        self.billionths.cmp(&other.billionths)
    }
}

/// The shortest text that Kubernetes writes.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kibi = BILLIONTHS * 1024;
        let text = if self.is_binary && self.billionths % kibi == 0 {
            format!("{}Ki", self.billionths / kibi)
        } else {
            format!("{}n", self.billionths)
        };
        let canonical = quantity::parse(&text).map(|it| it.canonical());
        f.write_str(&canonical.unwrap_or(text))
    }
}

/// The amounts of a map; those that are not quantities are left out.
pub(super) fn amounts(map: Option<&Value>) -> Amounts {
    entries(map).filter_map(|(name, value)| Some((name.clone(), Amount::read(value)?))).collect()
}

/// The names of a map whose values are not quantities.
pub(super) fn unreadable(map: Option<&Value>) -> impl Iterator<Item = &str> {
    entries(map).filter(|(_, value)| Amount::read(value).is_none()).map(|(name, _)| &**name)
}

fn entries(map: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    map.and_then(Value::as_object).into_iter().flatten()
}

/// Adds amounts to others.
pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.get(name).map_or_else(|| amount.clone(), |known| known.plus(amount));
        to.insert(name.clone(), sum);
    }
}

/// Raises amounts to others that are larger.
pub(super) fn raise(amounts: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if amounts.get(name).is_none_or(|known| amount > known) {
            amounts.insert(name.clone(), amount.clone());
        }
    }
}

/// Adds amounts of resources that are not there.
pub(super) fn add_missing(amounts: &mut Amounts, defaults: &Amounts) {
    for (name, amount) in defaults {
        amounts.entry(name.clone()).or_insert_with(|| amount.clone());
    }
}

/// Requests and limits, of a container or of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Resources {
    pub(super) requests: Amounts,
    pub(super) limits: Amounts,
}

impl Resources {
    /// Those in a field `resources`.
    pub(super) fn read(field: &Value) -> Self {
        let of = |key| amounts(present(field, key));
        Self { requests: of("/requests"), limits: of("/limits") }
    }

    pub(super) fn side(&self, side: Side) -> &Amounts {
        match side {
            Side::Requests => &self.requests,
            Side::Limits => &self.limits,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}

/// One side of the resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Requests,
    Limits,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Requests, Self::Limits];

    /// The field.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}
