//! Upgrades the parts of links of earlier versions, one version at a time.
//!
//! Each version has one function, which turns its parts into those of the next version. A function is never changed after
//! the next version is out: a link of version 1 then passes through all of them, and is read by the newest parser only.
//! To make version N + 1, append the function that upgrades from N, and add links of N to the golden file.

use super::VERSION;

/// The parts of a link: keys with their decoded values, in the link's order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Parts {
    /// The parts.
    pub list: Vec<(String, String)>,
    /// What was dropped, in words for people.
    pub dropped: Vec<&'static str>,
}

/// Upgrades parts from one version to the next.
pub(super) type Step = fn(&mut Parts);

/// The upgrades, the one from version 1 first.
pub(super) const STEPS: [Step; VERSION as usize - 1] = [from_1, from_2];

/// Upgrades parts of a version with those of `steps` that it has not passed. Later versions stay unchanged.
pub(super) fn upgrade(parts: &mut Parts, version: u32, steps: &[Step]) {
    for step in steps.iter().skip(version.saturating_sub(1) as usize) {
        step(parts);
    }
}

/// What a part is called that no version up to this one knows.
pub(super) const UNKNOWN: &str = "a part that this version doesn't know";

/// Version 2 added keys, and renamed none. Version 1 ignored them, so in one of its links they mean nothing.
fn from_1(parts: &mut Parts) {
    drop_added(parts, &["hash", "fit", "order", "peaks", "segzoom", "segcolor", "zoom", "table"]);
}

/// Version 3 added keys, and renamed none.
fn from_2(parts: &mut Parts) {
    drop_added(parts, &["pin", "split", "sort", "hide", "flameops", "sandwich", "differs", "segsort", "seggroup"]);
}

/// Drops the parts whose keys the next version adds.
fn drop_added(parts: &mut Parts, added: &[&str]) {
    let before = parts.list.len();
    parts.list.retain(|(key, _)| !added.contains(&key.as_str()));
    if parts.list.len() < before && !parts.dropped.contains(&UNKNOWN) {
        parts.dropped.push(UNKNOWN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Parts {
        let pair = |part: &str| part.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        Parts { list: text.split('&').filter_map(pair).collect(), dropped: Vec::new() }
    }

    fn check(version: u32, steps: &[Step], before: &str, after: &str, dropped: &[&str]) {
        let mut found = parts(before);
        upgrade(&mut found, version, steps);
        assert_eq!((&found.list, found.dropped.as_slice()), (&parts(after).list, dropped), "{before}");
    }

    #[test]
    fn version_1_knows_nothing_of_what_came_later() {
        check(1, &STEPS, "file=a&cur=7", "file=a&cur=7", &[]);
        check(1, &STEPS, "file=a&zoom=1,2&cur=7&hash=0", "file=a&cur=7", &[UNKNOWN]);
        check(2, &STEPS, "zoom=1,2", "zoom=1,2", &[]);
        check(3, &STEPS, "zoom=1,2", "zoom=1,2", &[]);
    }

    /// Steps as later versions may need them: a key that is renamed, then a key that is given up.
    #[test]
    fn each_version_passes_the_steps_after_it() {
        fn rename(parts: &mut Parts) {
            for (key, _) in &mut parts.list {
                if key == "cur" {
                    *key = "at".to_owned();
                }
            }
        }
        fn drop_fog(parts: &mut Parts) {
            parts.list.retain(|(key, _)| key != "fog");
            parts.dropped.push("the fog");
        }
        let steps = [rename as Step, drop_fog];
        check(1, &steps, "cur=7&fog=1", "at=7", &["the fog"]);
        check(2, &steps, "cur=7&fog=1", "cur=7", &["the fog"]);
        check(3, &steps, "cur=7&fog=1", "cur=7&fog=1", &[]);
        check(0, &steps, "cur=7", "at=7", &["the fog"]);
    }
}
