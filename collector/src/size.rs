//! Sizes as people write them.

/// The most disk space that a setting may name: more than any store has.
const MOST_DISK: u64 = 1 << 60;

/// Reads a number of bytes such as `80GiB`, `1.5 GiB` or `512MiB`; also `GB` (10^9) and plain bytes. Returns `None` for 0 and
/// for more than `most`.
pub(crate) fn parse(text: &str, most: u64) -> Option<u64> {
    const UNITS: [(&str, u64); 15] = [
        ("EiB", 1 << 60),
        ("PiB", 1 << 50),
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("EB", 1_000_000_000_000_000_000),
        ("PB", 1_000_000_000_000_000),
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KB", 1_000),
        ("G", 1 << 30),
        ("M", 1 << 20),
        ("B", 1),
    ];
    let trimmed = text.trim();
    let (number, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| trimmed.strip_suffix(name).map(|number| (number.trim(), *unit)))
        .unwrap_or((trimmed, 1));
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    // The text has only digits and dots, so that the product is neither negative nor NaN.
    let bytes = (number.parse::<f64>().ok()? * unit as f64) as u64;
    (1..=most).contains(&bytes).then_some(bytes)
}

/// Reads an amount of disk space. A number without a unit is refused: read as bytes, it would delete every session. The error
/// continues the sentence "it is not".
pub(crate) fn disk_space(text: &str) -> Result<u64, &'static str> {
    let has_unit = !text.trim().ends_with(|c: char| c.is_ascii_digit());
    let wrong = "a size with its unit, such as 20GiB or 1.5TiB, up to 1EiB";
    parse(text, MOST_DISK).filter(|_| has_unit).ok_or(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_disk_space() {
        let cases = [
            ("20GiB", Some(20 << 30)),
            ("5MB", Some(5_000_000)),
            ("2TiB", Some(2 << 40)),
            (" 1.5 PiB ", Some(3 << 49)),
            ("1EiB", Some(1 << 60)),
            ("1EB", Some(1_000_000_000_000_000_000)),
            ("1B", Some(1)),
            ("2EiB", None),
            ("99999999TiB", None),
            ("20", None),
            ("0GiB", None),
            ("-1GiB", None),
            ("GiB", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(disk_space(text).ok(), want, "{text}");
        }
    }
}
