//! The tokens file: one token a line.
//!
//! ```text
//! # name   roles        token or its hash           limits, all of them optional
//! jobs     ingest       sha256:9f86d08…             bytes=200GiB sessions=64 events_per_second=1000000
//! people   read         correct-horse-battery-staple  expires=2027-01-31
//! me       admin        sha256:60303ae…
//! ```
//! The fields are separated by white space; a line that begins with `#` is a comment. Errors name the line and the field, and
//! never what is in it: a field may hold a token by mistake.

use std::collections::HashMap;

use trace::limits::AccessLimits;

use super::entry::RESERVED;
use super::expiry::expiry_us;
use super::{Quotas, Role, Roles, Secret, TokenEntry};
use crate::size;

/// The fewest characters of a token: 64 bits even if they are hexadecimal digits.
pub(crate) const TOKEN_CHARS: usize = 16;
/// What a hash begins with.
const HASHED: &str = "sha256:";
/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 64;
/// The most characters of a name.
const NAME_CHARS: usize = 64;

/// Reads the text of a tokens file. The error is the end of a sentence, such as `line 3: …`.
pub(super) fn parse(text: &str, limits: &AccessLimits) -> Result<Vec<TokenEntry>, String> {
    let mut entries = Vec::new();
    let (mut names, mut secrets) = (HashMap::new(), HashMap::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = parse_line(line).map_err(|what| format!("line {number}: {what}"))?;
        if let Some(first) = names.insert(entry.name.clone(), number) {
            return Err(format!("lines {first} and {number} have the same name; a name stands for one token"));
        }
        if let Some(first) = secrets.insert(entry.secret.as_str().to_owned(), number) {
            return Err(format!("lines {first} and {number} have the same token"));
        }
        entries.push(entry);
        if entries.len() > limits.tokens {
            return Err(format!("line {number}: a file has at most {} tokens", limits.tokens));
        }
    }
    Ok(entries)
}

/// Returns the names and secrets in a text that may be invalid otherwise.
pub(super) fn listed(text: &str) -> Vec<(&str, Secret)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let entries = lines.filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (name, _roles, token) = (fields.next()?, fields.next()?, fields.next()?);
        Some((name, secret(token).ok()?))
    });
    entries.collect()
}

/// Reads one line of a tokens file. The error is the end of a sentence.
fn parse_line(line: &str) -> Result<TokenEntry, String> {
    let mut fields = line.split_whitespace();
    let (Some(name), Some(roles), Some(token)) = (fields.next(), fields.next(), fields.next()) else {
        return Err("a name, roles and a token are needed, as in `jobs ingest sha256:…`".to_owned());
    };
    check_name(name).map_err(|wrong| format!("the name (first field) {wrong}"))?;
    let roles: Option<Roles> = roles.split(',').map(Role::named).collect();
    let roles = roles.ok_or("the roles (second field) are ingest, read, share and admin, separated by commas only")?;
    let TokenLimits { quotas, expires_us } = limits_of(fields)?;
    Ok(TokenEntry { name: name.to_owned(), secret: secret(token)?, roles, quotas, expires_us })
}

/// Checks that a text can be the name of a token. The error is the end of a sentence.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(1..=NAME_CHARS).contains(&name.len()) || !name.chars().all(is_of_name) {
        return Err(format!(
            "must have 1 to {NAME_CHARS} characters: ASCII letters, digits, hyphens, underscores and dots"
        ));
    }
    if RESERVED.contains(&name) {
        return Err("is the server's own; choose another one".to_owned());
    }
    Ok(())
}

/// Reads a token, or the hash of one.
fn secret(token: &str) -> Result<Secret, String> {
    if let Some(hash) = token.strip_prefix(HASHED) {
        let is_hash = hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let wrong = format!("a hash (third field) is {HASHED} and {HASH_DIGITS} hexadecimal digits");
        return if is_hash { Ok(Secret::from_hash(&hash.to_ascii_lowercase())) } else { Err(wrong) };
    }
    check_token(token).map(|()| Secret::of(token)).map_err(|wrong| format!("the token (third field) {wrong}"))
}

/// Checks that a text can be a token. The error is the end of a sentence.
pub(crate) fn check_token(token: &str) -> Result<(), String> {
    if token.chars().count() < TOKEN_CHARS || token.chars().any(|c| !c.is_ascii_graphic()) {
        return Err(format!("must have at least {TOKEN_CHARS} characters, all of them printable ASCII without spaces"));
    }
    Ok(())
}

/// Reads the limits of a token: quotas and its expiry.
fn limits_of<'a>(fields: impl Iterator<Item = &'a str>) -> Result<TokenLimits, String> {
    let (mut limits, mut seen) = (TokenLimits::default(), Vec::new());
    for field in fields {
        let known = field.split_once('=').and_then(|(key, value)| Some((Limit::named(key)?, value)));
        let unknown = "a limit (fourth field and later) is expires=, bytes=, sessions= or events_per_second=";
        let (limit, value) = known.ok_or(unknown)?;
        if seen.contains(&limit) {
            return Err(format!("{}= is given twice", limit.name()));
        }
        limits.set(limit, value).map_err(|what| format!("{}= is {what}", limit.name()))?;
        seen.push(limit);
    }
    Ok(limits)
}

/// What can be limited of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Until when it is valid.
    Expires,
    /// [`Quotas::bytes`].
    Bytes,
    /// [`Quotas::sessions`].
    Sessions,
    /// [`Quotas::events_per_second`].
    EventsPerSecond,
}

