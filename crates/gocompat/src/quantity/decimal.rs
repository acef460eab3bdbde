//! Decimals of any length, with the few operations that quantities need.

/// The digits of `2^63 - 1`, the greatest quantity with a binary suffix.
const CAP: [u8; 19] = [9, 2, 2, 3, 3, 7, 2, 0, 3, 6, 8, 5, 4, 7, 7, 5, 8, 0, 7];

/// `digits * 10^exponent`, with a sign.
///
/// Go: `gopkg.in/inf.v0`, with the opposite sign of the exponent. An exponent is never expanded to
/// zeros, so that a large one takes no time.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    pub(super) negative: bool,
    /// Numbers from 0 to 9, the first not 0; empty for zero.
    digits: Vec<u8>,
    exponent: i32,
}

impl Decimal {
    pub(super) fn new(negative: bool, mut digits: Vec<u8>, exponent: i32) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        Self { negative, digits, exponent }
    }

    /// The digits with their sign, and the power of ten to multiply by.
    pub(super) fn digits_and_exponent(&self) -> (String, i32) {
        let sign = if self.negative { "-" } else { "" };
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        (format!("{sign}0{digits}"), self.exponent)
    }

    pub(super) fn from_integer(value: i64, exponent: i32) -> Self {
        let digits = value.unsigned_abs().to_string().bytes().map(|byte| byte - b'0').collect();
        Self::new(value < 0, digits, exponent)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Multiplies by at most `2^60`, so that ten times as much still fits 64 bits.
    pub(super) fn multiply(&mut self, factor: u64) {
        let mut carry: u64 = 0;
        for digit in self.digits.iter_mut().rev() {
            let product = u64::from(*digit) * factor + carry;
            *digit = (product % 10) as u8;
            carry = product / 10;
        }
        while carry > 0 {
            self.digits.insert(0, (carry % 10) as u8);
            carry /= 10;
        }
    }

    /// Drops the digits below `10^lowest`, and rounds away from zero if one of them is not 0.
    pub(super) fn round_up(&mut self, lowest: i32) {
        if self.exponent >= lowest {
            return;
        }
        let dropped =
            usize::try_from(i64::from(lowest) - i64::from(self.exponent)).unwrap_or(usize::MAX);
        let rest = self.digits.split_off(self.digits.len().saturating_sub(dropped));
        self.exponent = lowest;
        if rest.iter().any(|digit| *digit != 0) {
            self.increment();
        }
    }

    fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
    }

    /// Caps the magnitude at `2^63 - 1`. The exponent must not be above 0.
    pub(super) fn cap(&mut self) {
        let places = usize::try_from(self.exponent.unsigned_abs()).unwrap_or(usize::MAX);
        let whole = self.digits.len().saturating_sub(places);
        if whole > CAP.len() || whole == CAP.len() && self.digits.as_slice() > CAP.as_slice() {
            self.digits = CAP.to_vec();
            self.exponent = 0;
        }
    }

    /// The magnitude, if it is an integer of 64 bits.
    pub(super) fn whole(&self) -> Option<u64> {
        let (digits, exponent) = self.trimmed();
        let power = u32::try_from(exponent).ok()?;
        let value = digits.iter().try_fold(0_u64, |value, digit| {
            value.checked_mul(10)?.checked_add(u64::from(*digit))
        })?;
        value.checked_mul(10_u64.checked_pow(power)?)
    }

    /// The magnitude's digits and an exponent that is a multiple of 3, as great as it can be.
    ///
    /// Kubernetes: `AsCanonicalBytes` (`amount.go`), where exponents wrap.
    pub(super) fn in_thousands(&self) -> (String, i32) {
        let (digits, exponent) = self.trimmed();
        let extra = exponent.rem_euclid(3);
        let padded = digits.iter().copied().chain((0..extra).map(|_| 0));
        let text = padded.map(|digit| char::from(b'0' + digit)).collect();
        (text, exponent.wrapping_sub(extra))
    }

    /// Digits without trailing zeros, and the matching exponent.
    fn trimmed(&self) -> (&[u8], i32) {
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == 0).count();
        let kept = &self.digits[..self.digits.len() - zeros];
        (kept, self.exponent.wrapping_add(i32::try_from(zeros).unwrap_or(i32::MAX)))
    }
}
