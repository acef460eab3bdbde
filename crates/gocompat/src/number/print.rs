//! Floats as Go prints them.

/// Prints the shortest decimal that parses to the same float, with an exponent if that is below -4
/// or above 5: `0.1`, `1e-05`, `100000`, `1e+06`.
///
/// Go: `strconv.FormatFloat(value, 'g', -1, 64)`. Not finite: `NaN`, `+Inf` and `-Inf`.
#[must_use]
pub fn format_float(value: f64) -> String {
    print(value, |exponent| (-4..6).contains(&exponent))
}

/// Prints the same digits as [`format_float`], but never with an exponent above zero:
/// `1000650000`, `1234567.5`, `0.1`, `1e-05`.
#[must_use]
pub fn plain_decimal(value: f64) -> String {
    print(value, |exponent| exponent >= -4)
}

/// Prints without an exponent if `is_plain` holds for it, else in scientific notation.
fn print(value: f64, is_plain: impl Fn(i32) -> bool) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    // Most numbers of configurations; Rust and Go print them alike.
    if value.fract() == 0.0 && value.abs() < 1e6 {
        return value.to_string();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (digits, exponent) = shortest(value.abs());
    if is_plain(exponent) {
        return format!("{sign}{}", plain(&digits, exponent));
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.unsigned_abs())
}

/// The shortest digits that parse to the same value, and the power of ten of the first one.
fn shortest(value: f64) -> (String, i32) {
    let text = format!("{value:e}");
    let (digits, exponent) = digits_of(&text);
    // If the value lies midway between two such decimals, Go takes the even one and Rust the upper
    // one; Rust takes the even one only with an explicit number of digits.
    let even = format!("{value:.*e}", digits.len().saturating_sub(1));
    if even.parse() == Ok(value) { digits_of(&even) } else { (digits, exponent) }
}

fn digits_of(scientific: &str) -> (String, i32) {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (digits.replace('.', ""), exponent.parse().unwrap_or(0))
}

fn plain(digits: &str, exponent: i32) -> String {
    let Ok(exponent) = usize::try_from(exponent) else {
        let places = digits.len() + exponent.unsigned_abs() as usize - 1;
        return format!("0.{digits:0>places$}");
    };
    let whole = exponent + 1;
    if whole >= digits.len() {
        return format!("{digits:0<whole$}");
    }
    let (whole, fraction) = digits.split_at(whole);
    format!("{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_floats_get_an_exponent_of_two_digits() {
        for (value, text) in [
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (100_000.0, "100000"),
            (-15_021.0, "-15021"),
            (999_999.0, "999999"),
            (999_999.5, "999999.5"),
            (1_000_000.0, "1e+06"),
            (1_000_650_000.0, "1.00065e+09"),
            (12_345_678_901.0, "1.2345678901e+10"),
            (-1_234_567.5, "-1.2345675e+06"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (0.000_123_4, "0.0001234"),
            (0.0, "0"),
            (-0.0, "-0"),
        ] {
            assert_eq!(format_float(value), text);
        }
    }

    #[test]
    fn plain_decimals_have_no_positive_exponent() {
        for (value, text) in [
            (1_000_650_000.0, "1000650000"),
            (1e21, "1000000000000000000000"),
            (1_234_567.5, "1234567.5"),
            (0.333, "0.333"),
            (0.000_01, "1e-05"),
            (-1.0, "-1"),
        ] {
            assert_eq!(plain_decimal(value), text);
        }
    }

    #[test]
    fn of_two_equally_near_decimals_the_even_one_is_printed() {
        assert_eq!(format_float(f64::from_bits(0x3ea4_0000_0000_0000)), "5.960464477539062e-07");
        assert_eq!(plain_decimal(f64::from_bits(0x431e_f54d_55cf_4399)), "2178490450563302.2");
        // The even one of these would parse to the float below.
        assert_eq!(format_float(f64::from_bits(0x0060_0000_0000_0000)), "7.120236347223045e-307");
    }

    #[test]
    fn values_that_are_not_finite_have_names() {
        for print in [format_float, plain_decimal] {
            assert_eq!(print(f64::NAN), "NaN");
            assert_eq!(print(f64::INFINITY), "+Inf");
            assert_eq!(print(f64::NEG_INFINITY), "-Inf");
        }
    }
}
