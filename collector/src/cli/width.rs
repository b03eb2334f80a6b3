//! The width of the terminal, and texts that are made to fit it. A text that goes to a file or to another program is left as
//! it is.

use std::io::{self, IsTerminal};

use terminal_size::{Width, terminal_size_of};

/// The width where it is not known.
const USUAL: usize = 80;
/// The least width that lines are folded for. Below it, nothing is legible.
const LEAST: usize = 30;

/// Units that stay with their number.
const UNITS: [&str; 10] = ["B", "KiB", "MiB", "GiB", "TiB", "%", "s", "ms", "µs", "×"];

/// Returns the width of the terminal that standard output is on; `None` if it is on none.
pub(super) fn of_output() -> Option<usize> {
    let out = io::stdout();
    out.is_terminal().then(|| terminal_size_of(out).map_or(USUAL, |(Width(columns), _)| columns.into()))
}

/// Returns the width of the terminal that standard error is on.
pub(super) fn of_errors() -> usize {
    terminal_size_of(io::stderr()).map_or(USUAL, |(Width(columns), _)| columns.into())
}

/// Folds the lines of a text that are too long, between words: what follows is indented as far as the last column begins,
/// or a little more than the line.
pub(super) fn folded(text: &str, width: usize) -> String {
    if width < LEAST {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        fold(line, width, &mut out);
    }
    out
}

fn fold(line: &str, width: usize, out: &mut String) {
    let mut rest = line;
    let mut room = width;
    let mut hang = None;
    while rest.trim_end().chars().count() > room {
        let hang = *hang.get_or_insert_with(|| hanging(rest, width));
        // In the first part, what stands before the last column is not torn apart.
        let least = if room == width { hang } else { 0 };
        let Some(at) = gap(rest, least, room) else { break };
        let (head, tail) = rest.split_at(at);
        out.push_str(head.trim_end());
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', hang));
        rest = tail.trim_start_matches(' ');
        room = width - hang;
    }
    out.push_str(rest);
}

/// Returns where the parts of a folded line begin.
fn hanging(line: &str, width: usize) -> usize {
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let (mut column, mut spaces) = (None, 0);
    for (place, c) in line.chars().enumerate().skip(indent).take_while(|(place, _)| *place <= width / 2) {
        if c != ' ' && spaces >= 2 {
            column = Some(place);
        }
        spaces = if c == ' ' { spaces + 1 } else { 0 };
    }
    column.unwrap_or((indent + 2).min(width / 2))
}

/// Returns the byte of the last space where a line can be folded: after `least` characters, and within `room`.
fn gap(line: &str, least: usize, room: usize) -> Option<usize> {
    let spaces = line.char_indices().enumerate().filter(|(_, (_, c))| *c == ' ');
    let within = spaces.take_while(|(place, _)| *place <= room);
    let parts = within.filter(|(place, (byte, _))| *place > least && !is_in_amount(line, *byte));
    parts.last().map(|(_, (byte, _))| byte)
}

/// Whether the space at a byte is between a number and its unit.
fn is_in_amount(line: &str, byte: usize) -> bool {
    let (before, after) = line.split_at(byte);
    let unit = after.split_whitespace().next().unwrap_or_default().trim_end_matches([',', '.', ';', ':', ')']);
    before.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_folded_between_words_and_under_their_last_column() {
        for (text, want) in [
            ("short\nlines\n", "short\nlines\n"),
            (
                "It was requested by a line that is long.\nNext.\n",
                "It was requested by a line\n  that is long.\nNext.\n",
            ),
            (
                "  12 MiB   3  the line of a program, and more of it\n",
                "  12 MiB   3  the line of a\n              program, and\n              more of it\n",
            ),
            ("A tensor of a program takes 12 MiB, of 3 GiB", "A tensor of a program takes\n  12 MiB, of 3 GiB"),
            // A path is copied as a whole.
            ("/a/path/without/any/space/that/is/long", "/a/path/without/any/space/that/is/long"),
            ("see /a/path/without/any/space/that/is/long", "see\n  /a/path/without/any/space/that/is/long"),
            ("wörter wie älter öfter übler ärger", "wörter wie älter öfter übler\n  ärger"),
            ("", ""),
        ] {
            assert_eq!(folded(text, 30), want);
        }
        assert_eq!(folded("a b c d e f", 5), "a b c d e f");
    }

    #[test]
    fn folding_keeps_every_word_in_its_order() {
        let text =
            "  1.00 GiB  two  words and /some/path more words  here\nsecond line that is rather long, too\n\n  x\n";
        for width in 0..80 {
            let words: Vec<String> = folded(text, width).split_whitespace().map(str::to_owned).collect();
            assert_eq!(words, text.split_whitespace().collect::<Vec<_>>(), "{width}");
        }
    }
}
