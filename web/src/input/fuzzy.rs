//! How well a few typed letters fit a title: all must occur in order; beginnings of words and runs count for more.

/// A score, higher for a better fit; none when the letters are not all there.
pub fn score(typed: &str, title: &str) -> Option<i32> {
    let mut total = 0;
    let mut letters = title.chars().flat_map(char::to_lowercase);
    let mut before = ' ';
    let mut was_hit = false;
    let mut place = 0;
    for wanted in typed.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase) {
        loop {
            let letter = letters.next()?;
            let begins_word = !before.is_alphanumeric();
            before = letter;
            place += 1;
            if letter == wanted {
                // A letter late in the title is worth a little less than the same one early.
                total += if begins_word { 12 } else { 1 } + if was_hit { 8 } else { 0 } - place / 16;
                was_hit = true;
                break;
            }
            was_hit = false;
        }
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_letters_must_occur_in_order() {
        assert!(score("zi", "Zoom in").is_some());
        assert!(score("ZOOM IN", "Zoom in").is_some());
        assert!(score("iz", "Zoom in").is_none());
        assert!(score("", "Zoom in").is_some());
    }

    #[test]
    fn beginnings_and_runs_come_first() {
        assert!(score("pe", "Go to the peak") > score("pe", "Stop here"));
        assert!(score("ft", "Fit the selection") > score("ft", "Shift it"));
        assert!(score("next", "Next hit") > score("next", "Nine extra tabs"));
    }
}
