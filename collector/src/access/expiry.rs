//! Dates at which tokens expire.

use trace::units::Moment;

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

/// Reads a date (`2026-12-31`, which includes that day, in UTC) or a time with its offset from UTC
/// (`2026-12-31T18:00:00Z`, `2026-12-31T18:00:00+01:00`), as RFC 3339 writes them. Returns microseconds since the epoch.
pub(super) fn expiry_us(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(split_offset(time)?)),
        None => (text, None),
    };
    let (time, offset_us) = (time.map(|(time, _)| time), time.map_or(0, |(_, offset_us)| offset_us));
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = time.map_or(Some([0; 3]), |time| numbers(time, ':', [2; 3]))?;
    let us = days(year, month, day) * DAY_US + ((hour * 60 + minute) * 60 + second) * 1_000_000;
    // A day that no month has becomes another one.
    let Moment { year: y, month: mo, day: d, hour: h, minute: mi, second: s, .. } = Moment::at(us);
    let is_same = [y, mo, d, h, mi, s] == [year, month, day, hour, minute, second];
    is_same.then_some(if time.is_some() { us - offset_us } else { us + DAY_US })
}

/// Splits a time of day from its offset: `Z`, `+01:00` or `-05:30`. Returns the offset in microseconds.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0));
    }
    let at = time.rfind(['+', '-'])?;
    let (time, offset) = (time.get(..at)?, time.get(at..)?);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let [hour, minute] = numbers(offset.get(1..)?, ':', [2; 2])?;
    (hour < 24 && minute < 60).then_some((time, sign * (hour * 60 + minute) * 60_000_000))
}

/// Reads numbers with fixed numbers of digits.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(separator);
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March, so that the leap day is the
/// last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, month) = (year.div_euclid(400), (month + 9) % 12);
    let year = year.rem_euclid(400);
    era * 146_097 + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times() {
        for (text, want) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-11-21T18:00:00Z", Some(1_795_284_000_000_000)),
            ("2000-02-29T00:00:00Z", Some(951_782_400_000_000)),
            // The whole day counts.
            ("2000-02-28", Some(951_782_400_000_000)),
            ("2026-12-31", Some(1_798_761_600_000_000)),
            ("2025-02-29", None),
            ("2026-13-01", None),
            ("2026-00-01", None),
            ("2026-11-31", None),
            ("2026-11-21T24:00:00Z", None),
            ("2026-11-21T18:00:00", None),
            ("2026-11-21T18:00:00+01:00", Some(1_795_280_400_000_000)),
            ("2026-11-21T18:00:00-05:30", Some(1_795_303_800_000_000)),
            ("2026-11-21T00:00:00+23:59", Some(1_795_132_860_000_000)),
            ("2026-11-21T18:00:00+24:00", None),
            ("2026-11-21T18:00:00+01:60", None),
            ("2026-11-21T18:00:00+0100", None),
            ("2026-11-21T18:00:00+1:00", None),
            ("2026-11-21T18:00:00é01:00", None),
            ("2026-11-21T+01:00", None),
            ("2026-11-21 18:00:00Z", None),
            ("26-11-21", None),
            ("2026-1-1", None),
            ("+026-01-01", None),
            ("", None),
            ("tomorrow", None),
        ] {
            assert_eq!(expiry_us(text), want, "{text}");
        }
    }
}
