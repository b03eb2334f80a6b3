//! Number formats: aligned seconds, shares, wall-clock times.

use trace::decimal::Decimal;
pub use trace::units::counted;
use trace::units::{Bytes, Micros, Moment};

/// Formats microseconds as seconds with six decimals, so that a column lines up: `12.482031`.
pub fn seconds(us: f64) -> String {
    let us = us.round() as i64;
    let sign = if us < 0 { "-" } else { "" };
    let us = us.unsigned_abs();
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// Formats a moment, in microseconds from the start, to the microsecond and as the time axis has it: `12.482031 s`,
/// `1:48.401755`, `1:02:03.000000`. No line ends before the unit.
pub fn moment(us: f64) -> String {
    let whole = us.round() as i64;
    let minutes = whole / 60_000_000;
    if minutes < 1 {
        return format!("{}\u{a0}s", seconds(us));
    }
    let hours = if minutes < 60 { String::new() } else { format!("{}:", minutes / 60) };
    // Of an hour, the minutes have two digits.
    let width = if minutes < 60 { 1 } else { 2 };
    let (second, micros) = (whole / 1_000_000 % 60, whole % 1_000_000);
    format!("{hours}{:0width$}:{second:02}.{micros:06}", minutes % 60)
}

/// Formats a part of a whole: `12.3 %`, `100 %`, `< 0.1 %`; `0 %` if the whole is zero.
pub fn share(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    let share = part as f64 / whole as f64 * 100.0;
    if share < 0.1 {
        "< 0.1 %".to_owned()
    } else if part == whole {
        "100 %".to_owned()
    } else {
        // 99.96 would round to 100.0 although it is not all.
        format!("{} %", Decimal::of(share.min(99.9), 1))
    }
}

/// Returns a sentence in which no line ends between a number and its `%`.
pub fn unbroken(sentence: &str) -> String {
    sentence.replace(" %", "\u{a0}%")
}

/// Formats `61.2 GiB (65,712,455,680 bytes)`, for copied text and tooltips.
pub fn bytes_in_full(bytes: u64) -> String {
    let bytes = Bytes(bytes);
    if bytes.0 < 1024 { bytes.exact() } else { format!("{bytes} ({})", bytes.exact()) }
}

/// Formats a duration: `0.4 s`, `38 s`, `3 min 12 s`, `2 h 5 min`, `3 days`.
pub fn span_text(us: i64) -> String {
    let us = us.max(0);
    let (tenths, seconds) = (us / 100_000, us / 1_000_000);
    let two = |a: i64, a_unit: &str, b: i64, b_unit: &str| match b {
        0 => format!("{a}{a_unit}"),
        b => format!("{a}{a_unit} {b}{b_unit}"),
    };
    match seconds {
        0..10 => format!("{}.{} s", tenths / 10, tenths % 10),
        10..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, " min", seconds % 60, " s"),
        3_600..172_800 => two(seconds / 3_600, " h", seconds / 60 % 60, " min"),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Formats microseconds as a duration of three digits: `784 µs`, `438 ms`, `1.31 s`.
pub fn duration(us: f64) -> String {
    let us = us.round().max(0.0) as u64;
    let (per, unit) = match us {
        1_000..1_000_000 => (1_000, "ms"),
        1_000_000..60_000_000 => (1_000_000, "s"),
        _ => return Micros(us as i64).to_string(),
    };
    let places = if us < 10 * per { 2 } else { u32::from(us < 100 * per) };
    format!("{} {unit}", Decimal::ratio(us, per, places))
}

/// Formats how long ago something was, in its largest unit: `just now`, `38 s ago`, `13 min ago`, `2 h ago`, `3 days ago`.
pub fn ago_text(us: i64) -> String {
    match us / 1_000_000 {
        ..10 => "just now".to_owned(),
        s @ 10..60 => format!("{s} s ago"),
        s @ 60..3_600 => format!("{} min ago", s / 60),
        s @ 3_600..172_800 => format!("{} h ago", s / 3_600),
        s => format!("{} days ago", s / 86_400),
    }
}

/// Formats microseconds since the epoch as UTC date and time: `2024-05-01 09:30:00.000123 UTC`.
pub fn wall_clock(us: i64) -> String {
    let Moment { year, month, day, hour, minute, second, micros } = Moment::at(us);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06} UTC")
}

/// Formats a time like [`wall_clock`] as briefly as it can be understood: `21:04:12 UTC` on the day of `now_us`, and
/// `2026-11-23 21:04 UTC` on others.
pub fn moment_text(us: i64, now_us: i64) -> String {
    let text = wall_clock(us);
    let is_today = text.get(..10) == wall_clock(now_us).get(..10);
    let part = if is_today { text.get(11..19) } else { text.get(..16) };
    format!("{} UTC", part.unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_three_digits() {
        let cases = [784.4, 2_218.0, 64_390.0, 437_770.0, 1_310_288.0, 12_482_000.0, 125e6].map(duration);
        assert_eq!(cases, ["784 µs", "2.22 ms", "64.4 ms", "438 ms", "1.31 s", "12.5 s", "2 min 05 s"]);
    }

    #[test]
    fn how_long_ago_has_one_unit() {
        let cases =
            [(-5, "just now"), (38, "38 s ago"), (821, "13 min ago"), (7_499, "2 h ago"), (300_000, "3 days ago")];
        for (seconds, text) in cases {
            assert_eq!(ago_text(seconds * 1_000_000), text);
        }
    }

    #[test]
    fn seconds_line_up() {
        assert_eq!(seconds(12_482_031.0), "12.482031");
        assert_eq!(seconds(42.4), "0.000042");
        assert_eq!(seconds(-1.0), "-0.000001");
    }

    #[test]
    fn moments_read_as_on_the_axis() {
        for (us, text) in [
            (-1.0, "-0.000001\u{a0}s"),
            (59_999_999.0, "59.999999\u{a0}s"),
            (60_000_000.0, "1:00.000000"),
            (108_401_755.0, "1:48.401755"),
            (3_723_000_001.0, "1:02:03.000001"),
        ] {
            assert_eq!(moment(us), text);
        }
    }

    #[test]
    fn shares_round_to_none_or_all_only_if_exact() {
        assert_eq!(share(0, 0), "0 %");
        assert_eq!(share(0, 9), "0 %");
        assert_eq!(share(9, 9), "100 %");
        assert_eq!(share(99_999, 100_000), "99.9 %");
        assert_eq!(share(1, 100_000), "< 0.1 %");
        assert_eq!(share(1, 8), "12.5 %");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(wall_clock(0), "1970-01-01 00:00:00.000000 UTC");
        let noon = 1_714_555_800_000_123;
        assert_eq!(moment_text(noon, noon + 3_600_000_000), "09:30:00 UTC");
        assert_eq!(moment_text(noon, noon + 86_400_000_000), "2024-05-01 09:30 UTC");
        assert_eq!(wall_clock(951_782_400_000_000), "2000-02-29 00:00:00.000000 UTC");
        assert_eq!(wall_clock(1_714_555_800_000_123), "2024-05-01 09:30:00.000123 UTC");
        assert_eq!(wall_clock(-1), "1969-12-31 23:59:59.999999 UTC");
        assert_eq!(wall_clock(4_107_542_399_000_000), "2100-02-28 23:59:59.000000 UTC");
    }

    #[test]
    fn durations() {
        for (us, text) in [
            (-1, "0.0 s"),
            (449_999, "0.4 s"),
            (9_999_999, "9.9 s"),
            (38_000_000, "38 s"),
            (60_000_000, "1 min"),
            (192_000_000, "3 min 12 s"),
            (7_500_000_000, "2 h 5 min"),
            (172_800_000_000, "2 days"),
        ] {
            assert_eq!(span_text(us), text);
        }
    }

    #[test]
    fn bytes_in_full_give_both() {
        assert_eq!(bytes_in_full(512), "512 bytes");
        assert_eq!(bytes_in_full(2_097_152), "2.00 MiB (2,097,152 bytes)");
    }
}
