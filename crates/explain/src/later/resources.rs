//! Amounts of resources (`cpu: 100m`), and how those of containers add up to those of a pod.
//!
//! Not for policies: limit ranges and quotas compare what is computed here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::present;

mod amount;
pub(super) mod names;
pub(super) mod pod;

pub(super) use self::amount::{Amount, MOST_DIGITS};

/// Amounts by the name of the resource.
pub(super) type Amounts = BTreeMap<String, Amount>;

/// The amounts of a map, whose values are quantities.
pub(super) fn amounts(map: Option<&Value>) -> Amounts {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name.clone(), Amount::read(value)?))).collect()
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

    /// One amount of it, in texts.
    pub(super) fn one(self) -> &'static str {
        match self {
            Self::Requests => "request",
            Self::Limits => "limit",
        }
    }
}
