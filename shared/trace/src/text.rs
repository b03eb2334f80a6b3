//! Text from untrusted sources, made safe to print.
//!
//! A name in a file can hold escape sequences, which a terminal obeys, line breaks, which begin a line that looks like
//! the program's own, and characters that change the direction or the look of the rest of a line. Three mechanisms keep
//! such names harmless, so that callers need not care:
//!
//! - [`Symbols::text`](crate::frames::Symbols::text), by which every name, file and annotation of a trace is read for people,
//!   returns it [`escaped`]. Its bytes are returned by another function, for copies.
//! - Text from elsewhere (a path, a header, an answer of a server) is written through [`Escaped`].
//! - The command line writes to each of its streams in one place, where [`escaped_lines`] escapes what is left. That loses
//!   nothing: a program that reads JSON gets the same text.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Returns whether a character is invisible or affects others: controls, marks of direction, spaces of no width,
/// separators of lines, and tags.
pub const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Writes a text in one line, hidden characters as `\u{1b}`.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&escaped(self.0))
    }
}

/// Returns a text in one line, hidden characters as `\u{1b}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    replaced(text, is_hidden, |out, c| out.extend(c.escape_unicode()))
}

/// Returns where the separators of a path are, the last one first. The path may be [`escaped`]: the backslash of a hidden character
/// is not one.
pub fn separators(path: &str) -> impl Iterator<Item = usize> {
    path.rmatch_indices(['/', '\\'])
        .map(|(at, _)| at)
        .filter(|at| !path.get(*at..).is_some_and(|rest| rest.starts_with("\\u{")))
}

/// Returns the lines of a text, other hidden characters than line ends as `\u001b`: in JSON, that is the same text.
pub fn escaped_lines(lines: &str) -> Cow<'_, str> {
    let is_sealed = |c| c != '\n' && is_hidden(c);
    replaced(lines, is_sealed, |out, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string can't fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// Returns a word that a shell reads as this text. It is one line, without hidden characters.
pub fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:=/+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    // A line break would end the line where it is pasted.
    let line: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    format!("'{}'", line.replace('\'', "'\\''"))
}

fn replaced(text: &str, is_replaced: impl Fn(char) -> bool, replace: impl Fn(&mut String, char)) -> Cow<'_, str> {
    // Nearly every text is plain.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.contains(&is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_replaced(c) { replace(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_or_a_reader_does_not_see_is_shown() {
        for (text, want) in [
            ("plain  text ~", "plain  text ~"),
            ("wörter, 字, 🚀", "wörter, 字, 🚀"),
            ("\x1b]0;owned\x07\x1b[2J", "\\u{1b}]0;owned\\u{7}\\u{1b}[2J"),
            ("a\nb\tc\rd", "a\\u{a}b\\u{9}c\\u{d}d"),
            ("\u{7f}\u{85}\u{9b}2J", "\\u{7f}\\u{85}\\u{9b}2J"),
            ("gpt\u{202e}yp.\u{2066}\u{2069}\u{200f}", "gpt\\u{202e}yp.\\u{2066}\\u{2069}\\u{200f}"),
            ("a\u{200b}b\u{feff}c\u{2028}d\u{2029}\u{e0041}", "a\\u{200b}b\\u{feff}c\\u{2028}d\\u{2029}\\u{e0041}"),
        ] {
            assert_eq!(escaped(text), want);
            assert_eq!(format!("{:>90}", Escaped(text)), format!("{want:>90}"));
            assert!(!escaped(text).contains(is_hidden));
        }
    }

    #[test]
    fn the_backslash_of_a_hidden_character_separates_no_folders() {
        for (path, want) in [
            ("train.py", &[][..]),
            ("C:\\job/train.py", &[6, 2]),
            ("eyes/tr\u{1b}ain\u{202e}.py", &[4]),
            ("eyes\\\u{ad}.py", &[4]),
        ] {
            assert_eq!(separators(&escaped(path)).collect::<Vec<_>>(), want, "{path:?}");
        }
    }

    #[test]
    fn what_a_shell_would_run_is_a_word() {
        for (text, want) in [
            ("a:1,b_c=2", "a:1,b_c=2"),
            ("", "''"),
            ("a b", "'a b'"),
            ("~", "'~'"),
            ("a:1'; rm -rf ~ #\n$(id)", "'a:1'\\''; rm -rf ~ # $(id)'"),
        ] {
            assert_eq!(quoted(text), want);
        }
    }

    #[test]
    fn lines_stay_and_json_reads_the_same() {
        assert_eq!(escaped_lines("one\n  two\x1b[31m\u{e0041}"), "one\n  two\\u001b[31m\\udb40\\udc41");
        let text = "a\u{9b}\u{202e}\u{e0041}\x7f\n\t\"é";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        assert!(json.contains('\u{202e}'));
        let sealed = escaped_lines(&json);
        assert!(!sealed.contains(|c| c != '\n' && is_hidden(c)), "{sealed}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&sealed).unwrap(), [text]);
    }
}
