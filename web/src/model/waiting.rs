//! Chooses which of the files that wait is read next. Reading takes a worker with its memory, so few are read at a time.

use super::state::{FileEntry, FileKey, Model, Phase};
use crate::worker::message::Stage;

/// Number of files that are read at a time.
const AT_ONCE: usize = 2;

/// Returns the stage of a file that is being read, or waits for that.
fn stage(file: &FileEntry) -> Option<Stage> {
    match file.phase {
        Phase::Loading { stage, .. } if file.live.is_none() => Some(stage),
        _ => None,
    }
}

/// Returns the files that are being read.
pub fn being_read(model: &Model) -> impl Iterator<Item = &FileEntry> {
    model.files.iter().filter(|file| stage(file).is_some_and(|stage| stage != Stage::Waiting))
}

/// Returns the file to read next, if another one may be read: the one that is shown, or else the one that has waited longest.
pub fn next_to_read(model: &Model) -> Option<FileKey> {
    let mut waiting = model.files.iter().filter(|file| stage(file) == Some(Stage::Waiting)).map(|file| file.key);
    let shown = model.current.filter(|key| waiting.clone().any(|waiting| waiting == *key));
    shown.or_else(|| waiting.next()).filter(|_| being_read(model).count() < AT_ONCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{added, after, read, swept, watched};
    use crate::model::{Action, update};

    fn told(key: u32, stage: Stage) -> Action {
        Action::FileProgress { key: FileKey(key), stage, done: 0, total: 0, bytes_per_second: 0.0 }
    }

    /// Adds files, and reads as many as may be read. Returns the model, and the files that are being read.
    fn applied(model: Model, actions: impl IntoIterator<Item = Action>) -> (Model, Vec<u32>) {
        let mut model = actions.into_iter().fold(model, |model, action| update(&model, action));
        while let Some(FileKey(key)) = next_to_read(&model) {
            model = update(&model, told(key, Stage::Reading));
        }
        let read = being_read(&model).map(|file| file.key.0).collect();
        (model, read)
    }

    #[test]
    fn two_files_are_read_at_a_time_and_the_one_that_is_shown_comes_first() {
        let dropped = (0..6).flat_map(|key| [added(key, "a"), told(key, Stage::Waiting)]);
        let (mut model, read_first) = applied(Model::default(), dropped);
        assert_eq!(read_first, [0, 1]);
        let failed = Action::FileFailed { key: FileKey(3), message: String::new() };
        for (what, then) in [
            (vec![told(0, Stage::Indexing)], vec![0, 1]),
            (vec![read(0, &[10])], vec![1, 2]),
            (vec![Action::SelectFile(FileKey(4)), swept(1)], vec![2, 4]),
            (vec![Action::FileClosed(FileKey(2))], vec![3, 4]),
            (vec![failed], vec![4, 5]),
            (vec![read(4, &[10]), read(5, &[10])], vec![]),
        ] {
            let (next, reads) = applied(model, what.clone());
            assert_eq!(reads, then, "{what:?}");
            model = next;
        }
    }

    #[test]
    fn a_session_that_waits_for_its_first_events_is_no_file() {
        let [opened, _] = watched(0, 0);
        assert_eq!(next_to_read(&after([opened])), None);
    }
}
