//! The language of the search box: parses one term, whose kind depends on its first characters.
//!
//! [`SearchHelp::FORMS`](super::SearchHelp::FORMS) lists the forms for the user. All other text is plain text, so that
//! `at::native` or `model.py:54` can be typed as they are displayed.

use regex_lite::{Regex, RegexBuilder};

use super::Category;
use crate::frames::{Frame, Symbols};
use crate::units::{PoolId, Stream};

/// The largest compiled regular expression in bytes: enough for any that a person types.
const REGEX_BYTES: usize = 1 << 20;
/// The largest number of characters of a term. A longer one is a failed paste.
const TERM_CHARS: usize = 1_000;

/// A parsed search term, which defines a set of allocations.
#[derive(Clone, Debug)]
pub enum Term {
    /// Allocations with a frame that the pattern fits.
    Frame(Pattern),
    /// Allocations whose requested bytes compare like this with a number.
    Size(Comparison, u64),
    /// Allocations whose block holds an address, or whose address begins with these digits.
    Address(u64),
    /// One allocation by its name: the address, and how often it was used before.
    Named(u64, u32),
    /// Allocations of a stream.
    Stream(Stream),
    /// Allocations of a pool.
    Pool(Pool),
    /// Allocations that are active at one end of the trace.
    Live(End),
    /// Allocations of a category.
    Category(Category),
    /// Allocations that another term does not match.
    Not(Box<Term>),
}

/// A comparison of the requested size with a term's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

impl Comparison {
    /// Returns whether the comparison holds for `size` and `bound`.
    pub const fn holds(self, size: u64, bound: u64) -> bool {
        match self {
            Self::Less => size < bound,
            Self::AtMost => size <= bound,
            Self::Equal => size == bound,
            Self::AtLeast => size >= bound,
            Self::More => size > bound,
        }
    }
}

/// The pools that a term names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Pools for requests up to 1 MiB.
    Small,
    /// Pools for larger requests.
    Large,
    /// Every pool but the default one.
    Private,
    /// One pool.
    Id(PoolId),
}

/// One end of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Made before its first event.
    Start,
    /// Never freed in it.
    End,
}

/// A pattern for a frame's function and file.
#[derive(Clone, Debug)]
pub struct Pattern {
    matcher: Matcher,
    /// Whether the line number is compared: only if the pattern has a colon; otherwise any `8` would match line 80.
    with_line: bool,
}

#[derive(Clone, Debug)]
enum Matcher {
    /// Lower case.
    Text(String),
    Regex(Regex),
}

impl Pattern {
    /// A substring of a name, ignoring case.
    pub fn text(text: &str) -> Self {
        Self { matcher: Matcher::Text(lower_case(text)), with_line: text.contains(':') }
    }

    fn fits(&self, text: &str) -> bool {
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
            || self.with_line && self.fits(&format!("{filename}:{}", frame.line))
    }
}

impl Term {
    /// Parses a term. The error is a sentence for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("Type a function, a file, a size, an address, a stream or a pool.".to_owned());
        }
        if text.chars().nth(TERM_CHARS).is_some() {
            return Err(format!("A search term can have {TERM_CHARS} characters at most."));
        }
        if let Some(hidden) =
            text.strip_prefix('-').filter(|rest| !rest.trim().is_empty() && !rest.starts_with(['-', '>']))
        {
            return Self::parse(hidden).map(|term| Self::Not(Box::new(term)));
        }
        if let Some(regex) = regex_form(text) {
            return regex.map(|matcher| Self::Frame(Pattern { matcher, with_line: text.contains(':') }));
        }
        if let Some((comparison, size)) = size_form(text) {
            return Ok(Self::Size(comparison, parse_bytes(size)?));
        }
        if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            return u64::from_str_radix(digits, 16)
                .map(Self::Address)
                .map_err(|_| format!("“{text}” is not an address: write up to 16 hexadecimal digits after 0x."));
        }
        if let Some((address, version)) = name_form(text) {
            return Ok(Self::Named(address, version));
        }
        if let Some(name) = text.strip_prefix("stream:") {
            return stream_form(name.trim());
        }
        if let Some(name) = text.strip_prefix("pool:") {
            return pool_form(name.trim());
        }
        if let Some(name) = text.strip_prefix("live:") {
            return match name.trim() {
                "start" => Ok(Self::Live(End::Start)),
                "end" => Ok(Self::Live(End::End)),
                _ => Err("Write live:start or live:end.".to_owned()),
            };
        }
        if let Some(name) = text.strip_prefix("category:") {
            let names = || Category::ALL.map(Category::code).join(", ");
            let category = Category::from_name(name.trim());
            return category.map(Self::Category).ok_or_else(|| format!("Write category: and one of {}.", names()));
        }
        Ok(Self::Frame(Pattern::text(text)))
    }
}

