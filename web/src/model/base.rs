//! The run that the current one is compared with.

use query::link::{BaseRun, RunId};
use query::{ComparedMoment, DeviceSummary};

use super::state::{FileEntry, FileKey, Model, Phase};
use super::view::Tab;

/// The run that the current one is compared with, as it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// A device of an open file, by its index.
    Open(FileKey, u32),
    /// The run of a link, which may not be open.
    Linked(Box<BaseRun>),
}

impl Model {
    /// Returns the file and the device that the current ones are compared with. Unless a person or a link has chosen, that is
    /// the file that was shown before. `None` if there is none, or the one of a link is not open.
    pub fn base(&self) -> Option<(FileKey, u32)> {
        match &self.view.base {
            Some(Base::Open(key, device)) if self.entry(*key).is_some() => Some((*key, *device)),
            Some(Base::Linked(base)) => {
                self.files.iter().find(|file| is_of(file, base)).map(|file| (file.key, base.device))
            }
            // An old link of two steps names no base.
            None if self.view.compared.is_some() => self.current.map(|key| (key, self.view.device)),
            _ => {
                let others = self.files.iter().filter(|file| self.current != Some(file.key) && is_trace(file));
                others.max_by_key(|file| (file.looked_at, file.key)).map(|file| (file.key, file.view.device))
            }
        }
    }

    /// Returns the base while it is shown.
    pub fn shown_base(&self) -> Option<(FileKey, u32)> {
        self.base().filter(|_| self.current.is_some() && self.view.shows(Tab::Compare))
    }

    /// Returns the run of a link that is not open.
    pub fn missing_base(&self) -> Option<&BaseRun> {
        match &self.view.base {
            Some(Base::Linked(base)) if self.base().is_none() => Some(base),
            _ => None,
        }
    }

    /// Returns the model as if a device of another file were shown, with the settings of the current view. `None` if that is not
    /// there.
    pub fn beside(&self, (key, device): (FileKey, u32)) -> Option<Self> {
        let file = self.entry(key)?;
        let summary = file.summary().filter(|summary| summary.devices.get(device as usize).is_some())?;
        let mut view = if self.current == Some(key) { self.view.clone() } else { file.view.clone() };
        if view.device != device {
            view.device = device;
            view.reset_to_device(summary);
        }
        view.settings = self.view.settings.clone();
        let mut model = self.clone();
        (model.current, model.view) = (Some(key), view);
        Some(model)
    }

    /// Returns this model after something was done to what [`Self::beside`] returned. A file has one view: that of its other
    /// device is not kept while the file itself is shown.
    pub(super) fn with_beside(&self, (key, _): (FileKey, u32), mut changed: Self) -> Self {
        let mut view = self.view.clone();
        view.settings.clone_from(&changed.view.settings);
        let other = std::mem::replace(&mut changed.view, view);
        if let Some(file) = changed.files.iter_mut().find(|file| file.key == key && self.current != Some(key)) {
            file.view = other;
        }
        changed.current = self.current;
        changed.pane.clone_from(&self.pane);
        changed.history.clone_from(&self.history);
        changed
    }

    /// Returns the cursor of the base, if the two are compared at their cursors and the base has one of its own.
    pub(super) fn base_cursor(&self) -> Option<u32> {
        if self.view.settings.compared_moment != ComparedMoment::Cursor {
            return None;
        }
        match self.base() {
            Some((key, _)) if self.current == Some(key) => None,
            Some((key, _)) if self.view.base_cursor.is_none() => self.entry(key).map(|file| file.view.cursor),
            _ => self.view.base_cursor,
        }
    }

    /// Compares two runs at their peaks if one of them ran out of memory and the other did not: in the steps that both have, the one
    /// that failed may have been the smaller one. A file and its run under other settings have the same requests at every step.
    pub(super) fn choose_moment(&mut self) {
        let Some(((key, device), file)) = self.shown_base().zip(self.file()) else { return };
        let failed = |device: Option<&DeviceSummary>| device.map(|device| device.decisive_oom.is_some());
        let Some(other) = self.entry(key) else { return };
        let base = other.summary().and_then(|summary| summary.devices.get(device as usize));
        let [own, base] = [failed(self.device()), failed(base)];
        let are_alike = is_run_of(&file.name, &other.name) || is_run_of(&other.name, &file.name);
        if own != base && base.is_some() && !are_alike && self.view.settings.compared_moment == ComparedMoment::Common {
            self.view.settings.compared_moment = ComparedMoment::Peak;
        }
    }

    /// Gives the base the cursor that a link says it has, once it is open.
    pub(super) fn settle_base(&mut self) {
        let Some((cursor, (key, device))) = self.view.base_cursor.zip(self.base()) else { return };
        let is_other = self.current != Some(key);
        let file = self.files.iter_mut().find(|file| file.key == key);
        let Some(file) = file.filter(|file| file.summary().is_some()) else { return };
        let events = file.summary().and_then(|summary| Some(summary.devices.get(device as usize)?.events));
        if let Some(events) = events.filter(|_| is_other) {
            file.view.cursor = cursor.min(events);
        }
        self.view.base_cursor = None;
    }

