//! Times for people.

/// Microseconds since the epoch as part of a file's name, in UTC: `20261121-180000`.
pub(super) fn in_file_name(us: i64) -> String {
    rfc_3339(us).replace(['-', ':', 'Z'], "").replace('T', "-")
}

/// Microseconds since the epoch as RFC 3339 has them, in UTC: `2026-11-21T18:00:00Z`.
pub(super) fn rfc_3339(us: i64) -> String {
    let seconds = us.div_euclid(1_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a number of days since 1970-01-01, by Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
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
        // The ends of the range are years that nobody reads, and no panic.
        for us in [i64::MIN, i64::MAX] {
            assert!(rfc_3339(us).ends_with('Z'));
        }
    }
}
