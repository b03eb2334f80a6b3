//! A call site where there may be little room for it: what is shortened first is the function with its folder, then the file,
//! and never the number of the line.

use trace::text::separators;
use yew::prelude::*;

/// Renders a call site: `<module> scripts/train.py:30`.
pub fn site_text(site: &str) -> Html {
    let (before, file, line) = parts(site);
    html! {
        <bdi class="site">
            <span class="site-before">{ before.to_owned() }</span><span class="site-file">{ file.to_owned() }</span><span class="site-line">{ line.to_owned() }</span>
        </bdi>
    }
}

/// Splits a call site into the function with its folder, the file, and the number of the line. What has no such number is
/// a file as a whole.
fn parts(site: &str) -> (&str, &str, &str) {
    let at = site.rfind(':').filter(|at| is_number(site.get(at + 1..).unwrap_or_default()));
    let Some((place, line)) = at.and_then(|at| site.split_at_checked(at)) else { return ("", site, "") };
    let file = separators(place).next().max(place.rfind(' ')).map_or(0, |at| at + 1);
    let (before, file) = place.split_at_checked(file).unwrap_or(("", place));
    (before, file, line)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_keeps_its_line() {
        let cases = [
            ("<module> eyes/train.py:30", ("<module> eyes/", "train.py", ":30")),
            ("forward train.py:7", ("forward ", "train.py", ":7")),
            ("train.py:7", ("", "train.py", ":7")),
            ("forward eyes/tr\\u{ad}ain.py:7", ("forward eyes/", "tr\\u{ad}ain.py", ":7")),
            ("no stack recorded", ("", "no stack recorded", "")),
            ("at::empty", ("", "at::empty", "")),
            ("", ("", "", "")),
        ];
        for (site, want) in cases {
            assert_eq!(parts(site), want);
        }
    }
}
