//! The recordings that the processes of a job wrote for `--out`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What stands for a number in a file's name.
const PLACEHOLDERS: [&str; 2] = ["{rank}", "{pid}"];
/// The files that are named.
const NAMED: usize = 3;

/// Returns the files that were written for `out` since the job began, by name. `out` may have placeholders in its last part;
/// with one in a folder's name, none are found.
pub(super) fn files(out: &Path, begun: SystemTime) -> Vec<PathBuf> {
    let Some(pattern) = out.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_new = |path: &Path| {
        let changed = fs::metadata(path).and_then(|file| file.modified());
        // The clock of a file may be coarse.
        changed.is_ok_and(|changed| {
            begun.duration_since(changed).is_ok_and(|since| since.as_secs() < 1) || changed >= begun
        })
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let fitting = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| fits(name, pattern)));
    let mut found: Vec<PathBuf> =
        fitting.map(|entry| out.with_file_name(entry.file_name())).filter(|path| is_new(path)).collect();
    found.sort();
    found
}

/// Returns the names of files in words.
pub(super) fn named(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    let more = files.len().saturating_sub(NAMED);
    let others = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &others
}

/// Whether a name is `pattern` with a number in place of each placeholder.
fn fits(name: &str, pattern: &str) -> bool {
    let first = PLACEHOLDERS.iter().filter_map(|mark| Some((pattern.find(mark)?, mark.len()))).min();
    let Some((at, length)) = first else { return name == pattern };
    let (Some(rest), Some(tail)) =
        (pattern.get(..at).and_then(|head| name.strip_prefix(head)), pattern.get(at + length..))
    else {
        return false;
    };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (1..=digits).any(|end| rest.get(end..).is_some_and(|rest| fits(rest, tail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_for_numbers() {
        for (name, pattern, want) in [
            ("a.vramscope", "a.vramscope", true),
            ("b.vramscope", "a.vramscope", false),
            ("run-0-4711.vramscope", "run-{rank}-{pid}.vramscope", true),
            ("run-x-4711.vramscope", "run-{rank}-{pid}.vramscope", false),
            ("12", "{rank}{pid}", true),
            ("1", "{rank}{pid}", false),
            ("é1", "é{pid}", true),
        ] {
            assert_eq!(fits(name, pattern), want, "{name} {pattern}");
        }
    }

    #[test]
    fn only_what_the_job_wrote_is_found() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["old-1.vramscope", "run-1.vramscope", "run-0.vramscope", "run-0.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = files(&folder.path().join("run-{rank}.vramscope"), SystemTime::now());
        assert_eq!(found, ["run-0.vramscope", "run-1.vramscope"].map(|name| folder.path().join(name)));
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert!(files(&folder.path().join("run-{rank}.vramscope"), later).is_empty());
        assert_eq!(named(&["a", "b", "c", "d"].map(PathBuf::from)), "a, b, c and 1 more");
    }
}
