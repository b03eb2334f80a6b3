//! A call site, with its place as code. Where there is little room, what is shortened first is the function and the folder, then
//! the file, and never the number of the line.

use trace::text::separators;
use yew::prelude::*;

/// Renders a call site: `<module> scripts/train.py:30`.
pub fn site_text(site: &str) -> Html {
    let Some([function, folder, file, line]) = parts(site) else {
        return html! { <bdi class="site"><span class="site-name">{ site.to_owned() }</span></bdi> };
    };
    html! {
        <bdi class="site">
            <span class="site-function">{ function.to_owned() }</span><span class="site-folder">{ folder.to_owned() }</span><span class="site-file">{ file.to_owned() }</span><span class="site-line">{ line.to_owned() }</span>
        </bdi>
    }
}

/// Splits a call site into the function, the folder, the file, and the number of the line. What has no such number has no parts.
fn parts(site: &str) -> Option<[&str; 4]> {
    let at = site.rfind(':').filter(|at| is_number(site.get(at + 1..).unwrap_or_default()))?;
    let (before, line) = site.split_at_checked(at)?;
    let (function, place) = before.split_at_checked(before.rfind(' ').map_or(0, |at| at + 1))?;
    let (folder, file) = place.split_at_checked(separators(place).next().map_or(0, |at| at + 1))?;
    Some([function, folder, file, line])
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
            ("<module>  eyes/train.py:30", Some(["<module>  ", "eyes/", "train.py", ":30"])),
            ("forward train.py:7", Some(["forward ", "", "train.py", ":7"])),
            ("train.py:7", Some(["", "", "train.py", ":7"])),
            ("forward eyes/tr\\u{ad}ain.py:7", Some(["forward ", "eyes/", "tr\\u{ad}ain.py", ":7"])),
            ("no stack recorded", None),
            ("at::empty", None),
            ("", None),
        ];
        for (site, want) in cases {
            assert_eq!(parts(site), want);
        }
    }
}
