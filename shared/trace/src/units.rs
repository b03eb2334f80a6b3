//! Newtypes for units, each formatted in one way everywhere.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;

/// A number of bytes. `Display` uses binary units with three significant digits (`61.2 GiB`); [`Bytes::exact`] has all
/// digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Formats all digits, grouped by thousands: `65,712,455,680 bytes`.
    pub fn exact(self) -> String {
        match self.0 {
            1 => "1 byte".to_owned(),
            n => format!("{} bytes", Count(n)),
        }
    }

    /// Formats it for a comparison with a smaller number, in that one's unit (`1,014 MiB` beside `980 MiB`), unless it would be
    /// too long in it.
    pub fn like(self, least: Self) -> String {
        let unit = least.unit();
        let in_unit = self.in_unit(unit, 0).scaled();
        match self.unit() <= unit || in_unit >= LONGEST {
            true => self.to_string(),
            false => format!("{} {}", Count(in_unit.unsigned_abs()), UNITS[unit as usize]),
        }
    }

    /// Returns the unit in which it is formatted, as an index.
    fn unit(self) -> u32 {
        if self.0 < 1_000 {
            return 0;
        }
        let unit = self.0.ilog2() / 10;
        // A number that would round to 1000 is formatted in the next unit.
        if self.in_unit(unit, 0).scaled() < 1_000 { unit } else { unit + 1 }
    }

    fn in_unit(self, unit: u32, places: u32) -> Decimal {
        Decimal::ratio(self.0, 1 << (10 * unit), places)
    }
}

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
/// The number from which on a comparison does not use a unit.
const LONGEST: i64 = 10_000;

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.unit();
        if unit == 0 {
            return f.pad(&format!("{} B", self.0));
        }
        // Three digits.
        let text = [2, 1].into_iter().map(|places| self.in_unit(unit, places)).find(|text| text.scaled() < 1_000);
        f.pad(&format!("{} {}", text.unwrap_or_else(|| self.in_unit(unit, 0)), UNITS[unit as usize]))
    }
}

/// Returns the texts of two numbers of bytes for a comparison, in the unit of the smaller one: `980 MiB`, `1,014 MiB`.
pub fn compared(one: Bytes, other: Bytes) -> (String, String) {
    let least = one.min(other);
    (one.like(least), other.like(least))
}

/// Returns the texts of two numbers of bytes. If they would be equal although the numbers differ, they are in the
/// largest unit that shows the difference: `24,571 MiB`, `24,576 MiB`.
pub fn distinguished(one: Bytes, other: Bytes) -> (String, String) {
    let texts = (one.to_string(), other.to_string());
    if texts.0 != texts.1 || one == other {
        return texts;
    }
    let whole = |bytes: Bytes, unit: u32| {
        format!("{} {}", Count(bytes.in_unit(unit, 0).scaled().unsigned_abs()), UNITS[unit as usize])
    };
    let finer = (0..one.unit()).rev().map(|unit| (whole(one, unit), whole(other, unit)));
    finer.into_iter().find(|(one, other)| one != other).unwrap_or(texts)
}

/// A whole number, grouped by thousands: `1,004,221`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (i, c) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                text.push(',');
            }
            text.push(c);
        }
        f.pad(&text)
    }
}

/// Returns a number of things with the noun in the singular or plural, for a noun whose plural ends in s: `1 gap`,
/// `1,204 gaps`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", Count(count), if count == 1 { "" } else { "s" })
}

/// Returns a number of things with the noun in the singular or plural: `1 entry`, `1,204 entries`.
pub fn counted_as(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", Count(count), if count == 1 { one } else { many })
}

/// Returns a part of a whole in percent, rounded to the nearest; 0 if the whole is 0.
pub fn percent(part: u64, whole: u64) -> u128 {
    let whole = u128::from(whole);
    (u128::from(part) * 100 + whole / 2).checked_div(whole).unwrap_or(0)
}

/// A duration in microseconds, formatted in a unit that fits its size: `742 µs`, `3.20 ms`, `12.482 s`, `2 min 05 s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub i64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let us = self.0.unsigned_abs();
        let text = match us {
            0..1_000 => format!("{sign}{us} µs"),
            1_000..1_000_000 => format!("{sign}{} ms", Decimal::ratio(us, 1_000, 2)),
            1_000_000..60_000_000 => format!("{sign}{} s", Decimal::ratio(us, 1_000_000, 3)),
            60_000_000..3_600_000_000 => {
                let s = us / 1_000_000;
                format!("{sign}{} min {:02} s", s / 60, s % 60)
            }
            _ => {
                let min = us / 60_000_000;
                format!("{sign}{} h {:02} min", min / 60, min % 60)
            }
        };
        f.pad(&text)
    }
}

/// A calendar date and time in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The year; 0 and less for years BC.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day, from 1.
    pub day: i64,
    /// The hour, from 0.
    pub hour: i64,
    /// The minute.
    pub minute: i64,
    /// The second.
    pub second: i64,
    /// The microseconds of the second.
    pub micros: i64,
}

