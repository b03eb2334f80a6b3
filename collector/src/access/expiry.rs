//! Dates at which tokens expire.

use shared::units::Moment;

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

/// Reads a date (`2026-12-31`, which includes that day) or a time (`2026-12-31T18:00:00Z`), both in UTC as RFC 3339 writes
/// them. Returns microseconds since the epoch.
pub(super) fn expiry_us(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time.strip_suffix('Z')?)),
        None => (text, None),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = time.map_or(Some([0; 3]), |time| numbers(time, ':', [2; 3]))?;
    let us = days(year, month, day) * DAY_US + ((hour * 60 + minute) * 60 + second) * 1_000_000;
    // A day that no month has becomes another one.
    let Moment { year: y, month: mo, day: d, hour: h, minute: mi, second: s, .. } = Moment::at(us);
    let is_same = [y, mo, d, h, mi, s] == [year, month, day, hour, minute, second];
    is_same.then_some(if time.is_some() { us } else { us + DAY_US })
}

/// Reads three numbers with fixed numbers of digits.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let mut numbers = [0; 3];
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
    fn dates_and_times_in_utc() {
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
            ("2026-11-21T18:00:00+01:00", None),
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
