//! The colors of a text for people. They are those of what leads a line, and of bars, so that a text is written once, for a terminal
//! and for a file.

use anstyle::{AnsiColor, Style};

const PLAIN: Style = Style::new();
const BOLD: Style = PLAIN.bold();
const RED: Style = AnsiColor::Red.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const BLUE: Style = AnsiColor::Blue.on_default();
/// What bars are made of.
const CELL: char = '█';

/// What leads a line, after its indentation, with its color and that of the rest of the line: first the causes that headlines of a
/// verdict begin with.
const LEADS: [(&str, Style, Style); 19] = [
    ("Leak:", RED, BOLD),
    ("Full:", RED, BOLD),
    ("Fragmented:", RED, BOLD),
    ("Out of reach:", RED, BOLD),
    ("Limit:", RED, BOLD),
    ("Other processes:", RED, BOLD),
    ("Brief spike:", RED, BOLD),
    ("FITS", GREEN, BOLD),
    ("PASSES", YELLOW, BOLD),
    ("MAY FIT", YELLOW, BOLD),
    ("DOES NOT FIT", RED, BOLD),
    ("NEEDS", CYAN, BOLD),
    ("SAVES", GREEN, BOLD),
    ("FALLS SHORT", RED, BOLD),
    ("→ ", CYAN, PLAIN),
    ("PYTORCH_CUDA_ALLOC_CONF=", BOLD, BOLD),
    ("help (checked on this trace):", GREEN, PLAIN),
    ("help:", CYAN, PLAIN),
    ("! ", YELLOW, PLAIN),
];

/// Leaves colors out everywhere, clap's included, where the terminal shows none. `anstream` would write them to a dumb terminal if the
/// variable `CI` is set.
pub(super) fn set_for_terminal() {
    let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    if is_dumb && std::env::var_os("CLICOLOR_FORCE").is_none() {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Returns a text with the colors of what leads its lines. It must not have escape sequences yet.
pub(super) fn styled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let (indent, words) = line.split_at(line.len() - line.trim_start_matches(' ').len());
        match LEADS.iter().find_map(|(lead, style, after)| Some((lead, style, words.strip_prefix(lead)?, after))) {
            Some((lead, style, rest, after)) => {
                out.push_str(&format!("{indent}{style}{lead}{style:#}{after}{rest}{after:#}{end}"));
            }
            None => match line.find(CELL) {
                Some(at) => {
                    let (before, rest) = line.split_at(at);
                    let bar = rest.len() - rest.trim_start_matches(CELL).len();
                    let (bar, after) = rest.split_at(bar);
                    out.push_str(&format!("{before}{BLUE}{bar}{BLUE:#}{after}{end}"));
                }
                None => out.extend([line, end]),
            },
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_a_line_has_its_color() {
        let text =
            "a.pickle\n  Full: 1 GiB asked\n    help: less, not Full: more\n      A=B\n  Fullness\n  38 %  ██   f";
        let want = "a.pickle\n  \x1b[1m\x1b[31mFull:\x1b[0m\x1b[1m 1 GiB asked\x1b[0m\n    \x1b[1m\x1b[36mhelp:\x1b[0m less, not Full: \
                    more\n      A=B\n  Fullness\n  38 %  \x1b[34m██\x1b[0m   f";
        assert_eq!(styled(text), want);
        assert_eq!(anstream::adapter::strip_str(&styled(text)).to_string(), text);
    }
}
