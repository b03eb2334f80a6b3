//! Splits a settings string into tokens.

/// Splits at `,` `:` `[` `]`, which are tokens themselves. Characters that `is_dropped` accepts are removed, also
/// inside a word: `4 0` is one token `40`.
pub(super) fn tokenize(conf: &str, is_dropped: fn(char) -> bool) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    for c in conf.chars() {
        if matches!(c, ',' | ':' | '[' | ']') {
            if !word.is_empty() {
                tokens.push(std::mem::take(&mut word));
            }
            tokens.push(c.to_string());
        } else if !is_dropped(c) {
            word.push(c);
        }
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    tokens
}

/// Returns whether a character is `std::isspace` in the C locale, which unlike Rust includes the vertical tab.
pub(super) const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_tokens_and_space_vanishes() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            (" \t\u{b}", &[]),
            ("a:1", &["a", ":", "1"]),
            (" a : 4 0 ", &["a", ":", "40"]),
            ("a:[1:2,>:3]", &["a", ":", "[", "1", ":", "2", ",", ">", ":", "3", "]"]),
            (",,", &[",", ","]),
            ("é\u{a0}", &["é\u{a0}"]),
        ];
        for &(conf, want) in cases {
            assert_eq!(tokenize(conf, is_space), want, "{conf:?}");
        }
    }
}
