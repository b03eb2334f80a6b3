//! Recognizes a sweep's document by its first bytes.

/// What the document begins with, between which there may be white space.
const TOKENS: [&[u8]; 4] = [b"{", b"\"format\"", b":", b"\"vramscope sweep "];

/// Returns whether a file that begins with these bytes is a sweep's document; `None` while more bytes are needed.
pub fn begins(head: &[u8]) -> Option<bool> {
    let mut rest = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    for token in TOKENS {
        rest = rest.trim_ascii_start();
        match rest.strip_prefix(token) {
            Some(after) => rest = after,
            None if token.starts_with(rest) => return None,
            None => return Some(false),
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::super::testing::sweep;
    use super::*;

    #[test]
    fn a_document_is_recognized_whatever_its_white_space() {
        let text = serde_json::to_string_pretty(&sweep().document()).unwrap();
        assert_eq!(begins(text.as_bytes()), Some(true));
        let short: String = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        for head in [&short, "\u{feff} \n{ \"format\"\t: \"vramscope sweep 2\"", "{\"format\":\"vramscope sweep 1"] {
            assert_eq!(begins(head.as_bytes()), Some(true), "{head}");
        }
    }

    #[test]
    fn other_files_are_not() {
        for head in ["[1]", "{\"segments\": []}", "{\"format\": \"other 1\"", "{\"format\": 1", "{}", "x", "\u{80}"] {
            assert_eq!(begins(head.as_bytes()), Some(false), "{head}");
        }
        for head in ["", " ", "{", "{ \"fo", "{\"format\"", "{\"format\": \"vramscope swee"] {
            assert_eq!(begins(head.as_bytes()), None, "{head}");
        }
    }
}
