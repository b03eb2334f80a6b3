//! The language of the search box: parses terms, whose kind depends on their first characters. Of several terms an allocation
//! must match all; `words` tells where each ends.
//!
//! [`SearchHelp::FORMS`](super::SearchHelp::FORMS) lists the forms for the user. All other text is plain text, so that
//! `at::native` or `model.py:54` can be typed as they are displayed.

use super::Category;
use super::sizes::{About, read_size, size_form};
use super::words;
use trace::units::{Address, Bytes, PoolId, Stream};

/// The largest number of characters of a term. A longer one is a failed paste.
const TERM_CHARS: usize = 1_000;

/// A parsed search term, which defines a set of allocations.
#[derive(Clone, Debug)]
pub enum Term {
    /// Allocations with a frame that the pattern fits.
    Frame(Pattern),
    /// Allocations whose requested bytes compare like this with a number.
    Size(Comparison, u64),
    /// Allocations whose requested bytes round to a number with a unit.
    About(About),
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
    /// Allocations that all of several terms match.
    All(Vec<Term>),
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

/// A pattern for a frame's function and file, as it is written: `analysis::frame_matcher` looks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A substring of a name, in lower case: case is ignored.
    Text(String),
    /// A regular expression, which may turn out to be invalid.
    Regex {
        /// The expression, without slashes.
        expression: String,
        /// Whether case is ignored.
        any_case: bool,
    },
}

impl Pattern {
    /// A substring of a name, ignoring case.
    pub fn text(text: &str) -> Self {
        Self::Text(lower_case(text))
    }

    /// Returns whether the line number is compared: only if the pattern has a colon; otherwise any `8` would match line 80.
    pub fn has_line(&self) -> bool {
        let (Self::Text(text) | Self::Regex { expression: text, .. }) = self;
        text.contains(':')
    }
}

