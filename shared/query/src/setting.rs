//! The allocator's settings as text, and the line that a person copies.
//!
//! Whoever copies a line replaces the settings that the job has. So every line that the program offers is made here: by
//! [`with_option`], which keeps the options of the run and replaces one, and [`line`], which writes it for a shell.

use trace::text::quoted;

/// How the line that sets the allocator's settings begins.
pub const ALLOC_CONF: &str = "PYTORCH_CUDA_ALLOC_CONF=";

/// Returns the options of settings, each as written, up to its comma. Lists in brackets have commas of their own.
pub fn parts(conf: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let parts = conf.split(move |c| {
        match c {
            '[' => depth = depth.saturating_add(1),
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// Returns the name and the value of an option; the value is empty if it has none.
pub fn name_and_value(part: &str) -> (&str, &str) {
    let (name, value) = part.split_once(':').unwrap_or((part, ""));
    (name.trim(), value.trim())
}

/// Returns the value of an option in settings; empty if they don't have it.
pub fn option<'a>(conf: &'a str, name: &str) -> &'a str {
    parts(conf).map(name_and_value).find(|found| found.0 == name).map_or("", |found| found.1)
}

/// Returns settings with an option set; without it for an empty value. The others stay as they are.
pub fn with_option(conf: &str, name: &str, value: &str) -> String {
    let value = value.trim();
    let mut all = Vec::new();
    let mut is_set = value.is_empty();
    for part in parts(conf) {
        if name_and_value(part).0 != name {
            all.push(part.to_owned());
        } else if !std::mem::replace(&mut is_set, true) {
            all.push(format!("{name}:{value}"));
        }
    }
    if !is_set {
        all.push(format!("{name}:{value}"));
    }
    all.join(",")
}

/// Returns settings with those of another string, each of which replaces the option of its name.
pub fn merged(conf: &str, others: &str) -> String {
    parts(others).map(name_and_value).fold(conf.to_owned(), |conf, (name, value)| with_option(&conf, name, value))
}

/// Returns the options of settings that others don't have, under any value.
pub fn left_out<'a>(conf: &'a str, others: &str) -> Vec<&'a str> {
    let has = |name: &str| parts(others).any(|other| name_and_value(other).0 == name);
    parts(conf).filter(|part| !has(name_and_value(part).0)).collect()
}

/// Returns the line that sets settings in a shell, quoted if it would read them otherwise, as it does with the `>` of a list.
pub fn line(conf: &str) -> String {
    // Settings of several lines are one: PyTorch reads past white space.
    let conf: String = conf.split_whitespace().collect();
    let word = if conf.is_empty() { conf } else { quoted(&conf) };
    [ALLOC_CONF, &word].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_read_and_set_without_touching_the_others() {
        let conf = "max_split_size_mb:64, roundup_power2_divisions:[256:1,512:2,>:4],x";
        assert_eq!(option(conf, "max_split_size_mb"), "64");
        assert_eq!(option(conf, "roundup_power2_divisions"), "[256:1,512:2,>:4]");
        assert_eq!((option(conf, "x"), option(conf, "y"), option("", "y")), ("", "", ""));
        for (conf, name, value, want) in [
            ("", "a", "1", "a:1"),
            ("a:1", "a", "2", "a:2"),
            ("a:1", "a", "", ""),
            ("a:1,b:[1,2],a:3", "a", "9", "a:9,b:[1,2]"),
            ("b:[1,2],x", "c", " 7 ", "b:[1,2],x,c:7"),
            (",,", "c", "7", "c:7"),
            ("b:1]", "c", "7", "b:1],c:7"),
        ] {
            assert_eq!(with_option(conf, name, value), want, "{conf} {name} {value}");
        }
    }

    #[test]
    fn settings_are_joined_by_name() {
        let own = "max_split_size_mb:200,roundup_power2_divisions:[64:2,>:4],expandable_segments:False";
        for (conf, others, want, without) in [
            ("", "expandable_segments:True", "expandable_segments:True", vec![]),
            (own, "", own, parts(own).collect()),
            (
                own,
                "expandable_segments:True,backend:native",
                "max_split_size_mb:200,roundup_power2_divisions:[64:2,>:4],expandable_segments:True,backend:native",
                vec!["max_split_size_mb:200", "roundup_power2_divisions:[64:2,>:4]"],
            ),
        ] {
            assert_eq!(merged(conf, others), want);
            assert_eq!(left_out(conf, others), without);
        }
    }

    #[test]
    fn a_line_is_one_word_of_a_shell() {
        for (conf, want) in [
            ("", ""),
            ("a:1,b:True", "a:1,b:True"),
            ("b:[64:8,>:1]", "'b:[64:8,>:1]'"),
            ("a:1,\n  b:2", "a:1,b:2"),
            ("a:1;rm -rf ~\u{1b}", "'a:1;rm-rf~ '"),
        ] {
            assert_eq!(line(conf), format!("{ALLOC_CONF}{want}"));
        }
    }
}
