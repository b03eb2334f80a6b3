//! Upgrades the parts of links of earlier versions, one version at a time.
//!
//! Each version has one function, which turns its parts into those of the next version. A function is never changed after
//! the next version is out: a link of version 1 then passes through all of them, and is read by the newest parser only.

use super::{Read, VERSION};

/// The parts of a link: keys with their decoded values, in the link's order.
pub(super) type Parts = Vec<(String, String)>;

/// Turns the parts of one version into those of the next. What it drops is noted as not understood.
pub(super) type Step = fn(&mut Parts, &mut Read);

/// The steps, the one from version 1 first.
pub(super) const STEPS: [Step; VERSION as usize - 1] = [];

/// Takes parts of a version through those of `steps` that it has not passed. Those of later versions stay unchanged.
pub(super) fn upgrade(parts: &mut Parts, read: &mut Read, version: u32, steps: &[Step]) {
    for step in steps.iter().skip(version.saturating_sub(1) as usize) {
        step(parts, read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Parts {
        let pair = |part: &str| part.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        text.split('&').filter_map(pair).collect()
    }

    fn check(version: u32, steps: &[Step], before: &str, after: &str, dropped: &[&str]) {
        let (mut found, mut read) = (parts(before), Read::default());
        upgrade(&mut found, &mut read, version, steps);
        assert_eq!((&found, read.unread.as_slice()), (&parts(after), dropped), "{before}");
    }

    /// Steps as later versions may need them: a key that is renamed, then a key that is given up.
    #[test]
    fn each_version_passes_the_steps_after_it() {
        fn rename(parts: &mut Parts, _: &mut Read) {
            for (key, _) in parts {
                if key == "cur" {
                    *key = "at".to_owned();
                }
            }
        }
        fn drop_fog(parts: &mut Parts, read: &mut Read) {
            parts.retain(|(key, _)| key != "fog");
            read.miss("the fog");
        }
        let steps = [rename as Step, drop_fog];
        check(1, &steps, "cur=7&fog=1", "at=7", &["the fog"]);
        check(2, &steps, "cur=7&fog=1", "cur=7", &["the fog"]);
        check(3, &steps, "cur=7&fog=1", "cur=7&fog=1", &[]);
        check(0, &steps, "cur=7", "at=7", &["the fog"]);
    }
}
