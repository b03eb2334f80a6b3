//! What the page says: every text in its source that a person may read, printed as one list to be reviewed
//! (`cargo test -p tests --test source strings -- --nocapture`), and free of phrases that read badly.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;

use anyhow::Result;
use tests::{files_in, workspace};

/// Folders whose texts reach the screen. Everything below them is read, except tests.
const SOURCES: [&str; 1] = ["web"];

/// Phrases that are not idiomatic, or name a thing by a word that means something else. Compared in lower case.
const FORBIDDEN: [&str; 30] = [
    "!",
    " is told",
    "are told",
    " is had",
    "are had",
    "none is",
    "is none",
    "gone on with",
    "held at",
    "in all",
    "held here",
    "of which",
    "whoever",
    "nobody",
    "anew",
    "as it is",
    "without a word",
    "takes in",
    "takes over",
    "comes to",
    "has come",
    "have come",
    "let go",
    "lets go",
    "said so",
    "so said",
    "by statistics",
    "passes the filter",
    "at the least",
    "at the most",
];

/// Attributes of elements that are read or shown; the texts of all others are names for the program.
const READ_ATTRIBUTES: [&str; 5] = ["title", "aria-label", "placeholder", "label", "name"];

/// A string literal of a source file.
#[derive(Debug, PartialEq)]
struct Literal {
    text: String,
    /// What stands before it, up to the start of its line.
    before: String,
}

/// The string literals of a Rust source, without those in comments and in its tests.
fn literals(source: &str) -> Vec<Literal> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code = code.split("#[cfg(test)]\npub").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut line = String::new();
    let mut rest = code.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => line.clear(),
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|c| *c != '\n').is_some() {},
            // A quotation mark as a character.
            '\'' if rest.peek() == Some(&'"') => {
                rest.next();
            }
            '"' => {
                let mut text = String::new();
                while let Some(c) = rest.next() {
                    match c {
                        '"' => break,
                        '\\' => match rest.next() {
                            // A string that continues on the next line.
                            Some('\n') => while rest.next_if(|c| c.is_whitespace()).is_some() {},
                            Some('n') => text.push(' '),
                            Some(escaped) => text.push(escaped),
                            None => break,
                        },
                        c => text.push(c),
                    }
                }
                found.push(Literal { text, before: line.clone() });
                line.push_str("\"\"");
            }
            c => line.push(c),
        }
    }
    found
}

/// Whether a literal looks like text for people: words, rather than a name, a path or a colour.
fn is_read(literal: &Literal) -> bool {
    let Literal { text, before } = literal;
    // `title="…"` and `title={"…"}` have no space there; `let text = "…"` has one.
    let before = before.trim_end_matches('{');
    if let Some(attribute) = before.strip_suffix('=') {
        let name = attribute.rsplit([' ', '\t', '{', '<']).next().unwrap_or_default();
        if !READ_ATTRIBUTES.contains(&name) {
            return false;
        }
    }
    let before = before.trim_end().trim_end_matches('(');
    let is_for_developers = ["expect", "reason", "panic!", "unreachable!", "include_str!", "const CODE"]
        .iter()
        .any(|name| before.ends_with(name) || before.ends_with(&format!("{name} =")));
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let has_words = text.trim().contains(' ') && text.chars().any(char::is_lowercase);
    let is_title = text.chars().next().is_some_and(char::is_uppercase) && text.chars().skip(1).all(char::is_lowercase);
    let is_code = text.starts_with('#') || text.contains("vec4") || text.contains("px ") || text.contains("[tabindex");
    let is_path = text.len() > 2 && text.starts_with('M') && text[1..].starts_with(|c: char| c.is_ascii_digit());
    letters > 2 && (has_words || is_title) && !is_code && !is_path && !is_for_developers
}

/// Returns the texts that people read, by source file of a folder.
fn read(folder: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let mut found = BTreeMap::new();
    for path in files_in(&workspace(folder))? {
        let is_other = |part: &OsStr| ["benches", "examples", "target", "tests"].iter().any(|other| part == *other);
        let inside = path.strip_prefix(workspace(folder)).unwrap_or(&path);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if inside.iter().any(is_other) || !name.ends_with(".rs") || name.ends_with("tests.rs") || name == "testing.rs" {
            continue;
        }
        let source = fs::read_to_string(&path)?;
        let texts: Vec<String> = literals(&source).into_iter().filter(is_read).map(|literal| literal.text).collect();
        if !texts.is_empty() {
            found.insert(path.display().to_string(), texts);
        }
    }
    Ok(found)
}

