//! Decimal numbers with a fixed number of places, for printing.
//!
//! Values are rounded once, to an integer. Quotients of integers are exact, which floating point is not beyond 2^53, and
//! neither `-0.0` nor `NaN` is ever printed.

use std::fmt;

/// A decimal number: 12.50 is 1250 with two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// The number times 10^`places`.
    scaled: i64,
    /// Digits after the decimal point.
    places: u32,
}

impl Decimal {
    /// Rounds a number to `places` places; ties go to the even digit. Numbers beyond 64 bits saturate, and NaN becomes 0.
    pub fn of(value: f64, places: u32) -> Self {
        Self { scaled: (value * power(places) as f64).round_ties_even() as i64, places }
    }

    /// Rounds the quotient `n / per` to `places` places; ties go to the even digit. Exact if `per` is below 2^60 and the
    /// quotient's digits fit into 63 bits. A divisor of 0 counts as 1.
    pub fn ratio(n: u64, per: u64, places: u32) -> Self {
        let per = per.max(1);
        let (mut digits, mut rest) = (n / per, n % per);
        for _ in 0..places {
            rest = rest.saturating_mul(10);
            digits = digits.saturating_mul(10).saturating_add(rest / per);
            rest %= per;
        }
        let is_up = match rest.cmp(&(per - rest)) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => digits % 2 == 1,
            std::cmp::Ordering::Greater => true,
        };
        Self { scaled: i64::try_from(digits).unwrap_or(i64::MAX).saturating_add(i64::from(is_up)), places }
    }

    /// Returns the shortest decimal that parses to exactly this number, with 1 to 17 places as Python prints it; `None` if
    /// its digits don't fit into 63 bits.
    pub fn exact(value: f64) -> Option<Self> {
        (1..=17).map(|places| Self::of(value, places)).find(|decimal| decimal.to_string().parse() == Ok(value))
    }

    /// Returns the number times 10^`places`.
    pub fn scaled(self) -> i64 {
        self.scaled
    }

    /// Removes trailing zeros.
    pub fn shortest(mut self) -> Self {
        while self.places > 0 && self.scaled % 10 == 0 {
            self.scaled /= 10;
            self.places -= 1;
        }
        self
    }
}

/// Reads a number as people and links write it: a sign, digits, and digits after a point, without an exponent. Exact up to 15
/// digits; of longer ones the last two bits may differ. `None` for any other text.
///
/// The standard library reads every number to the last bit, and takes ten kilobytes of tables for that, which don't shrink when they
/// are compressed: too much for a page.
pub fn parse(text: &str) -> Option<f64> {
    let (is_negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let (mut number, mut places, mut tens) = (0_u64, 0_u32, 0_u32);
    let digits = whole.bytes().map(|digit| (digit, false)).chain(part.bytes().map(|digit| (digit, true)));
    for (digit, is_part) in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Further digits are beyond what a float holds.
        if number < DIGITS_18 {
            number = number * 10 + u64::from(digit - b'0');
            places += u32::from(is_part);
        } else if !is_part {
            tens = tens.saturating_add(1);
        }
    }
    let mut value = number as f64 / 10_u64.saturating_pow(places) as f64;
    for _ in 0..tens.min(400) {
        value *= 10.0;
    }
    Some(if is_negative { -value } else { value })
}

/// The least number of 18 digits: a further digit still fits into 64 bits.
const DIGITS_18: u64 = 100_000_000_000_000_000;