    /// Returns what a link says of the base.
    pub(super) fn base_run(&self) -> Option<BaseRun> {
        let Some((key, device)) = self.base() else { return self.missing_base().cloned() };
        let file = self.entry(key)?;
        let id = match (&file.live, &file.shared, file.hash) {
            (Some(live), ..) => RunId::Session(live.session.clone()),
            (_, Some(shared), _) => RunId::Shared(shared.token.clone()),
            (.., Some(hash)) => RunId::File(hash),
            _ => RunId::Name,
        };
        Some(BaseRun { device, id, name: file.name.clone() })
    }
}

/// Returns whether a file is a run of What-if of another, by their names.
fn is_run_of(run: &str, file: &str) -> bool {
    run.strip_prefix(file.strip_suffix(".vramscope").unwrap_or(file)).is_some_and(|rest| rest.starts_with(" with "))
}

/// Returns whether a file can be compared, once it has been read.
pub fn is_trace(file: &FileEntry) -> bool {
    !matches!(file.phase, Phase::Failed { .. } | Phase::Sweep(_))
}

/// Returns whether a link's run is that of a file.
pub(super) fn is_of(file: &FileEntry, base: &BaseRun) -> bool {
    match &base.id {
        RunId::Name => file.name == base.name,
        RunId::File(hash) => file.hash == Some(*hash),
        RunId::Session(session) => file.live.as_ref().is_some_and(|live| live.session == *session),
        RunId::Shared(token) => file.shared.as_ref().is_some_and(|shared| shared.token == *token),
    }
}

#[cfg(test)]
mod tests {
    use query::link::{FileHash, Link};

    use super::*;
    use crate::model::testing::{added, after, read};
    use crate::model::{Action, Setting, Shared, Tab, update};

    fn two() -> Model {
        after([added(0, "a"), read(0, &[10, 20]), added(1, "b"), read(1, &[30]), Action::SelectFile(FileKey(1))])
    }

    #[test]
    fn runs_of_which_one_failed_are_compared_at_their_peaks_unless_another_moment_was_chosen() {
        let moment = |failed: &[usize], before: Option<ComparedMoment>| {
            let mut model = two();
            for file in failed {
                if let Some(Phase::Ready { summary, .. }) = model.files.get_mut(*file).map(|file| &mut file.phase) {
                    let mut with = (**summary).clone();
                    with.devices.iter_mut().for_each(|device| device.decisive_oom = Some(7));
                    *summary = Shared::new(with);
                }
            }
            let set = before.map(|moment| Action::Set(Setting::ComparedMoment(moment)));
            let actions = set.into_iter().chain([Action::SetTab(Tab::Compare)]);
            actions.fold(model, |model, action| update(&model, action)).view.settings.compared_moment
        };
        assert_eq!([moment(&[], None), moment(&[0, 1], None)], [ComparedMoment::Common; 2]);
        assert_eq!([moment(&[0], None), moment(&[1], None)], [ComparedMoment::Peak; 2]);
        assert_eq!(moment(&[1], Some(ComparedMoment::End)), ComparedMoment::End);
        let run = "a with expandable_segments:True.vramscope";
        assert_eq!(["a.vramscope", "a", "b"].map(|file| is_run_of(run, file)), [true, true, false]);
        // Chosen again while it is shown.
        let mut shown = update(&two(), Action::SetTab(Tab::Compare));
        crate::model::testing::add_oom(&mut shown);
        let again = update(&shown, Action::SetTab(Tab::Compare));
        assert_eq!(again.view.settings.compared_moment, ComparedMoment::Common);
    }

    #[test]
    fn the_file_that_was_shown_before_is_the_base_until_one_is_chosen() {
        let model = two();
        assert_eq!(model.base().map(|(key, _)| key), Some(FileKey(0)));
        let chosen = update(&model, Action::SetBase(FileKey(1), 0));
        assert_eq!(chosen.base(), Some((FileKey(1), 0)), "another device of the same file may be one");
        let closed = update(&update(&model, Action::SetBase(FileKey(0), 1)), Action::FileClosed(FileKey(0)));
        assert_eq!(closed.base(), None);
    }

    #[test]
    fn the_two_change_places_and_the_tab_stays() {
        let model = [Action::SetTab(Tab::Compare), Action::SetBase(FileKey(0), 1), Action::SwapBase];
        let model = model.into_iter().fold(two(), |model, action| update(&model, action));
        assert_eq!((model.current, model.view.device, model.view.tab), (Some(FileKey(0)), 1, Tab::Compare));
        assert_eq!(model.base(), Some((FileKey(1), 0)));
        let back = update(&model, Action::SwapBase);
        assert_eq!((back.current, back.base()), (Some(FileKey(1)), Some((FileKey(0), 1))));
    }

    #[test]
    fn a_file_that_is_dropped_on_the_comparison_is_compared_with_the_shown_one() {
        let dropped = [added(0, "a"), read(0, &[10]), Action::SetTab(Tab::Compare), added(1, "b"), read(1, &[20])];
        let model = after(dropped);
        assert_eq!((model.current, model.base()), (Some(FileKey(1)), Some((FileKey(0), 0))));
        assert_eq!(model.view.tab, Tab::Compare);
    }