#[test]
fn what_the_page_says_reads_well() -> Result<()> {
    let mut texts = BTreeMap::new();
    for source in SOURCES {
        texts.append(&mut read(source)?);
    }
    let mut bad = Vec::new();
    for (file, texts) in &texts {
        println!("{file}");
        for text in texts {
            println!("    {text}");
            let lower = text.to_lowercase();
            let found = FORBIDDEN.iter().filter(|phrase| lower.contains(**phrase));
            bad.extend(found.map(|phrase| format!("{file}: “{text}” contains “{}”", phrase.trim())));
        }
    }
    let count: usize = texts.values().map(Vec::len).sum();
    assert!(count > 200, "only {count} texts found");
    assert!(bad.is_empty(), "{bad:#?}");
    Ok(())
}

/// Sources of texts that hold counts, in the page and on the command line.
const COUNTING: [&str; 4] = ["web", "shared", "collector/report", "collector/src"];

/// Plurals that may follow a count; `counted` chooses between them and the singular.
const PLURALS: [&str; 24] = [
    "allocations",
    "batches",
    "blocks",
    "calls",
    "chunks",
    "days",
    "devices",
    "entries",
    "events",
    "files",
    "findings",
    "gaps",
    "jobs",
    "lines",
    "places",
    "releases",
    "requests",
    "retries",
    "rows",
    "segments",
    "sessions",
    "stacks",
    "steps",
    "streams",
];

/// Texts whose count is never 1.
const NEVER_ONE: [&str; 5] = [
    "It has exactly {} events",
    "this machine has {n} devices",
    "the run has made {} events",
    "{} days",
    "{} more requests failed later",
];

/// The plural that stands beside a count in a text whatever the count is.
fn fixed_plural(text: &str) -> Option<&str> {
    let is_never_one = NEVER_ONE.iter().any(|known| text.contains(known));
    text.match_indices("} ").filter(|_| !is_never_one).find_map(|(end, _)| {
        let (before, count) = text[..end].rsplit_once('{')?;
        let is_limit = before.ends_with("more than ") || count.starts_with(|c: char| c.is_ascii_uppercase());
        let rest = &text[end + 2..];
        let word = rest.split(|c: char| !c.is_alphabetic()).next()?;
        let is_unit = rest[word.len()..].starts_with('/');
        (PLURALS.contains(&word) && !is_limit && !is_unit).then_some(word)
    })
}

#[test]
fn a_count_of_one_is_followed_by_a_singular() -> Result<()> {
    let mut texts = BTreeMap::new();
    for source in COUNTING {
        texts.append(&mut read(source)?);
    }
    let is_internal = |file: &str| file.ends_with("allocator/src/check.rs");
    let bad: Vec<String> = texts
        .iter()
        .filter(|(file, _)| !is_internal(file))
        .flat_map(|(file, texts)| texts.iter().map(move |text| (file, text)))
        .filter_map(|(file, text)| fixed_plural(text).map(|word| format!("{file}: “{text}” may say “1 {word}”")))
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert_eq!(fixed_plural("after {} events of {name}"), Some("events"));
    for fine in ["{rate} events/s", "more than {limit} events", "{STEPS} steps", "{} eventful days", "{a} of {b}"] {
        assert_eq!(fixed_plural(fine), None, "{fine}");
    }
    Ok(())
}

#[test]
fn texts_differ_from_names() {
    let source = r#"
// "a comment"
const PATH: &str = "M2 3h12";
html! { <b class="a b" title="Go to start">{ "Held by \
    one" }</b> }
call("timeline", '"', "Two words");
#[cfg(test)]
mod tests { const T: &str = "in a test"; }
"#;
    let found = literals(source);
    let read: Vec<&str> =
        found.iter().filter(|literal| is_read(literal)).map(|literal| literal.text.as_str()).collect();
    assert_eq!(read, ["Go to start", "Held by one", "Two words"]);
}