/// Converts each letter to lower case independently of its position. `str::to_lowercase` converts a sigma at a word's
/// end differently, so that a substring of a name would not match.
fn lower_case(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Parses an allocation's name, such as `b7f…_3`.
fn name_form(text: &str) -> Option<(u64, u32)> {
    let (address, version) = text.strip_prefix('b')?.split_once('_')?;
    // Functions may have such names too, but not as long.
    (address.len() >= 6).then_some(())?;
    Some((u64::from_str_radix(address, 16).ok()?, version.parse().ok()?))
}

/// Parses `/…/`, or `/…/i` to ignore case. Returns `None` for anything else, including paths.
fn regex_form(text: &str) -> Option<Result<Matcher, String>> {
    let rest = text.strip_prefix('/')?;
    let (pattern, any_case) = match rest.strip_suffix("/i") {
        Some(pattern) => (pattern, true),
        None => (rest.strip_suffix('/')?, false),
    };
    if pattern.is_empty() {
        return None;
    }
    let regex = RegexBuilder::new(pattern).case_insensitive(any_case).size_limit(REGEX_BYTES).build();
    Some(regex.map(Matcher::Regex).map_err(|e| {
        let why = e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        format!("The regular expression can't be read: {why}.")
    }))
}

/// Returns the comparison that a term begins with, and the text behind it.
fn size_form(text: &str) -> Option<(Comparison, &str)> {
    // The longer operators first: `>=` begins with `>`.
    const SIGNS: [(&str, Comparison); 5] = [
        (">=", Comparison::AtLeast),
        ("<=", Comparison::AtMost),
        (">", Comparison::More),
        ("<", Comparison::Less),
        ("=", Comparison::Equal),
    ];
    let (comparison, rest) = SIGNS.iter().find_map(|(sign, c)| Some((*c, text.strip_prefix(sign)?)))?;
    let rest = rest.trim_start();
    // `<module>` and `<lambda>` are names of functions.
    let is_number = rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    is_number.then_some((comparison, rest))
}

/// Parses a number of bytes with or without a unit. `KiB` is 1,024 and `KB` 1,000; `K` is `KiB`. The error is a sentence.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '_'))).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number = number.replace([',', '_'], "");
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(format!("“{text}” is not a size: write a number with B, KiB, MiB or GiB.")),
    };
    let too_large = || format!("“{text}” is more than any memory holds.");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(too_large);
    }
    match number.parse::<f64>() {
        Ok(value) if value * factor as f64 >= u64::MAX as f64 => Err(too_large()),
        Ok(value) if value >= 0.0 => Ok((value * factor as f64).round() as u64),
        _ => Err(format!("“{text}” is not a size: write a number, as in 100MiB.")),
    }
}

fn stream_form(name: &str) -> Result<Term, String> {
    if name == "default" {
        return Ok(Term::Stream(Stream(0)));
    }
    name.parse()
        .map(|n| Term::Stream(Stream(n)))
        .map_err(|_| "Write a stream's number, as in stream:7, or stream:default.".to_owned())
}

