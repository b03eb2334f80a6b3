//! Names of sessions and tokens of links: random, so that nobody can guess one.

/// The length of a session's name and of its key, in characters of five bits each.
pub const SESSION_CHARS: usize = 26;

/// The length of a link's token, in characters of five bits each: 195 bits.
pub const LINK_CHARS: usize = 39;

/// RFC 4648's base32 in lower case: no character is special in a URL, a file name or a shell.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Returns a name made from 26 random bytes.
pub fn session_id(random: [u8; SESSION_CHARS]) -> String {
    text_of(&random)
}

/// Returns the token of a link, or one that deletes it, made from 39 random bytes.
pub fn link_token(random: [u8; LINK_CHARS]) -> String {
    text_of(&random)
}

/// Whether a text is a valid session name. Only valid names ever become part of a path.
pub fn is_session(text: &str) -> bool {
    is_text(text, SESSION_CHARS)
}

/// Whether a text can be the token of a link.
pub fn is_link_token(text: &str) -> bool {
    is_text(text, LINK_CHARS)
}

fn text_of(random: &[u8]) -> String {
    // Each number below 32 has its character.
    random.iter().filter_map(|&byte| ALPHABET.get(usize::from(byte % 32))).map(|&letter| char::from(letter)).collect()
}

fn is_text(text: &str, chars: usize) -> bool {
    text.len() == chars && text.bytes().all(|byte| ALPHABET.contains(&byte))
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
        let token = link_token([255; LINK_CHARS]);
        assert!(is_link_token(&token) && !is_link_token(&made) && !is_session(&token));
    }
}