    #[test]
    fn a_link_waits_for_its_own_file_when_its_base_is_opened_first() {
        let (own, hash) = (FileHash::of_digest(&[8; 32]), FileHash::of_digest(&[7; 32]));
        let base = BaseRun { device: 0, id: RunId::File(hash), name: "a".to_owned() };
        let (file, tab) = (Some("b".to_owned()), Tab::Compare);
        let link = Link { file, hash: Some(own), tab, base: Some(base), ..Link::default() };
        let first = [
            Action::LinkRead(Box::new(link.into())),
            added(0, "a"),
            Action::FileHashed { key: FileKey(0), hash },
            read(0, &[10]),
        ];
        let model = after(first);
        assert!(
            model.notice.as_ref().is_some_and(|notice| notice.text.contains("Open “b”, too")) && model.link.is_some()
        );
        let second = [added(1, "b"), Action::FileHashed { key: FileKey(1), hash: own }, read(1, &[20])];
        let model = second.into_iter().fold(model, |model, action| update(&model, action));
        assert_eq!(
            (model.current, model.base(), model.view.tab),
            (Some(FileKey(1)), Some((FileKey(0), 0)), Tab::Compare)
        );
    }

    #[test]
    fn a_link_finds_its_base_by_its_content() {
        let hash = FileHash::of_digest(&[7; 32]);
        let base = BaseRun { device: 1, id: RunId::File(hash), name: "a".to_owned() };
        let link = Link { tab: Tab::Compare, base: Some(base.clone()), ..Link::default() };
        let model = [added(1, "b"), read(1, &[30]), Action::LinkRead(Box::new(link.into()))];
        let waits = after(model);
        assert_eq!((waits.base(), waits.missing_base()), (None, Some(&base)));
        assert_eq!(waits.view_link().and_then(|link| link.base), Some(base), "the address goes on naming it");
        let open = [added(0, "other name"), read(0, &[5, 6]), Action::FileHashed { key: FileKey(0), hash }];
        let found = open.into_iter().fold(waits, |model, action| update(&model, action));
        assert_eq!(found.base(), Some((FileKey(0), 1)));
    }

    #[test]
    fn a_link_has_the_cursor_of_its_base_if_cursors_are_compared() {
        let cursors = Action::Set(Setting::ComparedMoment(ComparedMoment::Cursor));
        let moved = Action::Of((FileKey(0), 0), Box::new(Action::SetCursor(3)));
        let own = [Action::SetTab(Tab::Compare), cursors, moved, Action::SetCursor(7)];
        let model = own.into_iter().fold(two(), |model, action| update(&model, action));
        let link = model.view_link().unwrap();
        assert_eq!((link.cursor, link.base_cursor), (Some(7), Some(3)));
        // Elsewhere, the base may be opened first or last.
        let (a, b) = ([added(0, "a"), read(0, &[10, 20])], [added(1, "b"), read(1, &[30])]);
        for files in [[a.clone(), b.clone()], [b, a]] {
            let link = Link { file: Some("b".to_owned()), ..link.clone() };
            let first = [Action::LinkRead(Box::new(link.into()))];
            let other = after(first.into_iter().chain(files.into_iter().flatten()));
            let other = update(&other, Action::SelectFile(FileKey(1)));
            assert_eq!(other.view_link().unwrap().base_cursor, Some(3));
            assert_eq!((other.view.cursor, other.entry(FileKey(0)).unwrap().view.cursor), (7, 3));
        }
        let peaks = update(&model, Action::Set(Setting::ComparedMoment(ComparedMoment::Peak)));
        assert_eq!(peaks.view_link().unwrap().base_cursor, None);
    }

    #[test]
    fn what_is_done_beside_the_shown_file_is_done_to_the_other_one() {
        let model = update(&two(), Action::SetBase(FileKey(0), 1));
        let moved = update(&model, Action::Of((FileKey(0), 1), Box::new(Action::SetCursor(3))));
        assert_eq!((moved.current, moved.view.cursor), (model.current, model.view.cursor));
        let beside = moved.beside((FileKey(0), 1)).unwrap();
        assert_eq!((beside.current, beside.view.device, beside.view.cursor), (Some(FileKey(0)), 1, 3));
        assert_eq!((moved.history.number(), moved.beside((FileKey(0), 7))), (model.history.number(), None));
        let set = Action::Of((FileKey(0), 1), Box::new(Action::Set(Setting::HeatmapSizes(true))));
        assert!(update(&moved, set).view.settings.heatmap_sizes, "settings are those of both");
    }

    #[test]
    fn back_goes_to_the_base_before() {
        let model = [Action::SetTab(Tab::Compare), Action::SetBase(FileKey(0), 0), Action::SetBase(FileKey(0), 1)];
        let model = model.into_iter().fold(two(), |model, action| update(&model, action));
        let back = update(&model, Action::StepTo(model.history.number() - 1));
        assert_eq!(back.base(), Some((FileKey(0), 0)));
    }
}
