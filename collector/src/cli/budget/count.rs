//! Counts as people write them: `32`, `32_000`, `8k`, `1.5M`, `7B`, `7e9`.

/// Suffixes of counts, with their powers of ten.
const SUFFIXES: [(&str, i32); 4] = [("k", 3), ("m", 6), ("b", 9), ("t", 12)];

/// Reads the count of an option. Counts are decimal: `8k` is 8,000. `what` completes the sentence "is not a number of".
pub(in crate::cli) fn parse(option: &str, text: &str, what: &str) -> Result<u64, String> {
    count(text).map_err(|problem| match problem {
        Problem::Shape => {
            format!("{option} {text:?} is not a number of {what}. Write it like 32, 32_000, 8k, 1.5M, 7B or 7e9.")
        }
        Problem::Bytes => format!(
            "{option} {text:?} is not a number of {what}: its suffix is one of bytes. Write 8k for 8,000, 1.5M for \
             1,500,000 and 7B for 7,000,000,000."
        ),
        Problem::Comma => {
            let plain: String = text.chars().filter(char::is_ascii_digit).collect();
            format!(
                "{option} {text:?} is ambiguous: a comma separates thousands in some countries and decimals in others. \
                 Write it without a comma, such as {plain} or 1.5M."
            )
        }
        Problem::Fraction => {
            format!("{option} {text:?} is not a whole number of {what}. Write it without a fraction, like 2 or 1.5k.")
        }
        Problem::Large => format!("{option} {text:?} is too large a number of {what}."),
    })
}

/// Reads the tokens of a sequence. Contexts come in powers of two: `8k` is 8,192.
pub(in crate::cli) fn context(option: &str, text: &str) -> Result<u64, String> {
    let digits = text.trim().strip_suffix(['k', 'K']).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse::<u64>().ok()?.checked_mul(1_024)) {
        Some(tokens) => Ok(tokens),
        None => parse(option, text, "tokens"),
    }
}

/// Why a text is not a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    Shape,
    Bytes,
    Comma,
    Fraction,
    Large,
}

fn count(text: &str) -> Result<u64, Problem> {
    let text = text.trim();
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '_' | '.' | ',')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    if number.is_empty() {
        return Err(Problem::Shape);
    }
    if number.contains(',') {
        return Err(Problem::Comma);
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Underscores stand between digits of the whole part.
    if !whole.split('_').all(is_digits) || !is_digits(fraction) {
        return Err(Problem::Shape);
    }
    let digits: String = whole.chars().chain(fraction.chars()).filter(char::is_ascii_digit).collect();
    let (kept, power) = (digits.trim_end_matches('0'), exponent(suffix.trim())?);
    let zeros = (digits.len() - kept.len()) as i32;
    // The number is `kept` times ten to this power.
    let power = power + zeros - fraction.len() as i32;
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() {
        return Ok(0);
    }
    let power = u32::try_from(power).map_err(|_| Problem::Fraction)?;
    let kept: u64 = kept.parse().map_err(|_| Problem::Large)?;
    10_u64.checked_pow(power).and_then(|ten| kept.checked_mul(ten)).ok_or(Problem::Large)
}

/// Returns the power of ten that a suffix or an exponent names.
fn exponent(suffix: &str) -> Result<i32, Problem> {
    let suffix = suffix.to_ascii_lowercase();
    if suffix.is_empty() {
        return Ok(0);
    }
    if let Some((_, power)) = SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Ok(*power);
    }
    if let Some(power) = suffix.strip_prefix('e') {
        let power = power.strip_prefix('+').unwrap_or(power);
        let is_short = (1..=2).contains(&power.len()) && power.bytes().all(|byte| byte.is_ascii_digit());
        return power.parse().ok().filter(|_| is_short).ok_or(Problem::Shape);
    }
    // `G`, `Gi`, `GB`, `GiB` and their like.
    let unit = suffix.strip_suffix('b').unwrap_or(&suffix);
    let unit = unit.strip_suffix('i').unwrap_or(unit);
    let is_bytes = matches!(unit, "k" | "m" | "g" | "t" | "p" | "e");
    Err(if is_bytes { Problem::Bytes } else { Problem::Shape })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        use Problem::{Bytes, Comma, Fraction, Large, Shape};
        let cases = [
            ("32", Ok(32)),
            (" 32 ", Ok(32)),
            ("0", Ok(0)),
            ("0.0k", Ok(0)),
            ("007", Ok(7)),
            ("32_000", Ok(32_000)),
            ("8k", Ok(8_000)),
            ("8K", Ok(8_000)),
            ("1.5M", Ok(1_500_000)),
            ("1.5m", Ok(1_500_000)),
            ("7B", Ok(7_000_000_000)),
            ("7b", Ok(7_000_000_000)),
            ("7 B", Ok(7_000_000_000)),
            ("1.8T", Ok(1_800_000_000_000)),
            ("7e9", Ok(7_000_000_000)),
            ("7E+9", Ok(7_000_000_000)),
            ("1e3", Ok(1_000)),
            ("6.738415616e9", Ok(6_738_415_616)),
            ("32.0", Ok(32)),
            ("1.50k", Ok(1_500)),
            ("18446744073709551615", Ok(u64::MAX)),
            ("18446744073709551616", Err(Large)),
            ("1e20", Err(Large)),
            ("1e99", Err(Large)),
            ("99999999999999999999999999", Err(Large)),
            ("1.5", Err(Fraction)),
            ("1.0005k", Err(Fraction)),
            ("7G", Err(Bytes)),
            ("40g", Err(Bytes)),
            ("7GB", Err(Bytes)),
            ("8KiB", Err(Bytes)),
            ("8Ki", Err(Bytes)),
            ("8kb", Err(Bytes)),
            ("32,000", Err(Comma)),
            ("1,5M", Err(Comma)),
            ("", Err(Shape)),
            ("k", Err(Shape)),
            ("-1", Err(Shape)),
            ("+1", Err(Shape)),
            (".5k", Err(Shape)),
            ("5.", Err(Shape)),
            ("1.2.3", Err(Shape)),
            ("_1", Err(Shape)),
            ("1__0", Err(Shape)),
            ("1.5_0k", Err(Shape)),
            ("1e", Err(Shape)),
            ("1e-3", Err(Shape)),
            ("1e100", Err(Shape)),
            ("1e3k", Err(Shape)),
            ("7x", Err(Shape)),
            ("0x20", Err(Shape)),
            ("nan", Err(Shape)),
            ("inf", Err(Shape)),
            ("７", Err(Shape)),
        ];
        for (text, want) in cases {
            assert_eq!(count(text), want, "{text}");
        }
    }

    #[test]
    fn a_refused_count_says_how_to_write_it() {
        let cases = [
            (
                "7G",
                "--params \"7G\" is not a number of weights: its suffix is one of bytes. Write 8k for 8,000, 1.5M for 1,500,000 and 7B for 7,000,000,000.",
            ),
            ("1.5", "--params \"1.5\" is not a whole number of weights. Write it without a fraction, like 2 or 1.5k."),
            (
                "32,000",
                "--params \"32,000\" is ambiguous: a comma separates thousands in some countries and decimals in others. Write it without a comma, such as 32000 or 1.5M.",
            ),
            ("nan", "--params \"nan\" is not a number of weights. Write it like 32, 32_000, 8k, 1.5M, 7B or 7e9."),
            ("1e20", "--params \"1e20\" is too large a number of weights."),
        ];
        for (text, want) in cases {
            assert_eq!(parse("--params", text, "weights"), Err(want.to_owned()));
        }
    }
}