impl Term {
    /// Parses what is typed: a term, or several. The error is a sentence for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("Type a function, a file, a size, an address, a stream or a pool.".to_owned());
        }
        if text.chars().nth(TERM_CHARS).is_some() {
            return Err(format!("A search term can have {TERM_CHARS} characters at most."));
        }
        let parts = words::split(text)?;
        if let [_] = *parts {
            return Self::parse_one(text);
        }
        // Beside other words, a sign without a number is part of a name, as in `operator >`.
        let is_sign = |part: &str| part.chars().all(|c| "<>=".contains(c));
        let read = |part: &&str| match is_sign(part) {
            true => Ok(Self::Frame(Pattern::text(part))),
            false => Self::parse_one(part),
        };
        parts.iter().map(read).collect::<Result<_, _>>().map(Self::All)
    }

    /// Returns whether it is a regular expression, or one of its parts is.
    pub fn has_regex(&self) -> bool {
        match self {
            Self::Frame(pattern) => matches!(pattern, Pattern::Regex { .. }),
            Self::Not(term) => term.has_regex(),
            Self::All(terms) => terms.iter().any(Self::has_regex),
            _ => false,
        }
    }

    /// Returns whether a text is one term that is not plain text.
    pub(super) fn is_form(text: &str) -> bool {
        match Self::parse_one(text) {
            Ok(Self::Frame(_)) | Err(_) => false,
            Ok(Self::Not(term)) => !matches!(*term, Self::Frame(_)),
            Ok(_) => true,
        }
    }

    /// Parses one term without white space around it. The error is a sentence for the user.
    fn parse_one(text: &str) -> Result<Self, String> {
        let left_out = text.strip_prefix('-').map(str::trim_start);
        if let Some(left_out) = left_out.filter(|rest| !rest.is_empty() && !rest.starts_with('-')) {
            let term = Self::parse_one(left_out)?;
            // An arrow is text, unless a size follows.
            if !text.starts_with("->") || matches!(term, Self::Size(..)) {
                return Ok(Self::Not(Box::new(term)));
            }
        }
        if let Some(text) = words::quoted(text) {
            return Ok(Self::Frame(Pattern::text(text)));
        }
        if let Some((expression, any_case)) = regex_parts(text) {
            return Ok(Self::Frame(Pattern::Regex { expression: expression.to_owned(), any_case }));
        }
        match size_form(text) {
            Some((Some(comparison), size)) => return Ok(Self::Size(comparison, read_size(size)?)),
            Some((None, size)) => return About::read(size).map(Self::About),
            None => {}
        }
        if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            return u64::from_str_radix(digits, 16)
                .map(Self::Address)
                .map_err(|_| format!("“{text}” is not an address: write up to 16 hexadecimal digits after 0x."));
        }
        if let Some((address, version)) = name_form(text) {
            return Ok(Self::Named(address, version));
        }
        if let Some(name) = keyed(text, "stream") {
            return stream_form(name);
        }
        if let Some(name) = keyed(text, "pool") {
            return pool_form(name);
        }
        if let Some(name) = keyed(text, "live") {
            return match name {
                "start" => Ok(Self::Live(End::Start)),
                "end" => Ok(Self::Live(End::End)),
                _ => Err("Write live:start or live:end.".to_owned()),
            };
        }
        if let Some(name) = keyed(text, "category") {
            let names = || Category::ALL.map(Category::code).join(", ");
            let category = Category::from_name(name);
            return category.map(Self::Category).ok_or_else(|| format!("Write category: and one of {}.", names()));
        }
        Ok(Self::Frame(Pattern::text(text)))
    }

    /// Returns how the term is understood: what it finds, as a noun, such as "requests larger than 1 GiB".
    pub fn understood(&self) -> String {
        match self {
            Self::Size(comparison, n) => format!("requests {}{}", comparison.of(), comparison.than(*n)),
            Self::About(about) => format!("requests of about {}", Said(about.middle)),
            Self::Frame(Pattern::Text(text)) => format!("“{text}” in a function or file"),
            Self::Frame(Pattern::Regex { expression, .. }) => format!("frames that match /{expression}/"),
            Self::Address(at) => format!("blocks that hold {at} or whose address begins with it", at = Address(*at)),
            Self::Named(..) => format!("the allocation {}", self.what()),
            Self::Not(_) | Self::All(_) => format!("any allocation that {}", self.holds(true)),
            _ => format!("allocations {}", self.what()),
        }
    }

    /// Returns the sentence that no allocation matches the term, without its full stop.
    pub fn nothing(&self) -> String {
        let left_out = match self {
            Self::Not(_) => std::slice::from_ref(self),
            Self::All(terms) => terms,
            _ => &[],
        };
        let all_not = !left_out.is_empty() && left_out.iter().all(|term| matches!(term, Self::Not(_)));
        if !all_not {
            return format!("No allocation {}", self.holds(true));
        }
        // What is left out is said of every allocation, which avoids a double negative.
        let each: Vec<_> = left_out.iter().map(|term| term.holds(false)).collect();
        format!("Every allocation {}", each.join(" or "))
    }

    /// Returns what is true of an allocation that the term finds, or of one that it does not: "is larger than 1 GiB", "is
    /// not larger than 1 GiB".
    fn holds(&self, is_found: bool) -> String {
        let (is, was, has) = if is_found { ("is", "was", "has") } else { ("is not", "was not", "does not have") };
        match self {
            Self::Frame(Pattern::Text(text)) => format!("{has} “{text}” in its stack"),
            Self::Frame(Pattern::Regex { expression, .. }) => format!("{has} a frame that matches /{expression}/"),
            Self::Address(at) => {
                format!("{has} a block that holds {at} or whose address begins with it", at = Address(*at))
            }
            Self::Live(End::Start) => format!("{was} {}", self.what()),
            Self::Not(other) => other.holds(!is_found),
            Self::All(terms) => {
                let is_not = |term: &&Self| matches!(term, Self::Not(_));
                let all = terms.iter().filter(|term| !is_not(term)).chain(terms.iter().filter(is_not));
                all.map(|term| term.holds(is_found)).collect::<Vec<_>>().join(" and ")
            }
            _ => format!("{is} {}", self.what()),
        }
    }

    /// Returns what follows "is" or "was" where that is how the term is said.
    fn what(&self) -> String {
        match self {
            Self::Size(comparison, n) => comparison.than(*n),
            Self::About(about) => format!("about {}", Said(about.middle)),
            Self::Named(at, version) => format!("b{at:x}_{version}"),
            Self::Stream(Stream(0)) => "of the default stream".to_owned(),
            Self::Stream(stream) => format!("of stream {stream}"),
            Self::Pool(Pool::Small) => "in a small pool".to_owned(),
            Self::Pool(Pool::Large) => "in a large pool".to_owned(),
            Self::Pool(Pool::Private) => "in a private pool".to_owned(),
            Self::Pool(Pool::Id(id)) => format!("in pool {id}"),
            Self::Live(End::Start) => "made before the trace".to_owned(),
            Self::Live(End::End) => "still live at the end".to_owned(),
            Self::Category(category) => format!("of the category {}", category.code()),
            Self::Frame(_) | Self::Address(_) | Self::Not(_) | Self::All(_) => String::new(),
        }
    }
}

