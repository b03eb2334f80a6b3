//! Names of sessions: random, so that a collector can choose one without the server.

/// The length of a session's name and of its key, in characters of five bits each.
pub const SESSION_CHARS: usize = 26;

/// RFC 4648's base32 in lower case: no character is special in a URL, a file name or a shell.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Returns a name made from 26 random bytes.
pub fn session_id(random: [u8; SESSION_CHARS]) -> String {
    random.iter().map(|&byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

/// Whether a text is a valid session name. Only valid names ever become part of a path.
pub fn is_session(text: &str) -> bool {
    text.len() == SESSION_CHARS && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_names_pass() {
        let made = session_id([255; SESSION_CHARS]);
        assert_eq!(made, "7".repeat(26));
        assert!(is_session(&made) && is_session(&session_id(std::array::from_fn(|i| i as u8))));
        for text in ["", "..", &"A".repeat(26), &"a".repeat(25), &"a".repeat(27), &"/".repeat(26), &"é".repeat(13)] {
            assert!(!is_session(text), "{text}");
        }
    }
}
