//! Numbers as C++ reads them: `stoull`, `stoul`, `stoi` and `stod`. Text after the number is permitted.

use super::tokens::is_space;

/// Why text is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberError {
    /// The text does not begin with a number (`std::invalid_argument`).
    Invalid,
    /// The number does not fit (`std::out_of_range`).
    Range,
}

/// Splits off leading white space and a sign.
fn sign(text: &str) -> (bool, &str) {
    let text = text.trim_start_matches(is_space);
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Reads the digits at the start of `text` as a number.
fn magnitude(text: &str) -> Result<u64, NumberError> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    if digits.is_empty() {
        return Err(NumberError::Invalid);
    }
    // Only the size can be wrong at this point.
    digits.parse().map_err(|_| NumberError::Range)
}

/// Reads a number like `std::stoull`: 64 bits; a minus sign counts down from 2^64.
pub(super) fn whole(text: &str) -> Result<u64, NumberError> {
    let (negative, rest) = sign(text);
    let number = magnitude(rest)?;
    Ok(if negative { number.wrapping_neg() } else { number })
}

/// Reads a number like `std::stoi`, converted to `size_t`: 32 bits with sign extension.
pub(super) fn int(text: &str) -> Result<u64, NumberError> {
    let (negative, rest) = sign(text);
    let number = i64::try_from(magnitude(rest)?).map_err(|_| NumberError::Range)?;
    let number = i32::try_from(if negative { -number } else { number }).map_err(|_| NumberError::Range)?;
    Ok(i64::from(number).cast_unsigned())
}

/// Reads a number like `std::stod`: decimal or hexadecimal; `inf` and `nan` in any case.
///
/// As in glibc, numbers too small to be exact are out of range.
pub(super) fn real(text: &str) -> Result<f64, NumberError> {
    let (negative, rest) = sign(text);
    let begins = |word: &str| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let number = if begins("inf") {
        f64::INFINITY
    } else if begins("nan") {
        f64::NAN
    } else {
        let hexadecimal = if begins("0x") { rest.get(2..).and_then(hexadecimal) } else { None };
        hexadecimal.unwrap_or_else(|| decimal(rest))?
    };
    Ok(if negative { -number } else { number })
}

fn decimal(text: &str) -> Result<f64, NumberError> {
    let is_digit = |c: char| c.is_ascii_digit();
    let after_whole = text.trim_start_matches(is_digit);
    let after = match after_whole.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(is_digit),
        None => after_whole,
    };
    let mantissa = text.strip_suffix(after).unwrap_or_default();
    if !mantissa.contains(is_digit) {
        return Err(NumberError::Invalid);
    }
    let number = text.strip_suffix(after_exponent(after, 'e')).unwrap_or_default();
    let value: f64 = number.parse().map_err(|_| NumberError::Invalid)?;
    let is_zero = !mantissa.contains(|c: char| matches!(c, '1'..='9'));
    // No decimal of a reasonable length is exactly a subnormal number.
    let is_too_small =
        !is_zero && (value < f64::MIN_POSITIVE || value == f64::MIN_POSITIVE && rounds_up_late(mantissa));
    if value.is_infinite() || is_too_small {
        return Err(NumberError::Range);
    }
    Ok(value)
}

/// Returns whether a decimal that was rounded to the smallest normal number would be below it with unlimited exponents:
/// less than 2^-1022 - 2^-1076, which begins with these digits. glibc counts such a number as too small.
fn rounds_up_late(mantissa: &str) -> bool {
    const BOUND: &str = "2225073858507201259573821257020768020077";
    let digits = mantissa.chars().filter(char::is_ascii_digit).skip_while(|&digit| digit == '0');
    digits.lt(BOUND.chars())
}

/// Returns the text after an exponent, or `text` itself if there is none: `e` without digits does not belong to the
/// number.
fn after_exponent(text: &str, letter: char) -> &str {
    let Some(rest) = text.strip_prefix([letter, letter.to_ascii_uppercase()]) else { return text };
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.len() < digits.len() { after } else { text }
}

