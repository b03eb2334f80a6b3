//! What a command says on standard error, in one form: `error: WHAT. WHAT NEXT.`, `warning: …`, and notes without a word
//! before them.
//!
//! The word is colored on a terminal, unless `NO_COLOR` is set (<https://no-color.org>).

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use trace::text::{escaped, escaped_lines};

use super::{progress, width};

/// The exit code if a gate tripped: what `--fail-on` names was found, or the store is damaged.
pub(super) const TRIPPED: u8 = 1;
/// The exit code for everything that can't be done: invalid arguments, unreadable files, a server that is away.
pub(super) const UNUSABLE: u8 = 2;

const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Prints in one line why nothing was done, and what to do next. Returns the exit code for it.
pub(super) fn refuse(sentence: &str) -> ExitCode {
    say("error", RED, sentence);
    ExitCode::from(UNUSABLE)
}

/// Prints a warning in one line.
pub(super) fn warn(sentence: &str) {
    say("warning", YELLOW, sentence);
}

/// Prints a note in one line.
pub(super) fn note(sentence: &str) {
    let line = on_terminal(one_line(sentence));
    progress::above(|| anstream::eprintln!("{line}"));
}

/// Prints lines beside the result, which goes to standard output. On a terminal, long ones are folded.
pub(super) fn tell(lines: &str) {
    let lines = on_terminal(escaped_lines(lines).into_owned());
    progress::above(|| anstream::eprint!("{lines}"));
}

fn say(word: &str, style: Style, sentence: &str) {
    let line = on_terminal(format!("{word}: {}", one_line(sentence)));
    let rest = line.split_once(':').map_or("", |(_, rest)| rest);
    progress::above(|| anstream::eprintln!("{style}{word}:{style:#}{rest}"));
}

/// Folds the lines of a text where standard error is a terminal.
fn on_terminal(lines: String) -> String {
    if io::stderr().is_terminal() { width::folded(&lines, width::of_errors()) } else { lines }
}

/// Returns a text in one line, with what a terminal would obey as text.
pub(super) fn one_line(text: &str) -> String {
    escaped(text).into_owned()
}
