//! The names of sessions: made of chance by the collector, so that a server that is away is not needed for one.

/// Characters of a session's name and of its key: five bits each.
pub const SESSION_CHARS: usize = 26;

/// RFC 4648's base32 in lower case: nothing in it is special in an address, a file's name or a shell.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A name from 26 bytes of chance.
pub fn session_id(chance: [u8; SESSION_CHARS]) -> String {
    chance.iter().map(|&byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

/// Whether a text has the form of a session's name. Nothing else ever reaches a path.
pub fn is_session(text: &str) -> bool {
    text.len() == SESSION_CHARS && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_one_form_pass() {
        let made = session_id([255; SESSION_CHARS]);
        assert_eq!(made, "7".repeat(26));
        assert!(is_session(&made) && is_session(&session_id(std::array::from_fn(|i| i as u8))));
        for text in ["", "..", &"A".repeat(26), &"a".repeat(25), &"a".repeat(27), &"/".repeat(26), &"é".repeat(13)] {
            assert!(!is_session(text), "{text}");
        }
    }
}
