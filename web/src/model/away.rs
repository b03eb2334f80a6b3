//! Chooses the files to put away. Their workers are ended, so that many open files need only the memory of a few.

use super::state::{FileEntry, FileKey, Model, Phase};
use super::whatif::Tune;
use trace::order::SortFew;

/// Number of files that keep their workers: the one that is shown, and the one that it is compared with or that was shown
/// before it.
const READY: usize = 2;

/// Returns the files to put away: all but those that were shown most recently. Sessions are never put away, since they
/// would miss events. Neither are files that are still being downloaded, or for which a search for settings is running.
pub fn to_put_away(model: &Model) -> Vec<FileKey> {
    let is_ready = |file: &&FileEntry| matches!(file.phase, Phase::Ready { .. });
    let is_free = |file: &FileEntry| {
        let is_searching = file.whatif.as_ref().is_some_and(|whatif| matches!(whatif.tune, Tune::Running { .. }));
        file.live.is_none() && file.missing_detail().is_none() && !is_searching
    };
    let mut ready: Vec<&FileEntry> = model.files.iter().filter(is_ready).filter(|file| file.live.is_none()).collect();
    let base = model.shown_base().map(|(key, _)| key);
    let is_shown = |file: &FileEntry| (model.current == Some(file.key), base == Some(file.key));
    ready.sort_few_by_key(|file| std::cmp::Reverse((is_shown(file), file.looked_at)));
    let away = ready.into_iter().skip(READY).filter(|file| is_free(file) && is_shown(file) == (false, false));
    away.map(|file| file.key).collect()
}

/// Returns the files that were put away and are shown, alone or in a comparison.
pub fn to_bring_back(model: &Model) -> Vec<&FileEntry> {
    let shown = model.current.into_iter().chain(model.shown_base().map(|(key, _)| key));
    shown.filter_map(|key| model.entry(key)).filter(|file| file.phase == Phase::Away).collect()
}

/// Returns whether a person has made what-if runs of a file, which are kept.
fn has_runs(file: &FileEntry) -> bool {
    file.whatif.as_ref().is_some_and(|whatif| whatif.runs.len() > 1 || whatif.tune != Tune::None)
}

/// Notes that a file's worker was ended.
pub(super) fn put_away(model: &mut Model, key: FileKey) {
    if let Some(file) = model.files.iter_mut().find(|file| file.key == key) {
        file.phase = Phase::Away;
        file.memory = 0;
        if !has_runs(file) {
            file.whatif = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{added, after, read, watched};
    use crate::model::{Action, Tab, update};

    fn opened(files: u32) -> Model {
        let open = |key| [added(key, "a"), read(key, &[1000]), Action::SelectFile(FileKey(key))];
        after((0..files).flat_map(open))
    }

    #[test]
    fn the_two_files_that_were_looked_at_last_stay() {
        assert_eq!(to_put_away(&opened(2)), []);
        assert_eq!(to_put_away(&opened(4)), [FileKey(1), FileKey(0)]);
        let back = update(&opened(4), Action::SelectFile(FileKey(0)));
        assert_eq!(to_put_away(&back), [FileKey(2), FileKey(1)]);
        let start = update(&back, Action::ShowStart);
        assert_eq!(to_put_away(&start), [FileKey(2), FileKey(1)], "the start page is no file");
    }

    #[test]
    fn the_base_of_a_comparison_stays_and_is_brought_back() {
        let model = update(&opened(4), Action::SetBase(FileKey(0), 0));
        assert_eq!(to_put_away(&model), [FileKey(1), FileKey(0)], "it is not shown");
        let compared = update(&model, Action::SetTab(Tab::Compare));
        assert_eq!(to_put_away(&compared), [FileKey(2), FileKey(1)]);
        let away = update(&compared, Action::PutAway(FileKey(0)));
        assert_eq!(to_bring_back(&away).iter().map(|file| file.key).collect::<Vec<_>>(), [FileKey(0)]);
    }

    #[test]
    fn sessions_stay_and_do_not_count() {
        let model = watched(9, 100).into_iter().fold(opened(3), |model, action| update(&model, action));
        assert_eq!(to_put_away(&model), [FileKey(0)]);
    }

    #[test]
    fn a_file_that_returns_is_where_it_was_left() {
        let model = update(&update(&opened(1), Action::SetTab(Tab::Flame)), Action::Zoom { factor: 0.5, at: None });
        let left = model.view.clone();
        let more = [added(1, "b"), read(1, &[10]), Action::SelectFile(FileKey(1)), Action::PutAway(FileKey(0))];
        let away = more.into_iter().fold(model, |model, action| update(&model, action));
        assert_eq!(away.entry(FileKey(0)).map(|file| &file.phase), Some(&Phase::Away));
        let back = [Action::SelectFile(FileKey(0)), Action::Returned(FileKey(0)), read(0, &[1000])];
        let back = back.into_iter().fold(away, |model, action| update(&model, action));
        assert_eq!(back.view, left);
        assert!(back.file().is_some_and(|file| !file.returns && file.summary().is_some()));
    }
}
