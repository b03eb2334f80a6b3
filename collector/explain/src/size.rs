//! Sizes as PyTorch writes them: `20.00 MiB`, `512 bytes`, `1062 MB`.

/// Units by name. `KB`, `MB` and `GB` are those of old releases, which wrote powers of two that way.
const UNITS: [(&str, u64); 18] = [
    ("bytes", 1),
    ("byte", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
    ("EiB", 1 << 60),
    ("KB", 1 << 10),
    ("MB", 1 << 20),
    ("GB", 1 << 30),
    ("TB", 1 << 40),
    ("PB", 1 << 50),
    ("EB", 1 << 60),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("B", 1),
    ("b", 1),
];

/// Reads a size at the start of a text, after spaces.
pub(super) fn at_start(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    let number: f64 = number.parse().ok()?;
    let unit: String = rest.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit)?;
    // The number has digits and a dot only, so it is not negative; what is too large saturates.
    Some((number * *bytes as f64).round() as u64)
}

/// Reads the size that follows a marker.
pub(super) fn after(text: &str, marker: &str) -> Option<u64> {
    text.split_once(marker).and_then(|(_, rest)| at_start(rest))
}

/// Reads the size that follows a marker; a whole number without a unit is bytes.
pub(super) fn bytes_after(text: &str, marker: &str) -> Option<u64> {
    let (_, rest) = text.split_once(marker)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, end) = rest.split_at_checked(end)?;
    at_start(rest).or_else(|| number.parse().ok().filter(|_| !end.starts_with('.')))
}

/// Reads the size right before a marker.
pub(super) fn before(text: &str, marker: &str) -> Option<u64> {
    let (head, _) = text.split_once(marker)?;
    let (head, unit) = split_end(head.trim_end(), u8::is_ascii_alphabetic)?;
    let (_, number) = split_end(head.trim_end(), |byte| byte.is_ascii_digit() || *byte == b'.')?;
    at_start(&[number, unit].join(" "))
}

/// Returns how far a size that PyTorch wrote with two decimals may be from the real one.
pub(super) fn rounding(bytes: u64) -> u64 {
    let unit = [1_u64 << 30, 1 << 20, 1 << 10].into_iter().find(|unit| bytes >= *unit);
    unit.map_or(0, |unit| unit / 200 + 1)
}

/// Splits off the longest end whose bytes are all of one kind.
fn split_end(text: &str, is_kind: impl FnMut(&u8) -> bool) -> Option<(&str, &str)> {
    let mut is_kind = is_kind;
    let length = text.bytes().rev().take_while(|byte| is_kind(byte)).count();
    text.split_at_checked(text.len() - length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_known_to_two_decimals() {
        let cases = [(512, 0), (1 << 10, 6), (20 << 20, 5_243), (80 << 30, 5_368_710)];
        assert_eq!(cases.map(|(bytes, _)| rounding(bytes)), cases.map(|(_, want)| want));
    }

    #[test]
    fn sizes_are_read_where_they_stand() {
        assert_eq!(at_start(" 20.00 MiB. GPU"), Some(20 << 20));
        assert_eq!(at_start("512 bytes is"), Some(512));
        assert_eq!(at_start("1062 MB |"), Some(1062 << 20));
        assert_eq!(at_start("0 bytes free"), Some(0));
        for none in ["", "MiB", "20", "20 parsecs", "..5 MiB", "1.2.3 GiB"] {
            assert_eq!(at_start(none), None, "{none}");
        }
        assert_eq!(at_start("99999999999999999999 EiB"), Some(u64::MAX));
        assert_eq!(after("of which 1.50 GiB is free", "of which"), Some(3 << 29));
        let old = "(GPU 0; 8.00 GiB total capacity; 512 bytes free; 1.50 GiB reserved in total by PyTorch)";
        assert_eq!(before(old, " total capacity"), Some(8 << 30));
        assert_eq!(before(old, " free;"), Some(512));
        assert_eq!(before(old, " reserved in total"), Some(3 << 29));
        assert_eq!(before(old, " already allocated"), None);
        assert_eq!(before("é5 MiB free;", " free;"), Some(5 << 20));
        for (text, bytes) in
            [("size 512.", None), ("size 512,", Some(512)), ("size 2.00GiB", Some(2 << 30)), ("size", None)]
        {
            assert_eq!(bytes_after(text, "size "), bytes, "{text}");
        }
    }
}
