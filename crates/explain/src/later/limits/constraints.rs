//! What a limit range may want of one resource.

use super::super::resources::{Amount, Side};

/// The largest number that Kubernetes compares in thousandths (`resource.MaxMilliValue`).
const MOST_THOUSANDTHS: i64 = i64::MAX / 1000;

/// A resource as it is set, and the amount that is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Set<'a> {
    pub(super) request: Option<&'a Amount>,
    pub(super) limit: Option<&'a Amount>,
    pub(super) enforced: &'a Amount,
}

/// A check, and the text of a problem.
pub(super) type Rule = fn(&Set<'_>) -> Option<String>;

impl Set<'_> {
    /// Amounts as they are compared: in thousandths unless one of them is too large for it.
    fn number(&self) -> fn(&Amount) -> i64 {
        let all = [self.request, self.limit, Some(self.enforced)];
        let is_small = |amount: &Amount| amount.in_units() <= MOST_THOUSANDTHS;
        let are_small = all.into_iter().flatten().all(is_small);
        if are_small { Amount::in_thousandths } else { Amount::in_units }
    }

    fn is_above(&self, amount: &Amount) -> bool {
        let number = self.number();
        number(amount) > number(self.enforced)
    }

    fn is_below(&self, amount: &Amount) -> bool {
        let number = self.number();
        number(amount) < number(self.enforced)
    }
}

/// The request must be there; neither it nor a limit may be below the least amount.
pub(super) fn min(set: &Set<'_>) -> Option<String> {
    let least = set.enforced;
    match (set.request, set.limit) {
        (None, _) => Some(format!("no request is set, but the minimum of {least} needs one")),
        (Some(request), _) if set.is_below(request) => {
            Some(format!("the request of {request} is below the minimum of {least}"))
        }
        (_, Some(limit)) if set.is_below(limit) => {
            Some(format!("the limit of {limit} is below the minimum of {least}"))
        }
        _ => None,
    }
}

/// The limit must be there; neither it nor a request may be above the most.
pub(super) fn max(set: &Set<'_>) -> Option<String> {
    let most = set.enforced;
    match (set.request, set.limit) {
        (_, None) => Some(format!("no limit is set, but the maximum of {most} needs one")),
        (_, Some(limit)) if set.is_above(limit) => {
            Some(format!("the limit of {limit} is above the maximum of {most}"))
        }
        (Some(request), _) if set.is_above(request) => {
            Some(format!("the request of {request} is above the maximum of {most}"))
        }
        _ => None,
    }
}

/// Both must be there and not be zero, and the limit at most so many times the request.
pub(super) fn ratio(set: &Set<'_>) -> Option<String> {
    let most = set.enforced;
    let needs = format!("the maxLimitRequestRatio of {} needs one", most.plain());
    let number = set.number();
    let side = |side: Side, amount: Option<&Amount>| {
        let one = side.one();
        let Some(amount) = amount else { return Err(format!("no {one} is set, but {needs}")) };
        match number(amount) {
            0 if amount.is_positive() => {
                Err(format!("the {one} of {amount} is too large to compare"))
            }
            0 => Err(format!("the {one} is 0, but {needs} above 0")),
            number => Ok(float(number)),
        }
    };
    let sides = side(Side::Requests, set.request)
        .and_then(|request| Ok((request, side(Side::Limits, set.limit)?)));
    let (request, limit) = match sides {
        Ok(sides) => sides,
        Err(text) => return Some(text),
    };
    let ratio = limit / request;
    let is_above = if most.in_units() <= MOST_THOUSANDTHS {
        ratio * 1000.0 > float(most.in_thousandths())
    } else {
        ratio > float(most.in_units())
    };
    let most = most.plain();
    is_above.then(|| {
        format!(
            "the limit is {} times the request, more than the maxLimitRequestRatio of {most}",
            decimal(ratio)
        )
    })
}

/// With as many places as Kubernetes prints, but no zeros at the end.
fn decimal(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[expect(clippy::cast_precision_loss, reason = "Kubernetes computes the ratio with floats as well")]
fn float(number: i64) -> f64 {
    number as f64
}