impl Moment {
    /// Returns the date and time of a number of microseconds since the epoch.
    pub fn at(us: i64) -> Self {
        let (days, rest) = (us.div_euclid(86_400_000_000), us.rem_euclid(86_400_000_000));
        let (seconds, micros) = (rest / 1_000_000, rest % 1_000_000);
        let (year, month, day) = civil(days);
        Self { year, month, day, hour: seconds / 3600, minute: seconds / 60 % 60, second: seconds % 60, micros }
    }

    /// Returns it to the minute, for people: `2026-11-21 18:00 UTC`.
    pub fn to_minute(self) -> String {
        let Self { year, month, day, hour, minute, .. } = self;
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
    }
}

/// Returns year, month and day of a number of days since 1970-01-01, by Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A device address. It is unsigned, since drivers other than CUDA's return addresses above 2^63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(pub u64);

impl Address {
    /// Returns whether the address begins with the hexadecimal digits of a number, which are fewer than its own.
    pub fn begins_with(self, digits: u64) -> bool {
        let length = |n: u64| (u64::BITS - n.leading_zeros()).div_ceil(4);
        let (own, typed) = (length(self.0), length(digits));
        digits > 0 && typed < own && self.0 >> (4 * (own - typed)) == digits
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("0x{:x}", self.0))
    }
}

/// A stream handle as PyTorch records it: the raw `cudaStream_t` as a signed integer. `0` is the default stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stream(pub i64);

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.pad("default"),
            n => f.pad(&n.to_string()),
        }
    }
}

/// A memory pool's id, PyTorch's `MempoolId_t`: `(0, 0)` is the default pool, all others are private.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PoolId(pub u64, pub u64);

impl PoolId {
    /// Returns whether this is a private pool (a CUDA graph's, or a `MemPool`), not the default one.
    pub fn is_private(self) -> bool {
        self != Self::default()
    }
}

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_private() { f.pad(&format!("({}, {})", self.0, self.1)) } else { f.pad("default") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_have_texts_that_differ() {
        let of = |one, other| distinguished(Bytes(one), Bytes(other));
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(of(24_571 << 20, 24 << 30), pair("24,571 MiB", "24,576 MiB"));
        assert_eq!(of(24 << 30, (24 << 30) + 1), pair("25,769,803,776 B", "25,769,803,777 B"));
        assert_eq!(of(24 << 30, 24 << 30), pair("24.0 GiB", "24.0 GiB"));
        assert_eq!(of(1, 24 << 30), pair("1 B", "24.0 GiB"));
    }

    #[test]
    fn a_comparison_has_one_unit() {
        let of = |one, other| compared(Bytes(one), Bytes(other));
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        let mib = 1 << 20;
        assert_eq!(of(980 * mib, 1_014 * mib), pair("980 MiB", "1,014 MiB"));
        assert_eq!(of(1_014 * mib, 980 * mib), pair("1,014 MiB", "980 MiB"));
        assert_eq!(of(11 << 30, 16 << 30), pair("11.0 GiB", "16.0 GiB"));
        // Too long in the smaller one's unit.
        assert_eq!(of(2 * mib, 61 << 30), pair("2.00 MiB", "61.0 GiB"));
        assert_eq!(of(0, 3 << 10), pair("0 B", "3,072 B"));
        assert_eq!(of(0, u64::MAX), pair("0 B", "16.0 EiB"));
    }

    #[test]
    fn units_print_one_way() {
        let cases: &[(String, &str)] = &[
            (Bytes(0).to_string(), "0 B"),
            (Bytes(999).to_string(), "999 B"),
            (Bytes(1000).to_string(), "0.98 KiB"),
            (Bytes(1023).to_string(), "1.00 KiB"),
            (Bytes(1023 << 10).to_string(), "1.00 MiB"),
            (Bytes(999 << 10).to_string(), "999 KiB"),
            (Bytes((999 << 10) + 512).to_string(), "0.98 MiB"),
            (Bytes(1024).to_string(), "1.00 KiB"),
            (Bytes(20_971_520).to_string(), "20.0 MiB"),
            (Bytes(65_712_455_680).to_string(), "61.2 GiB"),
            (Bytes(1_072_693_248).to_string(), "1.00 GiB"),
            (Bytes(u64::MAX).to_string(), "16.0 EiB"),
            (Bytes(1).exact(), "1 byte"),
            (Bytes(65_712_455_680).exact(), "65,712,455,680 bytes"),
            (Count(1_004_221).to_string(), "1,004,221"),
            (counted(0, "gap"), "0 gaps"),
            (counted(1, "gap"), "1 gap"),
            (counted(4_211, "gap"), "4,211 gaps"),
            (counted_as(1, "entry", "entries"), "1 entry"),
            (counted_as(1_204, "entry", "entries"), "1,204 entries"),
            (Micros(742).to_string(), "742 µs"),
            (Micros(3_200).to_string(), "3.20 ms"),
            (Micros(12_482_000).to_string(), "12.482 s"),
            (Micros(125_000_000).to_string(), "2 min 05 s"),
            (Micros(-742).to_string(), "-742 µs"),
            (Address(0xffff_8000_0000_0000).to_string(), "0xffff800000000000"),
            (Stream(0).to_string(), "default"),
            (Stream(-3).to_string(), "-3"),
            (PoolId(0, 0).to_string(), "default"),
            (PoolId(0, 2).to_string(), "(0, 2)"),
        ];
        for (got, want) in cases {
            assert_eq!(got, want);
        }
    }
}
