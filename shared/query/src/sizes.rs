//! Sizes as people type them.

use trace::decimal;

use super::term::Comparison;

/// The signs of comparisons; the longer ones first, since `>=` begins with `>`.
const SIGNS: [(&str, Comparison); 10] = [
    (">=", Comparison::AtLeast),
    ("=>", Comparison::AtLeast),
    ("≥", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("=<", Comparison::AtMost),
    ("≤", Comparison::AtMost),
    (">", Comparison::More),
    ("<", Comparison::Less),
    ("==", Comparison::Equal),
    ("=", Comparison::Equal),
];

/// The sizes that round to a number with a unit, as the page displays them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The number itself, in bytes.
    pub middle: u64,
    /// The smallest size in bytes that rounds to it.
    pub from: u64,
    /// The smallest size in bytes that no longer rounds to it.
    pub to: u64,
}

impl About {
    /// Reads a number with a unit. The error is a sentence for the user.
    pub fn read(text: &str) -> Result<Self, String> {
        let (number, factor) = split(text, true)?;
        let middle = scaled(text, &number, factor)?;
        let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
        // Half of the last digit.
        let half = factor as f64 / 2.0 / 10_f64.powi(i32::try_from(digits).unwrap_or(0));
        let (from, to) = (middle as f64 - half, middle as f64 + half);
        if half < 1.0 {
            return Ok(Self { middle, from: middle, to: middle.saturating_add(1) });
        }
        Ok(Self { middle, from: from.ceil().max(0.0) as u64, to: to.ceil() as u64 })
    }

    /// Returns whether a size rounds to the number.
    pub const fn holds(self, size: u64) -> bool {
        self.from <= size && size < self.to
    }
}

/// Returns the comparison of a term about a size, and the size's text; no comparison for a size alone. `None` if the
/// term is not about a size.
pub(super) fn size_form(text: &str) -> Option<(Option<Comparison>, &str)> {
    let (is_named, rest) = match text.split_at_checked(4) {
        Some((name, rest)) if name.eq_ignore_ascii_case("size") => {
            let rest = rest.trim_start();
            (true, rest.strip_prefix(':').unwrap_or(rest).trim_start())
        }
        _ => (false, text),
    };
    let begins_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if let Some((comparison, size)) = SIGNS.iter().find_map(|(sign, c)| Some((*c, rest.strip_prefix(sign)?))) {
        let size = size.trim_start();
        // `<module>` and `<lambda>` are names of functions.
        let is_number = size.is_empty() || begins_number(size) || size.starts_with(['-', '+']);
        return (is_named || is_number).then_some((Some(comparison), size));
    }
    // A number without a unit may be that of a line, and a number before another word part of a name.
    let has_unit = |factor: u64| factor > 1 || !ends_in_digit(rest);
    let is_size = begins_number(rest) && split(rest, true).is_ok_and(|(_, factor)| is_named || has_unit(factor));
    is_size.then_some((None, rest))
}

fn ends_in_digit(text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// Parses a number of bytes in a search term. All units are binary as everywhere on the page, however they are written:
/// `1GB` is 1 GiB. The error is a sentence.
pub(super) fn read_size(text: &str) -> Result<u64, String> {
    let (number, factor) = split(text, true)?;
    scaled(text, &number, factor)
}

/// Parses a number of bytes with or without a unit. `KiB` is 1,024 and `KB` 1,000; `K` is `KiB`. The error is a sentence.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, factor) = split(text, false)?;
    scaled(text, &number, factor)
}

/// Returns the digits of a size, and the bytes of its unit.
fn split(text: &str, is_binary: bool) -> Result<(String, u64), String> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '_'))).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().to_ascii_lowercase();
    let power = match unit.as_str() {
        "" | "b" | "byte" | "bytes" => 0,
        "k" | "kib" | "kb" => 1,
        "m" | "mib" | "mb" => 2,
        "g" | "gib" | "gb" => 3,
        "t" | "tib" | "tb" => 4,
        _ => return Err(format!("“{text}” is not a size: write a number with B, KiB, MiB or GiB.")),
    };
    let is_decimal = !is_binary && unit.len() == 2;
    Ok((number.replace([',', '_'], ""), if is_decimal { 1_000_u64.pow(power) } else { 1 << (10 * power) }))
}

/// Returns a number of units in bytes.
fn scaled(text: &str, number: &str, factor: u64) -> Result<u64, String> {
    let too_large = || format!("“{text}” is more than any memory holds.");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(too_large);
    }
    match decimal::parse(number) {
        Some(value) if value * factor as f64 >= u64::MAX as f64 => Err(too_large()),
        Some(value) if value >= 0.0 => Ok((value * factor as f64).round() as u64),
        _ => Err(format!("“{text}” is not a size: write a number, as in 100MiB.")),
    }
}
