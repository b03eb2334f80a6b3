//! The comparison as text for people.

use std::fmt::{self, Write as _};

use query::line_in_sentence;
use query::run_comparison::{ChangedLine, Comparability, ComparedRun, LineMatch, RunComparison};
use query::run_profile::ProfiledMemory;
use trace::text::Escaped;
use trace::units::{Bytes, Count, counted};

use super::{Found, changed_parts, signed};

/// The lines that are printed.
const ROWS: usize = 8;

/// Returns the comparison.
pub(super) fn text(found: &Found, is_verbose: bool) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write(&mut out, found, is_verbose);
    out
}

fn write(out: &mut String, found: &Found, is_verbose: bool) -> fmt::Result {
    let compared = &found.compared;
    if found.is_forced {
        writeln!(out, "These can't be compared; this is what --force found:")?;
    }
    writeln!(out, "{}", compared.sentence)?;
    for (name, run) in ["A", "B"].into_iter().zip(&compared.runs) {
        let ComparedRun { name: file, moment, memory, .. } = run;
        writeln!(
            out,
            "  {name}  {}: {}; {} in tensors, {} reserved",
            Escaped(file),
            moment.named(),
            Bytes(memory.allocated),
            Bytes(memory.reserved),
        )?;
    }
    for found in &compared.differences {
        let [a, b] = &found.values;
        let mark = if found.weight == Comparability::Yes { " " } else { "!" };
        let consequence = if found.consequence.is_empty() { "" } else { ". " };
        writeln!(out, "  {mark} {}: {} → {}{consequence}{}", found.what, Escaped(a), Escaped(b), found.consequence)?;
    }
    let changed: Vec<&ChangedLine> = compared.changed_lines().collect();
    if !changed.is_empty() {
        writeln!(out, "\n  {:>11}  {:>10}  {:>10}  {:>11}  line", "change", "A", "B", "tensors")?;
    }
    let shown = if is_verbose { changed.len() } else { ROWS.min(changed.len()) };
    for line in changed.iter().take(shown) {
        let [a, b] = line.held;
        let tensors = match a.count == b.count {
            true => Count(a.count.into()).to_string(),
            false => format!("{} → {}", Count(a.count.into()), Count(b.count.into())),
        };
        writeln!(
            out,
            "  {:>11}  {:>10}  {:>10}  {tensors:>11}  {}{}",
            signed(line.growth()),
            Bytes(a.bytes).to_string(),
            Bytes(b.bytes).to_string(),
            line_in_sentence(line.label()),
            mark(compared, line),
        )?;
    }
    if changed.len() > shown {
        let rest: i64 = changed.iter().skip(shown).map(|line| line.growth()).sum();
        let lines = counted((changed.len() - shown) as u64, "more line");
        writeln!(out, "  {:>11}  {lines}: add -v", signed(rest))?;
    }
    writeln!(
        out,
        "\n  reserved {} = tensors {}, rounding {}, waiting for a stream {}, free gaps {}",
        signed(compared.growth(|memory| memory.reserved)),
        signed(compared.growth(|memory| memory.allocated)),
        signed(compared.signed_growth(ProfiledMemory::rounding)),
        signed(compared.signed_growth(ProfiledMemory::waiting)),
        signed(compared.signed_growth(ProfiledMemory::gaps)),
    )?;
    let [a, b] = compared.runs.each_ref().map(|run| run.most);
    if a.reserved > 0 && b.reserved > 0 && !compared.is_of_one_run() {
        writeln!(
            out,
            "  whole run: peak {} → {}, most reserved {} → {}",
            Bytes(a.allocated),
            Bytes(b.allocated),
            Bytes(a.reserved),
            Bytes(b.reserved),
        )?;
    }
    for (by, parts) in [("stream", &compared.streams), ("pool", &compared.pools)] {
        let changed: Vec<String> = changed_parts(parts).collect();
        if !changed.is_empty() {
            writeln!(out, "  reserved by {by}: {}", changed.join(", "))?;
        }
    }
    for checked in &found.gate {
        let verdict = if checked.is_tripped { "BROKEN" } else { "kept" };
        writeln!(out, "  {verdict:>6}  {checked}")?;
    }
    Ok(())
}

/// Returns how a line was found, where that is worth a word.
fn mark(compared: &RunComparison, line: &ChangedLine) -> String {
    match line.found {
        LineMatch::New | LineMatch::Gone if !compared.knows_lines() => "   unknown in the other".to_owned(),
        LineMatch::Exact => String::new(),
        // Below another root.
        LineMatch::Moved if line.labels[0] == line.labels[1] => String::new(),
        LineMatch::Moved | LineMatch::Guessed => {
            format!("   {}, {} in A", line.found.name(), query::location_of(&line.labels[0]))
        }
        LineMatch::New | LineMatch::Gone => format!("   {}", line.found.name()),
    }
}
