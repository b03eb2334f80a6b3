//! Names of files that come from names of sessions and links.

/// The most characters of a file name.
const NAME_CHARS: usize = 60;

/// Returns a name that has no meaning to any system or shell, since a session's own name can be any text; `otherwise` if
/// nothing of it is left.
pub(crate) fn file_name(name: &str, otherwise: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = name.chars().take(NAME_CHARS).map(|c| if is_plain(c) { c } else { '-' }).collect();
    let plain = plain.trim_matches(['.', '-']);
    if plain.is_empty() { otherwise.to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_harmless() {
        for (name, want) in [
            ("train.py step 3", "train.py-step-3"),
            ("../../etc/passwd", "etc-passwd"),
            ("a\"; filename=\"b.exe\r\nX: y", "a---filename--b.exe--X--y"),
            ("", "id"),
            ("...", "id"),
            ("é", "id"),
        ] {
            assert_eq!(file_name(name, "id"), want);
        }
        assert_eq!(file_name(&"x".repeat(1_000), "id").len(), NAME_CHARS);
    }
}
