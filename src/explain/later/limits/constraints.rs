//! What a limit range may want of one resource.

use super::super::resources::Amount;

/// The largest number that Kubernetes compares in thousandths (`resource.MaxMilliValue`).
const MOST_THOUSANDTHS: i128 = i64::MAX as i128 / 1000;

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
    fn number(&self) -> fn(&Amount) -> i128 {
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
        (None, _) => Some(format!("no request, but at least {least} is asked for")),
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
        (_, None) => Some(format!("no limit, but one of at most {most} is asked for")),
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
    let number = set.number();
    let of = |amount: Option<&Amount>| amount.map(number).filter(|amount| *amount != 0);
    let Some(request) = of(set.request) else {
        return Some(format!(
            "no request, but a limit of at most {most} times the request is asked for"
        ));
    };
    let Some(limit) = of(set.limit) else {
        return Some(format!("no limit, but one of at most {most} times the request is asked for"));
    };
    let ratio = float(limit) / float(request);
    let is_above = if most.in_units() <= MOST_THOUSANDTHS {
        ratio * 1000.0 > float(most.in_thousandths())
    } else {
        ratio > float(most.in_units())
    };
    is_above.then(|| format!("the limit is {ratio:.2} times the request, more than {most} times"))
}

#[expect(clippy::cast_precision_loss, reason = "Kubernetes computes the ratio with floats as well")]
fn float(number: i128) -> f64 {
    number as f64
}
