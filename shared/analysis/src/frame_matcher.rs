//! Looks for the pattern of a search term in frames.

use query::term::{Pattern, Term, lower_case};
use regex_lite::{Regex, RegexBuilder};
use trace::frames::{Frame, Symbols};

/// The largest compiled regular expression in bytes: enough for any that a person types.
const REGEX_BYTES: usize = 1 << 20;

/// A [`Pattern`] to look for.
#[derive(Clone, Debug)]
pub struct FrameMatcher {
    matcher: Matcher,
    has_line: bool,
}

#[derive(Clone, Debug)]
enum Matcher {
    /// Lower case.
    Text(String),
    Regex(Regex),
}

impl FrameMatcher {
    /// Compiles a pattern. The error is a sentence for the user.
    pub fn new(pattern: &Pattern) -> Result<Self, String> {
        let matcher = match pattern {
            Pattern::Text(text) => Matcher::Text(text.clone()),
            Pattern::Regex { expression, any_case } => {
                let mut builder = RegexBuilder::new(expression);
                Matcher::Regex(builder.case_insensitive(*any_case).size_limit(REGEX_BYTES).build().map_err(|e| {
                    let why = e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
                    format!("The regular expression can't be read: {why}.")
                })?)
            }
        };
        Ok(Self { matcher, has_line: pattern.has_line() })
    }

    /// Looks for a substring of a name, ignoring case.
    pub fn text(text: &str) -> Self {
        Self { matcher: Matcher::Text(lower_case(text)), has_line: text.contains(':') }
    }

    /// Returns whether a text fits.
    pub fn fits(&self, text: &str) -> bool {
        match &self.matcher {
            // Most names are ASCII and are compared without a copy.
            Matcher::Text(part) if part.is_ascii() && text.is_ascii() => {
                part.is_empty() || text.as_bytes().windows(part.len()).any(|w| w.eq_ignore_ascii_case(part.as_bytes()))
            }
            Matcher::Text(part) => lower_case(text).contains(part),
            Matcher::Regex(regex) => regex.is_match(text),
        }
    }

    /// Returns whether the frame's function or file (or `file:line`, if the pattern has a colon) fits.
    pub fn fits_frame(&self, symbols: &Symbols, frame: Frame) -> bool {
        let filename = symbols.text(frame.filename);
        self.fits(&symbols.text(frame.name))
            || self.fits(&filename)
            || self.has_line && self.fits(&format!("{filename}:{}", frame.line))
    }
}

/// Checks that every pattern of a term can be compiled. The error is a sentence for the user.
pub fn check(term: &Term) -> Result<(), String> {
    match term {
        Term::Frame(pattern) => FrameMatcher::new(pattern).map(drop),
        Term::Not(term) => check(term),
        Term::All(terms) => terms.iter().try_for_each(check),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_match_by_function_file_and_line() {
        let mut s = Symbols::default();
        let frame = Frame { name: s.intern("Präfix".as_bytes()), filename: s.intern(b"/a/Model.py"), line: 54 };
        let fits = |term: &str| match Term::parse(term) {
            Ok(Term::Frame(pattern)) => FrameMatcher::new(&pattern).unwrap().fits_frame(&s, frame),
            other => panic!("{other:?}"),
        };
        for term in ["model", "PRÄ", "MODEL.PY:54", "/^Pr/", "/model/i", "/py:5[0-9]/"] {
            assert!(fits(term), "{term}");
        }
        for term in ["models", "54", "model.py:55", "/^pr/", "/model/"] {
            assert!(!fits(term), "{term}");
        }
    }

    #[test]
    fn an_invalid_expression_is_answered_with_a_sentence() {
        for term in ["/(/", "/(((a{1000}){1000}){1000})/", "-/(/", "x.py /[/", "live:end -/*/"] {
            let sentence = check(&Term::parse(term).unwrap()).unwrap_err();
            assert!(
                sentence.starts_with("The regular expression can't be read: ") && !sentence.contains('\n'),
                "{sentence}"
            );
        }
        for term in ["/a+/", "(", ">1MiB /^x$/i"] {
            assert_eq!(check(&Term::parse(term).unwrap()), Ok(()), "{term}");
        }
    }
}
