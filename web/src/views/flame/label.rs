//! The labels of boxes: the function, then file and line, then bytes.

use query::FlameBox;
use query::folding::short_name;
use trace::units::Bytes;

use crate::widgets::format::share;
use crate::widgets::stack_list::{last_part, split_path};

/// The smallest number of letters of a location that is worth showing.
const LEAST_PLACE: usize = 8;

/// Formats a change of bytes with its sign: `+3.00 MiB`, `−1.00 KiB`, `±0`.
pub fn change(now: u64, before: u64) -> String {
    match now.cmp(&before) {
        std::cmp::Ordering::Greater => format!("+{}", Bytes(now - before)),
        std::cmp::Ordering::Less => format!("−{}", Bytes(before - now)),
        std::cmp::Ordering::Equal => "±0".to_owned(),
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Returns as much of a box's name, location and bytes as fits in `letters`. If the graph shows differences, the change
/// of bytes follows the name instead.
pub fn label(flame_box: &FlameBox, total: u64, differs: bool, letters: usize) -> String {
    let full = short_name(&flame_box.name, "");
    let name = if length(full) > letters { last_part(full) } else { full };
    if length(name) > letters {
        return name.chars().take(letters.saturating_sub(1)).chain(['…']).collect();
    }
    let mut text = name.to_owned();
    let add = |text: &mut String, part: String| {
        let fits = length(text) + length(&part) <= letters;
        if fits {
            text.push_str(&part);
        }
        fits
    };
    if differs {
        let change = change(flame_box.bytes, flame_box.before);
        // The sign alone shows whether it grew or shrank.
        if !add(&mut text, format!("  {change}")) {
            add(&mut text, format!(" {}", change.chars().next().unwrap_or_default()));
            return text;
        }
    }
    let place = match flame_box.location.as_str() {
        "" | "??" => None,
        place => fit_place(place, letters.saturating_sub(length(&text) + 2)),
    };
    let is_whole = place.as_ref().is_none_or(|place| *place == flame_box.location);
    if let Some(place) = place {
        add(&mut text, format!("  {place}"));
    }
    if !differs && is_whole {
        add(&mut text, format!("  {} · {}", Bytes(flame_box.bytes), share(flame_box.bytes, total)));
    }
    text
}

/// Shortens a location until it fits: first its folders, from the right, then the middle of the file's name, since the
/// line number is at the end. Returns `None` if too little fits.
fn fit_place(place: &str, letters: usize) -> Option<String> {
    let whole = length(place);
    if whole <= letters {
        return Some(place.to_owned());
    }
    let (file, folders) = split_path(place);
    let (file_length, folders_length) = (length(file), length(folders));
    if file_length <= letters {
        // `mod…/linear.py:116`
        let kept = letters.saturating_sub(file_length + 2);
        if kept >= 2 && folders_length > kept {
            return Some(folders.chars().take(kept).chain("…/".chars()).chain(file.chars()).collect());
        }
        return Some(file.to_owned());
    }
    let kept = (letters >= LEAST_PLACE).then(|| letters - 1)?;
    let end = kept.div_ceil(2).max(5);
    let letters: Vec<char> = file.chars().collect();
    let head = letters.iter().take(kept - end).copied();
    Some(head.chain(['…']).chain(letters.iter().skip(letters.len() - end).copied()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::flame_box;
    use super::*;

    #[test]
    fn a_label_has_the_function_first() {
        let mut named = flame_box(1, 0.0, 1.0, 1);
        named.name = "forward".to_owned();
        named.location = "modules/linear.py:116".to_owned();
        (named.bytes, named.count) = (3 << 20, 1);
        let label = |named: &FlameBox, letters| label(named, 4 << 20, false, letters);
        assert_eq!(label(&named, 60), "forward  modules/linear.py:116  3.00 MiB · 75.0 %");
        assert_eq!(label(&named, 40), "forward  modules/linear.py:116");
        assert_eq!(label(&named, 28), "forward  modu…/linear.py:116");
        assert_eq!(label(&named, 24), "forward  linear.py:116");
        assert_eq!(label(&named, 19), "forward  line…y:116");
        assert_eq!(label(&named, 14), "forward");
        assert_eq!(label(&named, 4), "for…");
        assert_eq!(label(&named, 0), "…");
        named.name = "at::native::linear(at::Tensor const&)".to_owned();
        named.location = "??".to_owned();
        assert_eq!(label(&named, 18), "at::native::linear");
        assert_eq!(label(&named, 10), "linear");
        assert_eq!(label(&named, 3), "li…");
    }

    #[test]
    fn a_change_has_its_sign_at_every_width() {
        let mut named = flame_box(1, 0.0, 1.0, 1);
        (named.name, named.location) = ("forward".to_owned(), "model.py:4".to_owned());
        for (now, before, long, short) in [
            (3 << 20, 1 << 20, "forward  +2.00 MiB  model.py:4", "forward +"),
            (0, 1 << 10, "forward  −1.00 KiB  model.py:4", "forward −"),
            (7, 7, "forward  ±0  model.py:4", "forward ±"),
        ] {
            (named.bytes, named.before) = (now, before);
            assert_eq!((label(&named, 9, true, 60).as_str(), label(&named, 9, true, 10).as_str()), (long, short));
        }
    }

    #[test]
    fn every_label_fits() {
        let mut named = flame_box(1, 0.0, 1.0, 1);
        named.name = "forwärd_with_a_long_name".to_owned();
        named.location = "some_folder/a_module_with_a_name.py:1160".to_owned();
        for differs in [false, true] {
            for letters in 1..120 {
                let text = label(&named, 9000, differs, letters);
                assert!(length(&text) <= letters, "{letters}: {text}");
            }
        }
    }
}
