//! The comparison as Markdown, for a comment on a pull request.

use std::fmt::{self, Write as _};

use query::run_comparison::{ChangedLine, LineMatch};
use query::{line_in_sentence, location_of};
use trace::text::escaped;
use trace::units::{Bytes, Count, counted};

use super::{Found, changed_parts, signed};

/// The lines that are written.
const ROWS: usize = 10;

/// Returns the comment.
pub(super) fn comment(found: &Found) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write(&mut out, found);
    out
}

fn write(out: &mut String, found: &Found) -> fmt::Result {
    let compared = &found.compared;
    let [a, b] = &compared.runs;
    let is_broken = found.gate.iter().any(|checked| checked.is_tripped);
    writeln!(out, "**GPU memory{}** {}\n", if is_broken { ": too much." } else { "." }, text(&compared.sentence))?;
    for checked in &found.gate {
        writeln!(out, "- {} {}", if checked.is_tripped { "❌" } else { "✅" }, text(&checked.to_string()))?;
    }
    for found in &compared.differences {
        let [a, b] = &found.values;
        let consequence = if found.consequence.is_empty() { String::new() } else { format!(" {}.", found.consequence) };
        writeln!(out, "- ⚠️ {}: {} → {}.{consequence}", found.what, code(a), code(b))?;
    }
    let changed: Vec<&ChangedLine> = compared.changed_lines().collect();
    if !changed.is_empty() {
        writeln!(out, "\n| change | A | B | tensors | line | |\n|---:|---:|---:|---:|---|---|")?;
    }
    for line in changed.iter().take(ROWS) {
        let [before, after] = line.held;
        let found = match line.found {
            LineMatch::Exact => String::new(),
            LineMatch::New | LineMatch::Gone if !compared.knows_lines() => "unknown in the other".to_owned(),
            LineMatch::Moved | LineMatch::Guessed if line.labels[0] != line.labels[1] => {
                format!("{} from {}", line.found.name(), code(location_of(&line.labels[0])))
            }
            other => other.name().to_owned(),
        };
        writeln!(
            out,
            "| {} | {} | {} | {} → {} | {} | {found} |",
            signed(line.growth()),
            Bytes(before.bytes),
            Bytes(after.bytes),
            Count(before.count.into()),
            Count(after.count.into()),
            code(&line_in_sentence(line.label())),
        )?;
    }
    if changed.len() > ROWS {
        writeln!(out, "\n{}.", counted((changed.len() - ROWS) as u64, "more line"))?;
    }
    for (by, parts) in [("stream", &compared.streams), ("pool", &compared.pools)] {
        let changed: Vec<String> = changed_parts(parts).map(|text| self::text(&text)).collect();
        if !changed.is_empty() {
            writeln!(out, "\nReserved by {by}: {}.", changed.join(", "))?;
        }
    }
    writeln!(
        out,
        "\nA: {}, {}. B: {}, {}. By `vramscope diff`.",
        code(&a.name),
        text(&a.moment.named()),
        code(&b.name),
        text(&b.moment.named())
    )
}

/// Returns a text as Markdown shows it: names come from a stranger's file, and stay words.
pub(in super::super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escaped(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' | '@' => out.extend(['\\', c]),
            other => out.push(other),
        }
    }
    out
}

/// Returns a text as code. What would end it, or the cell of a table, is replaced.
fn code(text: &str) -> String {
    format!("`{}`", escaped(text).replace('`', "'").replace('|', "¦"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_file_stay_words() {
        assert_eq!(text("a_b <img src=x> [x](y) @me | #1"), "a\\_b &lt;img src=x&gt; \\[x\\](y) \\@me \\| \\#1");
        assert_eq!(code("a`b|c\n"), "`a'b¦c\\u{a}`");
    }
}