fn pool_form(name: &str) -> Result<Term, String> {
    let id = || {
        let (a, b) = name.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
        Some(PoolId(a.trim().parse().ok()?, b.trim().parse().ok()?))
    };
    match name {
        "small" => Ok(Term::Pool(Pool::Small)),
        "large" => Ok(Term::Pool(Pool::Large)),
        "private" => Ok(Term::Pool(Pool::Private)),
        "default" => Ok(Term::Pool(Pool::Id(PoolId::default()))),
        _ => id()
            .map(|id| Term::Pool(Pool::Id(id)))
            .ok_or_else(|| "Write pool:small, pool:large, pool:private, or a pool's id as in pool:(0, 1).".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats a term's meaning as one line.
    fn read(text: &str) -> String {
        match Term::parse(text) {
            Ok(Term::Frame(Pattern { matcher: Matcher::Text(t), with_line })) => format!("text {t} {with_line}"),
            Ok(Term::Frame(Pattern { matcher: Matcher::Regex(r), with_line })) => format!("regex {r} {with_line}"),
            Ok(Term::Size(c, n)) => format!("{c:?} {n}"),
            Ok(Term::Address(a)) => format!("address {a}"),
            Ok(Term::Named(a, n)) => format!("name {a} {n}"),
            Ok(Term::Stream(s)) => format!("stream {}", s.0),
            Ok(Term::Pool(p)) => format!("{p:?}"),
            Ok(Term::Live(e)) => format!("live {e:?}"),
            Ok(Term::Category(c)) => format!("category {}", c.code()),
            Ok(Term::Not(_)) => format!("not {}", read(text.trim().trim_start_matches('-'))),
            Err(sentence) => format!("error: {sentence}"),
        }
    }

    #[test]
    fn each_form_is_read() {
        let cases = [
            (" Attention ", "text attention false"),
            ("at::native", "text at::native true"),
            ("/home/me", "text /home/me false"),
            ("<module>", "text <module> false"),
            ("<lambda>", "text <lambda> false"),
            (">ten", "text >ten false"),
            ("//", "text // false"),
            ("/self_?attn/", "regex self_?attn false"),
            (">100MiB", "More 104857600"),
            (">= 1.5 GiB", "AtLeast 1610612736"),
            ("<512", "Less 512"),
            ("<=2kB", "AtMost 2000"),
            ("=1,024 KiB", "Equal 1048576"),
            (">16m", "More 16777216"),
            ("0xFFFF800000000000", "address 18446603336221196288"),
            ("b7f0000_3", "name 8323072 3"),
            ("backward_3", "text backward_3 false"),
            ("-attention", "not text attention false"),
            ("- >100MiB", "not More 104857600"),
            ("-stream:7", "not stream 7"),
            ("->sizes", "text ->sizes false"),
            ("--", "text -- false"),
            ("-", "text - false"),
            ("bad_3", "text bad_3 false"),
            ("stream:7", "stream 7"),
            ("stream:-3", "stream -3"),
            ("stream:default", "stream 0"),
            ("pool:private", "Private"),
            ("pool:(0, 1)", "Id(PoolId(0, 1))"),
            ("live:end", "live End"),
            ("live:start", "live Start"),
            ("category:gradients", "category gradients"),
            ("category: KV cache", "category kv_cache"),
        ];
        for (term, want) in cases {
            assert_eq!(read(term), want, "{term}");
        }
    }

    #[test]
    fn invalid_terms_are_answered_with_a_sentence() {
        let long = "x".repeat(TERM_CHARS + 1);
        let bomb = "/(((a{1000}){1000}){1000})/";
        for term in ["", "  ", "/(/", bomb, ">", ">1xB", ">-1", ">99999999999GiB", ">1.2.3", "0x", "0xg"] {
            assert!(read(term).starts_with("error: "), "{term}: {}", read(term));
        }
        for term in ["0x10000000000000000", "stream:", "stream:seven", "pool:huge", "pool:(1)", "live:", &long] {
            assert!(read(term).starts_with("error: "), "{term}");
        }
        assert!(!read("/(/").contains('\n'));
    }

    #[test]
    fn frames_match_by_function_file_and_line() {
        let mut s = Symbols::default();
        let frame = Frame { name: s.intern("Präfix".as_bytes()), filename: s.intern(b"/a/Model.py"), line: 54 };
        let fits = |term: &str| match Term::parse(term) {
            Ok(Term::Frame(pattern)) => pattern.fits_frame(&s, frame),
            other => panic!("{other:?}"),
        };
        for term in ["model", "PRÄ", "MODEL.PY:54", "/^Pr/", "/model/i", "/py:5[0-9]/"] {
            assert!(fits(term), "{term}");
        }
        for term in ["models", "54", "model.py:55", "/^pr/", "/model/"] {
            assert!(!fits(term), "{term}");
        }
    }
}