impl Comparison {
    /// Returns the comparison with a size: "larger than 1 GiB".
    fn than(self, bytes: u64) -> String {
        let words = match self {
            Self::Less => "smaller than",
            Self::AtMost => "no larger than",
            Self::Equal => "exactly",
            Self::AtLeast => "at least",
            Self::More => "larger than",
        };
        format!("{words} {}", Said(bytes))
    }

    /// Returns the word between a noun and the comparison: "requests of exactly 1 GiB".
    fn of(self) -> &'static str {
        if matches!(self, Self::Equal | Self::AtLeast) { "of " } else { "" }
    }
}

/// A size without trailing zeros. The exact number of bytes follows if three digits do not give it.
struct Said(u64);

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = Bytes(self.0).to_string();
        let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
        let short = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
        write!(f, "{short} {unit}")?;
        if read_size(&text) == Ok(self.0) { Ok(()) } else { write!(f, " ({})", Bytes(self.0).exact()) }
    }
}

/// Returns the value of `key:value`, also written `Key = value`.
fn keyed<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(key.len())?;
    let value = rest.trim_start().strip_prefix([':', '='])?;
    start.eq_ignore_ascii_case(key).then(|| value.trim())
}

/// Returns whether a term, or one of several, names a category, also to leave it out.
pub fn is_category(text: &str) -> bool {
    let names = |text: &str| keyed(text.strip_prefix('-').unwrap_or(text).trim_start(), "category").is_some();
    words::split(text.trim()).is_ok_and(|terms| terms.into_iter().any(names))
}

/// Returns whether one of the terms of a filter, or the highlighted term, is about categories.
pub fn is_any_category(filter: &[String], highlight: Option<&String>) -> bool {
    filter.iter().chain(highlight).any(|term| is_category(term))
}

/// Returns whether a text is written as a regular expression.
pub(super) fn is_regex(text: &str) -> bool {
    regex_parts(text).is_some()
}

