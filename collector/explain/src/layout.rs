//! How a text was laid out: what a terminal, a logger or a quoted reply put into it is taken out.

/// What quotes and boxes begin lines with.
const BARS: [&str; 5] = ["> ", "| ", "│ ", "┃ ", "║ "];

/// Returns the lines of a text as one line, without quotes and boxes around it and without what a logger wrote before each line.
/// Where a line broke, there is a space, or nothing if it `breaks_words`, as terminals do that wrap at their last column.
pub(super) fn joined(text: &str, breaks_words: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = without_process(without_bars(line));
        let (head, separator) = match breaks_words {
            true => (line, ""),
            false => (line.trim(), " "),
        };
        out.push_str(head);
        out.push_str(separator);
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a line without the bars of quotes and boxes at its ends.
fn without_bars(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = BARS.iter().find_map(|bar| line.strip_prefix(bar)) {
        line = rest;
        line = line.trim_end().strip_suffix(['|', '│', '┃', '║']).unwrap_or(line);
    }
    line
}

/// Returns a line without the process that Ray and vLLM write before it: `(EngineCore_DP0 pid=7) `.
fn without_process(line: &str) -> &str {
    let named = line.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')'));
    match named {
        Some((name, rest)) if name.contains("pid=") => rest.trim_start(),
        _ => line,
    }
}

/// Returns the rank that a launcher wrote last before a place in a text: `[rank1]: `.
pub(super) fn rank_before(text: &str, at: usize) -> Option<u32> {
    let (_, rest) = text.get(..at)?.rsplit_once("[rank")?;
    let (number, _) = rest.split_once(']')?;
    number.parse().ok()
}

/// Returns a text without the ranks that a launcher wrote.
pub(super) fn without_ranks(text: &str) -> String {
    text.split(' ').filter(|word| !(word.starts_with("[rank") && word.ends_with(':'))).collect::<Vec<_>>().join(" ")
}
