//! Timestamps as text.

use trace::units::Moment;

/// Formats microseconds since the epoch for a file name, in UTC: `20261121-180000`.
pub(super) fn in_file_name(us: i64) -> String {
    rfc_3339(us).replace(['-', ':', 'Z'], "").replace('T', "-")
}

/// Formats microseconds since the epoch as RFC 3339, in UTC: `2026-11-21T18:00:00Z`.
pub(super) fn rfc_3339(us: i64) -> String {
    let Moment { year, month, day, hour, minute, second, .. } = Moment::at(us);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc() {
        for (us, want) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400_999_999, "2000-02-29T00:00:00Z"),
            (1_795_284_000_000_000, "2026-11-21T18:00:00Z"),
        ] {
            assert_eq!(rfc_3339(us), want);
        }
        assert_eq!(in_file_name(1_795_284_000_000_000), "20261121-180000");
        // The ends of the range don't panic.
        for us in [i64::MIN, i64::MAX] {
            assert!(rfc_3339(us).ends_with('Z'));
        }
    }
}