/// Converts each letter to lower case independently of its position. `str::to_lowercase` converts a sigma at a word's
/// end differently, so that a substring of a name would not match.
pub fn lower_case(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Parses an allocation's name, such as `b7f…_3`.
fn name_form(text: &str) -> Option<(u64, u32)> {
    let (address, version) = text.strip_prefix('b')?.split_once('_')?;
    // Functions may have such names too, but not as long.
    (address.len() >= 6).then_some(())?;
    Some((u64::from_str_radix(address, 16).ok()?, version.parse().ok()?))
}

/// Returns the pattern of `/…/` or `/…/i`, and whether case is ignored. Returns `None` for anything else, including paths.
fn regex_parts(text: &str) -> Option<(&str, bool)> {
    let rest = text.strip_prefix('/')?;
    let (pattern, any_case) = match rest.strip_suffix("/i") {
        Some(pattern) => (pattern, true),
        None => (rest.strip_suffix('/')?, false),
    };
    (!pattern.is_empty()).then_some((pattern, any_case))
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
            Err(sentence) => format!("error: {sentence}"),
            Ok(term) => told(&term),
        }
    }

    fn told(term: &Term) -> String {
        match term {
            Term::Frame(pattern @ Pattern::Text(text)) => format!("text {text} {}", pattern.has_line()),
            Term::Frame(pattern @ Pattern::Regex { expression, .. }) => {
                format!("regex {expression} {}", pattern.has_line())
            }
            Term::Size(c, n) => format!("{c:?} {n}"),
            Term::About(about) => format!("about {} {}", about.from, about.to),
            Term::Address(a) => format!("address {a}"),
            Term::Named(a, n) => format!("name {a} {n}"),
            Term::Stream(s) => format!("stream {}", s.0),
            Term::Pool(p) => format!("{p:?}"),
            Term::Live(e) => format!("live {e:?}"),
            Term::Category(c) => format!("category {}", c.code()),
            Term::Not(term) => format!("not {}", told(term)),
            Term::All(terms) => terms.iter().map(told).collect::<Vec<_>>().join(" & "),
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
            ("<=2kB", "AtMost 2048"),
            ("size>1GB", "More 1073741824"),
            ("Size > 1.5 gib", "More 1610612736"),
            ("size: >= 2 KB", "AtLeast 2048"),
            ("size=512", "Equal 512"),
            ("size:512", "about 512 513"),
            ("≥ 1KiB", "AtLeast 1024"),
            ("100mb", "about 104333312 105381888"),
            ("size:61.2 MiB", "about 64120423 64225280"),
            ("512 bytes", "about 512 513"),
            ("sizes", "text sizes false"),
            ("size_of", "text size_of false"),
            ("100model", "text 100model false"),
            ("Stream = 7", "stream 7"),
            ("streams:7", "text streams:7 true"),
            ("=1,024 KiB", "Equal 1048576"),
            (">16m", "More 16777216"),
            ("0xFFFF800000000000", "address 18446603336221196288"),
            ("b7f0000_3", "name 8323072 3"),
            ("backward_3", "text backward_3 false"),
            ("-attention", "not text attention false"),
            ("- >100MiB", "not More 104857600"),
            ("-stream:7", "not stream 7"),
            ("->100MiB", "not More 104857600"),
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
            ("\"two Words\"", "text two words false"),
            (">800MiB oom.py:11", "More 838860800 & text oom.py:11 true"),
            ("attention -stream:7 100 mb", "text attention false & not stream 7 & about 104333312 105381888"),
            ("-category:unknown /a b/ x", "not category unknown & regex a b false & text x false"),
            ("operator > foo", "text operator false & text > false & text foo false"),
        ];
        for (term, want) in cases {
            assert_eq!(read(term), want, "{term}");
        }
    }

    #[test]
    fn invalid_terms_are_answered_with_a_sentence() {
        let long = "x".repeat(TERM_CHARS + 1);
        for term in ["", "  ", ">", ">1xB", ">-1", ">99999999999GiB", ">1.2.3", "0x", "0xg"] {
            assert!(read(term).starts_with("error: "), "{term}: {}", read(term));
        }
        for term in [
            "0x10000000000000000",
            "stream:",
            "stream:seven",
            "pool:huge",
            "pool:(1)",
            "live:",
            &long,
            ">1xB x.py",
            "a stream:x",
        ] {
            assert!(read(term).starts_with("error: "), "{term}");
        }
    }

    #[test]
    fn what_was_understood_is_said() {
        let cases = [
            ("size>1GB", "requests larger than 1 GiB", "No allocation is larger than 1 GiB"),
            (">= 1.5 GiB", "requests of at least 1.5 GiB", "No allocation is at least 1.5 GiB"),
            (
                "=123456789",
                "requests of exactly 118 MiB (123,456,789 bytes)",
                "No allocation is exactly 118 MiB (123,456,789 bytes)",
            ),
            ("100mb", "requests of about 100 MiB", "No allocation is about 100 MiB"),
            ("Model", "“model” in a function or file", "No allocation has “model” in its stack"),
            ("/a+/", "frames that match /a+/", "No allocation has a frame that matches /a+/"),
            ("stream:default", "allocations of the default stream", "No allocation is of the default stream"),
            ("pool:(0, 1)", "allocations in pool (0, 1)", "No allocation is in pool (0, 1)"),
            ("live:end", "allocations still live at the end", "No allocation is still live at the end"),
            (
                ">800MiB oom.py:11",
                "any allocation that is larger than 800 MiB and has “oom.py:11” in its stack",
                "No allocation is larger than 800 MiB and has “oom.py:11” in its stack",
            ),
            (
                "-a live:end -stream:7",
                "any allocation that is still live at the end and does not have “a” in its stack and is not of stream 7",
                "No allocation is still live at the end and does not have “a” in its stack and is not of stream 7",
            ),
            ("-a", "any allocation that does not have “a” in its stack", "Every allocation has “a” in its stack"),
            (
                "-a -live:start",
                "any allocation that does not have “a” in its stack and was not made before the trace",
                "Every allocation has “a” in its stack or was made before the trace",
            ),
        ];
        for (text, noun, nothing) in cases {
            let term = Term::parse(text).unwrap();
            assert_eq!((&*term.understood(), &*term.nothing()), (noun, nothing), "{text}");
        }
    }
}