/// Reads the number after `0x`; `None` if no digits follow, since then the number is the 0 before the `x`.
fn hexadecimal(text: &str) -> Option<Result<f64, NumberError>> {
    let mut mantissa = 0_u64;
    let (mut exponent, mut lost, mut any, mut in_fraction) = (0_i64, false, false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '.' && !in_fraction {
            in_fraction = true;
        } else if let Some(digit) = c.to_digit(16) {
            any = true;
            if mantissa >> 60 == 0 {
                mantissa = mantissa << 4 | u64::from(digit);
                exponent -= if in_fraction { 4 } else { 0 };
            } else {
                lost |= digit != 0;
                exponent += if in_fraction { 0 } else { 4 };
            }
        } else {
            break;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    if !any {
        return None;
    }
    let written = rest.strip_suffix(after_exponent(rest, 'p')).and_then(|part| part.get(1..)).unwrap_or_default();
    if !written.is_empty() {
        let (negative, digits) = sign(written);
        // Far beyond the range of a double; larger exponents make no difference.
        let size = magnitude(digits).unwrap_or(u64::MAX).min(1 << 40).cast_signed();
        exponent = exponent.saturating_add(if negative { -size } else { size });
    }
    Some(compose(mantissa, lost, exponent))
}

/// Returns `mantissa * 2^exponent`, plus a little if digits were `lost`, as the nearest double (ties to even).
fn compose(mantissa: u64, lost: bool, exponent: i64) -> Result<f64, NumberError> {
    const LOWEST: i64 = -1022;
    const HIGHEST: i64 = 1023;
    if mantissa == 0 {
        return Ok(0.0);
    }
    let shift = mantissa.leading_zeros();
    let mantissa = mantissa << shift;
    // The weight of the mantissa's first bit.
    let mut weight = exponent - i64::from(shift) + 63;
    let (kept, dropped) = (mantissa >> 11, mantissa & 0x7ff);
    let up = dropped > 0x400 || (dropped == 0x400 && (lost || kept & 1 == 1));
    let mut rounded = kept + u64::from(up);
    if rounded >> 53 == 1 {
        rounded >>= 1;
        weight += 1;
    }
    if weight > HIGHEST {
        return Err(NumberError::Range);
    }
    if weight >= LOWEST {
        let biased = (weight + HIGHEST).cast_unsigned();
        return Ok(f64::from_bits(biased << 52 | rounded & ((1 << 52) - 1)));
    }
    // A subnormal number is in range only if it is exact.
    let below = u32::try_from(LOWEST - weight).unwrap_or(u32::MAX);
    let unused = below.saturating_add(11);
    if lost || mantissa.trailing_zeros() < unused {
        return Err(NumberError::Range);
    }
    Ok(f64::from_bits(mantissa >> unused))
}

#[cfg(test)]
mod tests {
    use super::NumberError::{Invalid, Range};
    use super::*;

    #[test]
    fn whole_numbers_wrap_and_stop_at_text() {
        let cases = [
            ("20abc", Ok(20)),
            (" \t+7", Ok(7)),
            ("-1", Ok(u64::MAX)),
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err(Range)),
            ("-18446744073709551615", Ok(1)),
            ("0x40", Ok(0)),
            ("", Err(Invalid)),
            ("-", Err(Invalid)),
            ("- 1", Err(Invalid)),
            ("٤", Err(Invalid)),
        ];
        for (text, want) in cases {
            assert_eq!(whole(text), want, "{text:?}");
        }
    }

    #[test]
    fn ints_have_32_bits() {
        let cases = [
            ("2147483647", Ok(2_147_483_647)),
            ("2147483648", Err(Range)),
            ("-2147483648", Ok(0_u64.wrapping_sub(1 << 31))),
            ("-2147483649", Err(Range)),
            ("99999999999999999999", Err(Range)),
            ("x", Err(Invalid)),
        ];
        for (text, want) in cases {
            assert_eq!(int(text), want, "{text:?}");
        }
    }

    #[test]
    fn real_numbers_are_those_of_glibc() {
        let cases = [
            ("0.5x", Ok(0.5)),
            (".5", Ok(0.5)),
            ("5.e-1", Ok(0.5)),
            ("0.5e+", Ok(0.5)),
            ("-1", Ok(-1.0)),
            ("0e-9999", Ok(0.0)),
            ("1e400", Err(Range)),
            ("1e-310", Err(Range)),
            ("2.2250738585072012e-308", Err(Range)),
            ("2.2250738585072014e-308", Ok(f64::MIN_POSITIVE)),
            ("1e-400", Err(Range)),
            (".", Err(Invalid)),
            (".e5", Err(Invalid)),
            ("e5", Err(Invalid)),
            ("", Err(Invalid)),
            ("INFinity", Ok(f64::INFINITY)),
            ("0x", Ok(0.0)),
            ("0x.p1", Ok(0.0)),
            ("0X.8", Ok(0.5)),
            ("0x1p-1", Ok(0.5)),
            ("0x1p", Ok(1.0)),
            ("0x10p-5z", Ok(0.5)),
            ("0x1.fffffffffffffp-1", Ok(1.0 - f64::EPSILON / 2.0)),
            ("0x1.ffffffffffffffp-1", Ok(1.0)),
            ("0x1.00000000000008p0", Ok(1.0)),
            ("0x1.000000000000080000001p0", Ok(1.0 + f64::EPSILON)),
            ("0x1.fffffffffffff8p1023", Err(Range)),
            ("0x1p1100", Err(Range)),
            ("0x1p99999999999999999999", Err(Range)),
            ("0x1p-99999999999999999999", Err(Range)),
            ("0x0p99999999999999999999", Ok(0.0)),
            ("0x1p-1074", Ok(5e-324)),
            ("0x1.8p-1074", Err(Range)),
            ("0x1p-1075", Err(Range)),
            ("0x0.fffffffffffffffp-1022", Ok(f64::MIN_POSITIVE)),
        ];
        for (text, want) in cases {
            assert_eq!(real(text), want, "{text:?}");
        }
        assert!(real("nan(1)").is_ok_and(f64::is_nan));
    }
}
