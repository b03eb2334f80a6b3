//! Fuzzy matching of typed letters against titles. All letters must occur in order; word starts and consecutive letters
//! score higher.

/// Scores of a letter that begins a word, of one that directly follows the previous match, and of any other.
const BEGINS: i32 = 12;
const RUNS: i32 = 13;
const LIES: i32 = 1;

/// Returns a score, higher for a better match, or `None` if the letters do not all occur in order. Uses the best of all
/// possible alignments.
pub fn score(typed: &str, title: &str) -> Option<i32> {
    let title: Vec<char> = title.chars().flat_map(char::to_lowercase).collect();
    // For each place in the title: the best score with the last typed letter exactly there.
    let mut best: Vec<Option<i32>> = Vec::new();
    for wanted in typed.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase) {
        let mut next = vec![None; title.len()];
        // The best score of the previous letter at any place further left.
        let mut left = if best.is_empty() { Some(0) } else { None };
        let mut before = ' ';
        for (i, &letter) in title.iter().enumerate() {
            let run = i.checked_sub(1).and_then(|i| *best.get(i)?);
            if letter == wanted {
                let lone = if before.is_alphanumeric() { LIES } else { BEGINS };
                next[i] = left.map(|score| score + lone).max(run.map(|score| score + RUNS));
            }
            left = left.max(best.get(i).copied().flatten());
            before = letter;
        }
        best = next;
    }
    // Of equal matches the shorter title wins.
    let length = i32::try_from(title.len()).unwrap_or(i32::MAX);
    if best.is_empty() { Some(-length) } else { best.into_iter().flatten().max().map(|score| score * 64 - length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_letters_must_occur_in_order() {
        assert!(score("zi", "Zoom in").is_some());
        assert!(score("ZOOM IN", "Zoom in").is_some());
        assert!(score("iz", "Zoom in").is_none());
        assert!(score("zz", "Zoom in").is_none());
        assert!(score("", "Zoom in").is_some());
    }

    #[test]
    fn beginnings_and_runs_come_first() {
        assert!(score("pe", "Go to the peak") > score("pe", "Stop here"));
        assert!(score("ft", "Fit the selection") > score("ft", "Shift it"));
        assert!(score("next", "Next match") > score("next", "Nine extra tabs"));
        assert!(
            score("seg", "Show the segments") > score("seg", "Show the flame graph"),
            "not the first letters that fit"
        );
    }
}