impl Limit {
    /// Returns the name in the file. The option of `vramscope token new` has hyphens instead.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Expires => "expires",
            Self::Bytes => "bytes",
            Self::Sessions => "sessions",
            Self::EventsPerSecond => "events_per_second",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let all = [Self::Expires, Self::Bytes, Self::Sessions, Self::EventsPerSecond];
        all.into_iter().find(|limit| limit.name() == name)
    }
}

/// The limits of a token.
#[derive(Debug, Default)]
pub(crate) struct TokenLimits {
    pub(crate) quotas: Quotas,
    /// In microseconds since the epoch.
    pub(crate) expires_us: Option<i64>,
}

impl TokenLimits {
    /// Sets a limit from its text. The error says what the text must be: it continues "it is" or "it is not".
    pub(crate) fn set(&mut self, limit: Limit, text: &str) -> Result<(), &'static str> {
        let count = || text.parse::<u64>().ok().filter(|&count| count > 0).ok_or("a number from 1");
        match limit {
            Limit::Expires => {
                let wrong = "a date in UTC or a time, such as 2027-01-31 or 2027-01-31T18:00:00Z";
                self.expires_us = Some(expiry_us(text).ok_or(wrong)?);
            }
            Limit::Bytes => self.quotas.bytes = Some(size::disk_space(text)?),
            // More than the machine can address is no limit.
            Limit::Sessions => self.quotas.sessions = Some(usize::try_from(count()?).unwrap_or(usize::MAX)),
            Limit::EventsPerSecond => self.quotas.events_per_second = Some(count()?),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAR: &str = "correct-horse-battery-staple";

    fn check(text: &str) -> Result<Vec<TokenEntry>, String> {
        parse(text, &AccessLimits { tokens: 3, ..AccessLimits::default() })
    }

    #[test]
    fn good_lines() {
        let hash = Secret::of(CLEAR);
        let (clear, hashed) = (CLEAR.to_owned(), format!("sha256:{}", hash.as_str().to_uppercase()));
        let none = Quotas::default();
        let all = Quotas { bytes: Some(20 << 30), sessions: Some(100), events_per_second: Some(1_000) };
        for (line, roles, quotas, expires_us) in [
            (format!("a ingest {clear}"), "ingest", none, None),
            (format!("  a\tadmin,read   {hashed}  "), "read,admin", none, None),
            (format!("a share {hashed} expires=2000-02-28"), "share", none, Some(951_782_400_000_000)),
            (
                format!("a read {clear} events_per_second=1000 sessions=100 bytes=20GiB expires=1970-01-01T00:00:01Z"),
                "read",
                all,
                Some(1_000_000),
            ),
            (format!("a read {clear} bytes=5MB"), "read", Quotas { bytes: Some(5_000_000), ..none }, None),
        ] {
            let entries =
                check(&format!("# a comment\n\n{line}\r\n")).unwrap_or_else(|error| panic!("{line}: {error}"));
            let [entry] = &entries[..] else { panic!("{line}") };
            assert!(entry.secret.is(CLEAR), "{line}");
            assert_eq!((&*entry.name, &*entry.roles.to_string()), ("a", roles), "{line}");
            assert_eq!((entry.quotas, entry.expires_us), (quotas, expires_us), "{line}");
        }
        assert!(check("# none\n\n").unwrap().is_empty());
    }

    #[test]
    fn bad_lines_name_their_place_and_never_a_token() {
        let other = "another-horse-battery-staple";
        for (text, wanted) in [
            (format!("a {CLEAR}"), "line 1: a name, roles and a token"),
            (format!("\n\n{CLEAR}!! ingest a"), "line 3: the name"),
            (format!("{} read {CLEAR}", "x".repeat(65)), "line 1: the name"),
            (format!("open read {CLEAR}"), "the server's own"),
            (format!("a {CLEAR} read"), "line 1: the roles"),
            (format!("a ingest, {CLEAR}"), "line 1: the roles"),
            (format!("a Read {CLEAR}"), "line 1: the roles"),
            ("a read short".to_owned(), "at least 16 characters"),
            (format!("a read {CLEAR}é"), "printable ASCII"),
            (format!("a read sha256:{CLEAR}"), "64 hexadecimal digits"),
            (format!("a read {CLEAR} {other}"), "a limit"),
            (format!("a read {CLEAR} expires=tomorrow"), "expires= is a date"),
            (format!("a read {CLEAR} expires=2027-01-31 expires=2027-01-31"), "given twice"),
            (format!("a read {CLEAR} bytes=20"), "with its unit"),
            (format!("a read {CLEAR} bytes=99999999TiB"), "with its unit"),
            (format!("a read {CLEAR} sessions=0"), "sessions= is a number"),
            (format!("a read {CLEAR} events_per_second=-1"), "events_per_second= is"),
            (format!("a read {CLEAR} rate=1"), "a limit"),
            (format!("a read {CLEAR}\na read {other}"), "lines 1 and 2 have the same name"),
            (format!("a read {CLEAR}\n#\nb read {CLEAR}"), "lines 1 and 3 have the same token"),
            (
                "abcd".chars().map(|name| format!("{name} read {name}{CLEAR}\n")).collect(),
                "line 4: a file has at most 3",
            ),
        ] {
            let error = check(&text).expect_err(&text);
            assert!(error.contains(wanted), "{text:?}: {error}");
            assert!(!error.contains("horse"), "{text:?}: {error}");
        }
    }
}