/// Returns 10^`places`, saturating.
fn power(places: u32) -> i64 {
    10_i64.saturating_pow(places)
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.scaled.unsigned_abs();
        let whole = power(self.places).unsigned_abs();
        let sign = if self.scaled < 0 { "-" } else { "" };
        match self.places as usize {
            0 => write!(f, "{sign}{digits}"),
            places => write!(f, "{sign}{}.{:0places$}", digits / whole, digits % whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_printed_with_their_places() {
        let cases: &[(Decimal, &str)] = &[
            (Decimal::of(12.5, 2), "12.50"),
            (Decimal::of(12.5, 2).shortest(), "12.5"),
            (Decimal::of(100.0, 3).shortest(), "100"),
            (Decimal::of(0.0, 3).shortest(), "0"),
            (Decimal::of(-0.049, 1), "0.0"),
            (Decimal::of(-0.06, 1), "-0.1"),
            (Decimal::of(0.5, 0), "0"),
            (Decimal::of(1.5, 0), "2"),
            (Decimal::of(f64::NAN, 1), "0.0"),
            (Decimal::of(f64::INFINITY, 0), "9223372036854775807"),
            (Decimal::of(f64::NEG_INFINITY, 0), "-9223372036854775808"),
            (Decimal::ratio(1, 3, 2), "0.33"),
            (Decimal::ratio(2, 3, 2), "0.67"),
            (Decimal::ratio(1, 8, 2), "0.12"),
            (Decimal::ratio(3, 8, 2), "0.38"),
            (Decimal::ratio(999_999, 1_000, 2), "1000.00"),
            (Decimal::ratio(u64::MAX, 1 << 60, 1), "16.0"),
            (Decimal::ratio(7, 0, 0), "7"),
        ];
        for (got, want) in cases {
            assert_eq!(got.to_string(), *want);
        }
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for text in
            ["0", "7", "-2.25", "+3", ".5", "5.", "-.5", "100000000000000000000", "0.1", "12482031.125", "1.7976931348"]
        {
            assert_eq!(parse(text), text.parse().ok(), "{text}");
        }
        for text in ["", "-", ".", "1e3", "inf", "NaN", "0x1", "1,5", " 1", "1 ", "--1", "1.2.3", "١"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"9".repeat(500)), Some(f64::INFINITY));
    }

    proptest! {
        #[test]
        fn numbers_of_15_digits_are_read_exactly(number in -999_999_999_999_999_i64..=999_999_999_999_999, places in 0..15_u32) {
            let text = Decimal { scaled: number, places }.to_string();
            prop_assert_eq!(parse(&text), text.parse().ok());
        }

        #[test]
        fn longer_numbers_are_read_but_for_their_last_bits(whole: u64, part: u64) {
            let text = format!("{whole}.{part}");
            let (got, want): (f64, f64) = (parse(&text).unwrap(), text.parse().unwrap());
            prop_assert!((got - want).abs() <= 3.0 * want * f64::EPSILON, "{} {}", got, want);
        }
    }

    #[test]
    fn exact_numbers_are_printed_as_python_prints_them() {
        let cases: &[(f64, Option<&str>)] = &[
            (0.0, Some("0.0")),
            (1.0, Some("1.0")),
            (0.8, Some("0.8")),
            (-2.25, Some("-2.25")),
            (f64::from(0.6_f32), Some("0.6000000238418579")),
            (20_971_520.0, Some("20971520.0")),
            (1e300, None),
            (1e-300, None),
            (f64::NAN, None),
        ];
        for &(value, want) in cases {
            assert_eq!(Decimal::exact(value).map(|decimal| decimal.to_string()).as_deref(), want);
        }
    }

    proptest! {
        /// The standard library prints exact digits, and floating point represents ratios by powers of two exactly.
        #[test]
        fn a_ratio_is_rounded_as_the_standard_library_does(n in 0_u64..1 << 52, shift in 0_u32..52, places in 0_u32..4) {
            let per = 1_u64 << shift;
            prop_assume!(n / per < 1 << 40);
            let want = format!("{:.*}", places as usize, n as f64 / per as f64);
            prop_assert_eq!(Decimal::ratio(n, per, places).to_string(), want);
        }

        #[test]
        fn a_number_is_no_farther_off_than_half_a_place(value in -1e9..1e9, places in 0_u32..4) {
            let printed: f64 = Decimal::of(value, places).to_string().parse().unwrap();
            prop_assert!((printed - value).abs() <= 0.5 / power(places) as f64 + 1e-6);
        }
    }
}
