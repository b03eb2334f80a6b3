//! Several words in the search box: where one term ends and the next begins.
//!
//! ```text
//! search = term { white space term }      an allocation must match all of them
//! term   = [ "-" ] ( "\"" text "\"" | "/" regex "/" [ "i" ] | form | word )
//! ```
//!
//! A form, such as `size > 1.5 GiB` or `pool:(0, 1)`, may have spaces of its own: the longest run of words that reads as one
//! is one. White space inside a text counts only between quotation marks.

use super::term::{Term, is_regex};

/// The most terms of a search. Each keeps one bit an allocation.
const TERMS: usize = 12;
/// The most words of a form: `- size > 1.5 GiB`.
const FORM_WORDS: usize = 5;

/// Splits a search without white space around it into the texts of its terms. The error is a sentence for the user.
pub(super) fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut terms, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (first, behind) = rest.split_at(first_end(rest));
        terms.push(first);
        rest = behind.trim_start();
    }
    if terms.len() > TERMS {
        return Err(format!("A search can have {TERMS} words at most. Put text with spaces between quotation marks."));
    }
    Ok(terms)
}

/// Returns the text between quotation marks; `None` if it has none around it.
pub(super) fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"').filter(|inner| !inner.trim().is_empty())
}

/// Returns the ends of the words of a text.
fn word_ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    let inner = text.char_indices().filter(|(at, c)| {
        let before = text.get(..*at).and_then(|before| before.chars().next_back());
        c.is_whitespace() && before.is_some_and(|before| !before.is_whitespace())
    });
    inner.map(|(at, _)| at).chain([text.len()])
}

/// Returns the end of the first term of a text that is not empty and begins with no white space.
fn first_end(text: &str) -> usize {
    let up_to = |end: usize| text.get(..end).unwrap_or(text);
    let left_out = |text: &str| text.strip_prefix('-').map_or(0, |rest| text.len() - rest.trim_start().len());
    let sign = left_out(text);
    let body = text.get(sign..).unwrap_or_default();
    // The first end that closes it, so that a second one may follow.
    let closes = |end: &usize| {
        let term = up_to(*end).get(sign..).unwrap_or_default();
        quoted(term).is_some() || is_regex(term)
    };
    if body.starts_with(['"', '/'])
        && let Some(end) = word_ends(text).find(closes)
    {
        return end;
    }
    let ends: Vec<usize> = word_ends(text).take(FORM_WORDS).collect();
    let is_form = |end: &&usize| Term::is_form(up_to(**end));
    // A minus sign belongs to the word behind it.
    let word = ends.iter().find(|end| **end > sign).copied().unwrap_or(text.len());
    ends.iter().rev().find(is_form).copied().unwrap_or(word).max(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_terms_and_forms_keep_their_spaces() {
        let cases: &[(&str, &[&str])] = &[
            ("attention", &["attention"]),
            (">800MiB oom.py:11", &[">800MiB", "oom.py:11"]),
            ("oom.py:11 >800MiB", &["oom.py:11", ">800MiB"]),
            ("size > 1.5 gib  train.py", &["size > 1.5 gib", "train.py"]),
            ("> 100 train.py", &["> 100", "train.py"]),
            ("100 mb attention 5", &["100 mb", "attention", "5"]),
            ("pool:(0, 1) stream = 7", &["pool:(0, 1)", "stream = 7"]),
            ("category: KV cache forward", &["category: KV cache", "forward"]),
            ("category:gradients forward", &["category:gradients", "forward"]),
            ("\"two words\" three", &["\"two words\"", "three"]),
            ("\"two words", &["\"two", "words"]),
            ("-\"two words\" -three", &["-\"two words\"", "-three"]),
            ("- size > 1.5 GiB x", &["- size > 1.5 GiB", "x"]),
            ("- attention backward", &["- attention", "backward"]),
            ("/a b/ /c d/i e", &["/a b/", "/c d/i", "e"]),
            ("/home/me train", &["/home/me", "train"]),
            ("forward  m/model.py:5", &["forward", "m/model.py:5"]),
            ("-", &["-"]),
            ("- -", &["- -"]),
            ("live:end b7f0000_3", &["live:end", "b7f0000_3"]),
            ("ä\u{a0}ö", &["ä", "ö"]),
        ];
        for (text, want) in cases {
            assert_eq!(split(text).as_deref(), Ok(*want), "{text}");
        }
    }

    #[test]
    fn nothing_of_a_search_is_lost() {
        let odd = ["\"", "\"\"", "\"\" \"", "/", "// x", "-/ /", ">", "> >", "-> 5", "size", "a \" b", "- \"", "= = ="];
        for text in odd {
            let split = split(text).unwrap();
            let without = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(without(&split.concat()), without(text), "{text}: {split:?}");
            assert!(split.iter().all(|term| !term.trim().is_empty()), "{split:?}");
        }
        assert!(split(&"a ".repeat(TERMS)).is_ok());
        assert!(split(&"a ".repeat(TERMS + 1)).is_err());
    }
}
